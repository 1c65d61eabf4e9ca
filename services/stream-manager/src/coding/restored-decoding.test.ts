/** Metadata of a copy from before a decoding, restored after the fragments went: the replicas on the nodes give the extent back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, unwrap } from "@stamp/base";
import type { Cluster } from "../testing/cluster.ts";
import { clusterOf, code, filesOf, infoOf, isCoded, type Sealed, sealed, timeoutMs } from "../testing/coding-harness.ts";
import { newestCopy, restore } from "../testing/restored-store.ts";

const holdersOf = (cluster: Cluster): string[] =>
  filesOf(cluster)
    .filter((file) => file.endsWith(".extent"))
    .map((file) => file.slice(0, file.indexOf(":")));
const adopt = (cluster: Cluster, nodeId: string, extentId: bigint) =>
  cluster.sm((sm, left) => sm.adoptQuarantined({ nodeId, extentId }, { timeoutMs: left }));
const replicate = (cluster: Cluster, extentId: bigint) => cluster.sm((sm, left) => sm.replicateExtent({ extentId }, { timeoutMs: left }));

async function contentOf(cluster: Cluster, address: string, { id, content }: Sealed): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += parts.at(-1)?.length ?? 0) {
    const request = { extentId: id, offsetBytes: BigInt(at), lengthBytes: 1 << 20 };
    parts.push(unwrap(await cluster.en(address).readRaw(request, { timeoutMs })).payload);
  }
  return concatBytes(parts);
}

test("restored metadata of before a decoding, after the grace: a whole replica is adopted, and the extent gets the others by itself", async () => {
  const cluster = clusterOf(602);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    await cluster.until("the replicas are gone", async () => holdersOf(cluster).length === 0, 30_000);
    await sim.sleep(70_000);
    const before = await newestCopy(cluster);
    unwrap(await replicate(cluster, extent.id));
    await cluster.until("replicated", async () => (await infoOf(cluster, extent.id))?.coded === undefined, 60_000);
    await cluster.until("the fragments are gone", async () => !filesOf(cluster).some((file) => file.endsWith(".fragment")), 30_000);
    await restore(cluster, before);
    await cluster.until("it leads again", async () => sim.role("sm1")?.status.state === "leader", 120_000);
    const [holder = ""] = holdersOf(cluster);
    await cluster.until("adopted", async () => (await adopt(cluster, holder, extent.id)).ok, 60_000);
    const info = await infoOf(cluster, extent.id);
    assert.equal(info?.coded, undefined);
    assert.deepEqual(await contentOf(cluster, holder, extent), extent.content);
    await cluster.until("three intact replicas", async () => (await infoOf(cluster, extent.id))?.intactCopies === 3, 60_000);
    for (const address of (await infoOf(cluster, extent.id))?.location?.addresses ?? [])
      assert.deepEqual(await contentOf(cluster, address, extent), extent.content, address);
  });
});

test("restored metadata of before a decoding, within the grace: the fragments give the extent back, and no replica is adopted", async () => {
  const cluster = clusterOf(603, ["sm1"], [], { deletionGraceMs: 600_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    const first = new Set(holdersOf(cluster));
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    await sim.sleep(70_000);
    const before = await newestCopy(cluster);
    const others = (): string[] => holdersOf(cluster).filter((name) => !first.has(name));
    // Replicas on nodes that the record of before knows are to be deleted, not in quarantine.
    unwrap(await replicate(cluster, extent.id));
    await cluster.until("replicated", async () => (await infoOf(cluster, extent.id))?.coded === undefined, 60_000);
    assert.ok(others().length > 0, "another seed is needed");
    await restore(cluster, before);
    await cluster.until("it leads again", async () => sim.role("sm1")?.status.state === "leader", 120_000);
    await cluster.until("six intact fragments", async () => (await infoOf(cluster, extent.id))?.intactFragments === 6, 60_000);
    await sim.sleep(30_000);
    const refused = await adopt(cluster, others()[0] ?? "", extent.id);
    assert.ok(!refused.ok && /lacks no replica/.test(refused.failure.message), JSON.stringify(refused));
    assert.equal(await isCoded(cluster, extent.id), true);
  });
});
