import assert from "node:assert/strict";
import { test } from "node:test";
import { atMost, type Clock, jitteredPause, pause } from "./clock.ts";

/** Delays of the timers that were made; each runs at once, one turn later. */
function clockWith(untilRoundMs?: (delayMs: number) => number): { readonly clock: Clock; readonly delays: number[] } {
  const delays: number[] = [];
  const clock: Clock = {
    monotonicMs: () => 0,
    wallMs: () => 0,
    suspendedMs: () => 0,
    after: (delayMs, callback) => {
      delays.push(delayMs);
      queueMicrotask(callback);
      return { cancel: () => {} };
    },
    ...(untilRoundMs === undefined ? {} : { untilRoundMs }),
  };
  return { clock, delays };
}

const random = { uint32: () => 0, float: () => 1, bytes: (length: number) => new Uint8Array(length) };

test("periodic work: with a clock that knows rounds it waits for the last one within the delay, and spreads nothing", async () => {
  const { clock, delays } = clockWith((delayMs) => delayMs - 30);
  atMost(clock, 500, () => {});
  assert.equal(await pause(clock, 1_000), "elapsed");
  assert.equal(await jitteredPause({ clock, random }, 2_000), "elapsed");
  assert.deepEqual(delays, [470, 970, 1_970]);
  assert.equal(await pause(clock, 1_000, AbortSignal.abort()), "aborted");
});

test("periodic work: with another clock it waits for the delay, spread where it was asked for", async () => {
  const { clock, delays } = clockWith();
  atMost(clock, 500, () => {});
  await pause(clock, 1_000);
  await jitteredPause({ clock, random }, 2_000);
  assert.deepEqual(delays, [500, 1_000, 2_500]);
});
