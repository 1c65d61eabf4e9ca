import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId } from "@stamp/base";
import fc from "fast-check";
import { ReferenceCounts } from "./reference-counts.ts";

test("reference counts: they are those of a map, whatever is counted in whatever order, and nothing is kept of extents in no list", () => {
  const change = fc.record({
    id: fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.nat(2 ** 48)),
    step: fc.constantFrom(1 as const, -1 as const),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
      const counts = new ReferenceCounts();
      const model = new Map<number, number>();
      for (const { id, step } of changes) {
        const count = Math.max(0, (model.get(id) ?? 0) + step);
        if (count > 0) model.set(id, count);
        else model.delete(id);
        assert.equal(counts.change(extentId(id), step), count);
        assert.equal(counts.of(extentId(id)), count);
      }
      for (const { id } of changes) assert.equal(counts.of(extentId(id)), model.get(id) ?? 0);
      for (const [id, count] of model) for (let i = 0; i < count; i++) counts.change(extentId(id), -1);
      assert.equal(counts.pages, 0);
    }),
  );
});
