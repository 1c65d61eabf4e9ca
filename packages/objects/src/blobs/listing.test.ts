import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, utf8 } from "@stamp/base";
import fc from "fast-check";
import { blobPrefix, shareContainer } from "../object-keys.ts";
import { everyBlob } from "../testing/packed-listing.ts";
import { TestTable } from "../testing/table.ts";
import { noHeaders as headers } from "./state/head-row.ts";

const name = (blob: string) => ({ account: "a", container: "c", containerIncarnation: 1, blob });
const request = { ...everyBlob, maxResults: 3, includeUncommitted: false };

function put(table: TestTable, blob: string): void {
  table.outcome("putBlob", { name: name(blob), conditions: {}, headers, metadata: { m: "1" }, body: { inline: utf8("x"), places: [] } });
}

function stage(table: TestTable, blob: string, blocks: number): void {
  for (let i = 0; i < blocks; i++) {
    const body = { inline: emptyBytes, places: [{ extentId: 1, offsetBytes: 0, lengthBytes: 1 }] };
    table.outcome("putBlock", { name: name(blob), conditions: {}, blockId: Uint8Array.of(i), body });
  }
}

test("listing: shares are listed by their own prefix only, and containers without them", () => {
  const table = new TestTable();
  const names = ["abc", "zzz", shareContainer("abc"), shareContainer("b")];
  for (const container of names) table.outcome("createContainer", { account: "a", container, metadata: {}, publicAccess: "" });
  const listed = (prefix: string, marker = prefix) => {
    const result = table.run({ case: "listContainers", value: { account: "a", prefix, marker, maxResults: 10 } });
    return result.case === "containers" ? result.value.containers.map((container) => container.name) : [];
  };
  assert.deepEqual(listed(""), ["abc", "zzz"]);
  assert.deepEqual(listed("zz"), ["zzz"]);
  assert.deepEqual(listed(shareContainer("")), [shareContainer("abc"), shareContainer("b")]);
  assert.deepEqual(listed(shareContainer("b")), [shareContainer("b")]);
});

function listAll(table: TestTable, value: Partial<typeof request>): string[] {
  const all: string[] = [];
  let marker = value.marker ?? "";
  for (let pages = 0; pages < 100; pages++) {
    const result = table.run({ case: "listBlobs", value: { ...request, ...value, marker } });
    assert.ok(result.case === "blobs");
    assert.ok(result.value.entries.length <= 3);
    for (const entry of result.value.entries) {
      if (entry.case === "prefix") all.push(`${entry.value} (prefix)`);
      else all.push(entry.value.uncommitted ? `${entry.value.name} (uncommitted)` : entry.value.name);
    }
    if (result.value.nextMarker === "") return all;
    assert.equal(result.value.entries.length, 3, "a page that is not the last is full");
    marker = result.value.nextMarker;
  }
  throw new Error("the listing does not end");
}

const codePoints = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

