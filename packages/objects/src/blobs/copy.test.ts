import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, utf8 } from "@stamp/base";
import type { CopyPart, CopyState, OperationValue } from "../operation.ts";
import type { Blob, OperationResult } from "../results.ts";
import { TestTable } from "../testing/table.ts";
import { copyPartBytesMax, copyStaleMs } from "./copy.ts";
import { noHeaders as headers } from "./state/head-row.ts";

const named = (blob: string) => ({ account: "a", container: "c", containerIncarnation: 1, blob });
const from = named("source");
const name = named("target");
const conditions = {};
const place = (extentId: number, lengthBytes: number) => ({ extentId, offsetBytes: 0, lengthBytes });

const pending: CopyState = {
  copyId: "id-1",
  source: "http://h/a/c/source",
  status: "pending",
  description: "",
  copiedBytes: 0,
  totalBytes: 30,
  work: { copier: "one", beatMs: 0, next: 0, from, fromEtag: '"e"', fromUrl: "" },
};
const start = (more: Partial<OperationValue<"startCopy">> = {}): OperationValue<"startCopy"> => ({
  name,
  conditions,
  copy: pending,
  headers,
  metadata: { m: "1" },
  blobType: "BlockBlob",
  pageBlobBytes: 0,
  sequenceNumber: 0,
  appendBlockCount: 0,
  sealed: false,
  parts: [],
  ...more,
});
const part = (index: number, ...sizes: number[]): CopyPart => ({
  index,
  inline: emptyBytes,
  blocks: sizes.map((sizeBytes, i) => ({
    blockId: utf8(`b${i}`),
    startBytes: 0,
    sizeBytes,
    places: [place(index * 10 + i + 1, sizeBytes)],
  })),
});
const add = (position: number, next: number, parts: CopyPart[], copier = "one", copyId = "id-1") => ({
  name,
  copyId,
  copier,
  position,
  next,
  parts,
});
const end = (more: Partial<OperationValue<"endCopy">> = {}) => ({
  name,
  copyId: "id-1",
  copier: "one",
  description: "",
  appendBlockCount: 0,
  sealed: false,
  ...more,
});

function blobOf(table: TestTable): Blob {
  const result = table.run({ case: "getBlob", value: { name, conditions, withoutContent: true } });
  assert.ok(result.case === "blob", JSON.stringify(result));
  return result.value;
}
const partsOf = (result: OperationResult): { parts: readonly CopyPart[]; next: number | undefined } => {
  assert.ok(result.case === "copyParts", JSON.stringify(result));
  return result.value;
};

test("copy: parts are added in order, shown all at once in the end, with what the copy was", () => {
  const table = new TestTable();
  assert.equal(table.outcome("startCopy", start()), "blob");
  const { etag } = blobOf(table);
  assert.equal(table.outcome("addToCopy", add(0, 1, [part(0, 10, 5)])), "blob");
  assert.equal(blobOf(table).contentLengthBytes, 0);
  assert.equal(blobOf(table).copy?.copiedBytes, 15);
  assert.equal(blobOf(table).etag, etag, "progress is no change");
  assert.equal(table.outcome("addToCopy", add(0, 1, [part(0, 10, 5)])), "blob", "said twice is done once");
  assert.equal(table.decide({ case: "addToCopy", value: add(5, 6, [part(5, 1)]) }).refusal?.reason, "badRequest");
  assert.equal(table.outcome("addToCopy", add(1, 2, [part(1, 15)])), "blob");
  assert.equal(table.outcome("endCopy", end()), "blob");
  const done = blobOf(table);
  assert.notEqual(done.etag, etag);
  assert.deepEqual([done.contentLengthBytes, done.copy?.status, done.copy?.copiedBytes, done.copy?.work], [30, "success", 30, undefined]);
  assert.ok(done.copy?.completedMs);
  const read = table.run({ case: "getBlob", value: { name, conditions, withoutContent: false, startBytes: 12, endBytes: 20 } });
  assert.ok(read.case === "content");
  assert.deepEqual(read.value.places, [
    { extentId: 2, offsetBytes: 2, lengthBytes: 3 },
    { extentId: 11, offsetBytes: 0, lengthBytes: 5 },
  ]);
  assert.equal(table.outcome("addToCopy", add(2, 3, [part(2, 1)])), "NoPendingCopyOperation");
});

