/**
 * A range partition that leaves, with commits in flight and preparations before: each commit is answered, or not done,
 * and with the children, whatever fails meanwhile.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError, fromUtf8, type Outcome, ownerEpoch, present, type RuleName, refused, unwrap, utf8 } from "@stamp/base";
import { RangePartition } from "../index.ts";
import { put, read, Stamp, streamsOf, write } from "../testing/harness.ts";
import { become, expected, fill, from, handOverTo, keyOf, keysOf, limits, type Place, splitAt200 } from "../testing/reshape-harness.ts";
import { restBytesMax } from "./leave.ts";

/** Two neighbours, r2 and r3, that meet at 200. */
async function neighbours(stamp: Stamp): Promise<[[Place, RangePartition], [Place, RangePartition]]> {
  return [
    [{ rangeId: "r2", epoch: 2 }, unwrap(await stamp.load(2, "ps", { rangeId: "r2", high: keyOf(200) }))],
    [{ rangeId: "r3", epoch: 3 }, unwrap(await stamp.load(3, "ps", { rangeId: "r3", low: keyOf(200) }))],
  ];
}
const r4 = { rangeId: "r4", epoch: 4 };

async function writesWhileItLeaves(
  what: "split" | "merge",
  without: readonly RuleName[],
  leavesAfterMs: number,
): Promise<{ acknowledged: number; missing: string[] }> {
  const stamp = new Stamp(6, { limits, without });
  return stamp.sim.run(async () => {
    const parents: [Place, RangePartition][] =
      what === "merge" ? await neighbours(stamp) : [[{ rangeId: "r1", epoch: 1 }, unwrap(await stamp.load(1, "ps"))]];
    const [, parent] = present(parents[0], "a parent");
    const acknowledged: string[] = [];
    const writers = from(0, 40).map(async (key) => {
      for (let i = 0; i < 20; i++) {
        const done = await write(parent, key, [put(`${key}/${i}`, "v")]);
        if (done.ok) acknowledged.push(`${key}/${i}`);
        else if (done.failure.reason === "partitionLoading") return;
      }
    });
    await stamp.sim.sleep(leavesAfterMs);
    unwrap(await become(stamp, "ps", parents, [r4]));
    await Promise.all(writers);
    const child = unwrap(await stamp.load(4, "ps", { rangeId: "r4", create: false }));
    const held = new Set(await keysOf(child));
    return { acknowledged: acknowledged.length, missing: acknowledged.filter((key) => !held.has(key)) };
  });
}

for (const [what, rule] of [
  ["split", "cutNotAcknowledged"],
  ["merge", "drainBeforeLeaving"],
] as const) {
  test(`${what}: what is acknowledged while the parent leaves is with its child; without rule ${rule} it is lost`, async () => {
    let acknowledged = 0;
    let lost = 0;
    for (let leavesAfterMs = 3; leavesAfterMs < 20; leavesAfterMs += 2) {
      const good = await writesWhileItLeaves(what, [], leavesAfterMs);
      assert.deepEqual(good.missing, []);
      acknowledged += good.acknowledged;
      lost += (await writesWhileItLeaves(what, [rule], leavesAfterMs)).missing.length;
    }
    assert.ok(acknowledged > 200, `${acknowledged} writes`);
    assert.ok(lost > 0, "nothing was lost");
  });
}

const isMoving = (outcome: Outcome<unknown>): boolean =>
  !outcome.ok && outcome.failure.reason === "partitionLoading" && outcome.failure.applied === "no";

test("split: what waits for the turn of its row when the parent leaves is not done there, however many wait; what was done is with the child", async () => {
  const stamp = new Stamp(12, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    unwrap(await write(parent, "row", [put("k", "before")]));
    unwrap(await parent.prepareToLeave(true));
    unwrap(await parent.recordHandoff(["r2"]));
    const writes = Array.from({ length: 50 }, (_, i) => write(parent, "row", [put("k", `${i}`)]));
    await stamp.sim.sleep(5);
    unwrap(await become(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], [{ rangeId: "r2", epoch: 2 }]));
    const outcomes = await Promise.all(writes);
    const done = outcomes.filter(({ ok }) => ok).length;
    assert.ok(done >= 1 && done <= 5, `${done} were done before it left`);
    for (const outcome of outcomes.slice(done)) assert.ok(isMoving(outcome), JSON.stringify(outcome));
    const child = unwrap(await stamp.load(2, "ps", { rangeId: "r2", create: false }));
    assert.equal(await read(child, "k"), `${done - 1}`);
  });
});

