/** Walks: a reader of rows says between two of them where to go on, over memory tables and checkpoints alike. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, unwrap, utf8 } from "@stamp/base";
import type { Cursor, RangePartition } from "./index.ts";
import { put, remove, Stamp, write } from "./testing/harness.ts";

/** The keys that a walk meets; `next` says where to look after each. */
async function walk(partition: RangePartition, next: (key: string) => string | undefined): Promise<string[]> {
  const cursor: Cursor = { from: undefined };
  const met: string[] = [];
  for await (const [key] of partition.scan({ gte: utf8(""), lt: utf8("~"), cursor })) {
    met.push(fromUtf8(key));
    const from = next(fromUtf8(key));
    if (from === undefined) break;
    cursor.from = utf8(from);
  }
  return met;
}

const number = (i: number): string => String(i).padStart(3, "0");
const limits = { memoryTableBytesMax: 60_000, checkpointsMax: 8 };

test("range partition: a walk meets exactly the rows from where its reader looks, wherever they lie", async () => {
  const stamp = new Stamp(7, { limits });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const held = new Map<string, string>();
    let state = 12345;
    const random = (below: number): number => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return state % below;
    };
    for (let round = 0; round < 60; round++) {
      const writes = Array.from({ length: 20 }, () => {
        const key = `k${number(random(400))}`;
        if (random(5) === 0) {
          held.delete(key);
          return remove(key);
        }
        const value = "v".repeat(1 + random(400));
        held.set(key, value);
        return put(key, value);
      });
      unwrap(await write(partition, "l", writes));
    }
    assert.ok(partition.stats.checkpoints > 0, "some of it lies in checkpoints");
    for (let i = 0; i < 30; i++) {
      const jumps = new Map<string, string>();
      const jump = (key: string): string => {
        const to = random(3) === 0 ? `${key}\0` : `k${number(Math.min(999, Number(key.slice(1)) + 1 + random(60)))}`;
        jumps.set(key, to);
        return to;
      };
      const met = await walk(partition, jump);
      const keys = [...held.keys()].sort();
      const expected: string[] = [];
      for (let from = ""; ; ) {
        const next = keys.find((key) => key >= from);
        if (next === undefined) break;
        expected.push(next);
        const to = jumps.get(next);
        assert.ok(to !== undefined, `${next} was not met`);
        from = to;
      }
      assert.deepEqual(met, expected);
    }
  });
});

test("range partition: blocks of checkpoints that a walk steps over are not read", async () => {
  const stamp = new Stamp(8, { limits: { memoryTableBytesMax: 300_000, checkpointsMax: 8 }, journalSegmentBytes: 1 << 23 });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const large = "c".repeat(20_000);
    for (let i = 0; i < 20; i++) {
      const rows = [1, 2, 3, 4, 5, 6].map((piece) => put(`k${number(i)}/${piece}`, large));
      unwrap(await write(partition, "l", [put(`k${number(i)}/0`, "head"), ...rows]));
    }
    await partition.close();
    const again = await stamp.open(2);
    const heads = await walk(again, (key) => `${key.slice(0, 5)}~`);
    assert.deepEqual(
      heads,
      Array.from({ length: 20 }, (_, i) => `k${number(i)}/0`),
    );
    const looks = (): number => again.stats.storage.rowCacheHits + again.stats.storage.rowCacheMisses;
    const walked = looks();
    const all = await walk(again, (key) => `${key}\0`);
    assert.equal(all.length, 140);
    assert.ok(looks() - walked > 3 * walked, `${walked} blocks for the heads, ${looks() - walked} for everything`);
  });
});
