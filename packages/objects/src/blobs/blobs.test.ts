import assert from "node:assert/strict";
import { test } from "node:test";
import { type BlobHeaders, emptyBytes, rulesWithout, utf8 } from "@stamp/base";
import { etagOf, sequenceOfEtag } from "../etag.ts";
import type { Conditions, OperationKind, OperationValue } from "../operation.ts";
import type { BlobContent, Container } from "../results.ts";
import { TestTable } from "../testing/table.ts";

const headers: BlobHeaders = {
  contentType: "text/plain",
  contentEncoding: "",
  contentLanguage: "",
  contentMd5: emptyBytes,
  cacheControl: "",
  contentDisposition: "",
};
const name = (blob = "b", containerIncarnation = 1) => ({ account: "a", container: "c", containerIncarnation, blob });
const inline = (text: string) => ({ inline: utf8(text), places: [] });
const put = (text: string, conditions: Conditions = {}) => ({ name: name(), conditions, headers, metadata: {}, body: inline(text) });
const place = (extentId: number, lengthBytes: number) => ({ extentId, offsetBytes: 100, lengthBytes });

function content(table: TestTable, range: { startBytes?: number; endBytes?: number } = {}): BlobContent {
  const result = table.run({ case: "getBlob", value: { name: name(), conditions: {}, withoutContent: false, ...range } });
  assert.ok(result.case === "content");
  return result.value;
}

test("etags: a sequence and back, quotes or not; what we never gave is nobody's", () => {
  assert.equal(etagOf(1), '"0x800000000000001"');
  assert.equal(sequenceOfEtag(etagOf(2 ** 53 - 1)), 2 ** 53 - 1);
  assert.equal(sequenceOfEtag("0x80000000000000A"), 10);
  for (const bad of ["", '"', "*", "0x8", 'W/"0x800000000000001"', "0x7000000000000001", "0x8FFFFFFFFFFFFFF"]) {
    assert.equal(sequenceOfEtag(bad), undefined, bad);
  }
});

/** The table of conditions: for a blob that is there (ETag current or old, modified at t) and for none, per kind of operation. */
const at = 1_700_000_000_000;
type Column = "read" | "put" | "change" | "absentRead" | "absentPut" | "absentChange";
const table412 = { read: "ConditionNotMet 412", put: "ConditionNotMet 412", change: "ConditionNotMet 412" };
const passes = { read: "ok", put: "ok", change: "ok" };
const absent = { absentRead: "BlobNotFound", absentPut: "ok", absentChange: "BlobNotFound" };
const absentMatch = { ...absent, absentPut: "ConditionNotMet 412" };
/** `remove`: of Delete Blob, where the service answers otherwise than to other changes. */
type Expected = Record<Column, string> & { readonly remove?: string };
const several = "MultipleConditionHeadersNotSupported";
const conditionTable: readonly (readonly [string, (etag: string) => Conditions, Expected])[] = [
  ["none", () => ({}), { ...passes, ...absent }],
  ["If-Match current", (e) => ({ ifMatch: e }), { ...passes, ...absentMatch }],
  ["If-Match current without quotes", (e) => ({ ifMatch: e.slice(1, -1) }), { ...passes, ...absentMatch }],
  ["If-Match one of several", (e) => ({ ifMatch: `"0x0", ${e}` }), { ...passes, ...absentMatch }],
  ["If-Match other", () => ({ ifMatch: '"0x8000000000000FF"' }), { ...table412, ...absentMatch }],
  ["If-Match *", () => ({ ifMatch: "*" }), { ...passes, ...absentMatch }],
  ["If-None-Match other", () => ({ ifNoneMatch: '"0x8000000000000FF"' }), { ...passes, ...absent }],
  ["If-None-Match current", (e) => ({ ifNoneMatch: e }), { ...table412, read: "ConditionNotMet 304", ...absent }],
  [
    "If-None-Match *",
    () => ({ ifNoneMatch: "*" }),
    { read: "ConditionNotMet 304", put: "BlobAlreadyExists", change: "ConditionNotMet 412", remove: "ok", ...absent },
  ],
  ["If-Modified-Since before", () => ({ ifModifiedSinceMs: at - 1000 }), { ...passes, ...absent }],
  ["If-Modified-Since then", () => ({ ifModifiedSinceMs: at }), { ...table412, read: "ConditionNotMet 304", ...absent }],
  ["If-Unmodified-Since then", () => ({ ifUnmodifiedSinceMs: at }), { ...passes, ...absent }],
  ["If-Unmodified-Since before", () => ({ ifUnmodifiedSinceMs: at - 1000 }), { ...table412, ...absent }],
  [
    "If-None-Match current, If-Modified-Since before",
    (e) => ({ ifNoneMatch: e, ifModifiedSinceMs: at - 1000 }),
    { ...table412, read: "ok", ...absent },
  ],
  [
    "If-None-Match other, If-Modified-Since then",
    () => ({ ifNoneMatch: '"0x8000000000000FF"', ifModifiedSinceMs: at }),
    { ...passes, ...absent },
  ],
  [
    "If-Match current, If-Unmodified-Since before",
    (e) => ({ ifMatch: e, ifUnmodifiedSinceMs: at - 1000 }),
    { ...passes, read: "ConditionNotMet 412", ...absentMatch },
  ],
  [
    "If-Match current, If-None-Match current",
    (e) => ({ ifMatch: e, ifNoneMatch: e }),
    {
      read: "ConditionNotMet 304",
      put: several,
      change: several,
      absentRead: "BlobNotFound",
      absentPut: several,
      absentChange: "BlobNotFound",
    },
  ],
  [
    "a lease nobody has",
    () => ({ leaseId: "x" }),
    {
      read: "LeaseNotPresentWithBlobOperation",
      put: "LeaseNotPresentWithBlobOperation",
      change: "LeaseNotPresentWithBlobOperation",
      ...absent,
      absentPut: "LeaseNotPresentWithBlobOperation",
    },
  ],
];