test("listing: pages, prefixes and delimiters say what a filter over all names says", () => {
  const letters = fc.constantFrom("a", "b", "/", "é", "\u{1f600}", "\0");
  const names = fc.uniqueArray(
    fc.array(letters, { minLength: 1, maxLength: 5 }).map((parts) => parts.join("")),
    { maxLength: 14 },
  );
  const prefix = fc.array(letters, { maxLength: 2 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(names, names, prefix, fc.constantFrom("", "/", "a"), fc.boolean(), (committed, staged, from, delimiter, uncommitted) => {
      const table = new TestTable();
      for (const blob of committed) put(table, blob);
      for (const blob of staged) stage(table, blob, 9);
      const visible = new Set([...committed, ...(uncommitted ? staged : [])]);
      const expected = new Set<string>();
      for (const blob of [...visible].sort(codePoints)) {
        if (!blob.startsWith(from)) continue;
        const at = delimiter === "" ? -1 : blob.indexOf(delimiter, from.length);
        if (at >= 0) expected.add(`${blob.slice(0, at + delimiter.length)} (prefix)`);
        else expected.add(committed.includes(blob) ? blob : `${blob} (uncommitted)`);
      }
      assert.deepEqual(listAll(table, { prefix: from, delimiter, includeUncommitted: uncommitted }), [...expected]);
    }),
    { numRuns: 300 },
  );
});

test("listing: other containers, incarnations and accounts do not show", () => {
  const table = new TestTable();
  put(table, "mine");
  for (const other of [{ account: "b" }, { container: "d" }, { containerIncarnation: 2 }]) {
    table.outcome("putBlob", {
      name: { ...name("other"), ...other },
      conditions: {},
      headers,
      metadata: {},
      body: { inline: utf8("x"), places: [] },
    });
  }
  assert.deepEqual(listAll(table, {}), ["mine"]);
});

test("listing: a range that ends in the middle says so, and the next one goes on", () => {
  const table = new TestTable();
  for (const blob of ["a", "b", "c", "d"]) put(table, blob);
  const split = blobPrefix(table.rules, name("c"));
  table.range = { low: emptyBytes, high: split };
  const first = table.run({ case: "listBlobs", value: { ...request, maxResults: 10 } });
  assert.ok(first.case === "blobs" && first.value.rangeEnded && first.value.nextMarker === "");
  table.range = { low: split, high: emptyBytes };
  const second = table.run({ case: "listBlobs", value: { ...request, maxResults: 10 } });
  assert.ok(second.case === "blobs" && !second.value.rangeEnded);
  const names = [...first.value.entries, ...second.value.entries].map((entry) => entry.case === "blob" && entry.value.name);
  assert.deepEqual(names, ["a", "b", "c", "d"]);
});

test("listing: a page reads the rows that it shows and one more; of a prefix one, however much is below it", () => {
  const table = new TestTable();
  for (let i = 0; i < 10; i++) put(table, `a${i}`);
  for (let folder = 0; folder < 5; folder++) for (let i = 0; i < 20; i++) put(table, `f/${folder}/${i}`);
  for (let i = 0; i < 200; i++) put(table, `many/${i}`);
  const rowsOf = (value: Partial<typeof request>): number => {
    const before = table.rowsRead;
    assert.equal(table.run({ case: "listBlobs", value: { ...request, ...value } }).case, "blobs");
    return table.rowsRead - before;
  };
  assert.equal(rowsOf({ maxResults: 5 }), 6);
  assert.equal(rowsOf({ maxResults: 5, marker: "a3" }), 6);
  assert.equal(rowsOf({ maxResults: 3, prefix: "f/", delimiter: "/" }), 4);
  assert.equal(rowsOf({ maxResults: 5, prefix: "f/", delimiter: "/" }), 5);
  assert.equal(rowsOf({ maxResults: 100, delimiter: "/" }), 12);
  assert.equal(rowsOf({ maxResults: 100, prefix: "m", delimiter: "/" }), 1);
  const everything = { includeSnapshots: true, includeVersions: true, includeDeleted: true, includeUncommitted: true };
  assert.equal(rowsOf({ maxResults: 100, prefix: "f/", delimiter: "/", ...everything }), 5);
  assert.equal(rowsOf({ maxResults: 100, prefix: "m", delimiter: "/", ...everything }), 1);
});

test("listing: metadata only when asked for", () => {
  const table = new TestTable();
  put(table, "a");
  for (const includeMetadata of [false, true]) {
    const result = table.run({ case: "listBlobs", value: { ...request, includeMetadata } });
    assert.ok(result.case === "blobs" && result.value.entries[0]?.case === "blob");
    assert.deepEqual({ ...result.value.entries[0].value.metadata }, includeMetadata ? { m: "1" } : {});
  }
});

test("listing: containers by prefix, a page at a time, of one account", () => {
  const table = new TestTable();
  for (const container of ["aa", "ab", "b", "abc", "ac"]) {
    table.outcome("createContainer", { account: "a", container, metadata: {}, publicAccess: "" });
  }
  table.outcome("createContainer", { account: "b", container: "abz", metadata: {}, publicAccess: "" });
  const page = (marker: string, prefix = "a") => {
    const result = table.run({ case: "listContainers", value: { account: "a", prefix, marker, maxResults: 2 } });
    assert.ok(result.case === "containers");
    return [result.value.containers.map((one) => one.name).join(" "), result.value.nextMarker, result.value.rangeEnded];
  };
  assert.deepEqual(page(""), ["aa ab", "abc", false]);
  assert.deepEqual(page("abc"), ["abc ac", "", false]);
  assert.deepEqual(page("", "b"), ["b", "", false]);
});
