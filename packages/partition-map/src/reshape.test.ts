import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes, toHex, unwrap } from "@stamp/base";
import { encodeKey } from "@stamp/objects";
import fc from "fast-check";
import { decodeMapRow, encodeMapRow, mapKey } from "./map-row.ts";
import { firstRangeOf, originsMax, overlap, type Range } from "./range.ts";
import { checkCover, RangeMap } from "./range-map.ts";
import { childRanges, mergeRecords, parentsOf, splitRecord, withoutReshape } from "./reshape.ts";

const served = (range: Range): Range => ({ ...range, server: "a", serverAddress: "a:1", leaseEpoch: 3, loaded: true, hasStreams: true });
const key = fc.uint8Array({ minLength: 1, maxLength: 3 });

test("reshape: after any splits and merges the ranges cover every key, ids and versions are new, and every record survives its row", () => {
  const change = fc.oneof(
    fc.record({ kind: fc.constant("split" as const), at: key }),
    fc.record({ kind: fc.constant("merge" as const), index: fc.nat(10) }),
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
      let ranges: readonly Range[] = [served(firstRangeOf("Blob"))];
      const ids = new Set(ranges.map(({ rangeId }) => rangeId));
      let epoch = 1;
      for (const one of changes) {
        const map = new RangeMap(1, ranges);
        let recorded: readonly Range[];
        if (one.kind === "split") {
          const record = splitRecord(map.find("Blob", one.at) as Range, one.at, [epoch + 1, epoch + 2]);
          if (!record.ok) continue;
          recorded = [record.value];
        } else {
          const left = map.ranges[one.index % map.ranges.length] as Range;
          const right = map.after(left);
          if (!right) continue;
          recorded = unwrap(mergeRecords(left, right, epoch + 1));
        }
        epoch += 2;
        for (const parent of recorded) {
          assert.deepEqual(unwrap(decodeMapRow(mapKey(parent), encodeMapRow(parent))), parent);
          assert.deepEqual(parentsOf(parent, recorded), recorded);
        }
        const children = childRanges(recorded, true);
        const gone = new Set(recorded.map(({ rangeId }) => rangeId));
        for (const child of children) {
          assert.ok(!ids.has(child.rangeId) && recorded.every((parent) => child.rangeVersion > parent.rangeVersion));
          assert.ok(recorded.some((parent) => overlap(parent, child)));
          ids.add(child.rangeId);
        }
        const rest = ranges.filter(({ rangeId }) => !gone.has(rangeId));
        assert.ok(rest.every((other) => children.every((child) => !overlap(other, child))));
        unwrap(checkCover([...rest, ...recorded.map(withoutReshape)]));
        ranges = [...rest, ...children];
        unwrap(checkCover(ranges));
      }
    }),
  );
});

test("reshape: a child names the ranges that it came from, and what its streams begin with of each; of merged ones no log", () => {
  const split = (range: Range, at: number, epochs: readonly [number, number]) =>
    childRanges([unwrap(splitRecord(range, Uint8Array.of(at), epochs))], true) as [Range, Range];
  const merge = (left: Range, right: Range, epoch: number) => childRanges(unwrap(mergeRecords(left, right, epoch)), true)[0] as Range;
  const [left, right] = split(served(firstRangeOf("Blob")), 5, [2, 3]);
  const [first] = split(left, 2, [4, 5]);
  const said = ({ origins = [] }: Range) => origins.map(({ left: what, rangeId }) => `${rangeId} ${what}`).join(", ");
  assert.equal(said(first), "blob-1 all, blob-e2 all");
  const merged = merge(left, right, 6);
  assert.equal(said(merged), "blob-1 state, blob-e2 state, blob-e3 data");
  const [again, neighbour] = split(merged, 3, [7, 8]);
  assert.equal(said(again), "blob-1 state, blob-e2 state, blob-e3 data, blob-e6 all");
  assert.equal(said(merge(again, neighbour, 9)), "blob-1 state, blob-e2 state, blob-e3 data, blob-e6 state, blob-e7 state, blob-e8 data");
  let deep = neighbour;
  for (let epoch = 10; epoch < 100; epoch += 2) [, deep] = split(deep, epoch, [epoch, epoch + 1]);
  assert.equal(deep.origins?.length, originsMax);
  assert.equal(deep.origins?.at(-1)?.rangeId, "blob-e97");
  assert.deepEqual(unwrap(decodeMapRow(mapKey(deep), encodeMapRow(deep))), deep);
});

test("reshape: a split outside the range or at its first key, and a merge of what is no pair or on two servers, are refused", () => {
  const whole = served(firstRangeOf("Blob"));
  const [left, right] = childRanges([unwrap(splitRecord(whole, Uint8Array.of(5), [2, 3]))], true) as [Range, Range];
  assert.equal(compareBytes(left.high, right.low), 0);
  for (const at of [Uint8Array.of(), Uint8Array.of(5), Uint8Array.of(6)]) assert.ok(!splitRecord(left, at, [4, 5]).ok);
  assert.ok(splitRecord(right, Uint8Array.of(6), [4, 5]).ok);
  assert.ok(!mergeRecords(right, left, 4).ok);
  assert.ok(!mergeRecords(left, { ...right, server: "b" }, 4).ok);
  assert.ok(!mergeRecords(left, { ...right, leaseEpoch: 4 }, 4).ok);
  assert.ok(mergeRecords(left, right, 4).ok);
});

test("a split is never inside a PartitionName", () => {
  const table = served(firstRangeOf("Entity"));
  const partition = encodeKey([["account", "table", 1], ["partition"]]);
  assert.ok(splitRecord(table, partition, [2, 3]).ok, "at its first key");
  for (const inside of [encodeKey([["account", "table", 1], ["partition"], ["row"]]), Uint8Array.of(...partition, 7)]) {
    const split = splitRecord(table, inside, [2, 3]);
    assert.ok(!split.ok && split.failure.message.includes(toHex(partition)), "the first key is named");
  }
});
