/** Extents with more damaged fragments than the code bears: their good chunks still give each other back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, unwrap } from "@stamp/base";
import { fragmentContentOffset } from "@stamp/extent";
import { Simulation } from "@stamp/virtual-time";
import type { Cluster } from "../testing/cluster.ts";
import {
  clusterOf,
  code,
  contentOf,
  fragments,
  infoOf,
  isCoded,
  names,
  type Sealed,
  sealed,
  timeoutMs,
} from "../testing/coding-harness.ts";
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

test("damaged fragments: one that is found right after another damaged one was deleted is made anew too", async () => {
  const cluster = clusterOf(93);
  const { sim } = cluster;
  await sim.run(async () => {
    const extents = [await sealed(cluster, "/a"), await sealed(cluster, "/b")] as const;
    for (const { id } of extents) {
      unwrap(await code(cluster, id));
      await cluster.until("coded", () => isCoded(cluster, id));
    }
    const placesOf = async ({ id }: Sealed) => (await infoOf(cluster, id))?.coded?.fragments ?? [];
    const [ofFirst, ofSecond] = [await placesOf(extents[0]), await placesOf(extents[1])];
    const holder = names.find((name) => [ofFirst, ofSecond].every((places) => places.some(({ address }) => address === name))) ?? "";
    const damage = async (extent: Sealed, places: typeof ofFirst): Promise<string> => {
      const index = places.findIndex(({ address }) => address === holder);
      const { version = 0n } = places[index] ?? {};
      const disk = sim.disk(holder);
      const path =
        disk.paths().find((each) => each.endsWith(".fragment") && Number.parseInt(each.split("/")[2] ?? "", 16) === Number(extent.id)) ??
        "";
      disk.corrupt(path, fragmentContentOffset(fragmentBytes) + 5);
      const whole = { extentId: extent.id, version, index, offsetBytes: 0n, lengthBytes: fragmentBytes };
      const read = await fragments(cluster, holder).readFragment(whole, { timeoutMs });
      assert.ok(!read.ok && read.failure.reason === "damaged");
      return path;
    };
    const isReplaced = async (extent: Sealed, places: typeof ofFirst): Promise<boolean> => {
      const index = places.findIndex(({ address }) => address === holder);
      return (await placesOf(extent))[index]?.version !== places[index]?.version;
    };
    const path = await damage(extents[0], ofFirst);
    await cluster.until("the first one is made anew", () => isReplaced(extents[0], ofFirst), 60_000);
    for (let i = 0; i < 60_000 && sim.disk(holder).paths().includes(path); i++) await sim.sleep(1);
    assert.ok(!sim.disk(holder).paths().includes(path), "the damaged one is deleted");
    await damage(extents[1], ofSecond);
    await cluster.until("the second one is made anew", () => isReplaced(extents[1], ofSecond), 60_000);
  });
});

test("damaged fragments: those whose head or table is bad help no repair; with three of rs-4-2 the extent can't be made whole now", async () => {
  const cluster = clusterOf(92);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const holders = (await infoOf(cluster, extent.id))?.fragmentNodeIds ?? [];
    const versions = (await infoOf(cluster, extent.id))?.coded?.fragments.map(({ version }) => version) ?? [];
    for (const [index, offsetBytes] of [
      [0, 5],
      [1, 4_100],
      [5, 40],
    ] as const) {
      const holder = holders[index] ?? "";
      // A restart empties the memory of heads and tables.
      sim.crash(holder);
      sim.restart(holder);
      const disk = sim.disk(holder);
      disk.corrupt(disk.paths().find((path) => path.endsWith(".fragment")) ?? "", offsetBytes);
      const chunk = { extentId: extent.id, version: versions[index] ?? 0n, index, offsetBytes: 0n, lengthBytes: 1 };
      await cluster.until("the node has found it", async () => {
        const read = await fragments(cluster, holder).readFragment(chunk, { timeoutMs });
        return !read.ok && read.failure.reason === "damaged";
      });
      const [held] = unwrap(await fragments(cluster, holder).listFragments({}, { timeoutMs })).fragments;
      assert.equal(held?.chunksReadable, false);
    }
    const repairs = async () => unwrap(await cluster.sm((sm, left) => sm.getRepairStatus({}, { timeoutMs: left })));
    await cluster.until("it is known", async () => (await infoOf(cluster, extent.id))?.intactFragments === 3, 60_000);
    await cluster.until("it is unreachable", async () => (await repairs()).fragmentsUnreachable === 1n, 30_000);
    assert.deepEqual([(await repairs()).fragmentsWaiting, (await repairs()).fragmentRepairsRunning], [0n, 0]);
  });
});

test("damaged fragments: a repair that failed for want of good chunks rests, twice as long each time", async () => {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const rests = new RepairRests(sim.world("manager").clock);
    const id = extentId(5);
    assert.equal(rests.why(id, true), undefined);
    for (const restMs of [60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, 3_600_000, 3_600_000]) {
      rests.failed(id, "too few good chunks at 0", true);
      await sim.sleep(restMs - 1_000);
      assert.equal(rests.why(id, true), "too few good chunks at 0; it is tried again in 1 s");
      await sim.sleep(1_001);
      assert.equal(rests.why(id, true), undefined);
    }
    assert.equal(rests.why(id, false), undefined);
    rests.forget(id);
    rests.failed(id, "a node hangs", false);
    assert.equal(rests.why(id, true), "a node hangs; it is tried again in 5 s");
    for (let failed = 0; failed < 10; failed++) rests.failed(id, "a node hangs", false);
    assert.equal(rests.why(id, false), "a node hangs; it is tried again in 300 s");
    assert.ok(rests.hasFailed(id));
    rests.failed(id, "too few good chunks at 0", true);
    assert.equal(rests.why(id, false), undefined, "a repair that needs no damaged fragment does not wait for one that did");
    rests.forget(id);
    rests.failed(id, "again", true);
    assert.equal(rests.why(id, true), "again; it is tried again in 60 s");
  });
});
