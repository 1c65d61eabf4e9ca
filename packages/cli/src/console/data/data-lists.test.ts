import assert from "node:assert/strict";
import { test } from "node:test";
import { entityRow } from "./data-lists.ts";

test("entities: values are text with their types, and no digit is lost", () => {
  const row = entityRow({
    etag: "x",
    "odata.metadata": "y",
    partitionKey: "p",
    rowKey: "",
    timestamp: "2026-11-29T00:00:00Z",
    name: "<b>",
    count: { type: "Int64", value: "9007199254740993" },
    small: { type: "Int32", value: "5" },
    bytes: { type: "Binary", value: Buffer.from([1, 2]) },
    yes: true,
  });
  assert.deepEqual(row, {
    partitionKey: "p",
    rowKey: "",
    timestamp: "2026-11-29T00:00:00Z",
    etag: "x",
    properties: [
      { name: "name", type: "String", value: "<b>" },
      { name: "count", type: "Int64", value: "9007199254740993" },
      { name: "small", type: "Int32", value: "5" },
      { name: "bytes", type: "Binary", value: "AQI=" },
      { name: "yes", type: "Boolean", value: "true" },
    ],
  });
});
