import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import { firstRangeOf, type Range } from "./range.ts";
import { SettledLoads } from "./settled-loads.ts";

const restMs = 60_000;
const rangeOf = (rangeId: string, low: string, high: string, table: Range["table"] = "Blob"): Range => ({
  ...firstRangeOf(table),
  rangeId,
  low: utf8(low),
  high: utf8(high),
});
const figures = (rangeId: string, requestsPerSecond: number, ageMs = restMs) => ({
  ...{ rangeId, requestsPerSecond, throttledPerSecond: requestsPerSecond / 10, bytes: requestsPerSecond * 100, ageMs },
  ...{ pending: 0, latencyMs: 1, bytesInPerSecond: 0, bytesOutPerSecond: 0 },
});
const requests = (settled: SettledLoads): Record<string, number> =>
  Object.fromEntries([...settled.loads].map(([rangeId, { requestsPerSecond }]) => [rangeId, requestsPerSecond]));

test("settled loads: a range that another server serves now keeps its load until its own figures are old enough", () => {
  const settled = new SettledLoads();
  settled.follow([rangeOf("r1", "", "")]);
  settled.told(figures("r1", 300), restMs);
  settled.told(figures("r1", 2, 1_000), restMs);
  assert.deepEqual(requests(settled), { r1: 300 });
  settled.told(figures("r1", 250), restMs);
  assert.deepEqual(settled.loads.get("r1"), { requestsPerSecond: 250, throttledPerSecond: 25, bytes: 25_000 });
});

test("settled loads: children of a split divide the load of their parent, one of a merge has that of both; other tables have no part", () => {
  const settled = new SettledLoads();
  const other = rangeOf("t1", "", "", "Entity");
  settled.follow([rangeOf("r1", "", "m"), rangeOf("r2", "m", ""), other]);
  for (const [rangeId, load] of [
    ["r1", 300],
    ["r2", 40],
    ["t1", 7],
  ] as const)
    settled.told(figures(rangeId, load), restMs);
  settled.follow([rangeOf("r3", "", "c"), rangeOf("r4", "c", "f"), rangeOf("r5", "f", "m"), rangeOf("r2", "m", ""), other]);
  assert.deepEqual(requests(settled), { r3: 100, r4: 100, r5: 100, r2: 40, t1: 7 });
  settled.follow([rangeOf("r3", "", "c"), rangeOf("r4", "c", "f"), rangeOf("r6", "f", ""), other]);
  assert.deepEqual(requests(settled), { r3: 100, r4: 100, r6: 140, t1: 7 });
});

test("settled loads: a range that is gone is forgotten, and what was never known counts for nothing", () => {
  const settled = new SettledLoads();
  settled.follow([rangeOf("r1", "", "")]);
  settled.follow([rangeOf("r2", "", "m"), rangeOf("r3", "m", "")]);
  assert.deepEqual(requests(settled), {});
  settled.told(figures("r2", 5), restMs);
  settled.follow([rangeOf("r3", "m", "")]);
  assert.deepEqual(requests(settled), {});
});
