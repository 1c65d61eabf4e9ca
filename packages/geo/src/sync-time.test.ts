/**
 * Last Sync Time never overstates: not with clocks that are set back, transactions in progress, a bounded memory, or a
 * range that moves.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { accountSyncTime, RangeSyncTime, wholeSeconds } from "./sync-time.ts";

test("sync time: it is one millisecond before the last moment that is acknowledged whole; an idle range follows the clock", () => {
  const range = new RangeSyncTime();
  range.noted({ position: 0, timeMs: 1_000, monotonicMs: 1_000, bytes: 0 });
  assert.equal(range.at(0), 999);
  range.noted({ position: 2, timeMs: 2_000, monotonicMs: 2_000, bytes: 50 });
  range.noted({ position: 3, timeMs: 2_500, monotonicMs: 2_500, bytes: 90 });
  assert.equal(range.at(1), 999);
  assert.equal(range.pendingBytes(90), 90);
  assert.equal(range.at(2), 1_999);
  assert.equal(range.pendingBytes(90), 40);
  range.noted({ position: 3, timeMs: 9_000, monotonicMs: 9_000, bytes: 90 });
  assert.equal(range.at(3), 8_999);
  assert.equal(range.pendingBytes(90), 0);
  // The clock is set back: the times given out before stay true.
  range.noted({ position: 4, timeMs: 3_000, monotonicMs: 3_000, bytes: 100 });
  assert.equal(range.at(4), 8_999);
});

test("sync time: after the clock was set back, what is told stands still, and the monotonic time of what is acknowledged goes on", () => {
  const range = new RangeSyncTime();
  assert.equal(range.passedMonotonicMs, undefined);
  range.noted({ position: 1, timeMs: 9_000, monotonicMs: 100, bytes: 0 });
  assert.deepEqual([range.at(1), range.passedMonotonicMs], [8_999, 100]);
  // The clock is set back by 3,600 ms. A transaction that began at 150 is not acknowledged.
  range.noted({ position: 2, timeMs: 5_400, monotonicMs: 150, bytes: 0 });
  assert.deepEqual([range.at(1), range.passedMonotonicMs], [8_999, 100]);
  assert.deepEqual([range.at(2), range.passedMonotonicMs], [8_999, 150]);
  range.noted({ position: 2, timeMs: 5_900, monotonicMs: 650, bytes: 0 });
  assert.deepEqual([range.at(2), range.passedMonotonicMs], [8_999, 650]);
});

test("sync time: a range that was just loaded knows nothing before its backlog is acknowledged", () => {
  const range = new RangeSyncTime();
  range.noted({ position: 9, timeMs: 5_000, monotonicMs: 5_000, bytes: 0 });
  assert.equal(range.at(4), undefined);
  assert.equal(range.at(9), 4_999);
});

test("sync time: that of an account is the earliest of its ranges, and unknown if one is", () => {
  assert.equal(accountSyncTime([5, 3, 9]), 3);
  assert.equal(accountSyncTime([5, undefined, 9]), undefined);
  assert.equal(accountSyncTime([]), undefined);
  assert.equal(wholeSeconds(1_999), 1_000);
});

test("sync time: whatever comes when, nothing that began at or before it is missing, and it does not fall", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("begin" as const) }),
    fc.record({ kind: fc.constant("commit" as const), which: fc.nat() }),
    fc.record({ kind: fc.constant("acknowledge" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ kind: fc.constant("clock" as const), byMs: fc.integer({ min: -5, max: 9 }) }),
    fc.record({ kind: fc.constant("note" as const) }),
    fc.record({ kind: fc.constant("move" as const) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 2, max: 4 }), (steps, momentsMax) => {
      let range = new RangeSyncTime(momentsMax);
      /** Begin of each transaction in progress, and of each commit; never before what was noted. */
      const begun: number[] = [];
      const commits: number[] = [];
      let [acknowledged, nowMs, told, noted] = [0, 100, Number.NEGATIVE_INFINITY, 0];
      for (const each of steps) {
        if (each.kind === "begin") begun.push(Math.max(nowMs, noted));
        else if (each.kind === "commit" && begun.length > 0) commits.push(...begun.splice(each.which % begun.length, 1));
        else if (each.kind === "clock") nowMs += each.byMs;
        else if (each.kind === "acknowledge") acknowledged += Math.round(each.share * (commits.length - acknowledged));
        else if (each.kind === "note") {
          const timeMs = Math.min(nowMs, ...begun);
          range.noted({ position: commits.length, timeMs, monotonicMs: timeMs, bytes: 0 });
          noted = Math.max(noted, timeMs);
        } else if (each.kind === "move") {
          range = new RangeSyncTime(momentsMax);
          begun.length = 0;
          told = Number.NEGATIVE_INFINITY;
        }
        const now = range.at(acknowledged);
        if (now === undefined) continue;
        assert.ok(now >= told, "it fell");
        told = now;
        for (const time of [...commits.slice(acknowledged), ...begun])
          assert.ok(time > now, `one that began at ${time} is missing, told ${now}`);
      }
    }),
    { numRuns: 3_000 },
  );
});
