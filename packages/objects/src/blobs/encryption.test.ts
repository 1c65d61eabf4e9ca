import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, utf8 } from "@stamp/base";
import { type BlockSource, noPolicy } from "../operation.ts";
import { saltBytes } from "../rows/places.ts";
import { placesOfRow, versionOfRow } from "../rows/row.ts";
import { TestTable } from "../table-in-test.ts";
import { noHeaders as headers } from "./head-row.ts";

const name = { account: "a", container: "c", containerIncarnation: 1, blob: "b" };
const digestOf = (key: number): Uint8Array => new Uint8Array(32).fill(key);
const under = (key?: number) => (key === undefined ? {} : { encryptionKeySha256: digestOf(key) });
let salts = 1;
/** Content as the front-end brings it: encrypted if it has a key. */
const body = (key?: number, lengthBytes = 10) => {
  const cipher = key === undefined ? {} : { cipher: { salt: new Uint8Array(saltBytes).fill(salts++), offsetBytes: 0 } };
  return { inline: emptyBytes, places: [{ extentId: 5, offsetBytes: 24, lengthBytes, ...cipher }] };
};
const put = (table: TestTable, key?: number, blobType: "BlockBlob" | "AppendBlob" | "PageBlob" = "BlockBlob") => {
  const content = blobType === "BlockBlob" ? body(key) : { inline: emptyBytes, places: [] };
  return table.outcome("putBlob", {
    name,
    conditions: under(key),
    headers,
    metadata: {},
    body: content,
    blobType,
    pageBlobBytes: blobType === "PageBlob" ? 4_096 : 0,
  });
};
const missing = "BlobUsesCustomerSpecifiedEncryption";
const needless = "BlobDoesNotUseCustomerSpecifiedEncryption";
const mismatch = "BlobCustomerSpecifiedEncryptionMismatch";

test("keys: content and metadata want the blob's key, other properties take it or none", () => {
  const table = new TestTable();
  for (const [held, given, expected] of [
    [1, 1, undefined],
    [1, undefined, missing],
    [1, 2, mismatch],
    [undefined, 1, needless],
    [undefined, undefined, undefined],
  ] as const) {
    assert.equal(put(table, held), "blob");
    const conditions = under(given);
    assert.equal(table.outcome("getBlob", { name, conditions, withoutContent: false }), expected ?? "content");
    assert.equal(table.outcome("getBlob", { name, conditions, withoutContent: true }), expected ?? "blob");
    assert.equal(table.outcome("getBlob", { name, conditions, withoutContent: true, withoutKey: true }), "blob");
    assert.equal(table.outcome("setBlobMetadata", { name, conditions, metadata: {} }), expected ?? "blob");
    assert.equal(table.outcome("snapshotBlob", { name, conditions }), expected ?? "blob");
    assert.equal(table.outcome("setBlobHeaders", { name, conditions, headers }), given === undefined ? "blob" : (expected ?? "blob"));
    assert.equal(table.outcome("readParts", { name, conditions, first: 0 }), held === undefined ? "copyParts" : missing);
    const logs = new TestTable();
    assert.equal(put(logs, held, "AppendBlob"), "blob");
    assert.equal(logs.outcome("appendBlock", { name, conditions, body: body(given) }), expected ?? "appended");
    const disks = new TestTable();
    assert.equal(put(disks, held, "PageBlob"), "blob");
    const pages = { name, conditions, sequence: {}, startBytes: 0 };
    assert.equal(disks.outcome("putPages", { ...pages, body: body(given, 512) }), expected ?? "blob");
    assert.equal(disks.outcome("clearPages", { ...pages, endBytes: 512 }), expected ?? "cleared");
    const resized = disks.outcome("setPageBlobProperties", { name, conditions, sequenceNumber: 0, contentLengthBytes: 512 });
    assert.equal(resized, given === undefined ? "cleared" : (expected ?? "cleared"));
  }
});

