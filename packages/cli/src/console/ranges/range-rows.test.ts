import assert from "node:assert/strict";
import { test } from "node:test";
import { healthy, withFacts } from "../../health/testing/healthy.ts";
import { rangeRows } from "./range-rows.ts";

test("ranges of the console: a range has the load and size that its server tells, and none where that is silent", () => {
  const ranges = healthy.partitionLayer?.ranges ?? [];
  const [first] = ranges;
  assert.ok(first);
  const load = { readsPerSecond: 5, writesPerSecond: 1, throttledPerSecond: 2 };
  const held = { rangeId: first.rangeId, load, memoryTableBytes: 100, checkpointBytes: 20 };
  const [row] = rangeRows(ranges, withFacts(first.server, { ranges: [held] })(healthy));
  assert.deepEqual([row?.readsPerSecond, row?.writesPerSecond, row?.throttledPerSecond, row?.rowBytes], [5, 1, 2, 120]);
  const [silent] = rangeRows(ranges, { processes: [] });
  assert.deepEqual([silent?.readsPerSecond, silent?.writesPerSecond, silent?.rowBytes], [null, null, null]);
});

test("ranges of the console: a range that is loaded still has no size", () => {
  const ranges = healthy.partitionLayer?.ranges ?? [];
  const [first] = ranges;
  assert.ok(first);
  const [row] = rangeRows(ranges, withFacts(first.server, { ranges: [{ rangeId: first.rangeId, state: "loading" }] })(healthy));
  assert.deepEqual([row?.readsPerSecond, row?.rowBytes], [null, null]);
});
