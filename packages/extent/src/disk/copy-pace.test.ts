import assert from "node:assert/strict";
import { test } from "node:test";
import { CopyPace } from "./copy-pace.ts";

const mebibyte = 1 << 20;

/** A copy beside a client whose appends take `usualMs`, and `besideMs` when they meet a step of 10 ms. */
function run(pace: CopyPace, steps: number, { usualMs, besideMs }: { usualMs: number; besideMs: number }, begun = { nowMs: 0, copied: 0 }) {
  let { nowMs, copied } = begun;
  const rests: number[] = [];
  for (let i = 0; i < steps; i++) {
    pace.stepBegan();
    nowMs += 10;
    for (let append = 0; append < 2; append++) pace.appendDurable(nowMs - besideMs, nowMs);
    pace.stepEnded(nowMs);
    copied += mebibyte;
    const restMs = pace.restMs({ stepMs: 10, elapsedMs: nowMs, copiedBytes: copied });
    nowMs += Math.max(restMs, usualMs + 1);
    pace.appendDurable(nowMs - usualMs, nowMs);
    rests.push(restMs);
  }
  return { rests, nowMs, copied };
}

test("copies: while appends beside them take what they always take, a rest is as long as its step", () => {
  const { rests } = run(new CopyPace(), 50, { usualMs: 6, besideMs: 8 });
  assert.deepEqual(new Set(rests), new Set([10]));
});

test("copies: they rest longer and longer while appends beside them are slow, and come back when they are not", () => {
  const pace = new CopyPace();
  const slow = run(pace, 50, { usualMs: 5, besideMs: 40 });
  assert.equal(slow.rests[0], 10);
  assert.equal(Math.max(...slow.rests), 160, "16 times its step");
  const quick = run(pace, 100, { usualMs: 5, besideMs: 5 }, slow);
  assert.equal(quick.rests.at(-1), 10);
});

test("copies: slow appends are no reason to rest when they are as slow without a copy", () => {
  const { rests } = run(new CopyPace(), 50, { usualMs: 80, besideMs: 90 });
  assert.equal(Math.max(...rests), 10);
});

test("copies: one that is behind its lowest rate does not rest, however slow appends are", () => {
  const pace = new CopyPace({ restMsMax: 250, bytesPerSecondMin: 8 * mebibyte });
  const { nowMs, copied, rests } = run(pace, 200, { usualMs: 5, besideMs: 40 });
  assert.ok((copied * 1_000) / nowMs > 7 * mebibyte, `${copied / mebibyte} MiB in ${nowMs} ms`);
  assert.ok(rests.filter((restMs) => restMs > 0).length > 100, "it does rest as far as the rate allows");
  assert.equal(pace.restMs({ stepMs: 10, elapsedMs: nowMs + 60_000, copiedBytes: copied }), 0);
});