/** With writes that are decided and not durable. `commits`: before they left. */
async function leaveWith(
  stamp: Stamp,
  parents: readonly RangePartition[],
  children: readonly string[],
  writes: readonly Promise<Outcome<unknown>>[],
) {
  await stamp.sim.sleep(0.1);
  const commits = parents.reduce((sum, { stats }) => sum + stats.commits, 0);
  const left = await RangePartition.leave(parents, children);
  const outcomes = await Promise.all(writes);
  return { left, commits, acknowledged: outcomes.map(({ ok }) => ok) };
}

test("split: what is on its way to the log when that is cut is unknown, or not done once the children have the streams; what waits is not done", async () => {
  for (const change of ["happens", "refused", "closed before"] as const) {
    const stamp = new Stamp(31, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await write(parent, "l", [put(keyOf(0), "before")]));
      unwrap(await parent.prepareToLeave(true));
      unwrap(await parent.recordHandoff(["r2"]));
      const writes = [write(parent, "first", [put(keyOf(1), "on its way")])];
      // It lands: long enough for that, too short for the answer.
      await stamp.sim.sleep(0.1);
      writes.push(...from(2, 9).map((key) => write(parent, key, [put(key, "waits")])));
      const answered: number[] = [];
      for (const [i, one] of writes.entries()) void one.then(() => answered.push(i));
      const left = unwrap(await RangePartition.leave([parent], ["r2"]));
      await stamp.sim.sleep(500);
      assert.deepEqual(answered, [1, 2, 3, 4, 5, 6, 7], "nothing is said yet of what is on its way");
      if (change === "refused") {
        unwrap(await stamp.client("pm").openForOwner(streamsOf("r1").metadata, ownerEpoch(3), { create: false, timeoutMs: 5_000 }));
      }
      const parents: [Place, RangePartition][] = [[{ rangeId: "r1", epoch: 1 }, parent]];
      if (change === "closed before") await parent.close();
      else assert.equal((await handOverTo(stamp, "ps", parents, left, [{ rangeId: "r2", epoch: 2 }])).ok, change === "happens");
      const [first, ...others] = await Promise.all(writes);
      for (const other of others) assert.ok(isMoving(other), JSON.stringify(other));
      assert.ok(first !== undefined && !first.ok);
      assert.equal(first.failure.applied, change === "happens" ? "no" : "unknown");
      const place = change === "happens" ? { rangeId: "r2" } : {};
      const again = unwrap(await stamp.load(4, "other", { ...place, create: false }));
      assert.deepEqual(
        await keysOf(again),
        change === "happens" ? [keyOf(0)] : [keyOf(0), keyOf(1)],
        "it is in the log, behind where that was cut",
      );
    });
  }
});

test("split: without rule redoneWhenChanged what is said not to have happened is there", async () => {
  const stamp = new Stamp(31, { limits, without: ["redoneWhenChanged"] });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    unwrap(await parent.prepareToLeave(true));
    unwrap(await parent.recordHandoff(["r2"]));
    const writing = write(parent, "first", [put(keyOf(1), "on its way")]);
    await stamp.sim.sleep(0.1);
    unwrap(await RangePartition.leave([parent], ["r2"]));
    assert.ok(isMoving(await writing));
    await parent.close();
    await stamp.sim.sleep(100);
    assert.equal(await read(unwrap(await stamp.load(4, "other", { create: false })), keyOf(1)), "on its way");
  });
});