function outcomesOf(conditions: (etag: string) => Conditions, exists: boolean): Record<"read" | "put" | "change" | "remove", string[]> {
  const one = <K extends OperationKind>(kind: K, value: (c: Conditions) => OperationValue<K>): string => {
    const table = new TestTable();
    let etag = etagOf(1);
    if (exists) {
      table.wallMs = at + 400;
      const made = table.run({ case: "putBlob", value: put("x") });
      assert.ok(made.case === "blob");
      etag = made.value.etag;
    }
    table.wallMs = at + 60_000;
    const outcome = table.outcome(kind, value(conditions(etag)));
    return ["blob", "content", "blockList", "deleted"].includes(outcome) ? "ok" : outcome;
  };
  return {
    read: [
      one("getBlob", (c) => ({ name: name(), conditions: c, withoutContent: false })),
      one("getBlob", (c) => ({ name: name(), conditions: c, withoutContent: true })),
    ],
    put: [
      one("putBlob", (c) => put("y", c)),
      one("putBlockList", (c) => ({ name: name(), conditions: c, headers, metadata: {}, blocks: [] })),
    ],
    change: [
      one("setBlobMetadata", (c) => ({ name: name(), conditions: c, metadata: { a: "b" } })),
      one("setBlobHeaders", (c) => ({ name: name(), conditions: c, headers })),
    ],
    remove: [one("deleteBlob", (c) => ({ name: name(), conditions: c }))],
  };
}

for (const [title, conditions, expected] of conditionTable) {
  test(`conditions on every blob operation: ${title}`, () => {
    const there = outcomesOf(conditions, true);
    const none = outcomesOf(conditions, false);
    for (const kind of ["read", "put", "change"] as const) {
      const absentColumn = `absent${kind[0]?.toUpperCase()}${kind.slice(1)}` as Column;
      for (const outcome of there[kind]) assert.equal(outcome, expected[kind], `${kind}, there`);
      for (const outcome of none[kind]) assert.equal(outcome, expected[absentColumn], `${kind}, absent`);
    }
    assert.deepEqual(there.remove, [expected.remove ?? expected.change], "remove, there");
    assert.deepEqual(none.remove, [expected.absentChange], "remove, absent");
  });
}

test("blobs: every write gives a new ETag, also over delete, and Last-Modified never goes back", () => {
  const table = new TestTable();
  const seen = new Set<string>();
  let lastMs = 0;
  for (let i = 0; i < 6; i++) {
    table.wallMs -= 90_000;
    const result = table.run(
      i % 2 === 0
        ? { case: "putBlob", value: put("x") }
        : { case: "setBlobMetadata", value: { name: name(), conditions: {}, metadata: {} } },
    );
    assert.ok(result.case === "blob");
    assert.ok(!seen.has(result.value.etag));
    seen.add(result.value.etag);
    assert.ok(result.value.lastModifiedMs >= lastMs && result.value.lastModifiedMs % 1000 === 0);
    lastMs = result.value.lastModifiedMs;
  }
  table.outcome("deleteBlob", { name: name(), conditions: {} });
  assert.equal(table.rows.size, 0);
  const again = table.run({ case: "putBlob", value: put("x") });
  assert.ok(again.case === "blob" && !seen.has(again.value.etag));
});

