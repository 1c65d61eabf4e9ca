/** Rows of the Blob table, told to people by their keys. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeKey, encodeKey } from "./rows/key.ts";
import { encodeRow } from "./rows/row.ts";
import { blobSchema } from "./rows/schemas.ts";
import { blobRowOf } from "./shipped.ts";

test("shipped rows: a row of the Blob table is a container, a blob, a snapshot or a part of a blob", () => {
  const row = encodeRow(blobSchema, { lastModified: 17_956_872_009_990_000n });
  const inContainer = [
    [["acme"], [0, "photos"], []],
    [["acme"], [0, "photos"], [7]],
  ] as const;
  const inBlob = [0, [1, 4711], [2], [3, 1, 0], [4, 1, new Uint8Array([1])], [5, 1], [6, 1, 2, 3]].map((last) => [
    ["acme"],
    [1, "photos", 7, "a/b"],
    [last].flat(),
  ]);
  const told = [...inContainer, ...inBlob].map((key) => {
    const decoded = decodeKey(encodeKey(key as Parameters<typeof encodeKey>[0]));
    assert.ok(decoded.ok);
    const { kind, container, blob, modifiedMs } = blobRowOf(decoded.value, row);
    assert.equal(blobRowOf(decoded.value, undefined).modifiedMs, undefined);
    return `${kind} ${container} ${blob} ${modifiedMs}`;
  });
  const part = "blob-part photos a/b undefined";
  const heads = ["blob", "snapshot"].map((kind) => `${kind} photos a/b 1795687200999`);
  const containers = ["container photos  1795687200999", "container photos  1795687200999"];
  assert.deepEqual(told, [...containers, ...heads, part, part, part, part, part]);
});
