/** For every alert, figures by which it fires and figures by which it does not. In the notation of `promtool test rules`. */
import type { Code } from "../kinds/kinds.ts";

/** A series and its values, one each 30 s from 0 s on. */
export type Series = readonly [name: string, values: string];

export interface AlertCase {
  readonly fires: readonly Series[];
  readonly quiet: readonly Series[];
  /** Labels of the alert besides its severity. */
  readonly labels: Readonly<Record<string, string>>;
}

const process = (name: string) => ({ role: name.replace(/-\d+$/, ""), name });
const labelled = (metric: string, labels: Readonly<Record<string, string>>): string =>
  `${metric}{${Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .join(",")}}`;

/** Values that stay, for 100 minutes. */
const stays = (value: number): string => `${value}x200`;
const grows = (from: number, by: number): string => `${from}+${by}x200`;

/** One figure of one process: one value fires, the other does not. */
const figure = (metric: string, name: string, fires: number, quiet: number, more: Readonly<Record<string, string>> = {}): AlertCase => {
  const labels = { ...process(name), ...more };
  return { labels, fires: [[labelled(metric, labels), stays(fires)]], quiet: [[labelled(metric, labels), stays(quiet)]] };
};
const ofStreams = (metric: string, fires: number, quiet: number) =>
  figure(`stamp_stream_manager_${metric}`, "stream-manager-1", fires, quiet);
const ofNode = (metric: string, fires: number, quiet: number, more?: Readonly<Record<string, string>>) =>
  figure(`stamp_extent_node_${metric}`, "extent-node-2", fires, quiet, more);
const unserved = (why: string) => figure("stamp_partition_manager_unserved_ranges", "partition-manager-1", 1, 0, { why });

const ready = (name: string, value: number): Series => [labelled("stamp_ready", process(name)), stays(value)];
const built = (name: string, release: string): Series => [labelled("stamp_build_info", { ...process(name), release }), stays(1)];

/** All of 10 requests in 30 s fall between the two bounds. */
const histogram = (metric: string, labels: Readonly<Record<string, string>>, above: string, within: string): readonly Series[] => [
  [labelled(`${metric}_bucket`, { ...labels, le: above }), stays(0)],
  [labelled(`${metric}_bucket`, { ...labels, le: within }), grows(0, 10)],
  [labelled(`${metric}_bucket`, { ...labels, le: "+Inf" }), grows(0, 10)],
];
const slow = (metric: string, name: string): AlertCase => ({
  labels: { name },
  fires: histogram(metric, process(name), "0.2", "0.5"),
  quiet: histogram(metric, process(name), "0.1", "0.2"),
});

const target = { job: "stamp", instance: "127.0.0.1:10202", ...process("extent-node-2") };
const clock = process("front-end-1");
const requests = { ...process("front-end-1"), service: "blob", class: "read" };
const answered = (code: string, by: number): Series => [
  labelled("stamp_front_end_request_duration_seconds_count", { ...requests, code }),
  grows(0, by),
];
const disk = (freeGib: number, sizeGib: number): readonly Series[] => [
  [labelled("stamp_extent_node_disk_free_bytes", process("extent-node-2")), stays(freeGib * 2 ** 30)],
  [labelled("stamp_extent_node_disk_size_bytes", process("extent-node-2")), stays(sizeGib * 2 ** 30)],
];
const keys = (count: number): readonly Series[] => [
  [labelled("stamp_lock_service_keys", process("lock-service-1")), stays(count)],
  [labelled("stamp_lock_service_keys_max", process("lock-service-1")), stays(100)],
];
const certificate = (ends: number): Series => [
  labelled("stamp_certificate_end_time_seconds", { ...process("front-end-1"), door: "blob" }),
  stays(ends),
];
const takes = (...values: readonly number[]): readonly Series[] =>
  values.map((value, at) => [labelled("stamp_extent_node_takes_extents", process(`extent-node-${at + 1}`)), stays(value)]);

