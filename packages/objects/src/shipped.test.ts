/** Rows of the tables Blob and Message, told to people by their keys, and which tables are shipped. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeText } from "./queues/queue-rows.ts";
import { decodeKey, encodeKey } from "./rows/key.ts";
import { encodeRow } from "./rows/row.ts";
import { blobSchema } from "./rows/schemas.ts";
import { blobRowOf, isShippedFor, queueRowOf } from "./shipped.ts";

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

test("shipped rows: a row of the Message table is a queue, a message with its text, or a part of the messages of a queue", () => {
  const text = encodeText("resize 7", undefined);
  const rows = [[0], [1, 0, 0, 5, 9, 0], [1, 0, 1, 9], [1, 0, 2, 77, 9]].map((last) => [["acme"], [1, "jobs", 7], last]);
  const told = [[["acme"], [0, "jobs"], []], ...rows].map((key) => {
    const decoded = decodeKey(encodeKey(key as Parameters<typeof encodeKey>[0]));
    assert.ok(decoded.ok);
    const { kind, queue, text: shown } = queueRowOf(decoded.value, kindHasText(last(key)) ? text : new Uint8Array(0));
    assert.equal(queueRowOf(decoded.value, undefined).text, undefined);
    return `${kind} ${queue} ${shown}`;
  });
  const part = "message-part jobs undefined";
  assert.deepEqual(told, ["queue jobs undefined", part, part, "message jobs resize 7", part]);
});

test("shipped tables: rows of queues are shipped only for an account whose queues are copied", () => {
  for (const table of ["Entity", "Blob"]) assert.deepEqual([isShippedFor({}, table), isShippedFor({ queues: true }, table)], [true, true]);
  assert.deepEqual([isShippedFor({}, "Message"), isShippedFor({ queues: true }, "Message")], [false, true]);
  assert.equal(isShippedFor({ queues: true }, "Account"), false);
});

const last = (key: readonly (readonly unknown[])[]): readonly unknown[] => key.at(-1) ?? [];
const kindHasText = (row: readonly unknown[]): boolean => row.length === 4 && row[2] === 1;
