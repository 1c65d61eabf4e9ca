/** Space that is given back, and space that never is: over the real stream layer on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes, fromUtf8, Prng, utf8 } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { type CollectRangeResponse, PartitionManager, PartitionServer, type RangePartition, StreamManager } from "@stamp/wire";
import { blobRange, Client, container, container1, name, stamp } from "../testing/stack-harness.ts";

/** Small extents that are looked at as soon as they are full. */
const servers = { extentTargetBytes: 64 * 1024, pinTermMs: 1, collectGoneMs: 1, collectEveryMs: 86_400_000 };
const bodyBytes = 20_000;
/** No two bytes that follow one another are alike. */
const bodyOf = (fill: number): Uint8Array => Uint8Array.from({ length: bodyBytes }, (_, i) => fill + i * 7);

async function ready(sim: Simulation): Promise<Client> {
  await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
  return new Client(sim);
}

/** The first pass learns which extents are full and which containers are gone, the second deletes rows, the third what they referred to. */
async function collect(sim: Simulation, rangeId = "blob-1", passes = 2): Promise<CollectRangeResponse> {
  const manager = sim.world("operator").transport.client("pm", PartitionManager);
  for (let pass = 0; ; pass++) {
    const collected = await manager.collectRange({ rangeId }, { timeoutMs: 60_000 });
    assert.ok(collected.ok, collected.ok ? "" : collected.failure.message);
    if (pass + 1 >= passes) return collected.value;
    await sim.sleep(10);
  }
}

async function put(client: Client, blob: string, incarnation: bigint, fill: number): Promise<void> {
  const kind = { case: "putBlob", value: { name: name(blob, incarnation) } };
  const places = await client.write(kind, bodyOf(fill));
  const done = await client.execute({ ...kind, value: { ...kind.value, body: { inline: new Uint8Array(0), places } } });
  assert.equal(done.case, "blob");
}

async function move(sim: Simulation): Promise<void> {
  const { server } = await blobRange(sim);
  const to = server === "ps-1" ? "ps-2" : "ps-1";
  const moved = await sim
    .world("operator")
    .transport.client("pm", PartitionManager)
    .movePartition({ rangeId: "blob-1", server: to }, { timeoutMs: 30_000 });
  assert.ok(moved.ok, moved.ok ? "" : moved.failure.message);
}

/** Extents of the blob data stream, as the stream manager has them. */
async function dataExtents(sim: Simulation): Promise<Set<bigint>> {
  const manager = sim.world("operator").transport.client("sm", StreamManager);
  const stream = await manager.getStream({ name: "/ps/blob-1/blob-data" }, { timeoutMs: 1_000 });
  assert.ok(stream.ok);
  return new Set(stream.value.extents.map(({ extentId }) => extentId));
}

async function placesOf(client: Client, blob: string, incarnation: bigint) {
  const got = await client.execute({ case: "getBlob", value: { name: name(blob, incarnation) } });
  return got.case === "content" ? got.value.places : undefined;
}

test("collector: while a pass runs, its server tells the range and the rows; afterwards nothing", async () => {
  const sim = stamp(1, servers);
  await sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    for (let at = 0; at < 40; at++) await put(client, `b${at}`, incarnation, at);
    const told = () =>
      ["ps-1", "ps-2"].map((name) => sim.role(name)?.status.facts.collecting as { range?: string; rows?: number } | undefined);
    let ended = false;
    const collecting = collect(sim, "blob-1", 3).finally(() => {
      ended = true;
    });
    const seen: { range?: string; rows?: number }[] = [];
    while (!ended) {
      await sim.sleep(1);
      seen.push(
        ...told()
          .filter((each) => each?.range !== undefined)
          .map((each) => ({ ...each })),
      );
    }
    await collecting;
    assert.ok(
      seen.some(({ range, rows = 0 }) => range === "blob-1" && rows >= 40),
      JSON.stringify(seen.slice(-3)),
    );
    assert.deepEqual(told(), [{}, {}]);
  });
});

