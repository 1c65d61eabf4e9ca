import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { decodeEntity, encodeEntity } from "./entity-rows.ts";

const golden = new URL("../../../../tests/golden/row/v1/entity.bin", import.meta.url);
const entity = {
  timestamp: 17_000_000_000_000_007n,
  properties: [
    { name: "text", type: "string", value: "grün" },
    { name: "yes", type: "bool", value: true },
    { name: "small", type: "int32", value: -7 },
    { name: "large", type: "int64", value: 2n ** 63n - 1n },
    { name: "half", type: "double", value: 0.5 },
    { name: "when", type: "DateTime", value: -1n },
    { name: "id", type: "GUID", value: Uint8Array.from({ length: 16 }, (_, i) => i) },
    { name: "bytes", type: "binary", value: Uint8Array.of(0, 255) },
  ],
} as const;

test("the golden row of an entity is written and read as it was", () => {
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(golden, encodeEntity(entity));
  const bytes = new Uint8Array(readFileSync(golden));
  assert.deepEqual(encodeEntity(entity), bytes);
  assert.deepEqual(decodeEntity(bytes), entity);
});
