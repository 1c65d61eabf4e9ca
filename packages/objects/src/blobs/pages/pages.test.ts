import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes } from "@stamp/base";
import fc from "fast-check";
import { noPolicy, type OperationValue } from "../../operation.ts";
import type { Place } from "../../rows/row.ts";
import { TestTable } from "../../testing/table.ts";
import { placeOfAddress } from "../../tree/in-tree.ts";
import { noHeaders as headers } from "../state/head-row.ts";
import { chunkBytes, decodePages, differences, encodePages, overlay, type PageRun, pageBytes } from "./page-runs.ts";
import { zeroExtentId } from "./pages.ts";

const name = { account: "a", container: "c", containerIncarnation: 1, blob: "disk" };
const conditions = {};
const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;
let nextExtent = 1;

function diskOf(bytes: number, sequenceNumber = 0): TestTable {
  const table = new TestTable();
  const body = { inline: emptyBytes, places: [] };
  const put = { name, conditions, headers, metadata: {}, body, blobType: "PageBlob" as const, pageBlobBytes: bytes, sequenceNumber };
  assert.equal(table.outcome("putBlob", put), "blob");
  return table;
}

const write = (startBytes: number, lengthBytes: number, more: Partial<OperationValue<"putPages">> = {}) => ({
  name,
  conditions,
  sequence: {},
  startBytes,
  body: { inline: emptyBytes, places: [{ extentId: nextExtent++, offsetBytes: 0, lengthBytes }] },
  ...more,
});

/** By steps, as a front-end does it. */
function clear(table: TestTable, startBytes: number, endBytes: number): string {
  for (let at = startBytes; ; ) {
    const value = { name, conditions, sequence: {}, startBytes: at, endBytes };
    const result = table.run({ case: "clearPages", value });
    if (result.case === "error") return result.value.code;
    assert.ok(result.case === "cleared");
    if (result.value.nextBytes === 0) return "done";
    at = result.value.nextBytes;
  }
}

const plain = { headers: undefined, action: undefined, sequenceNumber: 0 };

function resize(table: TestTable, contentLengthBytes: number): string {
  for (;;) {
    const result = table.run({ case: "setPageBlobProperties", value: { name, conditions, ...plain, contentLengthBytes } });
    if (result.case === "error") return result.value.code;
    assert.ok(result.case === "cleared");
    if (result.value.nextBytes === 0) return String(result.value.blob.contentLengthBytes);
  }
}

function ranges(table: TestTable, more: Partial<OperationValue<"getPageRanges">> = {}): [number, number][] {
  const found: [number, number][] = [];
  for (let startBytes = 0; ; ) {
    const result = table.run({ case: "getPageRanges", value: { name, conditions, startBytes, rangesMax: 1_000, ...more } });
    assert.ok(result.case === "pageRanges", JSON.stringify(result));
    found.push(...result.value.ranges.map((range): [number, number] => [range.startBytes, range.endBytes]));
    if (result.value.nextBytes === 0) return found;
    startBytes = result.value.nextBytes;
  }
}

function places(table: TestTable, startBytes?: number, endBytes?: number): readonly Place[] {
  const found: Place[] = [];
  for (let at = startBytes; ; ) {
    const result = table.run({ case: "getBlob", value: { name, conditions, withoutContent: false, startBytes: at, endBytes } });
    assert.ok(result.case === "content", JSON.stringify(result));
    const { value } = result;
    found.push(...value.places);
    at = value.startBytes + value.lengthBytes;
    if (at >= (endBytes ?? value.blob.contentLengthBytes)) return found;
  }
}

