import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, utf8 } from "@stamp/base";
import { type BlockSource, noPolicy, type Operation, type OperationKind, type OperationValue } from "../operation.ts";
import { saltBytes } from "../rows/places.ts";
import { placesOfRow, versionOfRow } from "../rows/row.ts";
import { TestTable } from "../testing/table.ts";
import { noHeaders as headers } from "./state/head-row.ts";

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

type Given = { readonly encryptionScope?: string; readonly encryptionKeySha256?: Uint8Array; readonly encryptionAsFound?: boolean };
const scopeA: Given = { encryptionScope: "scope-a" };
const scopeB: Given = { encryptionScope: "scope-b" };
const foundA: Given = { ...scopeA, encryptionAsFound: true };
const foundNone: Given = { encryptionAsFound: true };
const isEncrypted = (key: Given): boolean => key.encryptionScope !== undefined || key.encryptionKeySha256 !== undefined;
const bytesUnder = (key: Given, lengthBytes = 10) => body(isEncrypted(key) ? 1 : undefined, lengthBytes);
const create = (table: TestTable, key: Given, blobType: "BlockBlob" | "AppendBlob" | "PageBlob") => {
  const content = blobType === "BlockBlob" ? bytesUnder(key) : { inline: emptyBytes, places: [] };
  const pageBlobBytes = blobType === "PageBlob" ? 4_096 : 0;
  return table.outcome("putBlob", { name, conditions: key, headers, metadata: {}, body: content, blobType, pageBlobBytes });
};

test("scopes: content is written under the blob's; what brings no content names it or nothing", () => {
  for (const [held, given, content, beside] of [
    [scopeA, scopeA, undefined, undefined],
    [scopeA, scopeB, mismatch, mismatch],
    [scopeA, {}, missing, undefined],
    [scopeA, under(1), mismatch, mismatch],
    [under(1), scopeA, mismatch, mismatch],
    [{}, scopeA, needless, needless],
    // A blob that is not what the front-end found a moment ago: its client named nothing, and comes again.
    [scopeA, foundA, undefined, undefined],
    [scopeB, foundA, "ServerBusy", "ServerBusy"],
    [{}, foundA, "ServerBusy", "ServerBusy"],
    [scopeA, foundNone, "ServerBusy", undefined],
    [{}, foundNone, undefined, undefined],
    [under(1), foundNone, missing, missing],
  ] as readonly (readonly [Given, Given, string | undefined, string | undefined])[]) {
    const what = JSON.stringify([held, given]);
    let table = new TestTable();
    assert.equal(create(table, held, "BlockBlob"), "blob");
    assert.equal(table.outcome("setBlobMetadata", { name, conditions: given, metadata: {} }), beside ?? "blob", what);
    assert.equal(table.outcome("snapshotBlob", { name, conditions: given }), beside ?? "blob", what);
    table = new TestTable();
    assert.equal(create(table, held, "AppendBlob"), "blob");
    assert.equal(table.outcome("appendBlock", { name, conditions: given, body: bytesUnder(given) }), content ?? "appended", what);
    table = new TestTable();
    assert.equal(create(table, held, "PageBlob"), "blob");
    const pages = { name, conditions: given, sequence: {}, startBytes: 0 };
    assert.equal(table.outcome("putPages", { ...pages, body: bytesUnder(given, 512) }), content ?? "blob", what);
    assert.equal(table.outcome("clearPages", { ...pages, endBytes: 512 }), beside ?? "cleared", what);
  }
});

