/** Settled extents of blob data: which they are, and over which changes they stay so. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Rules, rulesWithout } from "@stamp/base";
import { DataPins, settledOfBoth } from "./data-pins.ts";

const termMs = 100;
const pins = (settled: readonly number[] = [], rules: Rules = allRules): DataPins => new DataPins({ rules, termMs, nowMs: 0, settled });

test("pins: an extent is settled when its last pin has ended, for ever", () => {
  const one = pins();
  one.pin([1, 2], 50);
  one.settle([1, 2, 3], 120);
  assert.deepEqual(one.settled, [3]);
  one.pin([2], 140);
  one.settle([1, 2, 3], 160);
  assert.deepEqual(one.settled, [1, 3], "renewed: 2 stays out");
  one.settle([1, 2, 3], 240);
  assert.deepEqual(one.settled, [1, 2, 3], "not renewed for a term");
  one.settle([2, 3], 250);
  assert.deepEqual(one.settled, [2, 3], "1 has left the stream");
});

test("pins: an owner settles nothing before it has served for half a term, and has what earlier owners settled", () => {
  const one = pins([7]);
  one.settle([7, 8], termMs / 2 - 1);
  assert.deepEqual(one.settled, [7]);
  one.settle([7, 8], termMs / 2);
  assert.deepEqual(one.settled, [7, 8]);
  const hasty = pins([], rulesWithout("pinTermAfterLoad"));
  hasty.settle([7, 8], 1);
  assert.deepEqual(hasty.settled, [7, 8], "with the rule off");
});

test("pins: after a merge what both list is settled only if it was so in both", () => {
  const first = { settled: [1, 2], listed: [1, 2, 3] };
  const second = { settled: [1, 9], listed: [1, 2, 9] };
  assert.deepEqual(settledOfBoth(allRules, first, second), [1, 9]);
  assert.deepEqual(settledOfBoth(allRules, second, first), [1, 9]);
  assert.deepEqual(settledOfBoth(rulesWithout("settledByAll"), first, second), [1, 2, 9], "with the rule off");
});

test("pins: with the rule off nothing is pinned, and nothing earlier is known", () => {
  const one = pins([], rulesWithout("bytesPinTheirExtent"));
  one.pin([1], 100);
  one.settle([1], 101);
  assert.deepEqual(one.settled, [1]);
  assert.deepEqual(pins([1], rulesWithout("settledRecorded")).settled, []);
});
