import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "./clock.ts";

test("system clock: a delay longer than a timer of Node.js takes does not end early, and can be cancelled in each part", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const dayMs = 86_400_000;
  let calls = 0;
  systemClock.after(60 * dayMs, () => calls++);
  const cancel = systemClock.after(60 * dayMs, () => assert.fail("was cancelled"));
  for (let day = 1; day < 60; day++) t.mock.timers.tick(dayMs);
  assert.equal(calls, 0);
  cancel();
  // A mocked timer that is made within a tick begins at the tick's end: up to a day late for each part.
  for (let day = 60; day < 63; day++) t.mock.timers.tick(dayMs);
  assert.equal(calls, 1);
});
