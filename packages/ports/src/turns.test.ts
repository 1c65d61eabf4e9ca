import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "./clock.ts";
import { Turns, turnSliceMs } from "./turns.ts";

test("turns: a loop gives way once in a slice, however long it is, and others run in between", async () => {
  let nowMs = 5;
  const waiting: (() => void)[] = [];
  const clock: Clock = {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    suspendedMs: () => 0,
    after: (_delayMs, callback) => {
      waiting.push(callback);
      return { cancel: () => {} };
    },
  };
  const gaveWayAtMs: number[] = [];
  let done = false;
  const loop = async (): Promise<void> => {
    const turns = new Turns(clock);
    for (let i = 0; i < 35; i++) {
      if (turns.over) {
        gaveWayAtMs.push(nowMs);
        await turns.next();
      }
      nowMs++;
    }
    done = true;
  };
  void loop();
  for (let others = 0; !done; others++) {
    assert.equal(waiting.length, 1, "it waits for a turn of its own");
    // Others take a while; the next slice begins after them.
    nowMs += 100;
    waiting.shift()?.();
    await Promise.resolve();
    await Promise.resolve();
    assert.ok(others < 4);
  }
  assert.deepEqual(gaveWayAtMs, [5 + turnSliceMs, 5 + 2 * turnSliceMs + 100, 5 + 3 * turnSliceMs + 200]);
});