test("collector: what was in a deleted container goes, with its blob data; what is in the new one of that name stays", async () => {
  const sim = stamp(1, servers);
  await sim.run(async () => {
    const client = await ready(sim);
    const old = await container1(client);
    for (let i = 0; i < 40; i++) await put(client, `b${i}`, old, i);
    await client.execute({ case: "putBlob", value: { name: name("small", old), body: { inline: utf8("hello") } } });
    const before = await collect(sim);
    assert.equal(Number(before.rowsDeleted), 0);
    assert.ok(before.rows >= 80n && before.extents >= 10, `${before.rows} rows, ${before.extents} extents`);
    assert.equal(before.extentsDropped, 0, "everything is referred to");
    await client.execute({ case: "deleteContainer", value: container });
    const now = await container1(client);
    assert.ok(now > old);
    await put(client, "b1", now, 200);
    const after = await collect(sim, "blob-1", 3);
    assert.ok(after.extentsDropped >= 8, `${after.extentsDropped} extents`);
    const last = await collect(sim);
    assert.equal(Number(last.rowsDeleted), 0);
    assert.ok(Number(last.rows) < 10, `${last.rows} rows are left`);
    assert.equal((await placesOf(client, "b1", now))?.length, 1);
    const listed = await client.execute({ case: "listBlobs", value: { ...container, containerIncarnation: now, maxResults: 100 } });
    assert.ok(listed.case === "blobs" && listed.value.entries.length === 1);
    assert.ok((await dataExtents(sim)).size <= 4, "its extents are in no list any more");
  });
});

test("collector: a request that found its container there finds the rows in it, however many passes there were since it was deleted", async () => {
  const sim = stamp(1, { ...servers, collectGoneMs: 60_000 });
  await sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    await put(client, "b", incarnation, 1);
    await client.execute({ case: "deleteContainer", value: container });
    assert.equal(Number((await collect(sim, "blob-1", 3)).rowsDeleted), 0);
    const late = { name: name("b", incarnation), conditions: { ifNoneMatch: "*" }, body: { inline: utf8("late") } };
    assert.equal(await executeOnce(client, { case: "putBlob", value: late }), "BlobAlreadyExists");
    await sim.sleep(60_000);
    const { rows } = await collect(sim);
    assert.equal(Number(rows), 0);
  });
});

test("collector: a container is deleted while nothing changes in the range of its blobs: passes take them away by themselves", async () => {
  const sim = stamp(1, { ...servers, collectEveryMs: 1_000 });
  await sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    for (let i = 0; i < 40; i++) await put(client, `b${i}`, incarnation, i);
    await sim.sleep(20_000);
    assert.ok((await dataExtents(sim)).size >= 10);
    await client.execute({ case: "deleteContainer", value: container });
    await sim.until(async () => (await dataExtents(sim)).size <= 1, 60_000, "their extents are dropped");
  });
});

test("collector: space of a deleted container comes back within ten minutes while its range goes elsewhere every 70 s", async () => {
  // The times of production.
  const sim = stamp(4, { extentTargetBytes: 64 * 1024 });
  await sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    for (let i = 0; i < 40; i++) await put(client, `b${i}`, incarnation, i);
    await client.execute({ case: "deleteContainer", value: container });
    const deletedMs = sim.nowMs;
    const whole = (await dataExtents(sim)).size;
    assert.ok(whole >= 10, `${whole} extents`);
    for (let change = 0; (await dataExtents(sim)).size > 2; change++) {
      assert.ok(sim.nowMs - deletedMs < 8 * 60_000, "its extents are dropped, and 120 s later deleted");
      // Nobody who served it once knows anything of it but from its metadata.
      const { server } = await blobRange(sim);
      if (change % 2 === 0) await move(sim);
      sim.crash(server);
      await sim.sleep(70_000);
    }
  });
});

