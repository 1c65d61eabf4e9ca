/**
 * Last Sync Time never overstates: not with clocks that are set back, commits of one millisecond, a bounded memory, or
 * a range that moves.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { accountSyncTime, RangeSyncTime, wholeSeconds } from "./sync-time.ts";

test("sync time: it is one millisecond before the first commit that is not acknowledged; an idle range follows the clock", () => {
  const range = new RangeSyncTime(0, 0, undefined, 0);
  assert.equal(range.at(1_000), 999);
  range.committed(1, 2_000);
  range.committed(2, 2_000);
  range.committed(3, 2_500);
  assert.equal(range.at(9_000), 1_999);
  range.acknowledged(1);
  assert.equal(range.at(9_000), 1_999, "commit 2 has the same time");
  range.acknowledged(2);
  assert.equal(range.at(9_000), 2_499);
  range.acknowledged(3);
  assert.equal(range.at(9_000), 8_999);
  // The clock is set back: the next commit may not fall below what was told.
  assert.equal(range.committed(4, 3_000), 9_000);
  assert.equal(range.at(3_000), 8_999);
});

test("sync time: a range that was just loaded knows nothing before its backlog is acknowledged, or knows where it begins", () => {
  const unknown = new RangeSyncTime(4, 9, undefined, 700);
  assert.equal(unknown.at(5_000), undefined);
  unknown.acknowledged(9);
  assert.equal(unknown.at(5_000), 4_999);
  assert.equal(new RangeSyncTime(4, 9, 650, 700).at(5_000), 649);
});

test("sync time: that of an account is the earliest of its ranges, and unknown if one is", () => {
  assert.equal(accountSyncTime([5, 3, 9]), 3);
  assert.equal(accountSyncTime([5, undefined, 9]), undefined);
  assert.equal(accountSyncTime([]), undefined);
  assert.equal(wholeSeconds(1_999), 1_000);
});

test("sync time: whatever comes when, no commit at or before it is missing, and it does not fall", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("commit" as const) }),
    fc.record({ kind: fc.constant("acknowledge" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ kind: fc.constant("clock" as const), byMs: fc.integer({ min: -5, max: 9 }) }),
    fc.record({ kind: fc.constant("ask" as const) }),
    fc.record({ kind: fc.constant("move" as const) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 4 }), (steps, pendingMax) => {
      let range = new RangeSyncTime(0, 0, undefined, 0, pendingMax);
      const times: number[] = [];
      let acknowledged = 0;
      let nowMs = 100;
      let told = Number.NEGATIVE_INFINITY;
      for (const each of steps) {
        if (each.kind === "commit") times.push(range.committed(times.length + 1, nowMs));
        else if (each.kind === "clock") nowMs += each.byMs;
        else if (each.kind === "acknowledge") {
          acknowledged += Math.round(each.share * (times.length - acknowledged));
          range.acknowledged(acknowledged);
        } else if (each.kind === "move") {
          // The told time becomes one that no later commit falls below, as the last commit's is.
          const last = Math.max(times.at(-1) ?? 0, told + 1);
          range = new RangeSyncTime(acknowledged, times.length, times[acknowledged], Number.isFinite(last) ? last : 0, pendingMax);
        }
        const now = range.at(nowMs);
        if (now === undefined) continue;
        if (each.kind !== "move") assert.ok(now >= told, "it fell");
        told = Math.max(told, now);
        for (const time of times.slice(acknowledged)) assert.ok(time > now, `commit at ${time} is not acknowledged, told ${now}`);
      }
    }),
    { numRuns: 3_000 },
  );
});
