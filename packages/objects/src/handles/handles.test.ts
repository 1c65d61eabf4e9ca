/** Handles of one file beside operations by REST, and the table of docs/design/files.md. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { emptyBytes, FailureError, rulesWithout, toHex } from "@stamp/base";
import { blobPrefix } from "../object-keys.ts";
import { noPolicy, type Operation } from "../operation.ts";
import { TestTable } from "../testing/table.ts";
import { placeOfAddress } from "../tree/in-tree.ts";
import { decodeOpenFile, encodeOpenFile, handlesKey } from "./handle-row.ts";
import { deleteRight, type FileHandle, handlesMax, type OpenFile, readRight, writeRight } from "./handle-rules.ts";
import type { HandleStep, HandlesAnswer } from "./operation.ts";

const name = { account: "a", container: "~s", containerIncarnation: 3, blob: "f1" };
const file = { kind: "file", id: "f1" } as const;
const entry = { kind: "entry", directory: "root", name: "n" } as const;
const prefix = blobPrefix(new TestTable().rules, name);
const [none, all] = [0, readRight | writeRight | deleteRight];
const headers = {
  contentType: "",
  contentEncoding: "",
  contentLanguage: "",
  contentMd5: emptyBytes,
  cacheControl: "",
  contentDisposition: "",
};
const noBody = { inline: emptyBytes, places: [] };
const sequence = {};

/** A file of 100 bytes. */
function filled(): TestTable {
  const table = new TestTable();
  table.policy = { ...noPolicy, hierarchical: true };
  tree(table, { kind: "make", at: file });
  table.run({ case: "putBlob", value: { ...put, pageBlobBytes: 100 } });
  return table;
}
const put = { name, conditions: {}, metadata: {}, body: noBody, headers, blobType: "PageBlob" } as const;

function tree(
  table: TestTable,
  step: Extract<Operation, { case: "tree" }>["value"]["step"],
): { done: boolean; refused?: string | undefined } {
  const { account, container, containerIncarnation } = name;
  const at = step.kind === "page" ? { kind: "directory", id: "", name: "" } : placeOfAddress(step.at);
  const value = { account, container, containerIncarnation, action: step.kind, at, after: "", step };
  const result = table.run({ case: "tree", value });
  assert.ok(result.case === "tree");
  return result.value;
}

const handle = (id: string, access: number, share: number, more: Partial<FileHandle> = {}): FileHandle => ({
  id,
  session: "g",
  sessionEpoch: 1,
  access,
  share,
  deleteOnClose: false,
  client: "c",
  openedMs: 5,
  locks: [],
  ...more,
});

function step(table: TestTable, action: string, more: Partial<HandleStep> = {}): HandlesAnswer {
  const value = { name, action, pending: false, session: "", sessionEpoch: 0, directoryId: "root", entryName: "n", ...more };
  const result = table.run({ case: "handles", value });
  assert.ok(result.case === "handles", JSON.stringify(result));
  return result.value;
}
const open = (table: TestTable, ...args: Parameters<typeof handle>): string =>
  step(table, "open", { handle: handle(...args) }).refused ?? "";
const byId = (id: string): Pick<HandleStep, "handle"> => ({ handle: handle(id, 0, 0) });

