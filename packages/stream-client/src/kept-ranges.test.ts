import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { keptRanges } from "./kept-ranges.ts";

test("dropped extents: what stays and what goes is the whole list, the last and open ones stay, and one change is not too large", () => {
  const lists = fc.record({
    sealed: fc.array(fc.boolean(), { minLength: 1, maxLength: 700 }),
    taken: fc.array(fc.boolean(), { minLength: 700, maxLength: 700 }),
  });
  fc.assert(
    fc.property(lists, ({ sealed, taken }) => {
      const extents = sealed.map((isSealed, i) => ({ extentId: 3 * i + 5, sealedLengthBytes: isSealed ? 10 : undefined }));
      const ids = extents.map(({ extentId }) => extentId);
      const wanted = new Set(ids.filter((_, i) => taken[i]));
      const { gone, kept } = keptRanges(extents, wanted);
      const stays = kept.flatMap(({ firstExtentId, beforeExtentId }) => {
        const end = beforeExtentId === 0 ? ids.length : ids.indexOf(beforeExtentId);
        return ids.slice(ids.indexOf(firstExtentId), end);
      });
      assert.deepEqual(
        stays,
        ids.filter((id) => !gone.includes(id)),
      );
      const mayGo = ids.filter((id, i) => wanted.has(id) && sealed[i] && i < ids.length - 1);
      assert.ok(kept.length <= 256);
      assert.deepEqual(gone, kept.length < 255 ? mayGo : mayGo.slice(0, gone.length));
    }),
  );
});
