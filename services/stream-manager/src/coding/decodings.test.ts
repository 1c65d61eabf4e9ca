/** Decodings begin a few at a time, not faster than the rate, and in the order of the requests. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { present, unwrap } from "@stamp/base";
import { LockService } from "@stamp/wire";
import type { StreamManagerConfig } from "../config.ts";
import type { Cluster } from "../testing/cluster.ts";
import { clusterOf, code, infoOf, isCoded, names, type Sealed, sealed, timeoutMs } from "../testing/coding-harness.ts";

const count = 4;
const replicate = (cluster: Cluster, extentId: bigint) => cluster.sm((sm, left) => sm.replicateExtent({ extentId }, { timeoutMs: left }));
const statusOf = async (cluster: Cluster) => unwrap(await cluster.sm((sm, left) => sm.getCodingStatus({}, { timeoutMs: left })));

async function coded(cluster: Cluster): Promise<Sealed[]> {
  const extents: Sealed[] = [];
  for (let i = 0; i < count; i++) {
    const extent = await sealed(cluster, `/s${i}`);
    unwrap(await code(cluster, extent.id));
    extents.push(extent);
  }
  for (const { id } of extents) await cluster.until("coded", () => isCoded(cluster, id));
  return extents;
}

/** Requests all, and returns the most that ran at once, the order in which they ended, and the time that it took. */
async function decodeAll(more: Partial<StreamManagerConfig>, slowFactor = 1) {
  const cluster = clusterOf(610, ["sm1"], [], more);
  const { sim } = cluster;
  let most = 0;
  let waited = 0;
  const over: bigint[] = [];
  let tookMs = 0;
  let bytes = 0;
  await sim.run(async () => {
    const extents = await coded(cluster);
    bytes = extents[0]?.content.length ?? 0;
    // A decoding takes longer than the next one waits for the rate.
    for (const name of names) sim.disk(name).slowFactor = slowFactor;
    const startMs = sim.nowMs;
    for (const { id } of extents) unwrap(await replicate(cluster, id));
    const last = extents.at(-1) as Sealed;
    assert.equal((await infoOf(cluster, last.id))?.attempt, "decode (waiting)");
    unwrap(await replicate(cluster, last.id));
    const isDone = async (): Promise<boolean> => {
      const { decodingsRunning, decodingsWaiting, decodingBytesWaiting } = await statusOf(cluster);
      most = Math.max(most, decodingsRunning);
      waited = Math.max(waited, Number(decodingsWaiting));
      assert.equal(decodingBytesWaiting, decodingsWaiting * BigInt(bytes));
      for (const { id } of extents) {
        const info = await infoOf(cluster, id);
        if (info?.coded === undefined && info?.attempt === "" && !over.includes(id)) over.push(id);
      }
      return over.length === count;
    };
    await cluster.until("all are replicated", isDone, 120_000);
    tookMs = sim.nowMs - startMs;
    const inOrder = extents.map(({ id }) => id);
    assert.deepEqual(more.codingsMax === 2 ? over.toSorted() : over, inOrder);
    const again = await replicate(cluster, last.id);
    assert.ok(!again.ok && again.failure.reason === "conflict");
  });
  return { most, waited, tookMs, bytes };
}

test("decodings: no more at once than codingsMax; the others wait, and are told", async () => {
  for (const codingsMax of [1, 2]) {
    const { most, waited } = await decodeAll({ codingsMax }, 300);
    assert.equal(most, codingsMax);
    assert.ok(waited >= count - codingsMax, `${waited} waited`);
  }
});

test("decodings: not begun faster than codingBytesPerSecond", async () => {
  const codingBytesPerSecond = 200_000;
  const { bytes, tookMs } = await decodeAll({ codingsMax: 8, codingBytesPerSecond });
  assert.ok(tookMs >= ((count - 1) * bytes * 1_000) / codingBytesPerSecond, `${tookMs} ms`);
});

test("decodings: none goes to a node that keeps a replica of another extent of the same number", async () => {
  const cluster = clusterOf(611, ["sm1"], [], { syncEveryMs: 3_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const { id: extentId } = await sealed(cluster);
    unwrap(await code(cluster, extentId));
    const replicas = () => Promise.all(names.map((name) => cluster.replica(name, extentId)));
    const isBare = async () => (await isCoded(cluster, extentId)) && (await replicas()).every((each) => each === undefined);
    await cluster.until("coded, and its replicas are deleted", isBare, 900_000);
    const keepers = names.slice(0, names.length - 3);
    const lock = sim.world("watcher").transport.client("lock", LockService);
    const smTerm = unwrap(await lock.getLease({ name: "stream-manager" }, { timeoutMs })).leaseEpoch;
    for (const nodeId of keepers) {
      const { diskId, stampId } = present(sim.role(nodeId), nodeId).status.facts as { readonly diskId: string; readonly stampId: string };
      const own = { creation: 7n, stream: "/other", replicas: [{ nodeId, address: nodeId, diskId }], stampId };
      unwrap(await cluster.en(nodeId).createExtent({ smTerm, extentId, ownerEpoch: 1n, version: 1n, ...own }, { timeoutMs }));
    }
    await cluster.until("the manager has heard of them", async () => {
      const { replicas: kept } = unwrap(await cluster.sm((sm, left) => sm.listQuarantine({}, { timeoutMs: left })));
      return keepers.every((name) => kept.some(({ nodeId }) => nodeId === name));
    });
    unwrap(await replicate(cluster, extentId));
    await cluster.until("decoded", async () => (await infoOf(cluster, extentId))?.intactCopies === 3, 30_000);
    for (const nodeId of keepers) assert.equal((await cluster.replica(nodeId, extentId))?.creation, 7n);
  });
});