test("collector: while nobody says whether a container is there, nothing of it is taken away", async () => {
  const sim = stamp(3, servers);
  await sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    for (let i = 0; i < 5; i++) await put(client, `b${i}`, incarnation, i);
    const { transport } = sim.world("operator");
    const map = await transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 500 });
    const range = (map.ok ? map.value.ranges.find(({ table }) => table === "Blob") : undefined) as RangePartition;
    // Where the container's row is has to be asked for, and nobody is there to ask.
    sim.crash("pm", { stayDown: true });
    const server = transport.client(range.serverAddress, PartitionServer);
    for (let pass = 0; pass < 3; pass++) {
      const collected = await server.collectPartition({ rangeId: range.rangeId }, { timeoutMs: 60_000 });
      assert.ok(!collected.ok, "a pass that does not know does not end well");
      await sim.sleep(10);
    }
    sim.restart("pm");
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready again");
    assert.equal(Number((await collect(sim)).rowsDeleted), 0);
    for (let i = 0; i < 5; i++) assert.equal((await placesOf(client, `b${i}`, incarnation))?.length, 1, `b${i}`);
  });
});

test("collector: bytes that were put before a pass and are named after it are refused, never lost", async () => {
  const sim = stamp(2, servers);
  await sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    const kind = { case: "putBlob", value: { name: name("late", incarnation) } };
    const places = await client.write(kind, bodyOf(1));
    // Their extent gets full.
    for (let i = 0; i < 8; i++) await client.write(kind, bodyOf(2));
    const collected = await collect(sim, "blob-1", 1);
    assert.ok(collected.extentsDropped > 0);
    const map = await client.world.transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 500 });
    const range = (map.ok ? map.value.ranges.find(({ table }) => table === "Blob") : undefined) as RangePartition;
    const request = {
      rangeId: range.rangeId,
      rangeVersion: range.rangeVersion,
      operation: { kind: { ...kind, value: { ...kind.value, body: { inline: new Uint8Array(0), places } } } as never },
    };
    const answer = await client.world.transport.client(range.serverAddress, PartitionServer).execute(request, { timeoutMs: 3_000 });
    assert.ok(!answer.ok && answer.failure.reason === "badPlace", JSON.stringify(answer.ok ? "ok" : answer.failure.reason));
    await put(client, "late", incarnation, 1);
    assert.equal((await placesOf(client, "late", incarnation))?.length, 1);
  });
});

/** Writers that overwrite and delete while passes follow one another; in the end every blob has what was acknowledged last. */
async function churn(seed: number): Promise<{ dropped: number; refused: number }> {
  const sim = stamp(seed, servers);
  return sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    const fills = new Map<string, number>();
    let stopped = false;
    let refused = 0;
    const writer = async (of: string, prng: Prng): Promise<void> => {
      while (!stopped) {
        const blob = `${of}-${prng.below(6)}`;
        const fill = 1 + prng.below(250);
        const kind = { case: "putBlob", value: { name: name(blob, incarnation) } };
        if (prng.chance(0.2)) {
          await client.execute({ case: "deleteBlob", value: { name: name(blob, incarnation) } });
          fills.delete(blob);
          continue;
        }
        const places = await client.write(kind, bodyOf(fill));
        // Some take their time: whole passes lie between the bytes and the row.
        if (prng.chance(0.3)) await sim.sleep(prng.below(3_000));
        const done = await executeOnce(client, { ...kind, value: { ...kind.value, body: { inline: new Uint8Array(0), places } } });
        if (done === "blob") fills.set(blob, fill);
        else refused++;
      }
    };
    const writers = ["x", "y", "z"].map((of, i) => writer(of, new Prng(seed * 10 + i)));
    let dropped = 0;
    for (let pass = 0; pass < 12; pass++) {
      dropped += (await collect(sim, "blob-1", 1)).extentsDropped;
      await sim.sleep(sim.prng.below(1_500));
    }
    stopped = true;
    await Promise.all(writers);
    await collect(sim);
    const there = await dataExtents(sim);
    for (const [blob, fill] of fills) {
      const places = await placesOf(client, blob, incarnation);
      assert.ok(places, `${blob} is gone`);
      for (const { extentId } of places) assert.ok(there.has(extentId), `extent ${extentId} of ${blob} was given back`);
      for (const place of places) assert.equal(await byteAt(sim, client, blob, incarnation), fill, `${blob} at ${place.extentId}`);
    }
    return { dropped, refused };
  });
}