const place = { extentId: 1, offsetBytes: 0, lengthBytes: 10 };
/** Every operation by REST that reaches the rows of a file; what it uses stands in front. */
const asked: readonly (readonly [uses: string, operation: Operation])[] = [
  ["", { case: "getBlob", value: { name, conditions: {}, withoutContent: true } }],
  ["r", { case: "getBlob", value: { name, conditions: {}, withoutContent: false, startBytes: 0, endBytes: 10 } }],
  ["r", { case: "getPageRanges", value: { name, conditions: {}, startBytes: 0, endBytes: 100, rangesMax: 5 } }],
  ["r", { case: "readParts", value: { name, conditions: {}, first: 0 } }],
  ["w", { case: "putPages", value: { name, conditions: {}, sequence, startBytes: 0, body: { inline: emptyBytes, places: [place] } } }],
  ["w", { case: "clearPages", value: { name, conditions: {}, sequence, startBytes: 0, endBytes: 10 } }],
  ["w", { case: "setBlobMetadata", value: { name, conditions: {}, metadata: {} } }],
  ["w", { case: "setBlobHeaders", value: { name, conditions: {}, headers } }],
  ["w", { case: "setPageBlobProperties", value: { name, conditions: {}, sequenceNumber: 0, contentLengthBytes: 5 } }],
  ["wd", { case: "putBlob", value: { ...put, pageBlobBytes: 100 } }],
];
/** Code of the refusal by handles; empty: they let it go on. */
function refusedBy(table: TestTable, operation: Operation): string {
  const { result } = table.decide(operation);
  const code = result.case === "error" ? result.value.code : "";
  return ["SharingViolation", "FileLockConflict", "DeletePending", "ResourceNotFound", "InvalidOperation"].includes(code) ? code : "";
}
const mark = { operation: "o1", primary: entry };
const removal = (table: TestTable): string => tree(table, { kind: "mark", at: file, mark, conditions: {} }).refused ?? "";

test("handles, one shares nothing: every read, write and removal by REST is SharingViolation, properties are read", () => {
  const table = filled();
  assert.equal(open(table, "1", writeRight, none), "");
  for (const [uses, operation] of asked) {
    assert.equal(refusedBy(table, operation), uses === "" ? "" : "SharingViolation", operation.case);
  }
  assert.equal(removal(table), "SharingViolation");
});

test("handles, a share mode denies one right: exactly the operations that use it are SharingViolation", () => {
  const letters = { r: readRight, w: writeRight, d: deleteRight };
  for (const [letter, right] of Object.entries(letters)) {
    const table = filled();
    assert.equal(open(table, "1", readRight, all & ~right), "");
    for (const [uses, operation] of asked) {
      const expected = uses.includes(letter) ? "SharingViolation" : "";
      assert.equal(refusedBy(table, operation), expected, `${operation.case} without ${letter}`);
    }
    assert.equal(removal(table), letter === "d" ? "SharingViolation" : "");
  }
});

test("handles, a byte range is locked: reads and writes that meet it are FileLockConflict, by REST and by other handles", () => {
  const table = filled();
  open(table, "1", all, all);
  open(table, "2", all, all);
  const lock = { startBytes: 5, endBytes: 20, exclusive: true };
  assert.equal(step(table, "lock", { ...byId("1"), lock }).refused, undefined);
  assert.equal(step(table, "lock", { ...byId("2"), lock: { ...lock, startBytes: 19, exclusive: false } }).refused, "FileLockConflict");
  open(table, "3", deleteRight, all);
  assert.equal(step(table, "lock", { ...byId("3"), lock: { startBytes: 50, endBytes: 51, exclusive: false } }).refused, "InvalidOperation");
  for (const exclusive of [true, false]) {
    const again = { startBytes: 6, endBytes: 8, exclusive };
    assert.equal(step(table, "lock", { ...byId("1"), lock: again }).refused, exclusive ? "FileLockConflict" : undefined);
  }
  assert.equal(step(table, "unlock", { ...byId("1"), lock: { startBytes: 6, endBytes: 8, exclusive: false } }).refused, undefined);
  const reads = (startBytes: number, endBytes: number, conditions = {}): Operation => ({
    case: "getBlob",
    value: { name, conditions, withoutContent: false, startBytes, endBytes },
  });
  const clears = (startBytes: number, endBytes: number, conditions = {}): Operation => ({
    case: "clearPages",
    value: { name, conditions, sequence, startBytes, endBytes },
  });
  for (const make of [reads, clears]) {
    assert.equal(refusedBy(table, make(0, 5)), "");
    assert.equal(refusedBy(table, make(0, 6)), "FileLockConflict");
    assert.equal(refusedBy(table, make(19, 30)), "FileLockConflict");
    assert.equal(refusedBy(table, make(20, 30)), "");
    assert.equal(refusedBy(table, make(0, 6, { handleId: "2" })), "FileLockConflict");
    assert.equal(refusedBy(table, make(0, 6, { handleId: "1" })), "");
  }
  assert.equal(step(table, "unlock", { ...byId("1"), lock: { ...lock, endBytes: 19 } }).refused, "ResourceNotFound");
  assert.equal(step(table, "unlock", { ...byId("1"), lock }).refused, undefined);
  step(table, "lock", { ...byId("1"), lock: { ...lock, exclusive: false } });
  assert.equal(refusedBy(table, reads(0, 6)), "");
  for (const handleId of ["1", "2"]) assert.equal(refusedBy(table, clears(0, 6, { handleId })), "FileLockConflict");
});

