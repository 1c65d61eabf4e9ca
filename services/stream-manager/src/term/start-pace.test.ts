import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "@stamp/ports";
import { StartPace } from "./start-pace.ts";

test("start pace: a thousand that come at once begin in order, 256 in ten milliseconds; later ones need not wait", async () => {
  let nowMs = 100;
  const due: (() => void)[] = [];
  const clock: Clock = {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    suspendedMs: () => 0,
    after: (delayMs, callback) => {
      due.push(() => {
        nowMs += delayMs;
        callback();
      });
      return { cancel: () => {} };
    },
  };
  const pace = new StartPace(clock);
  const begun: number[] = [];
  for (let i = 0; i < 1_000; i++) {
    const turn = pace.enter();
    if (turn === undefined) begun.push(i);
    else void turn.then(() => begun.push(i));
  }
  const counts = [begun.length];
  while (due.length > 0) {
    assert.equal(due.length, 1, "one timer for all that wait");
    due.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
    counts.push(begun.length);
  }
  assert.deepEqual(counts, [256, 512, 768, 1_000]);
  assert.deepEqual(
    begun,
    Array.from({ length: 1_000 }, (_, i) => i),
  );
  assert.equal(nowMs, 130);
  nowMs += 10;
  assert.equal(pace.enter(), undefined);
  assert.equal(due.length, 0);
});