test("pages: a blob of 8 TiB is one small row; what was written into it is found in it", () => {
  const size = 8 * 1024 ** 4;
  const table = diskOf(size);
  assert.equal(table.rows.size, 1);
  assert.deepEqual(ranges(table), []);
  const far = size - pageBytes;
  assert.equal(table.outcome("putPages", write(far, pageBytes)), "blob");
  assert.equal(table.rows.size, 2);
  assert.deepEqual(ranges(table), [[far, size]]);
  assert.equal(places(table).at(-1)?.lengthBytes, pageBytes);
  assert.equal(
    places(table).reduce((sum, place) => sum + place.lengthBytes, 0),
    size,
  );
  assert.equal(table.outcome("putPages", write(size, pageBytes)), "InvalidPageRange");
  assert.ok(table.commitBytesMax < 1_000, `${table.commitBytesMax} bytes`);
});

test("pages: a write of 4 MiB touches 17 chunks at most and commits little; a chunk of single pages stays small", () => {
  const table = diskOf(64 * mebibyte);
  assert.equal(table.outcome("putPages", write(128 * kibibyte, 4 * mebibyte)), "blob");
  assert.equal(table.rows.size, 1 + 17);
  assert.ok(table.commitBytesMax < 4 * kibibyte, `${table.commitBytesMax} bytes`);
  for (let page = 0; page < chunkBytes / pageBytes; page++) table.outcome("putPages", write(32 * mebibyte + page * pageBytes, pageBytes));
  assert.ok(table.rowBytesMax < 8 * kibibyte, `${table.rowBytesMax} bytes`);
});

test("pages: writes that are no pages, too large, or not of a page blob are refused", () => {
  const table = diskOf(mebibyte);
  for (const value of [write(1, pageBytes), write(0, pageBytes + 1), write(0, 4 * mebibyte + pageBytes)]) {
    assert.equal(table.decide({ case: "putPages", value }).refusal?.reason, "badRequest");
  }
  const inline = write(0, pageBytes, { body: { inline: new Uint8Array(pageBytes), places: [] } });
  assert.equal(table.decide({ case: "putPages", value: inline }).refusal?.reason, "badRequest");
  assert.equal(table.outcome("putPages", write(0, pageBytes, { conditions: { ifMatch: '"0x800000000000099"' } })), "ConditionNotMet 412");
  assert.equal(table.outcome("putPages", write(0, pageBytes, { name: { ...name, blob: "none" } })), "BlobNotFound");
  const other = { ...name, blob: "block" };
  const body = { inline: new Uint8Array(1), places: [] };
  table.outcome("putBlob", { name: other, conditions, headers, metadata: {}, body });
  assert.equal(table.outcome("putPages", write(0, pageBytes, { name: other })), "InvalidBlobType");
  assert.equal(table.outcome("getPageRanges", { name: other, conditions, startBytes: 0, rangesMax: 1 }), "InvalidBlobType");
  assert.equal(table.outcome("setPageBlobProperties", { name: other, conditions, ...plain }), "InvalidBlobType");
  const block = { name, conditions, blockId: new Uint8Array(1), body: { inline: emptyBytes, places: [] } };
  assert.equal(table.outcome("putBlock", block), "InvalidBlobType");
  table.goneExtents.add(nextExtent);
  assert.equal(table.decide({ case: "putPages", value: write(0, pageBytes) }).refusal?.reason, "badPlace");
});

test("pages: clearing and shrinking go by steps of small commits, and nothing comes back when the blob grows again", () => {
  const table = diskOf(256 * mebibyte);
  table.scanRowsMax = 300;
  for (let chunk = 0; chunk < 1_024; chunk++) table.outcome("putPages", write(chunk * chunkBytes, pageBytes));
  const before = table.sequence;
  assert.equal(clear(table, 0, 256 * mebibyte), "done");
  assert.equal(table.sequence - before, 2);
  assert.equal(table.rows.size, 1);
  for (let chunk = 0; chunk < 1_024; chunk++) table.outcome("putPages", write(chunk * chunkBytes, 2 * pageBytes));
  assert.equal(resize(table, pageBytes), String(pageBytes));
  assert.equal(resize(table, 256 * mebibyte), String(256 * mebibyte));
  assert.deepEqual(ranges(table), [[0, pageBytes]]);
  assert.equal(table.rows.size, 2);
});

