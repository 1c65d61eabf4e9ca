/** Extents with more damaged fragments than the code bears: their good chunks still give each other back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, unwrap } from "@stamp/base";
import { fragmentContentOffset } from "@stamp/extent";
import { Simulation } from "@stamp/virtual-time";
import type { Cluster } from "../testing/cluster.ts";
import { clusterOf, code, contentOf, fragments, infoOf, isCoded, type Sealed, sealed, timeoutMs } from "../testing/coding-harness.ts";
import { RepairRests } from "./repair-rests.ts";

const chunkBytes = 65_536;
const fragmentBytes = 4 * chunkBytes;

/** Flips a byte in a chunk of each of these fragments, and has the nodes read them, so that they know. */
async function rot(cluster: Cluster, { id }: Sealed, chunks: Readonly<Record<number, number>>): Promise<void> {
  const holders = (await infoOf(cluster, id))?.fragmentNodeIds ?? [];
  for (const [index, chunk] of Object.entries(chunks)) {
    const holder = holders[Number(index)] ?? "";
    const [path] = cluster.sim
      .disk(holder)
      .paths()
      .filter((each) => each.endsWith(".fragment")) as [string];
    cluster.sim.disk(holder).corrupt(path, fragmentContentOffset(fragmentBytes) + chunk * chunkBytes + 5);
    const [held] = unwrap(await fragments(cluster, holder).listFragments({}, { timeoutMs })).fragments;
    const whole = { extentId: id, version: held?.version ?? 0n, index: Number(index), offsetBytes: 0n, lengthBytes: fragmentBytes };
    const read = await fragments(cluster, holder).readFragment(whole, { timeoutMs });
    assert.ok(!read.ok && read.failure.reason === "damaged");
  }
}

test("damaged fragments: three of rs-4-2 have a bad chunk each, at different places; all are made anew", async () => {
  const cluster = clusterOf(91);
  await cluster.sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    await rot(cluster, extent, { 0: 0, 1: 1, 5: 2 });
    const damaged = async () => (await infoOf(cluster, extent.id))?.intactFragments;
    await cluster.until("the damage is known", async () => (await damaged()) !== 6, 60_000);
    await cluster.until("all are intact", async () => (await damaged()) === 6, 120_000);
    assert.deepEqual((await contentOf(cluster, extent)).subarray(0, extent.content.length), extent.content);
  });
});

test("damaged fragments: a repair that failed for want of good chunks rests, twice as long each time", async () => {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const rests = new RepairRests(sim.world("manager").clock);
    const id = extentId(5);
    assert.equal(rests.why(id), undefined);
    for (const restMs of [60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, 3_600_000, 3_600_000]) {
      rests.failed(id, "too few good chunks at 0");
      await sim.sleep(restMs - 1_000);
      assert.equal(rests.why(id), "too few good chunks at 0; it is tried again in 1 s");
      await sim.sleep(1_001);
      assert.equal(rests.why(id), undefined);
    }
    rests.forget(id);
    rests.failed(id, "again");
    assert.equal(rests.why(id), "again; it is tried again in 60 s");
  });
});
