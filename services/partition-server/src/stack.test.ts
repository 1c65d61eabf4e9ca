/** The partition layer over the real stream layer, every role on virtual time: cold start, objects of all kinds, and loss of any one process. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, unwrap, utf8 } from "@stamp/base";
import { restoreMetadata } from "@stamp/lock-service";
import { inMemory, openSnapshot } from "@stamp/metadata-store";
import { routeOf } from "@stamp/objects";
import type { Simulation } from "@stamp/virtual-time";
import { PartitionManager, PartitionServer, type RangePartition } from "@stamp/wire";
import { Client, container, container1, type LockHook, name, stamp } from "./testing/stack-harness.ts";

test("stack: from nothing to an account, a container, blobs, blocks and a listing", async () => {
  const sim = stamp(1);
  await sim.run(async () => {
    const client = new Client(sim);
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, `ready: ${JSON.stringify(sim.role("pm")?.status)}`);
    const account = await client.execute({ case: "getAccount", value: { account: "devstoreaccount1" } });
    assert.ok(account.case === "account" && account.value.keys.length === 1);
    const inc = await container1(client);
    const put = await client.execute({ case: "putBlob", value: { name: name("a", inc), body: { inline: utf8("hello") } } });
    assert.equal(put.case, "blob");
    const got = await client.execute({ case: "getBlob", value: { name: name("a", inc) } });
    assert.ok(got.case === "content" && fromUtf8(got.value.inline) === "hello" && got.value.blob?.etag === put.value.etag);

    const blockName = name("dir/b", inc);
    const blockIds = ["01", "02", "03"].map(utf8);
    for (const blockId of blockIds) {
      const places = await client.write({ case: "putBlob", value: { name: blockName } }, new Uint8Array(10_000).fill(blockId[1] as number));
      const staged = await client.execute({
        case: "putBlock",
        value: { name: blockName, blockId, body: { inline: new Uint8Array(0), places } },
      });
      assert.equal(staged.case, "done");
    }
    const blocks = blockIds.toReversed().map((blockId) => ({ blockId, source: 3 }));
    const committed = await client.execute({ case: "putBlockList", value: { name: blockName, blocks, metadata: { k: "v" } } });
    assert.ok(committed.case === "blob" && committed.value.contentLengthBytes === 30_000n, String(committed.case));
    const content = await client.execute({ case: "getBlob", value: { name: blockName, startBytes: 5_000n, endBytes: 25_000n } });
    assert.ok(content.case === "content" && content.value.lengthBytes === 20_000n);
    assert.deepEqual(
      content.value.places.map((place) => place.lengthBytes),
      [5_000, 10_000, 5_000],
    );
    assert.ok(content.value.extents.length >= 1 && content.value.extents.every((extent) => extent.addresses.length === 3));

    const listed = await client.execute({
      case: "listBlobs",
      value: { ...container, containerIncarnation: inc, prefix: "", marker: "", delimiter: "/" },
    });
    assert.ok(listed.case === "blobs");
    assert.deepEqual(
      listed.value.entries.map((entry) => (entry.kind.case === "prefix" ? entry.kind.value : entry.kind.value?.name)),
      ["a", "dir/"],
    );
    const deleted = await client.execute({ case: "deleteContainer", value: container });
    assert.equal(deleted.case, "done");
    const again = await container1(client);
    const gone = await client.execute({ case: "getBlob", value: { name: name("a", again) } });
    assert.ok(gone.case === "error" && gone.value.code === "BlobNotFound");
  });
});

for (const victim of ["ps-1", "ps-2", "pm", "sm", "lock", "en-1", "everything"]) {
  test(`stack: what was acknowledged is there after the loss of ${victim}`, async () => {
    const sim = stamp(victim.length * 7);
    await sim.run(async () => {
      const client = new Client(sim);
      await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
      const inc = await container1(client);
      const etags = new Map<string, string>();
      for (let i = 0; i < 30; i++) {
        if (i === 10) for (const one of victim === "everything" ? sim.processNames : [victim]) if (one !== "client") sim.crash(one);
        const put = await client.execute({ case: "putBlob", value: { name: name(`b${i}`, inc), body: { inline: utf8(`value ${i}`) } } });
        assert.ok(put.case === "blob");
        etags.set(`b${i}`, put.value.etag);
      }
      for (const [blob, etag] of etags) {
        const got = await client.execute({ case: "getBlob", value: { name: name(blob, inc) } });
        assert.ok(got.case === "content" && got.value.blob?.etag === etag, `${blob}: ${JSON.stringify(got.case)}`);
        assert.equal(fromUtf8(got.value.inline), `value ${blob.slice(1)}`);
      }
    });
  });
}

for (const [title, stayDown, limitMs] of [
  ["started again", false, 3_000],
  ["staying dead", true, 8_000],
] as const) {
  test(`stack: a killed partition server ${title}: its ranges are served again within ${limitMs} ms`, async () => {
    const sim = stamp(11);
    await sim.run(async () => {
      const client = new Client(sim);
      await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
      const inc = await container1(client);
      await sim.sleep(8_000);
      const kind = { case: "putBlob", value: { name: name("x", inc), body: { inline: utf8("x") } } };
      for (const server of ["ps-1", "ps-2"]) {
        sim.crash(server, { stayDown, unsynced: "kept", silent: false });
        const fromMs = sim.nowMs;
        assert.equal((await client.execute(kind)).case, "blob");
        assert.ok(sim.nowMs - fromMs < limitMs, `${server}: ${sim.nowMs - fromMs} ms`);
        if (stayDown) sim.restart(server);
        await sim.sleep(12_000);
      }
    });
  });
}

test("stack: no write fails, and its outcome is known, though it is on its way to the log when its range is split", async () => {
  const sim = stamp(7);
  await sim.run(async () => {
    const client = new Client(sim);
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
    const inc = await container1(client);
    const manager = client.world.transport.client("pm", PartitionManager);
    const parent = unwrap(await manager.getMap({}, { timeoutMs: 1_000 })).ranges.find(({ table }) => table === "Blob");
    assert.ok(parent);
    const server = client.world.transport.client(parent.serverAddress, PartitionServer);
    const put = (blob: string) => ({ case: "putBlob", value: { name: name(blob, inc), body: { inline: utf8("hello") } } }) as const;
    let over = false;
    const splitting = manager.splitPartition(
      { rangeId: parent.rangeId, atKey: routeOf(sim.rules, put("m") as never).key },
      { timeoutMs: 30_000 },
    );
    void splitting.finally(() => {
      over = true;
    });
    const { rangeId, rangeVersion } = parent;
    const etags = new Map<string, string>();
    const writers = ["a", "b", "n", "z"].flatMap((letter) =>
      Array.from({ length: 10 }, async (_, writer) => {
        for (let i = 0; !over; i++) {
          const blob = `${letter}${writer}-${i}`;
          const answer = unwrap(
            await server.execute({ rangeId, rangeVersion, operation: { kind: put(blob) as never } }, { timeoutMs: 10_000 }),
          );
          assert.ok(answer.result?.kind.case === "blob");
          etags.set(blob, answer.result.kind.value.etag);
        }
      }),
    );
    unwrap(await splitting);
    await Promise.all(writers);
    assert.ok(etags.size > 100, `${etags.size} writes`);
    for (const [blob, etag] of [...etags].filter((_, i) => i % 10 === 0)) {
      const got = await client.execute({ case: "getBlob", value: { name: name(blob, inc) } });
      assert.ok(got.case === "content" && got.value.blob?.etag === etag, blob);
    }
  });
});

test("stack: the metadata store is lost with its disk; restored from an extent node's copy everything is there and goes on", async () => {
  const lock: LockHook = {};
  const sim = stamp(21, {}, [], lock);
  await sim.run(async () => {
    const client = new Client(sim);
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
    const inc = await container1(client);
    for (let i = 0; i < 20; i++) {
      const kind = { case: "putBlob", value: { name: name(`b${i}`, inc) } };
      const places = await client.write(kind, new Uint8Array(30_000).fill(i + 1));
      await client.execute({ ...kind, value: { ...kind.value, body: { inline: new Uint8Array(0), places } } });
    }
    const epochs = (await rangesOf(sim)).map((range) => range.ownerEpoch);
    await sim.sleep(60_000);
    const copies = sim.world("en-2").disk;
    const newest = (await copies.list("metadata-copies")).at(-1);
    const content = await copies.readWhole(`metadata-copies/${newest}`);
    assert.ok(content, `a copy: ${newest}`);
    const everything = ["pm", "ps-1", "ps-2", "sm", "en-1", "en-2", "en-3", "en-4", "lock"];
    for (const process of everything) sim.crash(process, { stayDown: true });
    let restored = 0;
    lock.beforeStart = async (world) => {
      const snapshot = unwrap(await openSnapshot(inMemory(content), world.digest.crc32c));
      const refused = await restoreMetadata(world, snapshot);
      assert.ok(!refused.ok && refused.failure.reason === "conflict", "never over a store that is there");
      await world.keyValue.destroy("metadata");
      restored = unwrap(await restoreMetadata(world, snapshot));
    };
    for (const process of everything.toReversed()) sim.restart(process);
    await sim.until(() => sim.role("pm")?.status.ready === true, 60_000, "ready again");
    assert.ok(restored > 10);
    for (let i = 0; i < 20; i++) {
      const got = await client.execute({ case: "getBlob", value: { name: name(`b${i}`, inc) } });
      assert.ok(got.case === "content" && got.value.places.length > 0, `b${i}`);
    }
    const put = await client.execute({ case: "putBlob", value: { name: name("new", inc), body: { inline: utf8("after") } } });
    assert.equal(put.case, "blob");
    for (const range of await rangesOf(sim)) {
      assert.ok(
        epochs.every((epoch) => range.ownerEpoch > epoch + 900_000n),
        `${range.rangeId}: ${range.ownerEpoch}`,
      );
    }
  });
});

async function rangesOf(sim: Simulation): Promise<readonly RangePartition[]> {
  const map = await sim.world("operator").transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 1_000 });
  assert.ok(map.ok);
  return map.value.ranges;
}

test("stack: a server that reaches everybody but the streams loses what it can't load to the other", async () => {
  const sim = stamp(9);
  await sim.run(async () => {
    const client = new Client(sim);
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
    const inc = await container1(client);
    await client.execute({ case: "putBlob", value: { name: name("a", inc), body: { inline: utf8("hello") } } });
    const ranges = async (): Promise<readonly RangePartition[]> => {
      const map = await client.world.transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 500 });
      return map.ok ? map.value.ranges : [];
    };
    const cut = (await ranges()).find(({ table }) => table === "Blob")?.server ?? "";
    sim.partition([cut], ["sm", "en-1", "en-2", "en-3", "en-4"]);
    sim.crash(cut);
    const allElsewhere = async (): Promise<boolean> => {
      const all = await ranges();
      return all.length > 0 && all.every(({ loaded, server }) => loaded && server !== cut);
    };
    await sim.until(allElsewhere, 90_000, "all at the other one");
    const got = await client.execute({ case: "getBlob", value: { name: name("a", inc) } });
    assert.ok(got.case === "content" && fromUtf8(got.value.inline) === "hello");
    await sim.sleep(60_000);
    assert.ok(await allElsewhere(), "and they stay there");
  });
});
