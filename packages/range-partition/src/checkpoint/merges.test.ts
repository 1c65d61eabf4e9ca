import assert from "node:assert/strict";
import test from "node:test";
import { unwrap } from "@stamp/base";
import { put, read, Stamp, write } from "../testing/harness.ts";

const checkpointsMax = 3;
const value = "v".repeat(2_000);
const keyOf = (i: number): string => `key-${((i * 7_919) % 100_003).toString().padStart(6, "0")}`;

test("merges: writers without pause leave a bounded number of checkpoints, whatever the size of the merge under way", async () => {
  const stamp = new Stamp(8, { limits: { memoryTableBytesMax: 100_000, rowCacheBytesMax: 64 * 1024, checkpointsMax } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    let most = 0;
    let next = 0;
    const writer = async (lock: string): Promise<void> => {
      while (next < 3_000) {
        const rows = Array.from({ length: 10 }, () => put(keyOf(next++), value));
        unwrap(await write(partition, lock, rows));
        most = Math.max(most, partition.stats.checkpoints);
      }
    };
    await Promise.all(["a", "b", "c", "d"].map(writer));
    const { storage } = partition.stats;
    assert.ok(storage.flushedBytes > 50 * 100_000, `${storage.flushedBytes} bytes of checkpoints`);
    assert.ok(most <= 3 * checkpointsMax, `${most} checkpoints at once`);
    await stamp.sim.sleep(60_000);
    assert.ok(partition.stats.checkpoints <= checkpointsMax, `${partition.stats.checkpoints} checkpoints in the end`);
    for (let i = 0; i < 3_000; i += 97) assert.equal(await read(partition, keyOf(i)), value);
    await partition.close();
  });
});

test("merges: garbage between checkpoints that stay leaves the row data stream without rewriting them", async () => {
  const limits = { memoryTableBytesMax: 4_000_000, rowCacheBytesMax: 64 * 1024, checkpointsMax: 8 };
  const stamp = new Stamp(9, { limits, extentTargetBytes: 100_000 });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    for (let i = 0; i < 600; i += 10)
      unwrap(
        await write(
          partition,
          "a",
          Array.from({ length: 10 }, (_, j) => put(keyOf(i + j), value)),
        ),
      );
    unwrap(await partition.checkpoint());
    await stamp.sim.sleep(60_000);
    const oldest = partition.streams.rowData.extents[0]?.extentId;
    // Small ones are merged among themselves: none of them is like the large one.
    for (let round = 0; round < 16; round++) {
      unwrap(
        await write(
          partition,
          "a",
          Array.from({ length: 30 }, (_, j) => put(keyOf(10_000 + j), `${value}${round}`)),
        ),
      );
      unwrap(await partition.checkpoint());
      await stamp.sim.sleep(5_000);
    }
    const { extents } = partition.streams.rowData;
    assert.equal(extents[0]?.extentId, oldest, "the large checkpoint was not rewritten");
    const { checkpointBytes, storage } = partition.stats;
    assert.ok(storage.mergedBytes > 0);
    assert.ok(extents.length * 100_000 < checkpointBytes + 500_000, `${extents.length} extents for ${checkpointBytes} bytes`);
    for (let j = 0; j < 30; j++) assert.equal(await read(partition, keyOf(10_000 + j)), `${value}15`);
    for (let i = 0; i < 600; i += 31) assert.equal(await read(partition, keyOf(i)), value);
    await partition.close();
  });
});

test("merges: what is in the row cache stays there through a checkpoint and a merge, in the bytes that it had; what is not stays out", async () => {
  for (const { cacheBytes, isCached } of [
    { cacheBytes: 8 << 20, isCached: true },
    { cacheBytes: 64 * 1024, isCached: false },
  ]) {
    const stamp = new Stamp(10, { limits: { memoryTableBytesMax: 4_000_000, rowCacheBytesMax: cacheBytes, checkpointsMax: 8 } });
    await stamp.sim.run(async () => {
      const partition = await stamp.open(1);
      for (let round = 0; round < 4; round++) {
        const rows = Array.from({ length: 100 }, (_, i) => put(keyOf(4 * i + round), value));
        unwrap(await write(partition, "a", rows));
        unwrap(await partition.checkpoint());
      }
      await stamp.sim.sleep(60_000);
      const { storage, checkpoints, cacheBytes: held } = partition.stats;
      assert.ok(checkpoints === 1 && storage.mergedBytes > 0, `${checkpoints} checkpoints`);
      if (isCached) assert.ok(held > 400 * value.length && held < 1.1 * 400 * value.length, `${held} bytes cached`);
      else assert.ok(held <= cacheBytes);
      for (let i = 0; i < 400; i++) assert.equal(await read(partition, keyOf(i)), value);
      const misses = partition.stats.storage.rowCacheMisses - storage.rowCacheMisses;
      assert.equal(misses === 0, isCached, `${misses} misses`);
      await partition.close();
    });
  }
});