export const alertCases: Partial<Readonly<Record<Code, AlertCase>>> = {
  "lock-service-away": {
    labels: {},
    fires: [ready("lock-service-1", 0)],
    quiet: [ready("lock-service-1", 1)],
  },
  "store-damaged": {
    labels: { ...process("lock-service-1"), state: "damaged" },
    fires: [[labelled("stamp_state", { ...process("lock-service-1"), state: "damaged" }), stays(1)]],
    quiet: [[labelled("stamp_state", { ...process("lock-service-1"), state: "serving" }), stays(1)]],
  },
  "store-empty": {
    labels: { ...process("lock-service-1"), state: "empty" },
    fires: [[labelled("stamp_state", { ...process("lock-service-1"), state: "empty" }), stays(1)]],
    quiet: [[labelled("stamp_state", { ...process("lock-service-1"), state: "starting" }), stays(1)]],
  },
  "role-absent": {
    labels: {},
    fires: [ready("front-end-1", 1), ready("partition-server-1", 0)],
    quiet: [ready("front-end-1", 1), ready("partition-server-1", 0), ready("partition-server-2", 1)],
  },
  "process-down": { labels: target, fires: [[labelled("up", target), stays(0)]], quiet: [[labelled("up", target), stays(1)]] },
  "process-not-ready": figure("stamp_ready", "front-end-1", 0, 1),
  "process-restarts": {
    labels: clock,
    fires: [[labelled("process_start_time_seconds", clock), `${stays(100)} 200 300 400`.replace("x200", "x136")]],
    quiet: [[labelled("process_start_time_seconds", clock), `${stays(100)} 200 300`.replace("x200", "x136")]],
  },
  "release-mix": {
    labels: {},
    fires: [built("front-end-1", "0.1.0"), built("front-end-2", "0.2.0")],
    quiet: [built("front-end-1", "0.1.0"), built("front-end-2", "0.1.0")],
  },
  "clock-set": {
    labels: clock,
    fires: [[labelled("stamp_wall_clock_set_seconds", clock), "0x130 -3x70"]],
    quiet: [[labelled("stamp_wall_clock_set_seconds", clock), stays(-3)]],
  },
  "clock-apart": {
    labels: clock,
    fires: [[labelled("stamp_wall_clock_seconds", clock), grows(-5, 30)]],
    quiet: [[labelled("stamp_wall_clock_seconds", clock), grows(1, 30)]],
  },
  "no-stream-manager": { ...ofStreams("term", 0, 5), fires: [], labels: {} },
  "no-partition-manager": { ...figure("stamp_partition_manager_term", "partition-manager-1", 0, 5), fires: [], labels: {} },
  "no-standby": {
    labels: { role: "stream-manager" },
    fires: [ready("stream-manager-1", 1), ready("stream-manager-2", 0)],
    quiet: [ready("stream-manager-1", 1), ready("stream-manager-2", 1)],
  },
  "lease-ended": figure("stamp_partition_server_lease_epoch", "partition-server-1", 0, 7),
  "metadata-keys-many": { labels: process("lock-service-1"), fires: keys(81), quiet: keys(80) },
  "metadata-copy-behind": figure("stamp_lock_service_log_standing", "lock-service-1", 0, 1),
  "metadata-disk-full": figure("stamp_lock_service_disk_full", "lock-service-1", 1, 0),
  "metadata-slow": slow("stamp_lock_service_write_duration_seconds", "lock-service-1"),
  "node-down": ofStreams("extent_nodes_down", 1, 0),
  "nodes-below-minimum": ofStreams("extent_nodes_up", 1, 2),
  "nodes-below-copies": ofStreams("extent_nodes_up", 2, 3),
  "disk-filling": { labels: process("extent-node-2"), fires: disk(14, 100), quiet: disk(16, 100) },
  "disk-full": ofNode("takes_extents", 0, 1),
  "disks-full": { labels: {}, fires: takes(0, 0), quiet: takes(0, 1) },
  "disk-hangs": ofNode("disk_oldest_in_hand_seconds", 6, 4, { disk: "extents" }),
  "disk-queue": ofNode("disk_oldest_queued_seconds", 2, 0.5, { disk: "journal" }),
  "journal-slow": slow("stamp_extent_node_journal_sync_duration_seconds", "extent-node-2"),
  "journal-backlog": ofNode("pending_bytes", 49 * 2 ** 20, 47 * 2 ** 20),
  "replica-damaged": ofNode("replicas", 1, 0, { state: "damaged" }),
  "fragment-damaged": ofNode("damaged_fragments", 1, 0),
  "scrub-found": ofNode("scrub_finished_pass_findings", 1, 0),
  "scrub-off": ofNode("scrub_enabled", 0, 1),
  "table-rebuilt": ofNode("recovery_table_rebuilt", 1, 0),
  "metadata-copy-old": ofNode("metadata_copy_age_seconds", 121, 119),
  "metadata-copies-none": { ...ofNode("metadata_copies_kept", 0, 1), labels: {} },
  "extents-unreachable": ofStreams("unreachable_extents", 1, 0),
  "extents-endangered": ofStreams("endangered_replicas", 1, 0),
  "replicas-missing": ofStreams("under_replicated_extents", 1, 0),
  "replicas-awaited": ofStreams("repair_grace_extents", 1, 0),
  "repair-blocked": ofStreams("repair_blocked_replicas", 1, 0),
  "coded-unreachable": ofStreams("unreachable_coded_extents", 1, 0),
  "coded-forgotten": ofStreams("adoptable_extents", 1, 0),
  "coded-endangered": ofStreams("endangered_coded_extents", 1, 0),
  "fragments-missing": ofStreams("fragments_waiting", 1, 0),
  "fragments-awaited": ofStreams("coded_extents_in_grace", 1, 0),
  "coding-stuck": ofStreams("coding_failing_extents", 1, 0),
  "stray-fragments": ofStreams("stray_fragments", 1, 0),
  "metadata-older": ofStreams("nodes_with_later_replicas", 1, 0),
  quarantine: ofStreams("nodes_with_quarantined_extents", 1, 0),
  "restore-lost": ofStreams("extents_not_taken_back", 1, 0),
  "sealed-with-loss": {
    labels: process("stream-manager-1"),
    fires: [[labelled("stamp_stream_manager_extents_sealed_with_loss", process("stream-manager-1")), "0x120 1x80"]],
    quiet: [[labelled("stamp_stream_manager_extents_sealed_with_loss", process("stream-manager-1")), stays(1)]],
  },
  "stream-manager-waits": ofStreams("waits", 1, 0),
  "range-unassigned": unserved("unassigned"),
  "range-loading": unserved("loading"),
  "range-server-away": unserved("server-away"),
  "server-away": figure("stamp_partition_manager_servers_away", "partition-manager-1", 1, 0),
  "copy-behind": figure("stamp_partition_server_geo_lag_seconds", "partition-server-1", 301, 299),
  "copy-not-complete": figure("stamp_partition_server_geo_ranges", "partition-server-1", 1, 0, { state: "seeding" }),
  "copy-refused": figure("stamp_partition_server_geo_failing_ranges", "partition-server-1", 1, 0),
  throttled: figure("stamp_partition_server_load_throttled_per_second", "partition-server-1", 0.1, 0),
  "account-shed": {
    labels: { ...process("partition-server-1"), gate: "data" },
    fires: [[labelled("stamp_partition_server_admission_refused_total", { ...process("partition-server-1"), gate: "data" }), grows(0, 1)]],
    quiet: [[labelled("stamp_front_end_admission_refused_total", process("front-end-1")), stays(7)]],
  },
  overloaded: {
    labels: process("front-end-1"),
    fires: [
      [labelled("stamp_front_end_admission_standing_queue", process("front-end-1")), stays(1)],
      [labelled("stamp_front_end_admission_waiting", process("front-end-1")), stays(1)],
    ],
    quiet: [
      [labelled("stamp_front_end_admission_standing_queue", process("front-end-1")), stays(1)],
      [labelled("stamp_front_end_admission_waiting", process("front-end-1")), stays(0)],
    ],
  },
  "requests-slow": {
    labels: { service: "blob", class: "read" },
    fires: histogram("stamp_front_end_request_duration_seconds", { ...requests, code: "2xx" }, "1", "2"),
    quiet: histogram("stamp_front_end_request_duration_seconds", { ...requests, code: "2xx" }, "0.5", "1"),
  },
  "requests-fail": {
    labels: { service: "blob" },
    fires: [answered("5xx", 2), answered("2xx", 98)],
    quiet: [answered("5xx", 1), answered("2xx", 199)],
  },
  "appends-fail": {
    labels: { name: "extent-node-2" },
    fires: [[labelled("stamp_extent_node_append_duration_seconds_count", { ...process("extent-node-2"), outcome: "failed" }), grows(0, 4)]],
    quiet: [[labelled("stamp_extent_node_append_duration_seconds_count", { ...process("extent-node-2"), outcome: "failed" }), grows(0, 2)]],
  },
  "map-old": figure("stamp_front_end_map_age_seconds", "front-end-1", 31, 29),
  "certificate-ended": { labels: { ...process("front-end-1"), door: "blob" }, fires: [certificate(100)], quiet: [certificate(1_000_000)] },
  "certificate-ends": {
    labels: { ...process("front-end-1"), door: "blob" },
    fires: [certificate(1_000_000)],
    quiet: [certificate(9_000_000)],
  },
  "cluster-certificate-ended": figure("stamp_cluster_certificate_end_time_seconds", "front-end-1", 100, 1_000_000),
  "cluster-certificate-ends": figure("stamp_cluster_certificate_end_time_seconds", "front-end-1", 1_000_000, 9_000_000),
  "cluster-certificate-unusable": figure("stamp_cluster_certificate_unusable", "front-end-1", 1, 0),
  "secret-unusable": figure("stamp_cluster_secret_unusable", "front-end-1", 1, 0),
  // The clock of the test begins at 1970: a secret made long before fires.
  "secret-old": figure("stamp_cluster_secret_made_time_seconds", "front-end-1", -40_000_000, 0),
  "certificate-unreadable": figure("stamp_certificate_unusable", "front-end-1", 1, 0, { door: "blob" }),
};