test("copy: while it is pending nothing else changes the blob, and its parts are nobody else's to add", () => {
  const table = new TestTable();
  table.outcome("startCopy", start());
  const body = { inline: utf8("x"), places: [] };
  assert.equal(table.outcome("putBlob", { name, conditions, headers, metadata: {}, body }), "PendingCopyOperation");
  assert.equal(table.outcome("setBlobMetadata", { name, conditions, metadata: {} }), "PendingCopyOperation");
  assert.equal(table.outcome("deleteBlob", { name, conditions }), "PendingCopyOperation");
  assert.equal(table.outcome("snapshotBlob", { name, conditions }), "PendingCopyOperation");
  assert.equal(table.outcome("putBlockList", { name, conditions, headers, metadata: {}, blocks: [] }), "PendingCopyOperation");
  assert.equal(table.outcome("startCopy", start({ copy: { ...pending, copyId: "id-2" } })), "PendingCopyOperation");
  assert.equal(table.outcome("readParts", { name, conditions, first: 0 }), "PendingCopyOperation");
  assert.equal(table.outcome("addToCopy", add(0, 1, [part(0, 1)], "two")), "CopyIdMismatch");
  assert.equal(table.outcome("addToCopy", add(0, 1, [part(0, 1)], "one", "id-2")), "CopyIdMismatch");
  assert.equal(table.outcome("endCopy", end({ copier: "two" })), "CopyIdMismatch");
});

test("copy: the lease of what it overwrites must be infinite, and stays as it is until the copy ends", () => {
  const [leaseId, infinite] = ["aaaaaaaa-1111-2222-3333-444444444444", -1];
  const lease = (table: TestTable, action: "acquire" | "release" | "break", durationSeconds: number) => {
    const named = action === "release" ? { leaseId } : {};
    return table.outcome("leaseBlob", {
      name,
      conditions: named,
      action,
      proposedLeaseId: leaseId,
      durationSeconds,
      breakPeriodSeconds: 5,
    });
  };
  for (const status of ["pending", "success"] as const) {
    const table = new TestTable();
    const copy = (conditions: object) => table.outcome("startCopy", start({ conditions, copy: { ...pending, status } }));
    table.outcome("putBlob", { name, conditions, headers, metadata: {}, body: { inline: utf8("x"), places: [] } });
    const { etag } = blobOf(table);
    assert.equal(lease(table, "acquire", 15), "leased");
    assert.equal(copy({}), "LeaseIdMissing");
    assert.equal(copy({ leaseId }), "InfiniteLeaseDurationRequired");
    assert.equal(lease(table, "acquire", infinite), "leased");
    lease(table, "break", infinite);
    assert.equal(copy({ leaseId }), "InfiniteLeaseDurationRequired", "what is breaking ends");
    assert.equal(blobOf(table).etag, etag, "nothing was changed");
    table.monotonicMs += 5_000;
    assert.equal(lease(table, "acquire", infinite), "leased");
    assert.equal(copy({ leaseId }), "blob");
    const during = status === "pending" ? "PendingCopyOperation" : "leased";
    for (const action of ["acquire", "break", "release"] as const) assert.equal(lease(table, action, infinite), during, action);
  }
});

test("copy: aborted or failed it leaves no content and no content row", () => {
  for (const how of ["abort", "fail"] as const) {
    const table = new TestTable();
    table.outcome("startCopy", start());
    table.outcome("addToCopy", add(0, 1, [part(0, 10)]));
    assert.equal(table.outcome("abortCopy", { name, conditions, copyId: "other" }), "CopyIdMismatch");
    if (how === "abort") assert.equal(table.outcome("abortCopy", { name, conditions, copyId: "id-1" }), "done");
    else assert.equal(table.outcome("endCopy", end({ description: "why" })), "blob");
    const blob = blobOf(table);
    assert.deepEqual([blob.contentLengthBytes, blob.copy?.status], [0, how === "abort" ? "aborted" : "failed"]);
    assert.equal(blob.copy?.description, how === "abort" ? "" : "why");
    assert.deepEqual({ ...blob.metadata }, { m: "1" });
    assert.equal(table.rows.size, 1);
    assert.equal(table.outcome("abortCopy", { name, conditions, copyId: "id-1" }), "NoPendingCopyOperation");
    assert.equal(table.outcome("addToCopy", add(1, 2, [part(1, 1)])), "NoPendingCopyOperation");
    assert.equal(table.outcome("deleteBlob", { name, conditions }), "deleted");
  }
});

