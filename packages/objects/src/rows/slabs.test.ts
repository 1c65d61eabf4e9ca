/** Rows lie in shared slabs: none may be written over. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRow, encodeRow } from "./row.ts";
import { entitySchema } from "./schemas.ts";

test("rows that were encoded stay what they are while others are, small, large and of one slab exactly", () => {
  const lengths = [0, 10, 900, 8_100, 8_200, 70_000, 400_000];
  const rows = Array.from({ length: 1_000 }, (_, i) => {
    const text = String.fromCharCode(97 + (i % 26)).repeat(lengths[i % (i % 100 === 0 ? 7 : 5)] as number);
    const row = { timestamp: BigInt(i), properties: [{ name: "text", type: "string" as const, value: text }] };
    return { row, bytes: encodeRow(entitySchema, row) };
  });
  for (const { row, bytes } of rows) {
    const decoded = decodeRow(entitySchema, bytes);
    assert.ok(decoded.ok);
    assert.deepEqual({ ...decoded.value }, row);
  }
});

test("many small rows share their buffers", () => {
  const buffers = new Set(Array.from({ length: 1_000 }, (_, i) => encodeRow(entitySchema, { timestamp: BigInt(i) }).buffer));
  assert.ok(buffers.size < 3, `${buffers.size} buffers`);
});
