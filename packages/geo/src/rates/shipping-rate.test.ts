/** Gross rate of shipping: what clients write meanwhile does not lower it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ShippingRate, sumOfRates } from "./shipping-rate.ts";

const at = (seconds: number, written: number, shipped: number) =>
  [
    {
      writtenCommits: written * seconds,
      writtenBytes: 100 * written * seconds,
      shippedCommits: shipped * seconds,
      shippedBytes: 100 * shipped * seconds,
    },
    1_000 * seconds,
  ] as const;

test("shipping rate: a copy that ships as fast as clients write has a gross rate, though its backlog does not become smaller", () => {
  const rate = new ShippingRate();
  assert.equal(rate.perSecond, undefined);
  rate.noted(...at(0, 90, 90));
  assert.equal(rate.perSecond, undefined, "one sample tells no rate");
  for (let s = 2; s <= 60; s += 2) rate.noted(...at(s, 90, 90));
  assert.deepEqual(rate.perSecond, { writtenCommits: 90, writtenBytes: 9_000, shippedCommits: 90, shippedBytes: 9_000 });
});

test("shipping rate: the last 20 s count, so that a link that was cut is seen to carry again", () => {
  const rate = new ShippingRate();
  for (let s = 0; s <= 100; s += 2) rate.noted({ writtenCommits: 10 * s, writtenBytes: 0, shippedCommits: 7, shippedBytes: 0 }, 1_000 * s);
  assert.deepEqual([rate.perSecond?.writtenCommits, rate.perSecond?.shippedCommits], [10, 0]);
  for (let s = 102; s <= 122; s += 2)
    rate.noted({ writtenCommits: 10 * s, writtenBytes: 0, shippedCommits: 7 + 50 * (s - 100), shippedBytes: 0 }, 1_000 * s);
  assert.equal(rate.perSecond?.shippedCommits, 50);
});

test("shipping rate: looks in quick succession tell the same rate as few ones", () => {
  const [often, seldom] = [new ShippingRate(), new ShippingRate()];
  for (let s = 0; s <= 30; s += 0.02) often.noted(...at(s, 5, 4));
  for (let s = 0; s <= 30; s += 1) seldom.noted(...at(s, 5, 4));
  assert.equal(Math.round(often.perSecond?.shippedCommits ?? 0), 4);
  assert.equal(seldom.perSecond?.shippedCommits, 4);
  const both = sumOfRates([often, seldom].flatMap(({ perSecond }) => perSecond ?? []));
  assert.equal(Math.round(both.writtenCommits), 10);
});

test("shipping rate: a batch that is acknowledged right after the first look tells no rate", () => {
  const rate = new ShippingRate();
  rate.noted(...at(0, 0, 0));
  const batch = { writtenCommits: 256, writtenBytes: 25_600, shippedCommits: 256, shippedBytes: 25_600 };
  for (const timeMs of [3, 600, 1_999]) {
    rate.noted(batch, timeMs);
    assert.equal(rate.perSecond, undefined, `${timeMs} ms`);
  }
  rate.noted(batch, 2_000);
  assert.equal(rate.perSecond?.shippedCommits, 128);
});