const sequenceRows: readonly [OperationValue<"putPages">["sequence"], boolean][] = [
  [{ lessOrEqual: 4 }, false],
  [{ lessOrEqual: 5 }, true],
  [{ less: 5 }, false],
  [{ less: 6 }, true],
  [{ equal: 5 }, true],
  [{ equal: 6 }, false],
  [{ lessOrEqual: 9, equal: 6 }, false],
];
for (const [sequence, met] of sequenceRows) {
  test(`pages: sequence number 5 under ${JSON.stringify(sequence)} is ${met ? "met" : "not met"}`, () => {
    const table = diskOf(mebibyte, 5);
    const expected = met ? "blob" : "SequenceNumberConditionNotMet";
    assert.equal(table.outcome("putPages", write(0, pageBytes, { sequence })), expected);
    const value = { name, conditions, sequence, startBytes: 0, endBytes: pageBytes };
    assert.equal(table.outcome("clearPages", value), met ? "cleared" : "SequenceNumberConditionNotMet");
  });
}

test("pages: the sequence number is updated, raised and incremented, and never overflows", () => {
  const table = diskOf(mebibyte, 5);
  const change = (action: "max" | "update" | "increment", sequenceNumber: number) => {
    const result = table.run({ case: "setPageBlobProperties", value: { name, conditions, action, sequenceNumber } });
    return result.case === "cleared" ? result.value.blob.sequenceNumber : result.case === "error" ? result.value.code : "";
  };
  assert.equal(change("max", 3), 5);
  assert.equal(change("max", 9), 9);
  assert.equal(change("update", 2), 2);
  assert.equal(change("increment", 0), 3);
  assert.equal(change("update", Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  assert.equal(change("increment", 0), "SequenceNumberIncrementTooLarge");
});

test("pages: ranges come in pages of their own, and only of what is asked", () => {
  const table = diskOf(4 * mebibyte);
  for (let at = 0; at < 40; at += 2) table.outcome("putPages", write(at * 64 * kibibyte, pageBytes));
  const all = ranges(table);
  assert.equal(all.length, 20);
  assert.deepEqual(ranges(table, { rangesMax: 3 }), all);
  const part = table.run({ case: "getPageRanges", value: { name, conditions, startBytes: 512, endBytes: mebibyte, rangesMax: 100 } });
  assert.ok(part.case === "pageRanges");
  assert.equal(part.value.ranges.length, 7);
  assert.equal(table.outcome("getPageRanges", { name, conditions, startBytes: 4 * mebibyte, rangesMax: 1 }), "InvalidRange");
});

/** A small blob of pages, each with a number: what was written last, 0 for zeros. */
const pagesInModel = 1_100;
const command = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("write" as const), at: fc.nat(pagesInModel - 1), pages: fc.integer({ min: 1, max: 700 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("clear" as const), at: fc.nat(pagesInModel - 1), pages: fc.integer({ min: 1, max: 1_000 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("resize" as const), at: fc.integer({ min: 0, max: pagesInModel }), pages: fc.constant(0) }),
  },
);

/** The write that each page shows: extents are the numbers of writes, and a write's page n is at offset n. */
function shown(found: readonly Place[]): string[] {
  const pages: string[] = [];
  for (const place of found) {
    for (let at = 0; at < place.lengthBytes; at += pageBytes) {
      pages.push(place.extentId === zeroExtentId ? "0" : `${place.extentId}+${(place.offsetBytes + at) / pageBytes}`);
    }
  }
  return pages;
}

test("pages: any sequence of writes, clears and resizes reads as an array of bytes would", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 20 }), fc.nat(pagesInModel - 1), (commands, from) => {
      const table = diskOf(pagesInModel * pageBytes);
      let model: string[] = Array.from({ length: pagesInModel }, () => "0");
      for (const step of commands) {
        if (step.do === "resize") {
          assert.equal(resize(table, step.at * pageBytes), String(step.at * pageBytes));
          model = Array.from({ length: step.at }, (_, page) => model[page] ?? "0");
          continue;
        }
        const end = step.at + step.pages;
        if (step.do === "write") {
          const value = write(step.at * pageBytes, step.pages * pageBytes);
          assert.equal(table.outcome("putPages", value), end <= model.length ? "blob" : "InvalidPageRange");
          const extent = value.body.places[0]?.extentId;
          if (end <= model.length) for (let page = step.at; page < end; page++) model[page] = `${extent}+${page - step.at}`;
        } else {
          assert.equal(clear(table, step.at * pageBytes, end * pageBytes), end <= model.length ? "done" : "InvalidPageRange");
          if (end <= model.length) model.fill("0", step.at, end);
        }
      }
      if (model.length === 0) return;
      assert.deepEqual(shown(places(table)), model);
      if (from < model.length) assert.deepEqual(shown(places(table, from * pageBytes)), model.slice(from));
      const held = new Array<boolean>(model.length).fill(false);
      for (const [start, end] of ranges(table)) held.fill(true, start / pageBytes, end / pageBytes);
      assert.deepEqual(
        held,
        model.map((page) => page !== "0"),
      );
    }),
    { numRuns: 150 },
  );
});

