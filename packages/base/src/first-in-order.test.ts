import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { firstInOrder } from "./first-in-order.ts";

test("first in order: the same as sorting everything and taking the first", () => {
  const ascending = (a: number, b: number): number => a - b;
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 500 }), { maxLength: 200 }), fc.integer({ min: 1, max: 20 }), (items, count) => {
      assert.deepEqual(firstInOrder(items, count, ascending), items.toSorted(ascending).slice(0, count));
    }),
  );
});

test("first in order: of a million items a page costs few comparisons beyond one for each", () => {
  let comparisons = 0;
  const items = function* () {
    for (let i = 0; i < 1_000_000; i++) yield (i * 7_919) % 1_000_003;
  };
  const page = firstInOrder(items(), 1_000, (a, b) => {
    comparisons += 1;
    return a - b;
  });
  assert.deepEqual(page.slice(0, 3), [0, 1, 2]);
  assert.ok(comparisons < 1_500_000, `${comparisons} comparisons`);
});
