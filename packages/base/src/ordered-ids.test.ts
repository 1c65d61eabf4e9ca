import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { OrderedIds } from "./ordered-ids.ts";

const paged = (ids: OrderedIds<number>, limit: number): number[] => {
  const all: number[] = [];
  for (let page = ids.after(0, limit); page.length > 0; page = ids.after(all.at(-1) ?? 0, limit)) all.push(...page);
  return all;
};

test("ordered ids: added and removed in any order, pages are those of the sorted set", () => {
  const id = fc.integer({ min: 1, max: 300 });
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), id), { maxLength: 400 }), fc.integer({ min: 1, max: 50 }), (changes, limit) => {
      const there = new Set<number>();
      const ids = new OrderedIds<number>((one) => there.has(one));
      for (const [isAdded, one] of changes) {
        if (isAdded === there.has(one)) {
          // A page now and then, so that what was put in order is changed again.
          assert.deepEqual(
            ids.after(one, limit),
            [...there]
              .filter((each) => each > one)
              .sort((a, b) => a - b)
              .slice(0, limit),
          );
        } else if (isAdded) {
          there.add(one);
          ids.add(one);
        } else {
          there.delete(one);
          ids.removed();
        }
      }
      assert.deepEqual(
        paged(ids, limit),
        [...there].sort((a, b) => a - b),
      );
    }),
  );
});

test("ordered ids: a page of the end does not look at what is before it, and what is gone is let go", () => {
  const there = new Set<number>();
  let asked = 0;
  const ids = new OrderedIds<number>((one) => {
    asked += 1;
    return there.has(one);
  });
  for (let one = 1; one <= 100_000; one++) {
    there.add(one);
    ids.add(one);
  }
  assert.deepEqual(ids.after(99_990, 3), [99_991, 99_992, 99_993]);
  assert.ok(asked <= 3, `${asked} were asked for`);
  for (let one = 1; one <= 99_000; one++) {
    there.delete(one);
    ids.removed();
  }
  asked = 0;
  assert.deepEqual(ids.after(0, 2), [99_001, 99_002]);
  assert.ok(asked < 5_000, `${asked} were asked for`);
});
