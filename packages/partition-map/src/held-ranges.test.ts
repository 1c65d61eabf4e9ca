import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes } from "@stamp/base";
import fc from "fast-check";
import { HeldRanges } from "./held-ranges.ts";
import { firstRangeOf, holdsKey, overlap, type Range } from "./range.ts";

const key = fc.uint8Array({ maxLength: 2, max: 20 });
/** Ranges of any two keys: neighbours, and some that overlap. */
const anyRange = fc.tuple(fc.nat(12), fc.constantFrom("Blob" as const, "Entity" as const), key, key).map(([id, table, a, b]): Range => {
  const [low, high] = [a, b].sort(compareBytes) as [Uint8Array, Uint8Array];
  return { ...firstRangeOf(table), rangeId: `r${id}`, low, high: compareBytes(low, high) === 0 ? new Uint8Array() : high };
});
const step = fc.oneof(
  { weight: 4, arbitrary: anyRange },
  fc.nat(12).map((id) => `r${id}`),
);

const idsOf = (all: Iterable<{ readonly range: Range }>): string[] => [...all].map(({ range }) => range.rangeId).sort();

test("held ranges: what overlaps a range and what holds a key is what a look at all of them finds", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), anyRange, key, (steps, asked, at) => {
      const held = new HeldRanges<{ readonly range: Range }>();
      const model = new Map<string, { readonly range: Range }>();
      for (const one of steps) {
        if (typeof one === "string") {
          held.delete(one);
          model.delete(one);
        } else {
          const holding = { range: one };
          held.set(holding);
          model.delete(one.rangeId);
          model.set(one.rangeId, holding);
        }
        assert.equal(held.size, model.size);
        const all = [...model.values()];
        assert.deepEqual(idsOf(held.overlapping(asked)), idsOf(all.filter(({ range }) => overlap(range, asked))));
        for (const table of ["Blob", "Entity"] as const) {
          assert.deepEqual(idsOf(held.holding(table, at)), idsOf(all.filter(({ range }) => range.table === table && holdsKey(range, at))));
        }
      }
      assert.deepEqual([...held.values()], [...model.values()]);
      for (const rangeId of model.keys()) assert.equal(held.get(rangeId), model.get(rangeId));
    }),
    { numRuns: 500 },
  );
});
