import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, emptyBytes, toHex } from "@stamp/base";
import fc from "fast-check";
import { blobPrefix, headKey } from "../object-keys.ts";
import type { OperationValue } from "../operation.ts";
import { TestTable } from "../testing/table.ts";
import { appendedBlocksMax, appendPieceBytesMax } from "./append.ts";
import { contentPlacesMax } from "./blobs.ts";
import { decodeHead, encodeHead, noHeaders as headers } from "./state/head-row.ts";

const name = { account: "a", container: "c", containerIncarnation: 1, blob: "log" };
const conditions = {};
let nextExtent = 1;

function logTable(): TestTable {
  const table = new TestTable();
  const body = { inline: emptyBytes, places: [] };
  assert.equal(table.outcome("putBlob", { name, conditions, headers, metadata: {}, body, blobType: "AppendBlob" }), "blob");
  return table;
}

const block = (lengthBytes: number, more: Partial<OperationValue<"appendBlock">> = {}) => ({
  name,
  conditions,
  body: { inline: emptyBytes, places: [{ extentId: nextExtent++, offsetBytes: 0, lengthBytes }] },
  ...more,
});

test("append: each block goes to the end and says where it begins", () => {
  const table = logTable();
  for (const [size, offset, count] of [
    [5, 0, 1],
    [7, 5, 2],
    [1, 12, 3],
  ] as const) {
    const result = table.run({ case: "appendBlock", value: block(size) });
    assert.ok(result.case === "appended");
    assert.deepEqual([result.value.offsetBytes, result.value.blob.committedBlockCount], [offset, count]);
  }
});

test("append: position, size, type and seal are checked, with the service's codes", () => {
  const table = logTable();
  table.outcome("appendBlock", block(10));
  assert.equal(table.outcome("appendBlock", block(1, { appendPosition: 9 })), "AppendPositionConditionNotMet");
  assert.equal(table.outcome("appendBlock", block(1, { appendPosition: 10 })), "appended");
  assert.equal(table.outcome("appendBlock", block(2, { maxSize: 12 })), "MaxBlobSizeConditionNotMet");
  assert.equal(table.outcome("appendBlock", block(1, { maxSize: 12 })), "appended");
  assert.equal(table.outcome("appendBlock", block(1, { conditions: { ifMatch: '"0x800000000000099"' } })), "ConditionNotMet 412");
  assert.equal(table.outcome("appendBlock", block(1, { name: { ...name, blob: "none" } })), "BlobNotFound");
  assert.equal(table.outcome("sealBlob", { name, conditions, appendPosition: 11 }), "AppendPositionConditionNotMet");
  assert.equal(table.outcome("sealBlob", { name, conditions, appendPosition: 12 }), "blob");
  const etag = table.run({ case: "sealBlob", value: { name, conditions } });
  assert.equal(table.outcome("appendBlock", block(1)), "BlobIsSealed");
  const again = table.run({ case: "getBlob", value: { name, conditions, withoutContent: true } });
  assert.ok(again.case === "blob" && etag.case === "blob");
  assert.equal(again.value.etag, etag.value.etag, "sealing twice changes nothing");
  assert.equal(again.value.sealed, true);
  assert.equal(table.outcome("setBlobMetadata", { name, conditions, metadata: { m: "1" } }), "blob");
  const list = { name, conditions, headers, metadata: {}, blocks: [] };
  assert.equal(table.outcome("putBlockList", list), "InvalidBlobType");
  assert.equal(table.outcome("getBlockList", { name, conditions, committed: true, uncommitted: true }), "InvalidBlobType");
  const body = { inline: new Uint8Array(1), places: [] };
  assert.equal(table.outcome("putBlob", { name, conditions, headers, metadata: {}, body }), "InvalidBlobType");
  const other = { ...name, blob: "block" };
  assert.equal(table.outcome("putBlob", { name: other, conditions, headers, metadata: {}, body }), "blob");
  assert.equal(table.outcome("appendBlock", block(1, { name: other })), "InvalidBlobType");
  assert.equal(table.outcome("sealBlob", { name: other, conditions }), "InvalidBlobType");
});

