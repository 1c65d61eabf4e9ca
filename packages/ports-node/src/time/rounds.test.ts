import assert from "node:assert/strict";
import { test } from "node:test";
import { untilMultipleMs, untilRoundMs } from "./rounds.ts";

test("rounds: a wait ends at the last round within it, never later", () => {
  // Machine's time, delay, and the time at which the wait ends.
  for (const [nowMs, delayMs, endMs] of [
    [10_000.5, 1_000, 11_000],
    [10_999.5, 1_000, 11_000],
    [10_300, 1_000, 11_000],
    [10_300, 500, 10_500],
    [10_500.2, 500, 11_000],
    [10_300, 2_000, 12_000],
    [10_300, 250, 10_500],
    [10_240, 250, 10_250],
    [10_300, 100, 10_400],
    [10_300, 0, 10_300],
  ] as const) {
    assert.equal(Math.round((nowMs + untilRoundMs(delayMs, nowMs)) * 1_000) / 1_000, endMs, `${delayMs} ms from ${nowMs}`);
    assert.ok(untilRoundMs(delayMs, nowMs) <= delayMs);
  }
});

test("rounds: what counts from a question that was sent in a round ends in a round, however long the answer took", () => {
  for (let answeredMs = 0.25; answeredMs < 500; answeredMs += 0.25) {
    const endMs = 10_000 + answeredMs + untilRoundMs(500 - answeredMs + 0.1, 10_000 + answeredMs);
    // The last 250 ms have no round between.
    if (answeredMs < 250) assert.equal(Math.round(endMs), 10_500, `answered after ${answeredMs} ms`);
    assert.ok(endMs <= 10_500.1 && endMs >= 10_000 + answeredMs, `answered after ${answeredMs} ms: ${endMs}`);
  }
});

test("rounds: two processes of a machine, started at any time, have the same rounds; multiples are the next ones", () => {
  assert.equal(12_300 + untilMultipleMs(5_000, 12_300), 15_000);
  assert.equal(untilMultipleMs(5_000, 15_000), 5_000);
  const ends = [10_001, 10_123.4, 10_499].map((startedMs) => startedMs + untilRoundMs(500, startedMs));
  assert.deepEqual(
    ends.map((ms) => Math.round(ms)),
    [10_500, 10_500, 10_500],
  );
});

test("rounds: work that waits for one again and again has at most twice as many turns as without rounds, and none is late", () => {
  for (const delayMs of [225, 240, 250, 300, 450, 499, 500, 700, 900, 950, 999, 1_000, 1_400, 2_000]) {
    for (let startMs = 10_000; startMs < 11_000; startMs += 7.3) {
      let turns = 0;
      let waitMs = 0;
      for (let nowMs = startMs; nowMs < startMs + 20_000; nowMs += waitMs, turns += 1) {
        // A timer comes a little late.
        waitMs = untilRoundMs(delayMs, nowMs) + 0.4;
        assert.ok(waitMs > 0.4 && waitMs <= delayMs + 0.4);
      }
      assert.ok(turns <= (2 * 20_000) / delayMs + 2, `${turns} turns of ${delayMs} ms in 20 s from ${startMs}`);
    }
  }
});
