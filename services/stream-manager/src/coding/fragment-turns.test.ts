/** Repairs of fragments beside repairs of replicas, fragments that move apart, and attempts that a new leader finds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { Cluster } from "../testing/cluster.ts";
import { clusterOf, code, config, contentOf, infoOf, isCoded, names, type Sealed, sealed } from "../testing/coding-harness.ts";

async function coded(cluster: Cluster, stream = "/s"): Promise<Sealed> {
  const extent = await sealed(cluster, stream);
  unwrap(await code(cluster, extent.id));
  await cluster.until("coded", () => isCoded(cluster, extent.id));
  return extent;
}

/** Time until the replicas of a lost node are made anew, beside so many coded extents whose lost fragment no node takes, in milliseconds. */
async function copiesTakeMs(blockedCount: number): Promise<number> {
  const cluster = new Cluster({ seed: 401, nodes: names.slice(0, 6), config: { ...config, repairBytesPerSecond: 400_000 } });
  const { sim } = cluster;
  let tookMs = 0;
  await sim.run(async () => {
    for (let i = 0; i < blockedCount; i++) await coded(cluster, `/coded${i}`);
    sim.crash("en1", { stayDown: true });
    await sim.sleep(10_000);
    const plain: bigint[] = [];
    for (let i = 0; i < 2; i++) plain.push((await sealed(cluster, `/log${i}`)).id);
    const lost = (await infoOf(cluster, plain[0] as bigint))?.nodeIds[0] ?? "";
    sim.crash(lost, { stayDown: true });
    const fromMs = sim.nowMs;
    const isWhole = async (): Promise<boolean> => {
      const infos = await Promise.all(plain.map((id) => infoOf(cluster, id)));
      return infos.every((info) => info?.intactCopies === 3 && !info.nodeIds.includes(lost));
    };
    await cluster.until("three again", isWhole, 300_000);
    tookMs = sim.nowMs - fromMs;
    const blockedNow = async (): Promise<boolean> => {
      const { blocked } = unwrap(await cluster.sm((sm, left) => sm.getRepairStatus({}, { timeoutMs: left })));
      return blocked.includes(`${blockedCount} coded extents: no node can take a fragment (0 have none of the extent and take some)`);
    };
    if (blockedCount > 0) await cluster.until("the reason is told", blockedNow);
  });
  return tookMs;
}

test("repair of fragments: those that no node takes leave the rate to the copies of replicas", async () => {
  const alone = await copiesTakeMs(0);
  const beside = await copiesTakeMs(3);
  assert.ok(beside < alone * 1.5, `${beside} ms beside blocked fragments, ${alone} ms without`);
});

test("fragments, rule fragmentsApart: two in one fault domain move apart when a domain has room; without it they stay", async () => {
  const domains = { en1: "a", en2: "b", en3: "c", en4: "d", en5: "e", en6: "f", en7: "a", en8: "b" };
  for (const off of [false, true]) {
    const cluster = new Cluster({ seed: 77, nodes: names, domains, config, without: off ? ["fragmentsApart"] : [] });
    const { sim } = cluster;
    await sim.run(async () => {
      const extent = await sealed(cluster);
      const holders = (await infoOf(cluster, extent.id))?.nodeIds ?? [];
      const away = ["en3", "en4", "en5", "en6"].find((name) => !holders.includes(name)) ?? "";
      sim.crash(away, { stayDown: true });
      await sim.sleep(10_000);
      unwrap(await code(cluster, extent.id));
      await cluster.until("coded", () => isCoded(cluster, extent.id));
      const used = async (): Promise<number> =>
        new Set((await infoOf(cluster, extent.id))?.fragmentNodeIds.map((name) => domains[name as keyof typeof domains])).size;
      assert.equal(await used(), 5, "two share a domain");
      sim.restart(away);
      if (off) {
        await sim.sleep(60_000);
        assert.equal(await used(), 5);
        return;
      }
      await cluster.until("six domains", async () => (await used()) === 6, 60_000);
      await cluster.until("idle", () => isCoded(cluster, extent.id));
      const before = (await infoOf(cluster, extent.id))?.location?.version;
      await sim.sleep(40_000);
      assert.equal((await infoOf(cluster, extent.id))?.location?.version, before, "nothing moves any more");
      const status = unwrap(await cluster.sm((sm, left) => sm.getRepairStatus({}, { timeoutMs: left })));
      assert.deepEqual([status.fragmentsDone, status.fragmentsWaiting], [0n, 0n], "nothing was lost");
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
    });
  }
});

test("attempts: a new leader goes on with a decoding whose targets report late, and with the same attempt", async () => {
  const cluster = clusterOf(512, ["sm1"], [], { nodeDownAfterMs: 10_000, repairAfterMs: 20_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await coded(cluster);
    for (const name of names) sim.disk(name).slowFactor = 300;
    unwrap(await cluster.sm((sm, left) => sm.replicateExtent({ extentId: extent.id }, { timeoutMs: left })));
    const attempt = (await infoOf(cluster, extent.id))?.location?.version;
    sim.crash("sm1", { stayDown: true });
    // Two nodes answer the new leader at once; the others are heard of five seconds later.
    for (const name of names.slice(2)) sim.partition(["sm1"], [name]);
    sim.restart("sm1");
    await cluster.until("it leads", async () => sim.role("sm1")?.status.state === "leader", 60_000);
    await sim.sleep(5_000);
    const info = await infoOf(cluster, extent.id);
    assert.deepEqual([info?.attempt, info?.location?.version], ["decode", attempt], "it is not taken back");
    for (const name of names.slice(2)) sim.healPair("sm1", name);
    const isWhole = async (): Promise<boolean> => {
      const now = await infoOf(cluster, extent.id);
      return now?.coded === undefined && now?.attempt === "" && now.intactCopies === 3;
    };
    await cluster.until("replicated", isWhole, 60_000);
    assert.equal((await infoOf(cluster, extent.id))?.location?.version, (attempt ?? 0n) + 1n, "by the attempt that was found");
  });
});