test("append: a blob in many places is read in answers of 4,096 places, each going on where the last one ended", () => {
  const table = logTable();
  const block = (first: number) => ({
    name,
    conditions,
    body: {
      inline: emptyBytes,
      places: Array.from({ length: 5_000 }, (_, i) => ({ extentId: 77, offsetBytes: (first + i) * 30, lengthBytes: 3 })),
    },
  });
  for (const first of [0, 5_000]) assert.equal(table.outcome("appendBlock", block(first)), "appended");
  const counts: number[] = [];
  const offsets: number[] = [];
  for (let at = 0; at < 30_000; ) {
    const read = table.run({ case: "getBlob", value: { name, conditions, withoutContent: false, startBytes: at } });
    assert.ok(read.case === "content" && read.value.startBytes === at);
    counts.push(read.value.places.length);
    offsets.push(...read.value.places.map(({ offsetBytes }) => offsetBytes));
    at += read.value.lengthBytes;
  }
  assert.deepEqual(counts, [contentPlacesMax, contentPlacesMax, 10_000 - 2 * contentPlacesMax]);
  assert.deepEqual(
    offsets,
    Array.from({ length: 10_000 }, (_, i) => i * 30),
  );
});

test("append: the last of 50,000 blocks is a small commit and read without the others, and not one more goes in", () => {
  const table = logTable();
  const key = headKey(blobPrefix(allRules, name));
  for (let i = 0; i < 1_500; i++) assert.equal(table.outcome("appendBlock", block(3)), "appended");
  const head = decodeHead(table.rows.get(toHex(key))?.value ?? emptyBytes);
  assert.ok(head.pieceStarts.length < 10, "content rows are filled");
  // The blob as 50,000 blocks leave it, but for one.
  const pieceStarts = Array.from({ length: 160 }, (_, i) => head.pieceStarts[i] ?? 4_500 + i);
  table.rows.set(toHex(key), { key, value: encodeHead({ ...head, pieceStarts, appendBlockCount: appendedBlocksMax - 1 }) });
  table.commitBytesMax = 0;
  assert.equal(table.outcome("appendBlock", block(3)), "appended");
  assert.equal(table.outcome("appendBlock", block(3)), "BlockCountExceedsLimit");
  assert.ok(table.commitBytesMax < appendPieceBytesMax + 2_048, `${table.commitBytesMax} bytes in one commit`);
  table.reads = 0;
  const read = table.run({ case: "getBlob", value: { name, conditions, withoutContent: false, startBytes: 3_000, endBytes: 3_003 } });
  assert.ok(read.case === "content" && read.value.lengthBytes === 3);
  assert.ok(table.reads <= 3, `${table.reads} rows read`);
});

test("append: a reader of an older length reads on as it began", () => {
  const table = logTable();
  for (let i = 0; i < 5; i++) table.outcome("appendBlock", block(10));
  const all = () => {
    const read = table.run({ case: "getBlob", value: { name, conditions, withoutContent: false, startBytes: 0, endBytes: 50 } });
    assert.ok(read.case === "content");
    return read.value.places;
  };
  const before = all();
  for (let i = 0; i < 300; i++) table.outcome("appendBlock", block(10));
  assert.deepEqual(all(), before);
});

test("append: any blocks are the concatenation of themselves", () => {
  const sizes = fc.array(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 300 }), { maxLength: 8 });
  fc.assert(
    fc.property(sizes, fc.nat(30), (blocks, start) => {
      const table = logTable();
      const model: string[] = [];
      for (const parts of blocks) {
        const places = parts.map((lengthBytes) => ({ extentId: nextExtent++, offsetBytes: 0, lengthBytes }));
        assert.equal(table.outcome("appendBlock", { name, conditions, body: { inline: emptyBytes, places } }), "appended");
        for (const place of places) for (let i = 0; i < place.lengthBytes; i++) model.push(`${place.extentId}+${i}`);
      }
      if (start >= model.length) return;
      const read = table.run({ case: "getBlob", value: { name, conditions, withoutContent: false, startBytes: start } });
      assert.ok(read.case === "content");
      const bytes = read.value.places.flatMap((p) => Array.from({ length: p.lengthBytes }, (_, i) => `${p.extentId}+${p.offsetBytes + i}`));
      assert.deepEqual(bytes, model.slice(start));
    }),
    { numRuns: 60 },
  );
});