test("merge: what is decided and not durable is answered and goes along, whatever it is much of; the parent has it too when nothing comes of it", async () => {
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

for (const what of ["split", "merge"] as const) {
  test(`${what}: of one row that was written again and again the last write counts that was acknowledged`, async () => {
    for (let afterMs = 1; afterMs < 8; afterMs++) {
      const stamp = new Stamp(19, { limits });
      await stamp.sim.run(async () => {
        const parents: [Place, RangePartition][] =
          what === "merge" ? await neighbours(stamp) : [[{ rangeId: "r1", epoch: 1 }, unwrap(await stamp.load(1, "ps"))]];
        const [, parent] = present(parents[0], "a parent");
        if (what === "split") {
          unwrap(await parent.prepareToLeave(true));
          unwrap(await parent.recordHandoff(["r4"]));
        }
        const next = (writes = true) =>
          parent.transact(
            utf8("row"),
            async (tx) => {
              const before = await tx.get(utf8(keyOf(1)));
              const n = Number(before === undefined ? 0 : fromUtf8(before)) + 1;
              return { writes: writes ? [put(keyOf(1), `${n}`)] : [], result: n };
            },
            { timeoutMs: 60_000, pipelined: true },
          );
        const all: Promise<Outcome<number>>[] = [];
        for (let i = 0; i < afterMs; i++) {
          all.push(next(), next(), next());
          await stamp.sim.sleep(1);
        }
        const looked = next(false);
        unwrap(await become(stamp, "ps", parents, [r4]));
        const outcomes = await Promise.all(all);
        const done = outcomes.filter(({ ok }) => ok).length;
        assert.deepEqual(
          outcomes.slice(0, done).map(unwrap),
          Array.from({ length: done }, (_, i) => i + 1),
        );
        for (const outcome of outcomes.slice(done)) assert.ok(isMoving(outcome), JSON.stringify(outcome));
        if (what === "merge") assert.equal(done, all.length);
        if (done < all.length) assert.ok(isMoving(await looked), "what was seen did not happen");
        const child = unwrap(await stamp.load(4, "ps", { rangeId: "r4", create: false }));
        assert.equal(await read(child, keyOf(1)), done === 0 ? undefined : `${done}`);
      });
    }
  });
}

test("merge: what the log takes no more is in the record and acknowledged; without the record it is not", async () => {
  for (const fenced of ["commitLog", "metadata"] as const) {
    const stamp = new Stamp(20, { limits });
    await stamp.sim.run(async () => {
      const [[, parent], [, other]] = await neighbours(stamp);
      unwrap(await write(parent, "l", [put(keyOf(0), "v")]));
      unwrap(await parent.prepareToLeave(true));
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

test("split: a parent whose log or metadata has another owner does not leave, and nothing that was acknowledged is lost", async () => {
  for (const fenced of ["commitLog", "metadata"] as const) {
    const stamp = new Stamp(20, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await write(parent, "l", [put(keyOf(0), "v")]));
      unwrap(await parent.prepareToLeave(true));
      unwrap(await stamp.client("pm").openForOwner(streamsOf("r1")[fenced], ownerEpoch(8), { create: false, timeoutMs: 5_000 }));
      const writes = from(1, 9).map((key) => write(parent, key, [put(key, "v")]));
      const { left, acknowledged } = await leaveWith(stamp, [parent], ["r4"], writes);
      if (left.ok) left.value.became(false);
      const handed = left.ok && (await handOverTo(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], left.value, [r4])).ok;
      assert.equal(handed, false);
      const again = unwrap(await stamp.load(9, "other", { create: false }));
      const held = new Set(await keysOf(again));
      assert.ok(held.has(keyOf(0)));
      for (const [i, key] of from(1, 9).entries()) assert.ok(held.has(key) || !acknowledged[i], key);
    });
  }
});

test("merge: both neighbours write their records at once; what neither log had is with the child", async () => {
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

test("merge: what is in the memory of both fits into the record, or is left in checkpoints", async () => {
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

test("merge: one that was closed meanwhile leaves nothing, and the other one says so at once", async () => {
  for (const closed of [0, 1]) {
    const stamp = new Stamp(23, { limits });
    await stamp.sim.run(async () => {
      const { left, right } = await splitAt200(stamp);
      await ([left, right][closed] as RangePartition).close();
      const both = await RangePartition.leave([left, right], ["r4"]);
      assert.ok(!both.ok && both.failure.reason === "stopping", JSON.stringify(both));
    });
  }
});

for (const what of ["split", "merge"] as const) {
  test(`${what}: what is being decided when the parent leaves is ${what === "merge" ? "waited for" : "not waited for, and not done"}`, async () => {
    const stamp = new Stamp(24, { limits });
    await stamp.sim.run(async () => {
      const parents = what === "merge" ? (await neighbours(stamp)).map(([, one]) => one) : [unwrap(await stamp.load(1, "ps"))];
      const parent = present(parents[0], "a parent");
      const options = { timeoutMs: 60_000 };
      const failing = parent.transact(
        utf8("failing"),
        async () => {
          throw new FailureError(refused("unavailable", "timeout", "not read").failure);
        },
        options,
      );
      assert.equal((await failing).ok, false);
      const decide = async () => {
        await stamp.sim.sleep(300);
        return { writes: [put(keyOf(3), "v")], result: undefined };
      };
      const slow = parent.transact(utf8("slow"), decide, options);
      const beforeMs = stamp.sim.nowMs;
      const { left } = await leaveWith(stamp, parents, ["r4"], what === "merge" ? [slow] : []);
      const { drainMs, heldSinceMs } = unwrap(left);
      if (what === "merge") assert.ok(drainMs > 250);
      else assert.ok(stamp.sim.world("ps").clock.monotonicMs() - heldSinceMs < 50 && stamp.sim.nowMs - beforeMs < 250);
      unwrap(left).became(false);
      assert.equal(isMoving(await slow), what === "split");
      const place = what === "merge" ? { rangeId: "r2", high: keyOf(200) } : {};
      const again = unwrap(await stamp.load(9, "other", { ...place, create: false }));
      assert.equal(await read(again, keyOf(3)), what === "merge" ? "v" : undefined);
    });
  });
}

test("merge: nobody waits for what is being decided in a parent that is closed", async () => {
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

test("split: a log that gets no answer holds nothing up, and what is on its way to it is done anew", async () => {
  for (let seed = 30; ; seed++) {
    const stamp = new Stamp(seed, { limits });
    const done = await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await write(parent, "l", [put(keyOf(0), "v")]));
      unwrap(await parent.prepareToLeave(true));
      const { commitLog, metadata } = parent.streams;
      const lastOf = (stream: typeof metadata) => present(stream.extents.at(-1), "an extent").extentId;
      const located = unwrap(await stamp.client("ps").locate([lastOf(commitLog), lastOf(metadata)], { timeoutMs: 5_000 }));
      const [log, records] = [lastOf(commitLog), lastOf(metadata)].map(
        (extentId) => located.find((one) => Number(one.extentId) === extentId)?.addresses ?? [],
      );
      const node = log?.find((address) => !records?.includes(address));
      if (node === undefined) return false;
      stamp.sim.pause(node);
      const before = stamp.sim.nowMs;
      const writing = write(parent, "l", [put(keyOf(1), "v")]);
      await stamp.sim.sleep(5);
      unwrap(await become(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], [r4]));
      assert.ok(isMoving(await writing));
      assert.ok(stamp.sim.nowMs - before < 150, `${stamp.sim.nowMs - before} ms`);
      const child = unwrap(await stamp.load(4, "other", { rangeId: "r4", create: false }));
      assert.deepEqual(await keysOf(child), [keyOf(0)]);
      return true;
    });
    if (done) break;
  }
});

test("split: the log is cut when it goes to no other extent; writes go on until then", async () => {
  let rolled = 0;
  for (let afterMs = 0; afterMs < 40; afterMs += 2) {
    const stamp = new Stamp(28, { limits: { memoryTableBytesMax: 16 * 1024 * 1024 }, extentTargetBytes: 40_000 });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await parent.prepareToLeave(true));
      unwrap(await parent.recordHandoff(["r4"]));
      const acknowledged: string[] = [];
      const writers = from(0, 20).map(async (key) => {
        for (let i = 0; (await write(parent, key, [put(`${key}/${i}`, "x".repeat(1_000))])).ok; i++) acknowledged.push(`${key}/${i}`);
      });
      await stamp.sim.sleep(afterMs);
      const before = parent.streams.commitLog.extents.length;
      const left = unwrap(await RangePartition.leave([parent], ["r4"]));
      rolled += parent.streams.commitLog.extents.length > before ? 1 : 0;
      unwrap(await handOverTo(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], left, [r4]));
      await Promise.all(writers);
      const child = unwrap(await stamp.load(4, "other", { rangeId: "r4", create: false }));
      assert.deepEqual(await keysOf(child), acknowledged.sort());
    });
  }
  assert.ok(rolled > 0, "it went to another one");
});

test("split: what is in memory is written out again when the parent stays after all, whatever of leaving was under way", async () => {
  for (const when of ["told", "telling", "before"] as const) {
    const stamp = new Stamp(32, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await parent.prepareToLeave(true));
      if (when === "telling") void fill(parent, 0, 200, "much").catch(() => {});
      const telling = when === "before" ? undefined : parent.recordHandoff(["r4"]);
      if (when === "told") unwrap(present(await telling, "told"));
      if (when !== "before") {
        await fill(parent, 0, 400, "first");
        if (when === "told") {
          const byHand = await parent.checkpoint();
          assert.ok(isMoving(byHand), "nothing is recorded behind what the children are told");
          assert.equal(parent.stats.checkpoints, 0);
        }
      }
      parent.resume();
      await telling;
      if (when === "before") assert.equal((await parent.recordHandoff(["r4"])).ok, false, "it stays");
      await fill(parent, 0, 400, "second");
      unwrap(await parent.checkpoint());
      assert.ok(parent.stats.checkpoints > 0 && parent.stats.memoryTableEntries === 0);
      const again = unwrap(await stamp.load(5, "other", { create: false }));
      assert.deepEqual(await keysOf(again), from(0, 400));
    });
  }
});

