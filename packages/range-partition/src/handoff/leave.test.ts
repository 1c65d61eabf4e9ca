/**
 * A range partition that leaves with commits in flight: each commit is answered, or not done, and with the children, whatever fails
 * meanwhile.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError, fromUtf8, type Outcome, ownerEpoch, present, type RuleName, refused, unwrap, utf8 } from "@stamp/base";
import type { RangePartition } from "../index.ts";
import { put, read, Stamp, streamsOf, write } from "../testing/harness.ts";
import { isMoving, leaveWith, neighbours, r4 } from "../testing/leave-harness.ts";
import { become, from, handOverTo, keyOf, keysOf, leave, limits, type Place } from "../testing/reshape-harness.ts";

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

test("split: what waits for the turn of its row when the parent leaves is not done there, however many wait; what was done is with the child", async () => {
  const stamp = new Stamp(12, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    unwrap(await write(parent, "row", [put("k", "before")]));
    unwrap(await parent.departure.prepare(true));
    unwrap(await parent.departure.recordHandoff(["r2"]));
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

test("split: what is on its way to the log when that is cut is unknown, or not done once the children have the streams; what waits is not done", async () => {
  for (const change of ["happens", "refused", "closed before"] as const) {
    const stamp = new Stamp(31, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await write(parent, "l", [put(keyOf(0), "before")]));
      unwrap(await parent.departure.prepare(true));
      unwrap(await parent.departure.recordHandoff(["r2"]));
      const writes = [write(parent, "first", [put(keyOf(1), "on its way")])];
      // It lands: long enough for that, too short for the answer.
      await stamp.sim.sleep(0.1);
      writes.push(...from(2, 9).map((key) => write(parent, key, [put(key, "waits")])));
      const answered: number[] = [];
      for (const [i, one] of writes.entries()) void one.then(() => answered.push(i));
      const left = unwrap(await leave([parent], ["r2"]));
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
    unwrap(await parent.departure.prepare(true));
    unwrap(await parent.departure.recordHandoff(["r2"]));
    const writing = write(parent, "first", [put(keyOf(1), "on its way")]);
    await stamp.sim.sleep(0.1);
    unwrap(await leave([parent], ["r2"]));
    assert.ok(isMoving(await writing));
    await parent.close();
    await stamp.sim.sleep(100);
    assert.equal(await read(unwrap(await stamp.load(4, "other", { create: false })), keyOf(1)), "on its way");
  });
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
          unwrap(await parent.departure.prepare(true));
          unwrap(await parent.departure.recordHandoff(["r4"]));
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

test("split: a parent whose log or metadata has another owner does not leave, and nothing that was acknowledged is lost", async () => {
  for (const fenced of ["commitLog", "metadata"] as const) {
    const stamp = new Stamp(20, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await write(parent, "l", [put(keyOf(0), "v")]));
      unwrap(await parent.departure.prepare(true));
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

test("split: a log that gets no answer holds nothing up, and what is on its way to it is done anew", async () => {
  for (let seed = 30; ; seed++) {
    const stamp = new Stamp(seed, { limits });
    const done = await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await write(parent, "l", [put(keyOf(0), "v")]));
      unwrap(await parent.departure.prepare(true));
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