test("handles, a lock reaches beyond the end of the file: whole reads do not meet it, and lengths only where they add or take bytes away", () => {
  const table = filled();
  const { lengthBytes } = step(table, "list");
  open(table, "1", all, all);
  const beyond = { startBytes: lengthBytes + 10, endBytes: lengthBytes + 20, exclusive: true };
  step(table, "lock", { ...byId("1"), lock: beyond });
  const whole: Operation = { case: "getBlob", value: { name, conditions: {}, withoutContent: false } };
  const parts: Operation = { case: "readParts", value: { name, conditions: {}, first: 0 } };
  const resized = (contentLengthBytes: number): Operation => ({
    case: "setPageBlobProperties",
    value: { name, conditions: {}, sequenceNumber: 0, contentLengthBytes },
  });
  for (const operation of [whole, parts, resized(lengthBytes), resized(lengthBytes + 10), resized(1)]) {
    assert.equal(refusedBy(table, operation), "", JSON.stringify(operation));
  }
  assert.equal(refusedBy(table, resized(lengthBytes + 11)), "FileLockConflict");
  step(table, "lock", { ...byId("1"), lock: { startBytes: lengthBytes - 1, endBytes: lengthBytes, exclusive: true } });
  for (const operation of [whole, parts, resized(lengthBytes - 1)]) assert.equal(refusedBy(table, operation), "FileLockConflict");
  assert.equal(refusedBy(table, resized(lengthBytes)), "");
});

test("handles: the same bytes are written anew by whoever may write, and a rename sets with its own right; neither meets a lock", () => {
  const table = filled();
  open(table, "1", writeRight, writeRight | deleteRight);
  step(table, "lock", { ...byId("1"), lock: { startBytes: 5, endBytes: 20, exclusive: true } });
  const [readsAll, sets] = [asked[1]?.[1], asked[8]?.[1]] as [Operation, Operation];
  const writesAll = asked[4]?.[1] as Operation;
  const by = (operation: Operation, conditions: object): string =>
    refusedBy(table, { ...operation, value: { ...operation.value, conditions } } as Operation);
  assert.deepEqual([by(readsAll, {}), by(writesAll, {})], ["SharingViolation", "FileLockConflict"]);
  assert.deepEqual([by(readsAll, { handleId: "1" })], ["InvalidOperation"]);
  for (const operation of [readsAll, writesAll]) {
    for (const handleId of ["1", undefined]) assert.equal(by(operation, { handleId, usesRights: writeRight }), "", operation.case);
  }
  assert.equal(by(sets, { usesRights: deleteRight }), "");
  assert.equal(by(sets, { usesRights: readRight }), "SharingViolation");
});

