import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import type { PartitionLimits, RangePartition } from "../index.ts";
import { put, read, Stamp, write } from "../testing/harness.ts";
import { makeCaches } from "./caches.ts";
import { type FilledRange, FillQueue } from "./fill-queue.ts";

const rowsMax = 2_000;
const keyOf = (i: number): string => `k${String(i).padStart(6, "0")}`;

/** Writes rows in a few commits, and a checkpoint of them. */
async function fill(partition: RangePartition, lengthBytes: number, from = 0, to = rowsMax): Promise<void> {
  for (let i = from; i < to; i += 50) {
    const rows = Array.from({ length: 50 }, (_, at) => put(keyOf(i + at), `${i + at} ${"x".repeat(lengthBytes)}`));
    unwrap(await write(partition, "l", rows));
  }
  unwrap(await partition.checkpoint());
}

/** A range with rows in two checkpoints, loaded at another server. */
async function loadedElsewhere(limits: PartitionLimits, work: (partition: RangePartition, stamp: Stamp) => Promise<void>): Promise<void> {
  const stamp = new Stamp(3, { limits });
  await stamp.sim.run(async () => {
    const first = await stamp.open(1);
    await fill(first, 400, 0, rowsMax / 2);
    await fill(first, 400, rowsMax / 2, rowsMax);
    await work(await stamp.open(2), stamp);
  });
}

test("row cache: what a server loads is read into it ahead, where there is room", () =>
  loadedElsewhere({}, async (partition, stamp) => {
    assert.equal(partition.stats.cacheBytes, 0);
    await stamp.sim.sleep(60_000);
    assert.ok(partition.stats.cacheBytes > rowsMax * 400, `${partition.stats.cacheBytes}`);
    for (let i = 0; i < rowsMax; i += 7) assert.match((await read(partition, keyOf(i))) ?? "", new RegExp(`^${i} x`));
    assert.equal(partition.stats.storage.rowCacheMisses, 0);
  }));

test("row cache: nothing is pushed out for what is read ahead", () =>
  loadedElsewhere({ rowCacheBytesMax: 256 * 1024 }, async (partition, stamp) => {
    const wanted = [5, 700, 1_400, 1_999];
    for (const i of wanted) await read(partition, keyOf(i));
    const { rowCacheMisses } = partition.stats.storage;
    await stamp.sim.sleep(60_000);
    const { cacheBytes } = partition.stats;
    assert.ok(cacheBytes > 150 * 1024 && cacheBytes <= 256 * 1024, `${cacheBytes}`);
    for (const i of wanted) await read(partition, keyOf(i));
    assert.equal(partition.stats.storage.rowCacheMisses, rowCacheMisses);
  }));

test("row cache: nothing is read ahead of a range that is served here no more", () =>
  loadedElsewhere({}, async (partition, stamp) => {
    await partition.close();
    await stamp.sim.sleep(60_000);
    assert.equal(partition.stats.cacheBytes, 0);
  }));

test("row cache: what a merge writes of rows that were not cached is read into it afterwards", () =>
  loadedElsewhere({ checkpointsMax: 2 }, async (partition, stamp) => {
    await stamp.sim.sleep(60_000);
    await partition.forgetCached();
    for (let i = 0; i < 4; i++) {
      unwrap(await write(partition, "l", [put(keyOf(rowsMax + i), `${rowsMax + i} x`)]));
      unwrap(await partition.checkpoint());
    }
    while (partition.stats.checkpoints > 2) await stamp.sim.sleep(100);
    await stamp.sim.sleep(60_000);
    for (let i = 0; i < rowsMax + 4; i++) assert.match((await read(partition, keyOf(i))) ?? "", new RegExp(`^${i} x`));
    assert.equal(partition.stats.storage.rowCacheMisses, 0);
  }));

test("row cache: what a merge of one range pushes out of another is read again when both fit, and not when they do not", async () => {
  for (const [rowCacheBytesMax, fits] of [
    [10_500_000, true],
    [4_000_000, false],
  ] as const) {
    const stamp = new Stamp(3, { limits: { checkpointsMax: 2 }, caches: makeCaches({ rowCacheBytesMax, indexCacheBytesMax: 10_000_000 }) });
    await stamp.sim.run(async () => {
      const still = unwrap(await stamp.load(1, "ps"));
      const busy = unwrap(await stamp.load(2, "ps", { rangeId: "r2" }));
      await fill(still, 1_600);
      // The work that follows loading is over.
      await stamp.sim.sleep(60_000);
      for (let round = 0; round < 6; round++) await fill(busy, 1_600);
      await stamp.sim.sleep(60_000);
      const missesBefore = still.stats.storage.rowCacheMisses;
      for (let i = 0; i < rowsMax; i++) assert.match((await read(still, keyOf(i))) ?? "", new RegExp(`^${i} x`));
      const misses = still.stats.storage.rowCacheMisses - missesBefore;
      assert.equal(misses === 0, fits, `${misses} misses in a cache of ${rowCacheBytesMax}`);
    });
  }
});

test("row cache: ranges are filled again once for what was pushed out, and only when all that are here fit", () => {
  const queue = new FillQueue();
  const blocks = { pushedOutBytes: 0, holds: (bytes: number) => bytes <= 100 };
  const filled: string[] = [];
  const range = (name: string, bytes: number): FilledRange => ({ bytes: () => bytes, fill: () => filled.push(name) });
  const [one, other] = [range("one", 60), range("other", 50)];
  const refilled = (): string => {
    queue.refill(blocks);
    return filled.splice(0).join();
  };
  queue.join(one);
  assert.equal(refilled(), "", "nothing was pushed out");
  blocks.pushedOutBytes = 10;
  assert.deepEqual([refilled(), refilled()], ["one", ""]);
  queue.join(other);
  blocks.pushedOutBytes = 20;
  assert.equal(refilled(), "", "110 bytes do not fit");
  queue.leave(one);
  assert.equal(refilled(), "other", "what was pushed out while they did not fit is not forgotten");
});

test("row cache: of a range that is served elsewhere nothing stays", () =>
  loadedElsewhere({}, async (partition, stamp) => {
    await stamp.sim.sleep(60_000);
    assert.ok(partition.stats.cacheBytes > rowsMax * 400);
    await partition.close();
    await partition.forgetCached();
    assert.equal(partition.stats.cacheBytes, 0);
  }));

test("row cache: of a merge that comes to nothing nothing stays", async () => {
  const stamp = new Stamp(3, { limits: { checkpointsMax: 2 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    let writtenByMerges = 0;
    for (let round = 0; round < 12; round++) {
      await fill(partition, 1_600);
      await stamp.sim.sleep(5 * round);
      const { cacheBytes, checkpointBytes } = partition.stats;
      writtenByMerges = Math.max(writtenByMerges, cacheBytes - checkpointBytes);
      // A split that is prepared and does not come about.
      unwrap(await partition.departure.prepare(false));
      await stamp.sim.sleep(1_000);
      assert.ok(partition.stats.cacheBytes <= partition.stats.checkpointBytes, `${partition.stats.cacheBytes} in round ${round}`);
      partition.departure.resume();
    }
    assert.ok(writtenByMerges > 500_000, `${writtenByMerges} bytes of merges under way`);
  });
});
