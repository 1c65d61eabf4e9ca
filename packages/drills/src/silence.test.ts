import assert from "node:assert/strict";
import { test } from "node:test";
import type { WriteTime } from "./checking-client.ts";
import { SilenceWatch } from "./silence.ts";
import { Timeline } from "./watch.ts";

function scene(normalMs: number) {
  let now = 1_000;
  let waits = "";
  const times: WriteTime[] = [];
  const said: string[] = [];
  const timeline = new Timeline(({ what }) => said.push(what));
  const watch = new SilenceWatch({ timeline, times, waitsFor: () => waits, nowMs: () => now }, normalMs);
  const pass = (ms: number): void => {
    for (const endMs = now + ms; now < endMs; now += 50) watch.look();
  };
  const acknowledge = (tookMs: number): void => void times.push({ startMs: now - tookMs, endMs: now });
  return { said, pass, acknowledge, waitFor: (text: string) => (waits = text) };
}

test("drill, a silence of 12 s, is told after a second, every two seconds with what is waited for, and when it ends", () => {
  const { said, pass, acknowledge, waitFor } = scene(100);
  acknowledge(10);
  pass(1_100);
  waitFor("waits: lock-service-1 (starting)");
  pass(10_900);
  acknowledge(12_000);
  pass(50);
  assert.deepEqual(said, [
    "no write was acknowledged for 1.0 s",
    ...[3, 5, 7, 9, 11].map((at) => `no write was acknowledged for ${at}.0 s; waits: lock-service-1 (starting)`),
    "a write is acknowledged again, after 12.0 s without one",
    "a write that was held up 12000 ms is acknowledged: the longest until now",
  ]);
});

test("drill, writes without a silence, only a hold-up that is a fifth longer than all before is told", () => {
  const { said, pass, acknowledge } = scene(100);
  for (const tookMs of [90, 115, 300, 340, 200, 500]) {
    acknowledge(tookMs);
    pass(900);
  }
  assert.deepEqual(said, [
    "a write that was held up 300 ms is acknowledged: the longest until now",
    "a write that was held up 500 ms is acknowledged: the longest until now",
  ]);
});
