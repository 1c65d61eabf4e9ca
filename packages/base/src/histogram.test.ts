import assert from "node:assert/strict";
import { test } from "node:test";
import { bucketsMs, Histogram } from "./histogram.ts";

const clock = { nowMs: 100_000, monotonicMs: () => clock.nowMs };
const made = (): Histogram => new Histogram(clock);
const observe = (histogram: Histogram, ...tookMs: number[]): void => {
  for (const each of tookMs) histogram.since(clock.nowMs - each);
};

test("histogram: a bound belongs to its bucket, what is beyond the last one to a bucket without one", () => {
  const histogram = made();
  observe(histogram, 0, 1, 1.5, 2, 30_000, 30_001);
  const cumulative = histogram.cumulative;
  assert.equal(cumulative.length, bucketsMs.length + 1);
  const upTo = (boundMs: number) => cumulative[bucketsMs.indexOf(boundMs)];
  assert.deepEqual([upTo(0.1), upTo(0.5), upTo(1), upTo(2), upTo(10_000), upTo(30_000), cumulative.at(-1)], [1, 1, 2, 4, 4, 5, 6]);
  assert.deepEqual([histogram.count, histogram.sumMs], [6, 60_005.5]);
});

test("histogram: percentiles are interpolated within their bucket", () => {
  const histogram = made();
  assert.equal(histogram.recent.p99Ms, undefined, "nothing was observed");
  observe(histogram, ...Array.from({ length: 100 }, () => 15));
  assert.deepEqual(histogram.recent, { count: 100, p50Ms: 15, p99Ms: 19.9 });
  observe(histogram, 60_000, 60_000, 60_000);
  assert.equal(histogram.recent.p99Ms, 30_000);
});

test("histogram: percentiles forget what is older than a minute, counts and the sum do not", () => {
  const histogram = made();
  observe(histogram, 1, 1);
  clock.nowMs += 29_999;
  observe(histogram, 150);
  clock.nowMs += 1;
  assert.equal(histogram.recent.count, 3, "of the period before");
  clock.nowMs += 29_999;
  observe(histogram, 150);
  assert.equal(histogram.recent.count, 4);
  clock.nowMs += 1;
  assert.equal(histogram.recent.count, 1, "the period before that is forgotten");
  observe(histogram, 150);
  clock.nowMs += 1_000_000;
  assert.deepEqual(histogram.recent, { count: 0, p50Ms: undefined, p99Ms: undefined });
  assert.deepEqual([histogram.count, histogram.sumMs], [5, 452]);
});

test("histogram: JSON has counts and percentiles, no buckets", () => {
  const histogram = made();
  observe(histogram, 15);
  assert.deepEqual(JSON.parse(JSON.stringify({ histogram })), {
    histogram: { count: 1, sumMs: 15, recent: { count: 1, p50Ms: 15, p99Ms: 19.9 } },
  });
});
