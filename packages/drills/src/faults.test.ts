import assert from "node:assert/strict";
import { test } from "node:test";
import { containerKey, encodeKey } from "@stamp/objects";
import type { RangePartition } from "@stamp/wire";
import { rangesOfContainer } from "./faults.ts";

const none = new Uint8Array(0);
const blobKey = (container: string, blob: string): Uint8Array => encodeKey([["acc"], [1, container, 77, blob]]);
const range = (rangeId: string, lowKey: Uint8Array, highKey: Uint8Array): RangePartition =>
  ({ rangeId, table: "Blob", lowKey, highKey }) as RangePartition;
const idsOf = (ranges: readonly RangePartition[]): string[] =>
  rangesOfContainer(ranges, { account: "acc", name: "drill-m" }).map(({ rangeId }) => rangeId);

test("drill, range that clients write, is not the first of the table but the one with the container's blobs", () => {
  assert.deepEqual(idsOf([range("all", none, none)]), ["all"]);
  // The container's own row lies elsewhere: before all blobs of the account.
  const low = containerKey("acc", "drill-z");
  assert.deepEqual(idsOf([range("rows", none, low), range("blobs", low, none)]), ["blobs"]);
  const [before, behind] = [blobKey("drill-a", "x"), blobKey("drill-z", "x")];
  assert.deepEqual(idsOf([range("a", none, before), range("m", before, behind), range("z", behind, none)]), ["m"]);
});

test("drill, a container that is split, lies in several ranges, and not in those beside them", () => {
  const cuts = [blobKey("drill-a", "x"), blobKey("drill-m", "counter-1"), blobKey("drill-m", "small-2"), blobKey("drill-z", "x")];
  const ranges = [none, ...cuts].map((lowKey, at) => range(String(at), lowKey, cuts[at] ?? none));
  assert.deepEqual(idsOf(ranges), ["1", "2", "3"]);
});
