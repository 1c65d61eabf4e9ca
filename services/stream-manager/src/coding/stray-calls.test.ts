/** Fragments that no record explains: people list and delete them; what a record names, or a later one made, stays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import type { Cluster } from "../testing/cluster.ts";
import { clusterOf, code, contentOf, filesOf, infoOf, isCoded, type Sealed, sealed } from "../testing/coding-harness.ts";
import { newestCopy, restore } from "../testing/restored-store.ts";

const list = async (cluster: Cluster) => unwrap(await cluster.sm((sm, left) => sm.listStrayFragments({}, { timeoutMs: left })));
const remove = (cluster: Cluster, nodeId: string, extentId: bigint, version: bigint) =>
  cluster.sm((sm, left) => sm.deleteStrayFragment({ nodeId, extentId, version }, { timeoutMs: left }));
const fragmentCount = (cluster: Cluster): number => filesOf(cluster).filter((file) => file.endsWith(".fragment")).length;

/** Codes an extent, and restores metadata of before: six fragments that no record explains. */
async function restoredBeforeCoding(cluster: Cluster): Promise<Sealed> {
  const extent = await sealed(cluster);
  await cluster.sim.sleep(70_000);
  const before = await newestCopy(cluster);
  unwrap(await code(cluster, extent.id));
  await cluster.until("coded", () => isCoded(cluster, extent.id));
  await cluster.sim.sleep(20_000);
  await restore(cluster, before);
  await cluster.until("it leads again", async () => cluster.sim.role("sm1")?.status.state === "leader", 120_000);
  await cluster.until("replicated", async () => (await infoOf(cluster, extent.id))?.intactCopies === 3, 60_000);
  return extent;
}

test("stray fragments, rule newerFragmentsStay: restored metadata keep what a later record made; without it a person deletes it", async () => {
  for (const off of [[], ["newerFragmentsStay"]] as RuleName[][]) {
    const cluster = clusterOf(201, ["sm1"], off, { deletionGraceMs: 120_000 });
    await cluster.sim.run(async () => {
      const { id } = await restoredBeforeCoding(cluster);
      const { fragments, more, unreached } = await list(cluster);
      assert.equal(fragments.length, 6);
      assert.deepEqual([more, unreached], [false, []]);
      assert.deepEqual(new Set(fragments.map(({ extentId }) => extentId)), new Set([id]));
      for (const { nodeId, version, keptBecause } of fragments) {
        assert.equal(/all that is left/.test(keptBecause), off.length === 0);
        const removed = await remove(cluster, nodeId, id, version);
        assert.equal(removed.ok, off.length > 0);
      }
      assert.equal(fragmentCount(cluster), off.length === 0 ? 6 : 0);
    });
  }
});

test("stray fragments: once a later record is there they are deleted one by one; what the extent is stored in stays", async () => {
  const cluster = clusterOf(202, ["sm1"], [], { deletionGraceMs: 120_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await restoredBeforeCoding(cluster);
    await cluster.until(
      "coded again",
      async () => {
        await code(cluster, extent.id);
        return isCoded(cluster, extent.id);
      },
      300_000,
    );
    await sim.sleep(130_000);
    const { fragments } = await list(cluster);
    assert.equal(fragmentCount(cluster), 6 + fragments.length);
    assert.equal(fragments.length, 6, "no attempt met them");
    for (const { nodeId, version, keptBecause } of fragments) {
      assert.equal(keptBecause, "");
      unwrap(await remove(cluster, nodeId, extent.id, version));
      const again = await remove(cluster, nodeId, extent.id, version);
      assert.ok(!again.ok && again.failure.reason === "unknownExtent");
    }
    const { coded, fragmentNodeIds = [] } = (await infoOf(cluster, extent.id)) ?? {};
    const used = await remove(cluster, fragmentNodeIds[0] ?? "", extent.id, coded?.fragments[0]?.version ?? 0n);
    assert.ok(!used.ok && used.failure.reason === "conflict" && /stored in it/.test(used.failure.message));
    assert.equal(fragmentCount(cluster), 6);
    assert.deepEqual((await list(cluster)).fragments, []);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    sim.crash("en8", { stayDown: true });
    assert.deepEqual((await list(cluster)).unreached, ["en8"]);
    const nowhere = await remove(cluster, "en99", extent.id, 3n);
    assert.ok(!nowhere.ok && nowhere.failure.reason === "badRequest");
  });
});
