/** Uploads in progress beside the collector, and what is settled, over deaths of servers: over the real stream layer on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleName } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { PartitionManager, PartitionServer, type Place, type RangePartition } from "@stamp/wire";
import { blobRange, Client, container1, name, stamp } from "../testing/stack-harness.ts";

const pinTermMs = 10_000;
const servers = { extentTargetBytes: 64 * 1024, pinTermMs, collectGoneMs: 1, collectEveryMs: 86_400_000, collectRewriteBelow: 0 };
const body = new Uint8Array(20_000).fill(5);

async function ready(sim: Simulation): Promise<Client> {
  await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
  return new Client(sim);
}

/** Extents that one pass drops. */
async function dropped(sim: Simulation): Promise<number> {
  const manager = sim.world("operator").transport.client("pm", PartitionManager);
  const collected = await manager.collectRange({ rangeId: "blob-1" }, { timeoutMs: 60_000 });
  assert.ok(collected.ok, collected.ok ? "" : collected.failure.message);
  return collected.value.extentsDropped;
}

/** Bytes in an extent that is full afterwards; what fills it is nobody's. */
async function upload(client: Client, blob: string, incarnation: bigint): Promise<readonly Place[]> {
  const kind = { case: "putBlob", value: { name: name(blob, incarnation) } };
  const places = await client.write(kind, body);
  for (let i = 0; i < 8; i++) await client.write(kind, body);
  return places;
}

/** Renews as a front-end does, again where a call is lost; returns extents that are gone. */
async function renew(sim: Simulation, places: readonly Place[]): Promise<readonly bigint[]> {
  for (let tries = 1; ; tries++) {
    const { rangeId, rangeVersion, serverAddress } = await blobRange(sim);
    const request = { rangeId, rangeVersion, extentIds: places.map(({ extentId }) => extentId) };
    const renewed = await sim.world("client").transport.client(serverAddress, PartitionServer).pinData(request, { timeoutMs: 3_000 });
    if (renewed.ok) return renewed.value.goneExtentIds;
    assert.ok(renewed.failure.reason === "connectionLost" && tries < 3, renewed.failure.message);
  }
}

async function commit(sim: Simulation, blob: string, incarnation: bigint, places: readonly Place[]): Promise<string> {
  const { rangeId, rangeVersion, serverAddress } = await blobRange(sim);
  const value = { name: name(blob, incarnation), body: { inline: new Uint8Array(0), places } };
  const request = { rangeId, rangeVersion, operation: { kind: { case: "putBlob", value } as never } };
  const answer = await sim.world("client").transport.client(serverAddress, PartitionServer).execute(request, { timeoutMs: 3_000 });
  return answer.ok ? String(answer.value.result?.kind.case) : answer.failure.reason;
}

/** The server of the range dies; resolves when another one, or itself again, serves it. */
async function die(sim: Simulation): Promise<void> {
  const before = await blobRange(sim);
  sim.crash(before.server);
  await sim.until(
    async () => {
      const now = await blobRange(sim);
      return now.ownerEpoch > before.ownerEpoch && now.serverAddress !== "" && (await serves(sim, now));
    },
    60_000,
    "served again",
  );
}

async function serves(sim: Simulation, { rangeId, serverAddress }: RangePartition): Promise<boolean> {
  const listed = await sim.world("operator").transport.client(serverAddress, PartitionServer).listPartitions({}, { timeoutMs: 500 });
  return listed.ok && listed.value.partitions.some((one) => one.rangeId === rangeId && one.state === "serving");
}

/**
 * Returns the end of an upload that is renewed for six terms, while passes follow one another and its server dies once.
 */
async function slowUpload(without: readonly RuleName[]): Promise<string> {
  const sim = stamp(5, servers, without);
  return sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    const places = await upload(client, "slow", incarnation);
    let gone: readonly bigint[] = [];
    for (let i = 0; i < 30; i++) {
      if (i === 15) await die(sim);
      await dropped(sim);
      gone = await renew(sim, places);
      if (gone.length > 0) break;
      await sim.sleep(2_000);
    }
    const done = await commit(sim, "slow", incarnation, places);
    assert.equal(gone.length > 0, done !== "blob", "whoever renews learns what becomes of the commit");
    return done;
  });
}

test("pins: an upload that is renewed commits, however many passes and owners there were; without the rules it is refused", async () => {
  assert.equal(await slowUpload([]), "blob");
  assert.equal(await slowUpload(["bytesPinTheirExtent"]), "badPlace");
  assert.equal(await slowUpload(["pinTermAfterLoad"]), "badPlace");
});

test("pins: what is not renewed is given back after a term, and whoever comes back to it is told", async () => {
  const sim = stamp(6, servers);
  await sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    const places = await upload(client, "left", incarnation);
    await sim.sleep(pinTermMs / 2);
    assert.equal(await dropped(sim), 0);
    await sim.sleep(pinTermMs);
    assert.ok((await dropped(sim)) >= 1);
    assert.deepEqual(
      await renew(sim, places),
      places.map(({ extentId }) => extentId),
    );
    assert.equal(await commit(sim, "left", incarnation, places), "badPlace");
  });
});

/** Extents that the first pass of a new owner drops, of blobs that were deleted after their extents were settled. */
async function droppedByNewOwner(without: readonly RuleName[]): Promise<number> {
  const sim = stamp(7, servers, without);
  return sim.run(async () => {
    const client = await ready(sim);
    const incarnation = await container1(client);
    for (const blob of ["a", "b"]) {
      const places = await upload(client, blob, incarnation);
      assert.equal(await commit(sim, blob, incarnation, places), "blob");
    }
    await sim.sleep(2 * pinTermMs);
    await dropped(sim);
    for (const blob of ["a", "b"]) await client.execute({ case: "deleteBlob", value: { name: name(blob, incarnation) } });
    await die(sim);
    return dropped(sim);
  });
}

test("settled: a new owner gives back at once what an earlier one settled; with the rule off it begins anew", async () => {
  assert.ok((await droppedByNewOwner([])) >= 2);
  assert.equal(await droppedByNewOwner(["settledRecorded"]), 0);
});