test("keys: a block list takes blocks of its key, staged or committed; what it replaces may have had any", () => {
  const table = new TestTable();
  const stage = (id: string, key?: number) =>
    table.outcome("putBlock", { name, conditions: under(key), blockId: utf8(id), body: body(key) });
  const commit = (key: number | undefined, ...ids: readonly (readonly [string, BlockSource])[]) => {
    const blocks = ids.map(([id, source]) => ({ blockId: utf8(id), source }));
    return table.outcome("putBlockList", { name, conditions: under(key), headers, metadata: {}, blocks });
  };
  assert.equal(put(table, 3), "blob");
  for (const [id, key] of [
    ["a", 1],
    ["b", 2],
    ["c", undefined],
  ] as const)
    assert.equal(stage(id, key), "done");
  assert.equal(commit(1, ["a", "latest"], ["b", "latest"]), mismatch);
  assert.equal(commit(1, ["a", "latest"], ["c", "latest"]), needless);
  assert.equal(commit(undefined, ["c", "latest"], ["a", "latest"]), missing);
  assert.equal(stage("b", 1), "done", "staged again, it has the last key");
  assert.equal(commit(1, ["a", "latest"], ["b", "uncommitted"]), "blob");
  assert.equal(stage("d", 2), "done");
  assert.equal(commit(2, ["d", "latest"], ["a", "committed"]), mismatch);
  assert.equal(commit(2, ["d", "latest"]), "blob");
  assert.equal(commit(undefined), "blob");
  assert.equal(table.outcome("getBlob", { name, conditions: {}, withoutContent: false }), "content");
});

test("keys: versions and what is deleted softly keep the key that they were written under", () => {
  const table = new TestTable();
  table.policy = { ...noPolicy, versioning: true, deleteRetentionDays: 7 };
  const stampOf = (key?: number): number => {
    const result = table.run({ case: "getBlob", value: { name, conditions: under(key), withoutContent: true } });
    assert.ok(result.case === "blob", JSON.stringify(result));
    return result.value.versionStamp;
  };
  const stamps = [1, 2, undefined].map((key) => {
    assert.equal(put(table, key), "blob");
    table.wallMs += 1_000;
    return stampOf(key);
  });
  assert.equal(table.outcome("setBlobMetadata", { name, conditions: {}, metadata: { a: "1" } }), "blob");
  assert.equal(table.outcome("deleteBlob", { name, conditions: {} }), "deleted");
  const read = (versionStamp: number, key?: number) =>
    table.outcome("getBlob", { name: { ...name, versionStamp }, conditions: under(key), withoutContent: false });
  const [first = 0, second = 0, third = 0] = stamps;
  assert.deepEqual([read(first, 1), read(first, 2), read(first)], ["content", mismatch, missing]);
  assert.deepEqual([read(second, 2), read(second, 1), read(second)], ["content", mismatch, missing]);
  assert.deepEqual([read(third), read(third, 1)], ["content", needless]);
});

test("keys: plain bytes never come under a key, nor encrypted ones without; rows of encrypted content are of version 2, others of 1", () => {
  const table = new TestTable();
  const inline = { inline: utf8("plain"), places: [] };
  for (const [key, content] of [
    [1, body()],
    [1, inline],
    [1, { inline: emptyBytes, places: [...body(1).places, ...body().places] }],
    [undefined, body(1)],
  ] as const) {
    const value = { name, conditions: under(key), headers, metadata: {}, body: content };
    assert.equal(table.decide({ case: "putBlob", value }).refusal?.reason, "badRequest");
    const block = { name, conditions: under(key), blockId: utf8("a"), body: content };
    assert.equal(table.decide({ case: "putBlock", value: block }).refusal?.reason, "badRequest");
  }
  const short = { name, conditions: { encryptionKeySha256: utf8("short") }, headers, metadata: {}, body: body(1) };
  assert.equal(table.decide({ case: "putBlob", value: short }).refusal?.reason, "badRequest");
  const copy = { copyId: "1", source: "", status: "success", description: "", copiedBytes: 10, totalBytes: 10 };
  const copied = { copy, blobType: "BlockBlob" as const, pageBlobBytes: 0, sequenceNumber: 0, appendBlockCount: 0, sealed: false };
  const block = { blockId: emptyBytes, startBytes: 0, sizeBytes: 10, places: body(1).places };
  const parts = [{ index: 0, inline: emptyBytes, blocks: [block] }];
  const started = table.decide({ case: "startCopy", value: { name, conditions: {}, headers, metadata: {}, ...copied, parts } });
  assert.equal(started.refusal?.reason, "badRequest");
  const versions = (): number[] => table.sorted().map(({ value }) => versionOfRow(value));
  put(table);
  assert.deepEqual(new Set(versions()), new Set([1]));
  put(table, 1);
  assert.deepEqual(versions(), [2, 2], "head and content");
  for (const { value } of table.sorted()) {
    const places = placesOfRow(value);
    assert.ok(places.ok && places.value.every(({ cipher }) => cipher), "what moves places sees their ciphers");
  }
  put(table);
  assert.deepEqual(new Set(versions()), new Set([1]));
});