test("scopes: a read names none and is told the blob's; its snapshots and parts are told, too", () => {
  const table = new TestTable();
  assert.equal(create(table, scopeA, "BlockBlob"), "blob");
  const snapshot = table.run({ case: "snapshotBlob", value: { name, conditions: {} } });
  assert.ok(snapshot.case === "blob");
  assert.equal(create(table, scopeB, "BlockBlob"), "blob");
  const read = (snapshotStamp: number) =>
    table.run({ case: "getBlob", value: { name: { ...name, snapshotStamp }, conditions: {}, withoutContent: false } });
  const [now, then] = [read(0), read(snapshot.value.snapshotStamp)];
  assert.ok(now.case === "content" && then.case === "content");
  assert.deepEqual([now.value.blob.encryptionScope, then.value.blob.encryptionScope], ["scope-b", "scope-a"]);
  assert.ok(now.value.places.every(({ cipher }) => cipher) && now.value.places.length > 0);
  const parts = table.run({ case: "readParts", value: { name, conditions: {}, first: 0 } });
  assert.ok(parts.case === "copyParts" && parts.value.blob.encryptionScope === "scope-b");
  assert.equal(table.outcome("getBlob", { name, conditions: under(1), withoutContent: false }), mismatch);
});

/** The reason of a refusal, or the case of the result. */
function attempt<K extends OperationKind>(table: TestTable, kind: K, value: OperationValue<K>): string {
  return table.decide({ case: kind, value } as Operation).refusal?.reason ?? table.outcome(kind, value);
}

test("scopes: a copy has parts of its own scope only, at once or later", () => {
  const table = new TestTable();
  const to = { ...name, blob: "copy" };
  const part = (key: Given) => ({
    index: 0,
    inline: emptyBytes,
    blocks: [{ blockId: emptyBytes, startBytes: 0, sizeBytes: 10, places: bytesUnder(key).places }],
  });
  const state = { copyId: "id", source: "s", description: "", copiedBytes: 10, totalBytes: 10 };
  const start = (status: string, conditions: Given, parts: readonly ReturnType<typeof part>[]) =>
    attempt(table, "startCopy", {
      name: to,
      conditions,
      copy: {
        ...state,
        status,
        ...(status === "pending" ? { work: { copier: "me", beatMs: 0, next: 0, fromEtag: "e", fromUrl: "u" } } : {}),
      },
      headers,
      metadata: {},
      blobType: "BlockBlob",
      pageBlobBytes: 0,
      sequenceNumber: 0,
      appendBlockCount: 0,
      sealed: false,
      parts,
    });
  assert.equal(start("success", scopeA, [part({})]), "badRequest");
  assert.equal(start("success", {}, [part(scopeA)]), "badRequest");
  assert.equal(start("success", scopeA, [part(scopeA)]), "blob");
  assert.equal(start("pending", scopeB, []), "blob");
  const add = (key: Given) =>
    attempt(table, "addToCopy", { name: to, copyId: "id", copier: "me", position: 0, next: 1, parts: [part(key)] });
  assert.equal(add({}), "badRequest");
  assert.equal(add(scopeB), "blob");
  const ended = table.run({
    case: "endCopy",
    value: { name: to, copyId: "id", copier: "me", description: "", appendBlockCount: 0, sealed: false },
  });
  assert.ok(ended.case === "blob" && ended.value.encryptionScope === "scope-b");
});

test("scopes: a container keeps its default, whatever else of it changes", () => {
  const table = new TestTable();
  const container = { account: "a", container: "c" };
  const scope = { defaultEncryptionScope: "scope-a", denyEncryptionScopeOverride: true };
  table.outcome("createContainer", { ...container, metadata: {}, publicAccess: "", ...scope });
  table.outcome("setContainerMetadata", { ...container, metadata: { a: "1" }, conditions: {} });
  const read = table.run({ case: "getContainer", value: { ...container, conditions: {} } });
  assert.ok(read.case === "container");
  const { defaultEncryptionScope, denyEncryptionScopeOverride } = read.value;
  assert.deepEqual({ defaultEncryptionScope, denyEncryptionScopeOverride }, scope);
});

test("scopes: rows that name one are of version 3, others are as they were", () => {
  const table = new TestTable();
  const versions = () => new Set(table.sorted().map(({ value }) => versionOfRow(value)));
  assert.equal(create(table, {}, "BlockBlob"), "blob");
  assert.deepEqual(versions(), new Set([1]));
  table.outcome("createContainer", { account: "a", container: "plain", metadata: {}, publicAccess: "" });
  assert.deepEqual(versions(), new Set([1]));
  assert.equal(create(table, scopeA, "BlockBlob"), "blob");
  assert.ok(versions().has(3));
});