/** `blob`, or the reason of the refusal. */
async function executeOnce(client: Client, kind: object): Promise<string> {
  const map = await client.world.transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 500 });
  const range = (map.ok ? map.value.ranges.find(({ table }) => table === "Blob") : undefined) as RangePartition;
  const request = { rangeId: range.rangeId, rangeVersion: range.rangeVersion, operation: { kind: kind as never } };
  const answer = await client.world.transport.client(range.serverAddress, PartitionServer).execute(request, { timeoutMs: 3_000 });
  if (!answer.ok) return answer.failure.reason;
  const result = answer.value.result?.kind;
  return result?.case === "error" ? result.value.code : String(result?.case);
}

/** The first byte of the blob, from an extent node. */
async function byteAt(sim: Simulation, client: Client, blob: string, incarnation: bigint): Promise<number> {
  const { StreamClient } = await import("@stamp/stream-client");
  const reader = new StreamClient(sim.world("client"), { lockService: "lock" }).reader;
  const place = (await placesOf(client, blob, incarnation))?.[0];
  assert.ok(place);
  const bytes = await reader.read(
    { extentId: Number(place.extentId), offsetBytes: Number(place.offsetBytes), lengthBytes: place.lengthBytes },
    { timeoutMs: 5_000 },
  );
  assert.ok(bytes.ok, bytes.ok ? "" : `${blob}: ${bytes.failure.message}`);
  return bytes.value[0] as number;
}

test("collector: while blobs are written, overwritten and deleted, nothing that was acknowledged goes", async () => {
  let dropped = 0;
  let refused = 0;
  for (let seed = 11; seed <= 14; seed++) {
    const done = await churn(seed);
    dropped += done.dropped;
    refused += done.refused;
  }
  assert.ok(dropped > 8, `${dropped} extents`);
  assert.ok(refused > 0, "no pass came between bytes and their row");
});

/** First byte and ETag of every blob. */
async function contents(
  sim: Simulation,
  client: Client,
  blobs: readonly string[],
  incarnation: bigint,
): Promise<[string, number, string][]> {
  const all: [string, number, string][] = [];
  for (const blob of blobs) {
    const got = await client.execute({ case: "getBlob", value: { name: name(blob, incarnation) } });
    assert.ok(got.case === "content", blob);
    all.push([blob, await byteAt(sim, client, blob, incarnation), String(got.value.blob?.etag)]);
  }
  return all;
}

