import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, toHex } from "@stamp/base";
import { blobPrefix, headKey } from "../object-keys.ts";
import { noPolicy } from "../operation.ts";
import { TestTable } from "../testing/table.ts";
import { placeOfAddress } from "./in-tree.ts";
import type { Step } from "./operation.ts";
import { nodeKey, treeKey } from "./tree-keys.ts";

const tree = { account: "a", filesystem: "fs", incarnation: 3 };
const name = { account: "a", container: "fs", containerIncarnation: 3, blob: "f1" };
const file = { kind: "file", id: "f1" } as const;
const entry = { kind: "entry", directory: "root", name: "n" } as const;
const prefix = blobPrefix(new TestTable().rules, name);

function take(table: TestTable, step: Step) {
  const at = step.kind === "page" ? { kind: "directory", id: step.directory, name: "" } : placeOfAddress(step.at);
  const after = step.kind === "page" ? step.after : "";
  const { account, container, containerIncarnation } = name;
  const result = table.run({ case: "tree", value: { account, container, containerIncarnation, action: step.kind, at, after, step } });
  assert.ok(result.case === "tree");
  return result.value;
}

const put = (table: TestTable, conditions = {}) =>
  table.run({
    case: "putBlob",
    value: {
      name,
      conditions,
      metadata: {},
      body: { inline: Uint8Array.of(1, 2), places: [] },
      headers: {
        contentType: "",
        contentEncoding: "",
        contentLanguage: "",
        contentMd5: emptyBytes,
        cacheControl: "",
        contentDisposition: "",
      },
    },
  });

/** A file with two bytes. */
function filled(): TestTable {
  const table = new TestTable();
  put(table);
  take(table, { kind: "make", at: file });
  table.policy = { ...noPolicy, hierarchical: true };
  return table;
}
const has = (table: TestTable, key: Uint8Array): boolean => table.rows.has(toHex(key));
const mark = { operation: "o1", primary: entry };

test("tree: the blob of a file is written while its node is there, and refused once it is removed", () => {
  const table = filled();
  assert.equal(put(table).case, "blob");
  take(table, { kind: "condemn", at: file, operation: "o1" });
  const refused = put(table);
  assert.ok(refused.case === "error" && refused.value.code === "BlobNotFound");
  const other = new TestTable();
  other.policy = { ...noPolicy, hierarchical: true };
  assert.equal(put(other).case, "error", "without a node nothing is made");
});

test("tree: a file is not written while its node is marked, and is again when the mark is released", () => {
  const table = filled();
  assert.equal(take(table, { kind: "mark", at: file, mark }).done, true);
  const before = table.rows.get(toHex(headKey(prefix)))?.value;
  const { refusal, writes } = table.decide({ case: "setBlobMetadata", value: { name, conditions: {}, metadata: { a: "b" } } });
  assert.equal(refusal?.reason, "conflict");
  assert.equal(writes.length, 0);
  assert.equal(table.rows.get(toHex(headKey(prefix)))?.value, before);
  take(table, { kind: "release", at: file, operation: "o1" });
  assert.equal(put(table).case, "blob");
});

test("tree: a file keeps its access control over writes, a creation anew may change it, and a change needs the ETag it read", () => {
  const table = filled();
  const accessOf = (): string | undefined => {
    const read = table.run({ case: "getBlob", value: { name, conditions: {}, withoutContent: true } });
    return read.case === "blob" ? read.value.pathAccess : read.case;
  };
  const set = (pathAccess: string, conditions = {}) => table.run({ case: "setPathAccess", value: { name, conditions, pathAccess } });
  assert.equal(accessOf(), undefined);
  const first = set("u,g,-,user::rwx,group::---,other::---");
  assert.equal(accessOf(), "u,g,-,user::rwx,group::---,other::---");
  put(table);
  assert.equal(accessOf(), "u,g,-,user::rwx,group::---,other::---");
  const ifMatch = first.case === "blob" ? first.value.etag : "";
  const late = set("late", { ifMatch });
  assert.equal(late.case === "error" && late.value.code, "ConditionNotMet");
  set("");
  assert.equal(accessOf(), undefined, "an empty text is none");
  take(table, { kind: "condemn", at: file, operation: "o1" });
  assert.equal(set("gone").case, "error");
});

test("tree: a mark holds the conditions of the client on the blob: its ETag and its lease", () => {
  const table = filled();
  const wrong = take(table, { kind: "mark", at: file, mark, conditions: { ifMatch: '"0x1"' } });
  assert.deepEqual([wrong.done, wrong.refused], [false, "ConditionNotMet"]);
  const id = "11111111-1111-1111-1111-111111111111";
  const leased = { name, conditions: {}, action: "acquire", proposedLeaseId: id, durationSeconds: -1 } as const;
  assert.equal(table.run({ case: "leaseBlob", value: leased }).case, "leased");
  assert.equal(take(table, { kind: "mark", at: file, mark, conditions: {} }).refused, "LeaseIdMissing");
  const other = { leaseId: "22222222-2222-2222-2222-222222222222" };
  assert.equal(
    take(table, { kind: "mark", at: file, mark, conditions: other, overLease: true }).refused,
    "LeaseIdMismatchWithBlobOperation",
  );
  assert.equal(take(table, { kind: "mark", at: file, mark, conditions: { leaseId: id } }).done, true);
});

