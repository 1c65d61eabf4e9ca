/** The page `/metrics` of every role of a stamp: every number is declared, by the conventions of Prometheus, and what only grows does. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { startStamp, threeOnDisk } from "./index.ts";

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly metrics: readonly {
    readonly value?: string;
    readonly sum?: string;
    readonly count?: string;
    readonly labels?: Readonly<Record<string, string>>;
  }[];
}

// It has no types.
const parseFormat = createRequire(import.meta.url)("parse-prometheus-text-format") as (page: string) => readonly Family[];

/** It takes all label sets of a histogram for one: it is given three families of plain numbers instead, which `histogramPart` knows. */
const parse = (page: string): readonly Family[] =>
  parseFormat(
    page.replace(/# HELP (\S+) (.*)\n# TYPE \1 histogram\n((?:\1_.*\n)*)/g, (_, name: string, help: string, lines: string) => {
      const partOf = (part: string): string => lines.match(new RegExp(`^${name}_${part}\\{.*\n`, "gm"))?.join("") ?? "";
      return ["bucket", "sum", "count"]
        .map((part) => `# HELP ${name}_${part} ${help}\n# TYPE ${name}_${part} untyped\n${partOf(part)}`)
        .join("");
    }),
  );
const histogramPart = /^stamp_(?!fact_)\w+_duration_seconds(?=_(bucket|sum|count)$)/;

/** Metrics that the guides name. */
const named = [
  "range_requests_total",
  "range_throttled_requests_total",
  "range_pending_requests",
  "range_request_duration_seconds",
  "range_received_bytes_total",
  "range_sent_bytes_total",
  "range_memory_table_bytes",
  "range_checkpoint_bytes",
  "range_row_cache_hits_total",
  "range_row_cache_misses_total",
  "range_bloom_absent_total",
  "range_bloom_false_positives_total",
  "range_flushed_bytes_total",
  "range_merged_bytes_total",
  "range_accepted_row_bytes_total",
  "partition_server_requests_total",
  "partition_server_throttled_requests_total",
  "partition_server_pending_requests",
  "partition_server_request_duration_seconds",
  "partition_server_received_bytes_total",
  "partition_server_sent_bytes_total",
  "partition_server_row_bytes",
  "partition_server_load_processors",
  "partition_manager_rebalance_steps_total",
  "partition_manager_rebalance_causes_total",
  "front_end_request_duration_seconds",
  "front_end_operations_total",
  "front_end_partition_call_duration_seconds",
  "partition_server_transaction_phase_duration_seconds",
  "partition_server_commit_append_duration_seconds",
  "partition_server_checkpoint_duration_seconds",
  "partition_server_block_read_duration_seconds",
  "extent_node_append_duration_seconds",
  "extent_node_replicate_duration_seconds",
  "extent_node_journal_sync_duration_seconds",
  "extent_node_read_duration_seconds",
  "stream_manager_seal_duration_seconds",
  "stream_manager_allocate_duration_seconds",
  "lock_service_write_duration_seconds",
  "stream_manager_extents",
  "extent_node_disk_wait_seconds",
  "lock_service_transactions_total",
];

const alertRules = readFileSync(join(import.meta.dirname, "../../../docs/guides/stamp-alerts.yml"), "utf8").replaceAll("stamp health", "");

test("metrics: every role's page is well formed, nothing is undeclared, counters go up and never down", async () => {
  const stamp = await startStamp(threeOnDisk);
  try {
    const container = BlobServiceClient.fromConnectionString(stamp.connectionString).getContainerClient("counted");
    await container.create();
    const before = samplesOf(stamp.metrics());
    for (let i = 0; i < 5; i++) await container.getBlockBlobClient(`b${i}`).upload("hello", 5);
    await container.getBlockBlobClient("b1").downloadToBuffer();
    const pages = stamp.metrics();
    // Everybody who reaches the port can read them.
    for (const page of Object.values(pages)) assert.doesNotMatch(page, /devstoreaccount1|counted/);
    for (const page of Object.values(pages)) wellFormed(page);
    const families = Object.values(pages).flatMap((page) => parse(page));
    const names = new Set(families.map(({ name }) => histogramPart.exec(name)?.[0] ?? name));
    assert.deepEqual(
      named.filter((name) => !names.has(`stamp_${name}`)),
      [],
    );
    // Embedded nodes do not scrub, and roles in one process tell no clock, no certificate and no secret;
    // packages/cli/src/health/health.slow.ts compares all with the pages of a real cluster. Only a replicated store has a log.
    const ofProcesses = /^stamp_(lock_service_log|extent_node_scrub|certificate|cluster_certificate|cluster_secret|wall_clock)_/;
    const inRules = (alertRules.match(/\bstamp_\w+/g) ?? []).filter((name) => !ofProcesses.test(name));
    assert.ok(inRules.length > 20);
    assert.deepEqual(
      inRules.filter((name) => !["stamp_ready", ...names].includes(name.replace(/(?<=_duration_seconds)_(bucket|sum|count)$/, ""))),
      [],
      "docs/guides/stamp-alerts.yml names metrics that no role has",
    );
    const after = samplesOf(pages);
    for (const [sample, value] of before)
      assert.ok((after.get(sample) ?? -1) >= value, `${sample} went down: ${value}, ${after.get(sample)}`);
    const grew = (pattern: RegExp): number =>
      [...after].filter(([sample]) => pattern.test(sample)).reduce((sum, [sample, value]) => sum + value - (before.get(sample) ?? 0), 0);
    assert.ok(grew(/stamp_front_end_operations_total.*"PutBlob"/) >= 5);
    assert.ok(grew(/stamp_front_end_request_duration_seconds_count.*"blob".*"write".*"2xx"/) >= 5);
    assert.ok(grew(/stamp_front_end_request_duration_seconds_count.*"blob".*"read".*"2xx"/) >= 1);
    assert.ok(grew(/stamp_front_end_partition_call_duration_seconds_count/) >= 6);
    assert.ok(grew(/stamp_partition_server_request_duration_seconds_count.*"write"/) >= 5);
    assert.ok(grew(/stamp_partition_server_transaction_phase_duration_seconds_count.*"commit"/) >= 5);
    assert.ok(grew(/stamp_partition_server_commit_append_duration_seconds_count/) >= 1);
    assert.ok([...after].some(([sample, value]) => /stamp_lock_service_write_duration_seconds_count/.test(sample) && value > 0));
    assert.ok(grew(/stamp_extent_node_append_duration_seconds_count.*"acknowledged"/) >= 1);
    assert.ok(grew(/stamp_extent_node_replicate_duration_seconds_count/) >= 2);
    assert.ok(grew(/stamp_extent_node_journal_sync_duration_seconds_count/) >= 1);
    assert.ok(grew(/stamp_range_requests_total.*"write".*"blob-1"/) >= 5);
    assert.ok(grew(/stamp_partition_server_requests_total.*"write"/) >= 5);
    assert.ok(grew(/stamp_partition_server_request_duration_seconds_sum/) > 0);
  } finally {
    await stamp.stop();
  }
});

