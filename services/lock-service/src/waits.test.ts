import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "@stamp/ports";
import { WaitingQuestions } from "./waits.ts";

const clock: Clock = {
  monotonicMs: () => 10_300,
  wallMs: () => 0,
  suspendedMs: () => 0,
  after: () => ({ cancel: () => {} }),
  untilRoundMs: (delayMs) => delayMs - 300,
};

test("waits: long ones end in a round, and by the deadline of their call; short ones as they were asked for", () => {
  const waits = new WaitingQuestions(clock);
  const far = { deadlineMs: 100_000 };
  assert.equal(waits.endMs(2_000, far), 12_000);
  assert.equal(waits.endMs(60_000, far), 20_000);
  assert.equal(waits.endMs(1_900, far), 12_200);
  assert.equal(waits.endMs(2_000, { deadlineMs: 11_500 }), 11_400);
  const { untilRoundMs: _, ...plain } = clock;
  assert.equal(new WaitingQuestions(plain).endMs(2_000, far), 12_300);
});