test("collector: extents that are mostly dead are rewritten: space comes back, blobs and what reads them stay", async () => {
  const sim = stamp(21, servers);
  await sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    const prng = new Prng(21);
    for (let i = 0; i < 60; i++) await put(client, `b${i}`, incarnation, 1 + i);
    await collect(sim);
    const before = await dataExtents(sim);
    const left = Array.from({ length: 60 }, (_, i) => `b${i}`).filter((_, i) => i === 5 || (Math.abs(i - 5) > 3 && prng.chance(0.1)));
    for (let i = 0; i < 60; i++) {
      if (!left.includes(`b${i}`)) await client.execute({ case: "deleteBlob", value: { name: name(`b${i}`, incarnation) } });
    }
    const blobs = await contents(sim, client, left, incarnation);
    const old = await placesOf(client, "b5", incarnation);
    const after = await collect(sim, "blob-1", 0);
    assert.ok(after.extentsRewritten > 0 && after.bytesRewritten >= BigInt(bodyBytes), `${after.extentsRewritten} extents`);
    const there = await dataExtents(sim);
    assert.ok(there.size <= 2 + Math.ceil(left.length / 3), `${there.size} extents for ${left.length} blobs, ${before.size} before`);
    assert.deepEqual(await contents(sim, client, left, incarnation), blobs);
    for (const blob of left) for (const { extentId } of (await placesOf(client, blob, incarnation)) ?? []) assert.ok(there.has(extentId));
    // A reader that was told the old places still reads them.
    assert.ok(old?.every(({ extentId }) => !there.has(extentId)));
    const { StreamClient } = await import("@stamp/stream-client");
    const reader = new StreamClient(sim.world("client"), { lockService: "lock" }).reader;
    for (const { extentId, offsetBytes, lengthBytes } of old ?? []) {
      const place = { extentId: Number(extentId), offsetBytes: Number(offsetBytes), lengthBytes };
      const bytes = await reader.read(place, { timeoutMs: 5_000 });
      assert.ok(bytes.ok && bytes.value[0] === 6, "read through the grace");
    }
    assert.equal((await collect(sim)).extentsRewritten, 0, "it comes to rest");
  });
});

test("collector: a server that dies while it rewrites extents loses nothing", async () => {
  for (let seed = 31; seed <= 34; seed++) {
    // Slow enough to be killed in it.
    const sim = stamp(seed, { ...servers, collectRewriteBytesPerSecond: 40_000 });
    await sim.run(async () => {
      const client = await ready(sim);
      const incarnation = await container1(client);
      for (let i = 0; i < 40; i++) await put(client, `b${i}`, incarnation, 1 + i);
      await collect(sim);
      const left = Array.from({ length: 40 }, (_, i) => `b${i}`).filter((_, i) => i % 8 === 3);
      for (let i = 0; i < 40; i++) {
        if (i % 8 !== 3) await client.execute({ case: "deleteBlob", value: { name: name(`b${i}`, incarnation) } });
      }
      const blobs = await contents(sim, client, left, incarnation);
      const map = await client.world.transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 500 });
      const range = map.ok ? map.value.ranges.find(({ table }) => table === "Blob") : undefined;
      const manager = sim.world("operator").transport.client("pm", PartitionManager);
      const cut = manager.collectRange({ rangeId: "blob-1" }, { timeoutMs: 60_000 });
      await sim.sleep(300 + sim.prng.below(2_000));
      sim.crash(String(range?.server));
      assert.equal((await cut).ok, false, "it was in the middle");
      assert.deepEqual(await contents(sim, client, left, incarnation), blobs);
      await collect(sim);
      assert.deepEqual(await contents(sim, client, left, incarnation), blobs);
      const there = await dataExtents(sim);
      assert.ok(there.size <= 4, `${there.size} extents`);
    });
  }
});

test("collector: rows are told apart by their keys", async () => {
  const { ownerOfRow, parentRows, rowsInside, containerKey, accountKey } = await import("@stamp/objects");
  const key = containerKey("acct", "c");
  assert.deepEqual(ownerOfRow(key), { kind: "other" });
  assert.deepEqual(ownerOfRow(accountKey("acct")), { kind: "other" });
  const { low, high } = parentRows({ account: "acct", name: "c" });
  assert.ok(compareBytes(low, key) <= 0 && compareBytes(key, high) < 0);
  const inside = rowsInside({ account: "acct", name: "c", incarnation: 7 });
  const other = rowsInside({ account: "acct", name: "c", incarnation: 7 * 256 });
  assert.ok(compareBytes(inside.high, other.low) <= 0 || compareBytes(other.high, inside.low) <= 0);
  assert.equal(fromUtf8(utf8("c")), "c");
});