/** The rules of https://prometheus.io/docs/practices/naming/ and of the exposition format. */
function wellFormed(page: string): void {
  assert.ok(page.endsWith("\n"));
  const names = new Set<string>();
  const families = parse(page);
  for (const { name, help, type, metrics } of families) {
    assert.match(name, /^(stamp|process|nodejs)_[a-z][a-z0-9_]*$/);
    assert.ok(!names.has(name), `${name} in two places`);
    names.add(name);
    const [declared, part] = histogramPart.exec(name) ?? [name];
    const counts = families.find((one) => one.name === `${declared}_count`)?.metrics ?? [];
    if (part === "bucket") wellFormedBuckets(metrics, counts);
    assert.ok(help.length > 5, `${name} has no help`);
    if (part === undefined) assert.match(type, /^(COUNTER|GAUGE|SUMMARY)$/, `${name} is ${type}: it has no line in its role's table`);
    assert.equal(type === "COUNTER", name.endsWith("_total"), name);
    assert.doesNotMatch(declared, /_(ms|milliseconds|kib|mib|percent|count|sum|bucket|gauge|counter)(_|$)/, name);
    assert.ok(metrics.length > 0, name);
    const labels = metrics.map((metric) => JSON.stringify(metric.labels));
    assert.equal(new Set(labels).size, labels.length, `${name}: one line for each set of labels`);
    for (const { value, sum, count } of metrics) {
      const told = type === "SUMMARY" ? [sum, count] : [value];
      for (const number of told) assert.ok(number !== undefined && Number.isFinite(Number(number)), `${name}: ${number}`);
    }
  }
}

/** Each bucket holds those below it, and the last one all. */
function wellFormedBuckets(buckets: Family["metrics"], counts: Family["metrics"]): void {
  const bySet = Map.groupBy(buckets, ({ labels: { le: _, ...labels } = {} }) => JSON.stringify(labels));
  assert.equal(bySet.size, counts.length);
  for (const { labels, value } of counts) {
    const ofSet = bySet.get(JSON.stringify(labels)) ?? [];
    const bounds = ofSet.map((bucket) => Number(bucket.labels?.le?.replace("+Inf", "Infinity")));
    assert.ok(rising(bounds) && new Set(bounds).size === bounds.length && bounds.at(-1) === Number.POSITIVE_INFINITY, `bounds ${bounds}`);
    const held = ofSet.map((bucket) => Number(bucket.value));
    assert.ok(rising(held) && held.at(-1) === Number(value), `of ${value}: ${held}`);
  }
}

const rising = (numbers: readonly number[]): boolean => numbers.every((each, at) => at === 0 || each >= (numbers[at - 1] ?? 0));

/** Samples of counters, summaries and histograms. */
function samplesOf(pages: Readonly<Record<string, string>>): Map<string, number> {
  const samples = new Map<string, number>();
  for (const page of Object.values(pages))
    for (const { name, type, metrics } of parse(page))
      for (const { labels, value, sum, count } of metrics) {
        const key = (suffix = ""): string => `${name}${suffix}${JSON.stringify(labels)}`;
        if (type === "COUNTER" || histogramPart.test(name)) samples.set(key(), Number(value));
        if (type === "SUMMARY") samples.set(key("_sum"), Number(sum)).set(key("_count"), Number(count));
      }
  return samples;
}