const run = (page: number, pages: number, extentId: number): PageRun => ({
  startBytes: page * pageBytes,
  lengthBytes: pages * pageBytes,
  places: [{ extentId, offsetBytes: page * pageBytes, lengthBytes: pages * pageBytes }],
});

test("page rows: what is encoded is decoded, and a truncated or odd row is refused", () => {
  const runs = [run(3, 2, 7), run(9, 1, 8), run(511, 1, 7)];
  const bytes = encodePages(runs);
  const back = decodePages(bytes);
  assert.ok(back.ok);
  assert.deepEqual(back.value, runs);
  for (let length = 0; length < bytes.length; length++) assert.ok(!decodePages(bytes.subarray(0, length)).ok, `${length} bytes`);
  assert.ok(!decodePages(encodePages([run(511, 2, 1)])).ok, "beyond the chunk");
  assert.ok(!decodePages(encodePages([{ ...run(0, 2, 1), places: [] }])).ok, "without its places");
});

test("page runs: differences are pages written or cleared since, each side named", () => {
  const before = [run(0, 4, 1), run(10, 2, 1)];
  const written = overlay(before, 2 * pageBytes, 6 * pageBytes, [{ extentId: 2, offsetBytes: 0, lengthBytes: 4 * pageBytes }]);
  const after = overlay(written, 10 * pageBytes, 11 * pageBytes, undefined);
  assert.deepEqual(differences(before, after), [
    { startBytes: 2 * pageBytes, endBytes: 6 * pageBytes, cleared: false },
    { startBytes: 10 * pageBytes, endBytes: 11 * pageBytes, cleared: true },
  ]);
  assert.deepEqual(differences(before, before), []);
});

/** A file of a tree. */
function fileOf(bytes: number): TestTable {
  const table = diskOf(0);
  table.policy = { ...noPolicy, hierarchical: true };
  const step = { kind: "make", at: { kind: "file", id: name.blob } } as const;
  const at = placeOfAddress(step.at);
  const tree = { account: name.account, container: name.container, containerIncarnation: name.containerIncarnation };
  table.run({ case: "tree", value: { ...tree, action: "make", at, after: "", step } });
  assert.equal(table.outcome("setPageBlobProperties", { name, conditions, contentLengthBytes: bytes, sequenceNumber: 0 }), "cleared");
  return table;
}
const rangesOf = (table: TestTable): string => {
  const answer = table.run({ case: "getPageRanges", value: { name, conditions, startBytes: 0, rangesMax: 10 } });
  return answer.case === "pageRanges" ? answer.value.ranges.map(({ startBytes, endBytes }) => `${startBytes}-${endBytes}`).join(" ") : "";
};