test("handles, marked for deletion: everything by REST is DeletePending until the mark is taken back or the last handle is closed", () => {
  const table = filled();
  open(table, "1", all, all);
  open(table, "2", readRight, all);
  assert.equal(step(table, "dispose", { ...byId("2"), pending: true }).refused, "InvalidOperation");
  assert.equal(step(table, "dispose", { ...byId("1"), pending: true }).refused, undefined);
  for (const [, operation] of asked) assert.equal(refusedBy(table, operation), "DeletePending", operation.case);
  assert.equal(removal(table), "DeletePending");
  assert.equal(open(table, "3", readRight, all), "DeletePending");
  assert.equal(refusedBy(table, { case: "getBlob", value: { name, conditions: { handleId: "2" }, withoutContent: false } }), "");
  step(table, "dispose", { ...byId("1"), pending: false });
  for (const [, operation] of asked) assert.equal(refusedBy(table, operation), "", operation.case);
  step(table, "dispose", { ...byId("1"), pending: true });
  assert.equal(step(table, "close", byId("1")).file.handles.length, 1);
  assert.deepEqual(step(table, "close", byId("2")).file, { pending: true, handles: [], directoryId: "root", entryName: "n" });
  // Nobody can take it back, and whoever removes it does not ask.
  assert.equal(open(table, "4", readRight, all), "DeletePending");
  assert.equal(tree(table, { kind: "mark", at: file, mark }).done, true);
});

test("handles, delete on close by one of two: the file waits for the other one", () => {
  const table = filled();
  open(table, "1", all, all, { deleteOnClose: true });
  open(table, "2", readRight, all);
  const closed = step(table, "close", byId("1")).file;
  assert.deepEqual([closed.pending, closed.handles.length], [true, 1]);
  assert.equal(step(table, "end", { session: "g", sessionEpoch: 1 }).file.handles.length, 0);
});

test("handles: two exclude each other by what they do and what they share, in both directions", () => {
  const cases: readonly (readonly [number, number, number, number, string])[] = [
    [readRight, writeRight, writeRight, readRight, ""],
    [writeRight, readRight, writeRight, writeRight, "SharingViolation"],
    [writeRight, writeRight, writeRight, readRight, "SharingViolation"],
    [0, none, readRight, all, ""],
    [writeRight, none, 0, none, ""],
  ];
  for (const [access, share, secondAccess, secondShare, expected] of cases) {
    const table = filled();
    assert.equal(open(table, "1", access, share), "");
    assert.equal(open(table, "2", secondAccess, secondShare), expected, `${access} ${share} ${secondAccess} ${secondShare}`);
  }
});

test("handles: an open that is sent twice is one, a closed one reads nothing, and a session ends up to its epoch", () => {
  const table = filled();
  for (const _ of [1, 2]) assert.equal(open(table, "1", readRight, all), "");
  open(table, "2", readRight, all, { sessionEpoch: 2 });
  assert.equal(
    step(table, "end", { session: "g", sessionEpoch: 1 })
      .file.handles.map(({ id }) => id)
      .join(),
    "2",
  );
  const read: Operation = { case: "getBlob", value: { name, conditions: { handleId: "1" }, withoutContent: false } };
  assert.equal(refusedBy(table, read), "ResourceNotFound");
  step(table, "closeAll");
  assert.equal(table.row(handlesKey(prefix)), undefined);
  assert.equal(refusedBy(table, read), "ResourceNotFound");
  // Whoever opens is told the length in the same answer: a second one could fail, and leave a handle that nobody knows.
  assert.equal(step(table, "open", { handle: handle("3", readRight, all) }).lengthBytes, 100);
});

test("handles, the file is renamed: their row tells the new name, and a file that nobody has open gets no row", () => {
  const table = filled();
  const moved = { directoryId: "d2", entryName: "m" };
  step(table, "named", moved);
  assert.equal(table.row(handlesKey(prefix)), undefined);
  open(table, "1", readRight, all);
  step(table, "named", moved);
  const { directoryId, entryName } = step(table, "list").file;
  assert.deepEqual({ directoryId, entryName }, moved);
});

