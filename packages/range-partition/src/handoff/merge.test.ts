/** Two neighbours that leave together: each commit is answered, or not done, and with the child. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ownerEpoch, unwrap, utf8 } from "@stamp/base";
import type { RangePartition } from "../index.ts";
import { put, read, Stamp, streamsOf, write } from "../testing/harness.ts";
import { leaveWith, neighbours } from "../testing/leave-harness.ts";
import { become, expected, from, keyOf, keysOf, leave, limits, type Place, splitAt200 } from "../testing/reshape-harness.ts";

test("merge: commits that are not durable when a parent leaves are answered, and the child has them; the parent has them if the merge fails", async () => {
  for (const { bytes, inMemory, isLittle } of [
    { bytes: 100, inMemory: 0, isLittle: true },
    { bytes: 100, inMemory: 1_850, isLittle: false },
    // Each would fit, both don't.
    { bytes: 6_000, inMemory: 850, isLittle: false },
    // More than fits into any record.
    { bytes: 30_000, inMemory: 0, isLittle: true },
  ]) {
    const stamp = new Stamp(18, { limits: { memoryTableBytesMax: 16 * 1024 * 1024 }, journalSegmentBytes: 16 << 20 });
    await stamp.sim.run(async () => {
      const [[, parent], [, other]] = await neighbours(stamp);
      for (let i = 0; i < inMemory; i += 50) {
        const writes = Array.from({ length: 50 }, (_, j) => put(`a${i + j}`, "x".repeat(1_000)));
        unwrap(await write(parent, "a", writes));
      }
      const keys = from(0, 200);
      const writes = keys.map((key) => write(parent, key, [put(key, "x".repeat(bytes))]));
      const { left, commits, acknowledged } = await leaveWith(stamp, [parent, other], ["r4"], writes);
      unwrap(left);
      assert.ok(commits < inMemory / 50 + 200, "some were not durable");
      if (bytes < 30_000) assert.equal(parent.stats.storage.flushedBytes === 0, isLittle);
      assert.deepEqual(new Set(acknowledged), new Set([true]));
      assert.equal((await keysOf(parent)).length, inMemory + 200, "whoever reads here meanwhile sees what was acknowledged");
      const r2 = { rangeId: "r2", high: keyOf(200), create: false };
      const again = unwrap(await stamp.load(5, "other", r2));
      assert.equal((await keysOf(again)).length, inMemory + 200);
      unwrap(await write(again, "l", [put(keyOf(7), "later")]));
      const third = unwrap(await stamp.load(6, "third", r2));
      assert.equal((await keysOf(third)).length, inMemory + 200);
      assert.equal(await read(third, keyOf(7)), "later");
      unwrap(await third.checkpoint());
      const right = unwrap(await stamp.load(6, "third", { rangeId: "r3", low: keyOf(200), create: false }));
      const parents: [Place, RangePartition][] = [
        [{ rangeId: "r2", epoch: 6 }, third],
        [{ rangeId: "r3", epoch: 6 }, right],
      ];
      unwrap(await become(stamp, "third", parents, [{ rangeId: "r7", epoch: 7 }]));
      const child = unwrap(await stamp.load(7, "ps", { rangeId: "r7", create: false }));
      assert.equal((await keysOf(child)).length, inMemory + 200);
    });
  }
});

test("merge: commits that the log refuses are acknowledged if the last record has them, and refused if it fails", async () => {
  for (const fenced of ["commitLog", "metadata"] as const) {
    const stamp = new Stamp(20, { limits });
    await stamp.sim.run(async () => {
      const [[, parent], [, other]] = await neighbours(stamp);
      unwrap(await write(parent, "l", [put(keyOf(0), "v")]));
      unwrap(await parent.departure.prepare(true));
      unwrap(await stamp.client("pm").openForOwner(streamsOf("r2")[fenced], ownerEpoch(8), { create: false, timeoutMs: 5_000 }));
      const writes = [write(parent, "first", [put(keyOf(1), "on its way")])];
      await stamp.sim.sleep(0.1);
      writes.push(...from(2, 9).map((key) => write(parent, key, [put(key, "waits")])));
      const { left, acknowledged } = await leaveWith(stamp, [parent, other], ["r4"], writes);
      assert.equal(left.ok, fenced === "commitLog");
      assert.deepEqual(acknowledged, [true, ...from(2, 9).map(() => fenced === "commitLog")]);
      const again = unwrap(await stamp.load(9, "other", { rangeId: "r2", high: keyOf(200), create: false }));
      const held = new Set(await keysOf(again));
      for (const [i, key] of from(1, 9).entries()) assert.ok(held.has(key) || !acknowledged[i], key);
    });
  }
});

test("merge: both neighbours write their last records at once; the child has the commits that neither log had", async () => {
  const stamp = new Stamp(21, { limits });
  await stamp.sim.run(async () => {
    const { left, right } = await splitAt200(stamp);
    const keys = [...from(10, 30), ...from(210, 230)];
    const writes = keys.map((key) => write(key < keyOf(200) ? left : right, key, [put(key, "in flight")]));
    await stamp.sim.sleep(1);
    const parents: [Place, RangePartition][] = [
      [{ rangeId: "r2", epoch: 2 }, left],
      [{ rangeId: "r3", epoch: 3 }, right],
    ];
    unwrap(await become(stamp, "ps", parents, [{ rangeId: "r4", epoch: 7 }]));
    for (const outcome of await Promise.all(writes)) unwrap(outcome);
    const child = unwrap(await stamp.load(7, "ps", { rangeId: "r4", create: false }));
    for (const key of keys) assert.equal(await read(child, key), "in flight", key);
    assert.deepEqual(await keysOf(child), expected);
  });
});

test("merge: the memory tables of both go into the record if they fit, else into checkpoints", async () => {
  for (const { mebibytes, checkpoints } of [
    { mebibytes: 1.6, checkpoints: 0 },
    { mebibytes: 2.2, checkpoints: 2 },
  ]) {
    const stamp = new Stamp(24, { limits: { memoryTableBytesMax: 16 * 1024 * 1024 }, journalSegmentBytes: 16 << 20 });
    await stamp.sim.run(async () => {
      const parents: [Place, RangePartition][] = [
        [{ rangeId: "r2", epoch: 2 }, unwrap(await stamp.load(2, "ps", { rangeId: "r2", high: keyOf(200) }))],
        [{ rangeId: "r3", epoch: 3 }, unwrap(await stamp.load(3, "ps", { rangeId: "r3", low: keyOf(200) }))],
      ];
      for (const [i, [, parent]] of parents.entries()) {
        const writes = from(200 * i, 200 * (i + 1)).map((key) => put(key, "x".repeat((mebibytes * 1024 * 1024) / 200)));
        unwrap(await write(parent, "l", writes));
      }
      unwrap(await become(stamp, "ps", parents, [{ rangeId: "r4", epoch: 4 }]));
      const child = unwrap(await stamp.load(4, "ps", { rangeId: "r4", create: false }));
      assert.deepEqual([child.stats.checkpoints, child.stats.memoryTableEntries], [checkpoints, checkpoints > 0 ? 0 : 400]);
      assert.deepEqual(await keysOf(child), from(0, 400));
    });
  }
});

test("merge: when one neighbour can't leave the other one does not wait for it, and nothing that was acknowledged is lost", async () => {
  for (const fenced of ["r2", "r3"]) {
    const stamp = new Stamp(22, { limits });
    await stamp.sim.run(async () => {
      const { left, right } = await splitAt200(stamp);
      unwrap(await stamp.client("pm").openForOwner(streamsOf(fenced).metadata, ownerEpoch(8), { create: false, timeoutMs: 5_000 }));
      const keys = [...from(10, 30), ...from(210, 230)];
      const writes = keys.map((key) => write(key < keyOf(200) ? left : right, key, [put(key, "in flight")]));
      const { left: both, acknowledged } = await leaveWith(stamp, [left, right], ["r4"], writes);
      assert.ok(!both.ok && both.failure.reason === "staleOwnerEpoch", JSON.stringify(both));
      const again = [
        unwrap(await stamp.load(9, "other", { rangeId: "r2", high: keyOf(200), create: false })),
        unwrap(await stamp.load(10, "other", { rangeId: "r3", low: keyOf(200), create: false })),
      ];
      for (const [i, key] of keys.entries()) {
        const found = await read(again[key < keyOf(200) ? 0 : 1] as RangePartition, key);
        assert.ok(found === "in flight" || !acknowledged[i], key);
      }
    });
  }
});

test("merge: if one parent is closed meanwhile, the merge is refused at once", async () => {
  for (const closed of [0, 1]) {
    const stamp = new Stamp(23, { limits });
    await stamp.sim.run(async () => {
      const { left, right } = await splitAt200(stamp);
      await ([left, right][closed] as RangePartition).close();
      const both = await leave([left, right], ["r4"]);
      assert.ok(!both.ok && both.failure.reason === "stopping", JSON.stringify(both));
    });
  }
});

test("merge: a transaction under way in a parent that was closed holds nobody up", async () => {
  const stamp = new Stamp(25, { limits });
  await stamp.sim.run(async () => {
    const [[, parent], [, other]] = await neighbours(stamp);
    const never = Promise.withResolvers<{ writes: []; result: undefined }>();
    void parent.transact(utf8("never"), () => never.promise, { timeoutMs: 60_000 });
    const leaving = leaveWith(stamp, [parent, other], ["r4"], []);
    await stamp.sim.sleep(100);
    await parent.close();
    const { left } = await leaving;
    assert.ok(!left.ok && left.failure.reason === "stopping", JSON.stringify(left));
    never.resolve({ writes: [], result: undefined });
  });
});