test("copy: one that is no longer heard of is taken over where it stands, once", () => {
  const table = new TestTable();
  table.outcome("startCopy", start());
  table.outcome("addToCopy", add(0, 1, [part(0, 10)]));
  const claim = (copier: string) => table.outcome("claimCopy", { name, copyId: "id-1", copier });
  table.wallMs += copyStaleMs - 1;
  assert.equal(claim("two"), "PendingCopyOperation", "it may still be at work");
  assert.equal(table.outcome("addToCopy", add(1, 1, [])), "blob", "a beat");
  table.wallMs += copyStaleMs - 1;
  assert.equal(claim("two"), "PendingCopyOperation");
  table.wallMs += 1;
  assert.equal(claim("two"), "blob");
  assert.equal(claim("three"), "PendingCopyOperation");
  assert.equal(blobOf(table).copy?.work?.next, 1);
  assert.equal(table.outcome("addToCopy", add(1, 2, [part(1, 20)], "one")), "CopyIdMismatch", "the old copier is fenced off");
  assert.equal(table.outcome("addToCopy", add(1, 2, [part(1, 20)], "two")), "blob");
  assert.equal(table.outcome("endCopy", end({ copier: "two" })), "blob");
  assert.equal(blobOf(table).contentLengthBytes, 30);
});

test("copy: places that are not good here are refused, and nothing is written", () => {
  const table = new TestTable();
  table.goneExtents.add(1);
  const complete = start({ copy: { ...pending, status: "success", work: undefined }, parts: [part(0, 10)] });
  assert.equal(table.decide({ case: "startCopy", value: complete }).refusal?.reason, "badPlace");
  table.outcome("startCopy", start());
  const decision = table.decide({ case: "addToCopy", value: add(0, 1, [part(0, 10)]) });
  assert.deepEqual([decision.refusal?.reason, decision.writes.length], ["badPlace", 0]);
});

test("copy: what is read of a source is what was put into it, part by part", () => {
  const table = new TestTable();
  table.scanRowsMax = 10_000;
  const block = (i: number) => utf8(String(i).padStart(48, "0"));
  for (let i = 0; i < 40; i++) {
    table.outcome("putBlock", { name: from, conditions, blockId: block(i), body: { inline: emptyBytes, places: [place(i + 1, 7)] } });
  }
  const blocks = Array.from({ length: 50_000 }, (_, i) => ({ blockId: block(i % 40), source: "latest" as const }));
  assert.equal(table.outcome("putBlockList", { name: from, conditions, headers, metadata: {}, blocks }), "blob");
  const read: CopyPart[] = [];
  for (let first: number | undefined = 0; first !== undefined; ) {
    const { parts, next }: ReturnType<typeof partsOf> = partsOf(table.run({ case: "readParts", value: { name: from, conditions, first } }));
    const weight = parts.reduce((sum, one) => sum + one.blocks.length * (48 + 16 + 20), 0);
    assert.ok(weight < 2 * copyPartBytesMax, `${weight} bytes in one answer`);
    read.push(...parts);
    first = next;
  }
  assert.deepEqual(
    read.map((one) => one.index),
    read.map((_, i) => i),
  );
  assert.equal(read.flatMap((one) => one.blocks).length, 50_000);
  table.outcome("startCopy", start());
  for (const [i, one] of read.entries()) assert.equal(table.outcome("addToCopy", add(i, i + 1, [one])), "blob");
  assert.equal(table.outcome("endCopy", end()), "blob");
  const list = table.run({ case: "getBlockList", value: { name, conditions, committed: true, uncommitted: false } });
  assert.ok(list.case === "blockList" && list.value.committed.length === 50_000);
});

test("copy: pages come by chunks, and only those that hold something", () => {
  const table = new TestTable();
  const body = { inline: emptyBytes, places: [] };
  const size = 1024 ** 4;
  table.outcome("putBlob", { name: from, conditions, headers, metadata: {}, body, blobType: "PageBlob", pageBlobBytes: size });
  for (const startBytes of [512, 10 * 256 * 1024, size - 512]) {
    const pages = { inline: emptyBytes, places: [place(startBytes % 1_000_003, 512)] };
    assert.equal(table.outcome("putPages", { name: from, conditions, sequence: {}, startBytes, body: pages }), "blob");
  }
  const { parts, next } = partsOf(table.run({ case: "readParts", value: { name: from, conditions, first: 0 } }));
  assert.deepEqual([parts.map((one) => one.index), next], [[0, 10, size / (256 * 1024) - 1], undefined]);
  table.outcome("startCopy", start({ blobType: "PageBlob", pageBlobBytes: size }));
  let position = 0;
  for (const one of parts) {
    assert.equal(table.outcome("addToCopy", add(position, one.index + 1, [one])), "blob");
    position = one.index + 1;
  }
  assert.equal(table.outcome("endCopy", end()), "blob");
  const ranges = (blob: typeof name) =>
    table.run({ case: "getPageRanges", value: { name: blob, conditions, startBytes: 0, rangesMax: 10 } });
  const [a, b] = [ranges(from), ranges(name)];
  assert.ok(a.case === "pageRanges" && b.case === "pageRanges");
  assert.deepEqual(a.value.ranges, b.value.ranges);
  assert.equal(b.value.ranges.length, 3);
});