test("blobs: a range of inline content and of places, clipped; beyond the end is InvalidRange", () => {
  const table = new TestTable();
  table.outcome("putBlob", put("hello"));
  assert.deepEqual(content(table).inline, utf8("hello"));
  assert.deepEqual(content(table, { startBytes: 1, endBytes: 3 }).inline, utf8("el"));
  assert.deepEqual(content(table, { startBytes: 4, endBytes: 900 }).inline, utf8("o"));
  const read = { name: name(), conditions: {}, withoutContent: false };
  assert.equal(table.outcome("getBlob", { ...read, startBytes: 5, endBytes: 9 }), "InvalidRange");
  const body = { inline: emptyBytes, places: [place(1, 10), place(2, 10), place(3, 5)] };
  table.outcome("putBlob", { ...put(""), body });
  const part = content(table, { startBytes: 8, endBytes: 21 });
  assert.deepEqual(part.places, [
    { extentId: 1, offsetBytes: 108, lengthBytes: 2 },
    { extentId: 2, offsetBytes: 100, lengthBytes: 10 },
    { extentId: 3, offsetBytes: 100, lengthBytes: 1 },
  ]);
  assert.equal(part.lengthBytes, 13);
  assert.equal(part.blob.contentLengthBytes, 25);
  assert.equal(content(table).lengthBytes, 25);
});

test("blobs: an empty blob has content of no bytes, and no range", () => {
  const table = new TestTable();
  table.outcome("putBlob", put(""));
  assert.equal(content(table).lengthBytes, 0);
  assert.equal(table.outcome("getBlob", { name: name(), conditions: {}, withoutContent: false, startBytes: 0 }), "InvalidRange");
});

test("blobs: a place whose extent left the stream is refused in row order; without the rule it is taken", () => {
  const table = new TestTable();
  table.goneExtents.add(2);
  const body = { inline: emptyBytes, places: [place(1, 10), place(2, 10)] };
  const operation = { case: "putBlob", value: { ...put(""), body } } as const;
  assert.equal(table.decide(operation).refusal?.reason, "badPlace");
  assert.equal(table.decide(operation).writes.length, 0);
  table.rules = rulesWithout("placesCheckedInRowOrder");
  assert.equal(table.decide(operation).refusal, undefined);
});

test("containers: incarnations are never used again, and blobs of an older one can't be reached", () => {
  const table = new TestTable();
  const create = () => {
    const result = table.run({ case: "createContainer", value: { account: "a", container: "c", metadata: {}, publicAccess: "" } });
    assert.ok(result.case === "container", JSON.stringify(result));
    return result.value as Container;
  };
  const first = create();
  assert.equal(
    table.outcome("createContainer", { account: "a", container: "c", metadata: {}, publicAccess: "" }),
    "ContainerAlreadyExists",
  );
  table.outcome("putBlob", { ...put("x"), name: name("b", first.incarnation) });
  assert.equal(table.outcome("deleteContainer", { account: "a", container: "c", conditions: {} }), "done");
  assert.equal(table.outcome("getContainer", { account: "a", container: "c", conditions: {} }), "ContainerNotFound");
  const second = create();
  assert.ok(second.incarnation > first.incarnation && second.etag !== first.etag);
  const get = { conditions: {}, withoutContent: false };
  assert.equal(table.outcome("getBlob", { ...get, name: name("b", second.incarnation) }), "BlobNotFound");
  table.rules = rulesWithout("incarnationInKey");
  table.outcome("putBlob", { ...put("x"), name: name("b", first.incarnation) });
  assert.equal(table.outcome("getBlob", { ...get, name: name("b", second.incarnation) }), "content", "without the rule it would be");
});

test("containers: conditions of metadata and delete", () => {
  const table = new TestTable();
  const container = { account: "a", container: "c" };
  assert.equal(table.outcome("setContainerMetadata", { ...container, metadata: {}, conditions: {} }), "ContainerNotFound");
  table.outcome("createContainer", { ...container, metadata: { k: "v" }, publicAccess: "" });
  const since = { ifModifiedSinceMs: table.wallMs };
  assert.equal(table.outcome("setContainerMetadata", { ...container, metadata: {}, conditions: since }), "ConditionNotMet 412");
  assert.equal(table.outcome("deleteContainer", { ...container, conditions: since }), "ConditionNotMet 412");
  const set = table.run({ case: "setContainerMetadata", value: { ...container, metadata: { k: "w" }, conditions: {} } });
  assert.ok(set.case === "container" && set.value.metadata.k === "w" && set.value.incarnation === 2);
});

test("content type: a row keeps a cleared type apart from one that was never set, and older rows have the default", () => {
  const table = new TestTable();
  const stored = (given: Partial<BlobHeaders>): BlobHeaders => {
    table.run({ case: "putBlob", value: put("x") });
    table.run({ case: "setBlobHeaders", value: { name: name(), conditions: {}, headers: { ...headers, ...given } } });
    return content(table).blob.headers;
  };
  const cleared = stored({ contentType: "", contentTypeCleared: true });
  assert.deepEqual([cleared.contentType, cleared.contentTypeCleared], ["", true]);
  const unset = stored({ contentType: "" });
  assert.deepEqual([unset.contentType, unset.contentTypeCleared], ["", false], "as a front-end of an older release asks for it");
  const typed = stored({ contentType: "a/b", contentTypeCleared: true });
  assert.deepEqual([typed.contentType, typed.contentTypeCleared], ["a/b", false]);
});
