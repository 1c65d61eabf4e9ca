import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { compareBytes, emptyBytes, unwrap } from "@stamp/base";
import fc from "fast-check";
import { decodeMapRow, encodeMapRow, mapKey } from "./map-row.ts";
import { firstRangeOf, holdsKey, type Range } from "./range.ts";
import { checkCover, RangeMap } from "./range-map.ts";
import { childOf } from "./reshape.ts";

const splitAt = (table: Range["table"], keys: readonly Uint8Array[]): Range[] => {
  const bounds = [emptyBytes, ...keys.toSorted(compareBytes), emptyBytes];
  return bounds
    .slice(0, -1)
    .map((low, i) => ({ ...firstRangeOf(table), rangeId: `${table}-${i}`, low, high: bounds[i + 1] as Uint8Array }));
};

test("range map: every key of every table is in exactly one range, and it is the one found", () => {
  const key = fc.uint8Array({ minLength: 1, maxLength: 3 });
  const keys = fc.uniqueArray(key, { maxLength: 6, comparator: (a, b) => compareBytes(a, b) === 0 });
  fc.assert(
    fc.property(keys, keys, fc.uint8Array({ maxLength: 4 }), (blob, entity, wanted) => {
      const ranges = [...splitAt("Entity", entity), ...splitAt("Blob", blob)];
      assert.ok(checkCover(ranges).ok);
      const map = new RangeMap(1, ranges);
      for (const table of ["Blob", "Entity"]) {
        const holding = ranges.filter((range) => range.table === table && holdsKey(range, wanted));
        assert.equal(holding.length, 1);
        assert.equal(map.find(table, wanted)?.rangeId, holding[0]?.rangeId);
      }
      assert.equal(map.find("Message", wanted), undefined);
      let walked = map.find("Blob", emptyBytes);
      let count = 0;
      for (; walked; walked = map.after(walked)) count++;
      assert.equal(count, blob.length + 1);
    }),
  );
});

test("range map: a gap, an overlap, a missing end and a shared id are refused", () => {
  const [a, b, c] = splitAt("Blob", [Uint8Array.of(5), Uint8Array.of(9)]) as [Range, Range, Range];
  assert.ok(checkCover([a, b, c]).ok && checkCover([]).ok);
  for (const broken of [
    [a, c],
    [b, c],
    [a, b],
    [a, b, b, c],
    [a, { ...b, high: Uint8Array.of(8) }, c],
    [a, { ...b, low: Uint8Array.of(4) }, c],
  ]) {
    const outcome = checkCover(broken);
    assert.ok(!outcome.ok && outcome.failure.reason === "damaged");
  }
});

const golden = new URL("../../../tests/golden/partition-map/v1/range-in-a-split.bin", import.meta.url);
/** Written before there were splits. */
const older = new URL("../../../tests/golden/partition-map/v1/blob-range.bin", import.meta.url);
const goldenRange: Range = {
  ...firstRangeOf("Blob"),
  low: Uint8Array.of(5, 0, 255),
  high: Uint8Array.of(6),
  rangeVersion: 3,
  ownerEpoch: 42,
  server: "partition-server-1",
  serverAddress: "127.0.0.1:11200",
  leaseEpoch: 7,
  loaded: true,
  hasStreams: true,
  reshape: { kind: "split", at: Uint8Array.of(5, 7), children: [childOf("Blob", 43), childOf("Blob", 44)] },
};

/** Place of the version in a row of the map, in bytes. */
const versionAt = 0;

test("map rows: the golden row is written and read as it was; damage is a typed failure", () => {
  const key = mapKey(goldenRange);
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(golden, encodeMapRow(goldenRange));
  const bytes = new Uint8Array(readFileSync(golden));
  assert.deepEqual(encodeMapRow(goldenRange), bytes);
  assert.deepEqual(unwrap(decodeMapRow(key, bytes)), goldenRange);
  const { reshape: _, ...range } = goldenRange;
  assert.deepEqual(unwrap(decodeMapRow(key, new Uint8Array(readFileSync(older)))), { ...range, hasStreams: false });
  for (let length = 0; length < bytes.length; length++) {
    const cut = decodeMapRow(key, bytes.subarray(0, length));
    assert.ok(!cut.ok && cut.failure.reason === "damaged", `cut at ${length}`);
  }
  for (let at = 0; at < bytes.length; at++) {
    const flipped = Uint8Array.from(bytes);
    flipped[at] = (flipped[at] as number) ^ 0x80;
    const decoded = decodeMapRow(key, flipped);
    if (decoded.ok) assert.notDeepEqual(decoded.value, goldenRange);
    // The version byte, flipped, is that of a later release: refused all the same. The log's checksum stands before all of this.
    else assert.equal(decoded.failure.reason, at === versionAt ? "newerFormat" : "damaged", `flipped at ${at}`);
  }
});

test("map: the ranges with keys between two are those that a look at all of them finds", () => {
  const lows = [[], [2], [2, 5], [3], [7, 1]].map((bytes) => new Uint8Array(bytes));
  const ranges = lows.map((low, i) => ({ ...firstRangeOf("Entity"), rangeId: `r${i}`, low, high: lows[i + 1] ?? new Uint8Array() }));
  const map = new RangeMap(1, ranges);
  const keys = [[], [1], [2], [2, 4], [2, 5], [2, 6], [3], [6], [7], [7, 1], [9]].map((bytes) => new Uint8Array(bytes));
  for (const low of keys) {
    for (const high of keys.filter((key) => compareBytes(low, key) < 0)) {
      const all = ranges.filter(
        (range) => compareBytes(range.low, high) < 0 && (range.high.length === 0 || compareBytes(low, range.high) < 0),
      );
      assert.deepEqual(
        map.within("Entity", low, high).map(({ rangeId }) => rangeId),
        all.map(({ rangeId }) => rangeId),
      );
    }
  }
});