test("split: blob data that is not on its way to an extent is given back, what is on its way is in, and where it ends is certain", async () => {
  const stamp = new Stamp(13, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    const append = () => parent.appendData([new Uint8Array(512 * 1024)], { timeoutMs: 60_000 });
    unwrap(await append());
    const appends = Array.from({ length: 30 }, append);
    await parent.holdData();
    const outcomes = await Promise.all(appends);
    const taken = outcomes.filter(({ ok }) => ok).length;
    assert.ok(taken >= 1 && taken < 30, `${taken} were on their way`);
    for (const outcome of [...outcomes.slice(taken), await append()]) {
      assert.ok(!outcome.ok && outcome.failure.reason === "partitionLoading" && outcome.failure.applied === "no", JSON.stringify(outcome));
    }
    unwrap(await write(parent, "l", [put("k", "rows go on")]));
    unwrap(await RangePartition.leave([parent], ["r2"]));
    assert.ok(typeof parent.streams.blobData?.endsAt === "object");
  });
});

test("split: where blob data end is certain also when their extent is being left for the next one", async () => {
  let left = 0;
  for (let afterMs = 0; afterMs < 60; afterMs += 3) {
    const stamp = new Stamp(28, { limits, extentTargetBytes: 300_000 });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      const appends = Array.from({ length: 40 }, () => parent.appendData([new Uint8Array(100_000)], { timeoutMs: 60_000 }));
      await stamp.sim.sleep(afterMs);
      const before = parent.streams.blobData?.extents.length ?? 0;
      await parent.holdData();
      left += (parent.streams.blobData?.extents.length ?? 0) > before ? 1 : 0;
      await Promise.all(appends);
      unwrap(await RangePartition.leave([parent], ["r2"]));
      assert.ok(parent.streams.blobData?.endsAt !== undefined, `${afterMs} ms`);
    });
  }
  assert.ok(left > 0, "one was being left");
});