test("handles: a lease by REST and handles that write keep each other out", () => {
  const table = filled();
  const proposedLeaseId = "5f3f1f2c-0000-4000-8000-000000000001";
  const acquire = { name, conditions: {}, action: "acquire", proposedLeaseId, durationSeconds: 15 } as const;
  open(table, "1", writeRight, all);
  assert.equal(refusedBy(table, { case: "leaseBlob", value: acquire }), "SharingViolation");
  step(table, "close", byId("1"));
  assert.equal(table.run({ case: "leaseBlob", value: acquire }).case, "leased");
  table.monotonicMs += 16_000;
  const late = open(table, "late", writeRight, all);
  const renew = { ...acquire, conditions: { leaseId: proposedLeaseId }, action: "renew", proposedLeaseId: "" } as const;
  assert.deepEqual([late, refusedBy(table, { case: "leaseBlob", value: renew })], ["", "SharingViolation"]);
  step(table, "close", byId("late"));
  assert.equal(table.run({ case: "leaseBlob", value: renew }).case, "leased");
  assert.equal(open(table, "2", writeRight, all), "SharingViolation");
  assert.equal(open(table, "3", readRight, all), "");
});

test("handles: an open waits for a removal of the name that is under way, and finds nothing afterwards", () => {
  const table = filled();
  assert.equal(removal(table), "");
  const value = { name, action: "open", handle: handle("1", readRight, all), pending: false, session: "", sessionEpoch: 0 };
  const opening = { case: "handles", value: { ...value, directoryId: "root", entryName: "n" } } as const;
  assert.equal(table.decide(opening).refusal?.reason, "conflict");
  tree(table, { kind: "take", at: file, operation: "o1" });
  const late = table.run(opening);
  assert.ok(late.case === "error" && late.value.code === "BlobNotFound");
});

test("handles: too many of one file are refused, and the collector takes their row with the file", () => {
  const table = filled();
  const many = Array.from({ length: handlesMax }, (_, index) => handle(String(index), readRight, all));
  const row = encodeOpenFile({ pending: false, directoryId: "root", entryName: "n", handles: many });
  table.rows.set(toHex(handlesKey(prefix)), { key: handlesKey(prefix), value: row });
  assert.equal(open(table, "x", readRight, all), "InvalidOperation");
  tree(table, { kind: "condemn", at: file, operation: "o" });
  table.collect();
  assert.deepEqual([...table.rows.keys()], []);
});

test("handles, a rule is off: the model's counterexample of it happens", () => {
  const unlooked = filled();
  unlooked.rules = rulesWithout("handlesCheckedWhereWritten");
  open(unlooked, "1", writeRight, none);
  assert.equal(refusedBy(unlooked, asked[6]?.[1] as Operation), "");
  const unmarked = filled();
  unmarked.rules = rulesWithout("handlesMarkChecks");
  open(unmarked, "1", writeRight, none);
  assert.equal(removal(unmarked), "");
  const revived = filled();
  revived.rules = rulesWithout("handlesDoomedIsFinal");
  open(revived, "1", all, all, { deleteOnClose: true });
  step(revived, "close", byId("1"));
  assert.equal(open(revived, "2", readRight, all), "");
});

const golden = new URL("../../../../tests/golden/tree/v1/handles.txt", import.meta.url);
const held: OpenFile = {
  pending: true,
  directoryId: "d1",
  entryName: "GRÜN",
  handles: [
    handle("7", 3, 1, { locks: [{ startBytes: 0, endBytes: 2 ** 42, exclusive: true }] }),
    handle("1311768467463790320", 4, 7, { session: "gateway-2", sessionEpoch: 300, deleteOnClose: true, client: "10.0.0.7" }),
  ],
};

test("golden row of handles is written and read as it was, and is damaged if it is cut short", () => {
  const bytes = encodeOpenFile(held);
  const text = `${toHex(handlesKey(prefix))} ${toHex(bytes)}\n`;
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(golden, text);
  assert.equal(text, readFileSync(golden, "utf8"));
  assert.deepEqual(decodeOpenFile(bytes), held);
  for (let end = 0; end < bytes.length; end++) assert.throws(() => decodeOpenFile(bytes.subarray(0, end)), FailureError);
});
