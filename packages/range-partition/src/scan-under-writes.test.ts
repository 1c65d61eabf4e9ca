/** A scan that is read slowly, while everything that it reads is overwritten, deleted, written out and merged. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, unwrap } from "@stamp/base";
import { put, remove, Stamp, write } from "./testing/harness.ts";

const rowCount = 600;
const keyOf = (i: number): string => `k${String(i).padStart(4, "0")}`;
const firstOf = (i: number): string => `first ${i} ${"x".repeat(100)}`;

for (const reverse of [false, true]) {
  test(`scan: a slow one sees one moment while rows are changed, written out and merged${reverse ? ", backwards" : ""}`, async () => {
    // Caches so small that what the scan reads is fetched when it comes to it.
    const limits = { memoryTableBytesMax: 20_000, rowCacheBytesMax: 3_000, indexCacheBytesMax: 500, checkpointsMax: 3 };
    const stamp = new Stamp(3, { limits, extentTargetBytes: 50_000 });
    await stamp.sim.run(async () => {
      const partition = await stamp.open(1);
      for (let i = 0; i < rowCount; i += 20) {
        const rows = Array.from({ length: 20 }, (_, j) => put(keyOf(i + j), firstOf(i + j)));
        unwrap(await write(partition, "l", rows));
      }
      const before = partition.stats.storage;
      const seen: [string, string][] = [];
      let scanning = true;
      const writer = async (): Promise<number> => {
        let writes = 0;
        for (; scanning; writes++) {
          const i = stamp.sim.prng.below(rowCount);
          const changes = [stamp.sim.prng.chance(0.3) ? remove(keyOf(i)) : put(keyOf(i), `later ${"y".repeat(100)}`)];
          unwrap(await write(partition, `l${i}`, [...changes, put(`k${writes}-new`, "z".repeat(100))]));
        }
        return writes;
      };
      const writers = [writer(), writer(), writer()];
      for await (const [key, value] of partition.scan({ reverse })) {
        seen.push([fromUtf8(key), fromUtf8(value)]);
        if (seen.length % 5 === 0) await stamp.sim.sleep(10);
      }
      scanning = false;
      const writes = (await Promise.all(writers)).reduce((sum, each) => sum + each, 0);
      const expected = Array.from({ length: rowCount }, (_, i): [string, string] => [keyOf(i), firstOf(i)]);
      assert.deepEqual(seen, reverse ? expected.reverse() : expected);
      const after = partition.stats.storage;
      assert.ok(writes > rowCount, `${writes} writes meanwhile`);
      assert.ok(
        after.mergedBytes - before.mergedBytes > 2 * rowCount * 100,
        `${after.mergedBytes - before.mergedBytes} bytes merged meanwhile`,
      );
    });
  });
}