test("pages: a file of a tree is written at any byte, and sets entries of its metadata in the same commit", () => {
  const table = fileOf(3 * chunkBytes + 7);
  assert.equal(table.outcome("putPages", write(3, 5, { setMetadata: { ":written": "now" } })), "blob");
  assert.equal(table.outcome("putPages", write(chunkBytes - 1, 2)), "blob");
  assert.equal(table.outcome("putPages", write(3 * chunkBytes + 6, 1)), "blob");
  assert.equal(table.outcome("putPages", write(3 * chunkBytes + 6, 2)), "InvalidPageRange");
  assert.equal(rangesOf(table), `3-8 ${chunkBytes - 1}-${chunkBytes + 1} ${3 * chunkBytes + 6}-${3 * chunkBytes + 7}`);
  const blob = table.run({ case: "getBlob", value: { name, conditions, withoutContent: true } });
  assert.deepEqual(blob.case === "blob" && { ...blob.value.metadata }, { ":written": "now" });
  table.run({ case: "setBlobMetadata", value: { name, conditions, metadata: { a: "b" } } });
  const named = table.run({ case: "getBlob", value: { name, conditions, withoutContent: true } });
  assert.deepEqual(named.case === "blob" && { ...named.value.metadata }, { a: "b", ":written": "now" });
});

test("pages: a chunk of a file has a bounded number of places", () => {
  const table = fileOf(chunkBytes);
  let refused = 0;
  for (let at = 0; at < 1_100; at++) if (table.outcome("putPages", write(at * 2, 1)) === "BlockCountExceedsLimit") refused++;
  assert.equal(refused, 76);
  assert.equal(table.outcome("putPages", write(0, chunkBytes)), "blob", "one piece takes the place of all");
});

test("pages: a chunk of a file that is written byte after byte without gaps has a bounded number of places, too", () => {
  const table = fileOf(chunkBytes);
  let refused = 0;
  for (let at = 0; at < 1_100; at++) if (table.outcome("putPages", write(at, 1)) === "BlockCountExceedsLimit") refused++;
  assert.equal(refused, 76);
  const many = Array.from({ length: 2_000 }, (_, at) => ({ extentId: 9, offsetBytes: at * 2, lengthBytes: 1 }));
  assert.equal(table.outcome("putPages", write(0, 2_000, { body: { inline: emptyBytes, places: many } })), "blob", "they are its own");
});

test("pages: a chunk that is written anew under its places keeps what others wrote into it meanwhile, and minds no write elsewhere", () => {
  const table = fileOf(2 * chunkBytes);
  for (let at = 0; at < 20; at += 2) table.outcome("putPages", write(at, 1));
  const replaces = places(table, 0, chunkBytes).filter(({ extentId }) => extentId !== zeroExtentId);
  table.outcome("putPages", write(chunkBytes, 1));
  const other = write(7, 1);
  table.outcome("putPages", other);
  const joins = (of: readonly Place[]): string => table.outcome("putPages", write(0, chunkBytes, { replaces: of }));
  assert.equal(joins(replaces), "ConditionNotMet");
  assert.deepEqual(places(table, 7, 8), other.body.places);
  const now = places(table, 0, chunkBytes).filter(({ extentId }) => extentId !== zeroExtentId);
  table.outcome("putPages", write(chunkBytes + 1, 1));
  assert.equal(joins(now), "blob");
  assert.equal(places(table, 0, chunkBytes).length, 1);
});

test("pages: rows of bytes are read as they were written, whatever runs they have", () => {
  const run = fc.record({ gap: fc.integer({ min: 1, max: 900 }), length: fc.integer({ min: 1, max: 900 }) });
  fc.assert(
    fc.property(fc.array(run, { maxLength: 20 }), (parts) => {
      let at = 0;
      const runs = parts.map(({ gap, length }): PageRun => {
        const startBytes = at + gap;
        at = startBytes + length;
        return { startBytes, lengthBytes: length, places: [{ extentId: 1, offsetBytes: startBytes, lengthBytes: length }] };
      });
      assert.deepEqual(decodePages(encodePages(runs)), { ok: true, value: runs });
    }),
  );
});