test("split: what a parent that is written to leaves has extents to go to, though it has no row to write out yet", async () => {
  for (const written of [false, true]) {
    const stamp = new Stamp(16, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await parent.prepareToLeave(written));
      const { metadata, rowData } = parent.streams;
      assert.deepEqual([metadata.extents.length, rowData.extents.length], [1, written ? 1 : 0]);
    });
  }
});

test("split: what is in memory is written out round after round while writes go on, until what comes meanwhile is not much less", async () => {
  for (const [writers, roundsMin, roundsMax] of [
    [1, 1, 1],
    [100, 4, 7],
    [400, 2, 2],
  ] as const) {
    const stamp = new Stamp(26, { limits: { memoryTableBytesMax: 64 * 1024 * 1024 }, journalSegmentBytes: 16 << 20 });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      for (let i = 0; i < 100; i++) {
        const writes = Array.from({ length: 10 }, (_, j) => put(`m${10 * i + j}`, "x".repeat(8_000)));
        unwrap(await write(parent, "m", writes));
      }
      let stopped = false;
      const all = from(0, writers).map(async (key) => {
        for (let i = 0; !stopped; i++) unwrap(await write(parent, key, [put(`${key}/${i}`, "x".repeat(2_000))]));
      });
      unwrap(await parent.prepareToLeave(true));
      unwrap(await parent.lighten());
      stopped = true;
      const { checkpoints, memoryTableBytes } = parent.stats;
      assert.ok(checkpoints >= roundsMin && checkpoints <= roundsMax, `${writers} writers, ${checkpoints} rounds`);
      if (writers < 400) assert.ok(memoryTableBytes < restBytesMax, `${memoryTableBytes} bytes fit into the record`);
      await Promise.all(all);
    });
  }
});

test("split: a merge of checkpoints that is under way is given up when the parent prepares to leave", async () => {
  const stamp = new Stamp(14, { limits: { memoryTableBytesMax: 8 * 1024 * 1024, checkpointsMax: 8, rowCacheBytesMax: 4_096 } });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    for (let round = 0; round < 4; round++) {
      await fill(parent, 0, 3_000, `round ${round}`);
      unwrap(await parent.checkpoint());
    }
    unwrap(await parent.prepareToLeave(true));
    await stamp.sim.sleep(30_000);
    assert.equal(parent.stats.checkpoints, 4);
    assert.equal(parent.stats.storage.mergedBytes, 0);
  });
});
