/** Facts that `stamp bench geo` takes from `/metrics`, and its table. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Measurement } from "../measure.ts";
import { withMeasured } from "../peers/page.ts";
import { type LagSample, metric, sampleOf, summaryOf } from "./lag.ts";
import { geoMark, lineOf, markdownOf } from "./table.ts";

const metrics = (unsynced: number): string =>
  [
    "# TYPE stamp_partition_server_geo_lag_seconds gauge",
    "stamp_partition_server_geo_lag_seconds 1.5",
    `stamp_partition_server_geo_unsynced_ranges ${unsynced}`,
    "stamp_partition_server_geo_pending_commits 3",
    "stamp_partition_server_geo_pending_commits_of_others 100",
    "stamp_partition_server_geo_pending_bytes 4096",
    'stamp_partition_server_geo_ranges{state="seeding"} 0',
    'stamp_partition_server_geo_ranges{state="shipping"} 2',
    "stamp_partition_server_geo_failed_calls_total 7",
  ].join("\n");

const sample = (atMs: number, pendingBytes: number, more: Partial<LagSample> = {}): LagSample => ({
  ...{ atMs, pendingBytes, lagMs: 100, pendingCommits: 1, isSeeding: false, failedCalls: 0, toldLagMs: undefined },
  ...more,
});

test("bench geo: lag is not known while a range has no Last Sync Time, and a metric that is missing is an error and not 0", () => {
  assert.deepEqual(sampleOf(metrics(0), 5, 2_000), {
    ...{ atMs: 5, lagMs: 1_500, pendingCommits: 3, pendingBytes: 4_096, isSeeding: false, failedCalls: 7, toldLagMs: 2_000 },
  });
  assert.equal(sampleOf(metrics(1), 5, undefined).lagMs, undefined);
  assert.equal(metric(`${metrics(0)}\n${metrics(0)}`, "stamp_partition_server_geo_pending_commits"), 6);
  assert.throws(() => metric(metrics(0), "stamp_partition_server_geo_pending"), /has no stamp_partition_server_geo_pending/);
});

test("bench geo: a backlog that grows within each turn is told as growth, also over several turns, and failed calls count by turn", () => {
  const growing = [1, 2, 3, 4, 5, 6, 7, 8].map((at) => sample(at, at * 1_000, { failedCalls: at }));
  const even = growing.map(({ atMs }) => sample(atMs, 4_000, { lagMs: undefined, toldLagMs: atMs }));
  const grown = summaryOf([growing, growing]);
  assert.deepEqual([grown.pendingBytesEarly, grown.pendingBytesLate, grown.failedCalls, grown.unknown], [4_000, 8_000, 14, 0]);
  const steady = summaryOf([even]);
  assert.deepEqual(
    [steady.pendingBytesEarly, steady.pendingBytesLate, steady.unknown, steady.toldMaxMs, steady.toldP50Ms],
    [4_000, 4_000, 8, 8, 5],
  );
});

const measured = (operations: number, cpu: Readonly<Record<string, number>>): Measurement => ({
  ...{ operations, seconds: 2, failed: 0, p50Ms: 1.25, p99Ms: 9, contentBytes: 1_024, cpuMs: 10, firstFailure: "" },
  serverCpuMs: new Map(Object.entries(cpu)),
});

test("bench geo: the table tells processor time of each stamp, and replaces its own part of the page only", () => {
  const row = {
    ...{ case: "put 1 KiB × 64", ratios: [0.5, 0.9, 0.6], drainMs: [100, 2_000] },
    alone: measured(200, { "north front-end-1": 100, "south front-end-1": 2 }),
    copied: measured(100, { "north front-end-1": 100, "north extent-node-1": 50, "south front-end-1": 70 }),
    lag: summaryOf([[sample(0, 0)]]),
  };
  const told = lineOf(row);
  for (const line of [
    /without a copy +100\/s/,
    /with a copy +50\/s/,
    /0\.60 \(0\.50 0\.90 0\.60\)/,
    /primary.* +0\.50, 1\.50/,
    /copy's stamp, ms.* +0\.01, 0\.70/,
  ])
    assert.match(told, line);
  const page = withMeasured(`# Title\n\n${geoMark}\n\nEARLIER\n\n<!-- end -->\n\nkept\n`, markdownOf([row]), geoMark);
  assert.ok(page.includes("| with a copy | 50/s |") && page.endsWith("<!-- end -->\n\nkept\n") && !page.includes("EARLIER"), page);
});
