import assert from "node:assert/strict";
import type { ELDHistogram } from "node:perf_hooks";
import { test } from "node:test";
import { counter, gauge, Histogram, histogram, insideFacts, type Metrics, release, summary } from "@stamp/base";
import { metricsText } from "./metrics.ts";

const page = (facts: Record<string, unknown>, metrics?: Metrics): string[] => {
  const role = { status: { ready: true, waitingFor: [], state: "serving", facts }, ...(metrics ? { metrics } : {}) };
  const lines = metricsText("test", "test-1", role).split("\n");
  return lines
    .slice(lines.findIndex((line) => line.startsWith("stamp_ready")) + 1, -1)
    .map((line) => line.replace('role="test",name="test-1",', ""));
};

test("metrics: milliseconds become seconds, a count and a sum become a summary, lines of one name lie together", () => {
  const door = {
    ...summary({ count: "ended", sum: "endedMs" }, "duration_seconds", "Took."),
    longestMs: gauge("longest_seconds", "Most."),
  };
  const metrics = { ...insideFacts("blob", door, { service: "blob" }), ...insideFacts("queue", door, { service: "queue" }) };
  assert.deepEqual(page({ blob: { ended: 2, endedMs: 300, longestMs: 250 }, queue: { ended: 1, endedMs: 1, longestMs: 1 } }, metrics), [
    "# HELP stamp_duration_seconds Took.",
    "# TYPE stamp_duration_seconds summary",
    'stamp_duration_seconds_count{service="blob"} 2',
    'stamp_duration_seconds_sum{service="blob"} 0.3',
    'stamp_duration_seconds_count{service="queue"} 1',
    'stamp_duration_seconds_sum{service="queue"} 0.001',
    "# HELP stamp_longest_seconds Most.",
    "# TYPE stamp_longest_seconds gauge",
    'stamp_longest_seconds{service="blob"} 0.25',
    'stamp_longest_seconds{service="queue"} 0.001',
  ]);
});

test("metrics: `*` is any name, or the range; lengths and booleans only where the table has them", () => {
  const metrics = {
    "by.*": counter("by_total", "By.", { what: "*" }),
    "ranges.length": gauge("ranges", "Ranges."),
    "ranges.*.load.reads": counter("range_reads_total", "Reads.", { range: "*" }),
    full: gauge("full", "1 when full."),
  };
  const ranges = [{ rangeId: "r1", load: { reads: 1 } }, { rangeId: "r2", load: { reads: 2 } }, { noRange: 3 }];
  assert.deepEqual(
    page({ by: { 'a"b\\\n': 4 }, ranges, full: true, other: false, words: ["x"] }, metrics).filter((line) => !line.startsWith("#")),
    [
      'stamp_by_total{what="a\\"b\\\\\\n"} 4',
      "stamp_ranges{} 3",
      'stamp_range_reads_total{range="r1"} 1',
      'stamp_range_reads_total{range="r2"} 2',
      "stamp_full{} 1",
    ].map((line) => line.replace("{}", '{role="test",name="test-1"}')),
  );
});

test("metrics: a histogram is told by its buckets, in seconds, with the labels of where it lies", () => {
  const took = new Histogram({ monotonicMs: () => 1_000 });
  for (const beganMs of [999.75, 997, 985, 0]) took.since(beganMs);
  const table = insideFacts("blob", { took: histogram("took_seconds", "Took.", ["class", "code"]) }, { service: "blob" });
  const lines = page({ blob: { took: { read: { "2xx": took } } } }, table);
  assert.deepEqual(lines.slice(0, 2), ["# HELP stamp_took_seconds Took.", "# TYPE stamp_took_seconds histogram"]);
  const told = lines.slice(2).map((line) => line.replace('service="blob",class="read",code="2xx"', ""));
  const counts = ["0.0001 0", "0.0002 0", "0.0005 1", "0.001 1", "0.002 1", "0.005 2", "0.01 2", "0.02 3", "0.05 3", "0.1 3", "0.2 3"];
  const buckets = [...counts, "0.5 3", "1 4", "2 4", "5 4", "10 4", "30 4", "+Inf 4"].map((text) => text.split(" "));
  assert.deepEqual(told, [
    ...buckets.map(([le, count]) => `stamp_took_seconds_bucket{,le="${le}"} ${count}`),
    "stamp_took_seconds_sum{} 1.01825",
    "stamp_took_seconds_count{} 4",
  ]);
});

test("metrics: a histogram that nobody declared, or not so deep, is told, untyped", () => {
  const took = new Histogram({ monotonicMs: () => 0 });
  const lines = page({ a: took, b: { c: took } }, { b: histogram("b_seconds", "B.") });
  assert.deepEqual(
    lines.filter((line) => line.startsWith("# TYPE")),
    ["# TYPE stamp_fact_a_count untyped", "# TYPE stamp_fact_b_c_count untyped"],
  );
});

test("metrics: how far the clock was set, and each certificate in use; the state and the release are labels", () => {
  const role = { status: { ready: true, waitingFor: [], state: "serving", facts: {} } };
  const lag = { percentile: () => 0, max: 0, reset: () => {} } as unknown as ELDHistogram;
  const certificates = [{ door: "blob", endsAtMs: 1_500, successorUnusable: true }];
  const text = metricsText("test", "test-1", role, { lag, wallSetMs: -2_500, certificates });
  const line = (start: string): string => text.split("\n").find((each) => each.startsWith(start)) ?? "";
  const labels = 'role="test",name="test-1"';
  assert.equal(line("stamp_wall_clock_set_seconds{"), `stamp_wall_clock_set_seconds{${labels}} -2.5`);
  assert.equal(line("stamp_certificate_end"), `stamp_certificate_end_time_seconds{${labels},door="blob"} 1.5`);
  assert.equal(line("stamp_certificate_unusable{"), `stamp_certificate_unusable{${labels},door="blob"} 1`);
  assert.equal(line("stamp_state{"), `stamp_state{${labels},state="serving"} 1`);
  assert.equal(line("stamp_build_info{"), `stamp_build_info{${labels},release="${release}"} 1`);
  assert.ok(Math.abs(Number(line("stamp_wall_clock_seconds{").split(" ")[1]) - Date.now() / 1_000) < 60);
});

test("metrics: a number that nobody declared is told, untyped", () => {
  assert.deepEqual(page({ ranges: [{ rangeId: "r1", memoryTableBytes: 5 }] }).slice(1), [
    "# TYPE stamp_fact_ranges_memory_table_bytes untyped",
    'stamp_fact_ranges_memory_table_bytes{range="r1"} 5',
  ]);
});