test("tree: the collector takes all rows of a removed file, its node last, and nothing of any other", () => {
  const table = filled();
  assert.equal(table.collect(), 0, "nothing of a file that has its name");
  take(table, { kind: "mark", at: file, mark });
  assert.equal(table.collect(), 0, "nor of one that is about to be removed");
  take(table, { kind: "take", at: file, operation: "o1" });
  take(table, { kind: "make", at: { kind: "directory", id: "d1" } });
  for (let pass = 0; pass < 3; pass++) table.collect();
  assert.deepEqual([...table.rows.keys()], [toHex(treeKey(tree, { kind: "directory", id: "d1" }))]);
});

test("tree: a directory that is forgotten takes its properties along", () => {
  const table = filled();
  const directory = { kind: "directory", id: "f1" } as const;
  take(table, { kind: "make", at: directory });
  assert.equal(take(table, { kind: "forget", at: directory }).done, false, "not while it has its name");
  take(table, { kind: "condemn", at: directory, operation: "o1" });
  assert.equal(take(table, { kind: "forget", at: directory }).done, true);
  assert.equal(has(table, headKey(prefix)) || has(table, nodeKey(prefix, "directory")), false);
});

test("tree: an operation on a name begins only on what it was meant for, and only one at a time", () => {
  const table = filled();
  const next = { kind: "file", id: "f1", name: "" } as const;
  const operationOf = (id: string) => ({ id, beganMs: 0, participants: [], next });
  const begin = (id: string, expectedId: string | undefined) =>
    take(table, { kind: "begin", at: entry, expectedId, operation: operationOf(id) }).done;
  assert.equal(begin("o1", "f1"), false, "the name holds nothing");
  assert.equal(begin("o1", undefined), true);
  assert.equal(begin("o2", undefined), false, "another is under way");
  take(table, { kind: "decide", at: entry, operation: operationOf("o1") });
  assert.equal(begin("o2", undefined), false, "the name holds a file by now");
  assert.equal(begin("o2", "f0"), false, "and not that one");
  assert.equal(begin("o2", "f1"), true);
});

test("tree: a page of entries ends with its range and says so, and tells nothing of a neighbour", () => {
  const table = filled();
  const operation = { id: "o", beganMs: 0, participants: [], next: { kind: "file", id: "f1", name: "" } } as const;
  for (const [directory, each] of [
    ["root", "a"],
    ["root", "b"],
    ["root", "c"],
    ["roo", "x"],
    ["root0", "y"],
  ] as const) {
    const at = { kind: "entry", directory, name: each } as const;
    take(table, { kind: "begin", at, operation, expectedId: undefined });
  }
  const page = (after: string, rowsMax = 10) => {
    const { rows = [], more, rangeEnded } = take(table, { kind: "page", directory: "root", after, rowsMax });
    return [rows.map((row) => row.name).join(""), more, rangeEnded];
  };
  assert.deepEqual(page(""), ["abc", false, false]);
  assert.deepEqual(page("a"), ["bc", false, false]);
  assert.deepEqual(page("", 2), ["ab", true, false]);
  const middle = treeKey(tree, { kind: "entry", directory: "root", name: "b" });
  table.range = { low: emptyBytes, high: middle };
  assert.deepEqual(page(""), ["a", false, true]);
  table.range = { low: middle, high: emptyBytes };
  assert.deepEqual(page(""), ["bc", false, false]);
});

test("tree: whoever takes away a file that it has made without content does not take blocks that others have put there", () => {
  const table = new TestTable();
  take(table, { kind: "make", at: file });
  table.policy = { ...noPolicy, hierarchical: true };
  const unwritten = { kind: "mark", at: file, mark, conditions: { ifNoneMatch: "*" } } as const;
  const value = {
    name,
    conditions: {},
    blockId: Uint8Array.of(1),
    body: { inline: emptyBytes, places: [{ extentId: 1, offsetBytes: 0, lengthBytes: 2 }] },
  };
  assert.equal(table.run({ case: "putBlock", value }).case, "done");
  assert.deepEqual([take(table, unwritten).done, take(table, unwritten).refused], [false, "ConditionNotMet"]);
  assert.equal(take(table, { ...unwritten, conditions: {} }).done, true, "a deletion takes them along");
  const empty = new TestTable();
  take(empty, { kind: "make", at: file });
  assert.equal(take(empty, unwritten).done, true);
});
