/** The memory of a partition is bounded by its limits, however fast clients write and however long a merge takes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { MemoryBudget, type RangePartition } from "./index.ts";
import { nodeNames, put, read, Stamp, write } from "./testing/harness.ts";

const value = "v".repeat(2_000);
const keyOf = (i: number): string => `key-${((i * 7_919) % 100_003).toString().padStart(6, "0")}`;

/** So many clients write rows of 2 KB, ten at a time, until `count` are there. */
async function fill(partition: RangePartition, clients: number, count: number, watch: () => void): Promise<void> {
  let next = 0;
  const writer = async (lock: string): Promise<void> => {
    while (next < count) {
      const rows = Array.from({ length: 10 }, () => put(keyOf(next++), value));
      unwrap(await write(partition, lock, rows));
      watch();
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, i) => writer(`l${i}`)));
}

test("memory table: commits wait while two of them are full", async () => {
  const [memoryTableBytesMax, groupBytesMax] = [100_000, 50_000];
  const stamp = new Stamp(20, { limits: { memoryTableBytesMax, groupBytesMax, checkpointsMax: 8 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    let most = 0;
    await fill(partition, 40, 3_000, () => {
      most = Math.max(most, partition.stats.memoryTableBytes);
    });
    assert.ok(most > memoryTableBytesMax && most < 2 * (memoryTableBytesMax + 2 * groupBytesMax), `${most} bytes`);
    await partition.close();
  });
});

test("memory budget: commits wait while all ranges together hold more than twice of it", async () => {
  const [bytesMax, groupBytesMax] = [60_000, 50_000];
  const memory = new MemoryBudget(bytesMax);
  const stamp = new Stamp(21, { memory, limits: { memoryTableBytesMax: 10_000_000, groupBytesMax } });
  await stamp.sim.run(async () => {
    const partitions = await Promise.all(["r0", "r1", "r2"].map(async (rangeId) => unwrap(await stamp.load(1, "ps", { rangeId }))));
    let most = 0;
    await Promise.all(
      partitions.map((partition) =>
        fill(partition, 20, 1_000, () => {
          most = Math.max(most, memory.bytes);
        }),
      ),
    );
    assert.ok(most > bytesMax && most < 2 * bytesMax + partitions.length * 2 * groupBytesMax, `${most} bytes`);
    for (const partition of partitions) await partition.close();
  });
});

test("merges: what is being written while another one ends is not dropped with what that one replaced", async () => {
  const limits = { memoryTableBytesMax: 100_000, rowCacheBytesMax: 64 * 1024, checkpointsMax: 3 };
  const stamp = new Stamp(22, { limits, extentTargetBytes: 50_000 });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    await fill(partition, 8, 3_000, () => {});
    // Longer than extents are kept that are in no stream any more.
    await stamp.sim.sleep(600_000);
    for (let i = 0; i < 3_000; i++) assert.equal(await read(partition, keyOf(i)), value);
    await partition.close();
    // The next owner finds in the streams all that there is.
    const next = await stamp.open(2);
    for (let i = 0; i < 3_000; i += 7) assert.equal(await read(next, keyOf(i)), value);
    await next.close();
  });
});

test("merges: checkpoints do not pile up when they are written faster than they are merged", async () => {
  const checkpointsMax = 3;
  const stamp = new Stamp(23, { limits: { memoryTableBytesMax: 20_000, rowCacheBytesMax: 16 * 1024, checkpointsMax } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    // Reads of merges are slow; writes of checkpoints and commits go to journals.
    for (const name of nodeNames) Object.assign(stamp.sim.disk(name), { options: { ...stamp.sim.disk(name).options, readUs: 20_000 } });
    let most = 0;
    await fill(partition, 8, 3_000, () => {
      most = Math.max(most, partition.stats.checkpoints);
    });
    assert.ok(most <= 3 * checkpointsMax + 1, `${most} checkpoints at once`);
    await partition.close();
  });
});
