/** Declares how `/metrics` tells the facts of a partition server: all of it since it started, and each range (`range`) since it was loaded here. */
import { gateMetrics } from "@stamp/admission";
import { allLabelled, counter, gauge, histogram, insideFacts, type Metrics, summary } from "@stamp/base";
import { hedgeMetrics } from "@stamp/stream-client";

const ps = "partition_server";

/** Metrics of the whole server, or of a range. */
const loadMetrics = (prefix: string): Metrics => ({
  "totals.reads": counter(`${prefix}_requests_total`, "Requests that were let in.", { kind: "read" }),
  "totals.writes": counter(`${prefix}_requests_total`, "Requests that were let in.", { kind: "write" }),
  "totals.throttled": counter(`${prefix}_throttled_requests_total`, "Requests that were answered 503 to protect others."),
  "totals.bytesIn": counter(`${prefix}_received_bytes_total`, "Bytes of rows and blob data that requests brought."),
  "totals.bytesOut": counter(
    `${prefix}_sent_bytes_total`,
    "Bytes of rows that were read for requests; blob data go from extent nodes to front-ends.",
  ),
  "load.readsPerSecond": gauge(`${prefix}_load_requests_per_second`, "Over the last 10 s: by this ranges are moved and split.", {
    kind: "read",
  }),
  "load.writesPerSecond": gauge(`${prefix}_load_requests_per_second`, "Over the last 10 s: by this ranges are moved and split.", {
    kind: "write",
  }),
  "load.throttledPerSecond": gauge(`${prefix}_load_throttled_per_second`, "Requests answered 503, over the last 10 s."),
  "load.bytesInPerSecond": gauge(`${prefix}_load_received_bytes_per_second`, "Over the last 10 s."),
  "load.bytesOutPerSecond": gauge(`${prefix}_load_sent_bytes_per_second`, "Over the last 10 s."),
  "load.latencyMs": gauge(`${prefix}_load_latency_seconds`, "Mean of the requests that ended in the last 10 s."),
  "load.pending": gauge(`${prefix}_pending_requests`, "Requests at work or waiting for the range, now."),
  "load.processors": gauge(`${prefix}_load_processors`, "Processors that the process used over the last 10 s; 1 is one core."),
  "load.rowBytes": gauge(`${prefix}_row_bytes`, "Memory tables and checkpoints of its ranges."),
});

const requestHelp = "Of requests that ended, with the time that they waited for their turn.";

/** Metrics of the process: for each range they would be too many. */
const timesMetrics: Metrics = {
  phases: histogram(
    `${ps}_transaction_phase_duration_seconds`,
    "Parts of a transaction: it waits for its rows (turn), reads and decides (decide), and its group is waited for and made durable (commit).",
    ["phase"],
  ),
  append: histogram(`${ps}_commit_append_duration_seconds`, "Appends of one group of transactions to a commit log."),
  checkpoints: histogram(
    `${ps}_checkpoint_duration_seconds`,
    "Checkpoints that were written of memory tables (flush) and by merging others, with the rests of the merge (merge).",
    ["kind"],
  ),
  blockRead: histogram(`${ps}_block_read_duration_seconds`, "Reads of blocks and indexes of checkpoints that were in no cache."),
};

const storageMetrics = (prefix: string): Metrics => ({
  pointReads: counter(`${prefix}_point_reads_total`, "Reads of one key."),
  checkpointsMet: counter(`${prefix}_checkpoints_met_total`, "Checkpoints that such reads met: whose bloom filter was asked."),
  bloomAbsent: counter(`${prefix}_bloom_absent_total`, 'The bloom filter said "not there".'),
  bloomFalsePositives: counter(`${prefix}_bloom_false_positives_total`, 'The bloom filter said "maybe", and the key was not there.'),
  rowCacheHits: counter(`${prefix}_row_cache_hits_total`, "Looks into the row data cache that found the block."),
  rowCacheMisses: counter(`${prefix}_row_cache_misses_total`, "Looks into the row data cache in vain."),
  indexCacheHits: counter(`${prefix}_index_cache_hits_total`, "Looks into the index cache that found the index."),
  indexCacheMisses: counter(`${prefix}_index_cache_misses_total`, "Looks into the index cache in vain."),
  rowsScanned: counter(`${prefix}_scanned_rows_total`, "Rows that scans gave."),
  rowBytesScanned: counter(`${prefix}_scanned_row_bytes_total`, "Keys and values of those rows."),
  rowBytesAccepted: counter(`${prefix}_accepted_row_bytes_total`, "Keys and values of the rows that were committed."),
  flushedBytes: counter(`${prefix}_flushed_bytes_total`, "Bytes of checkpoints that were made of memory tables."),
  mergedBytes: counter(`${prefix}_merged_bytes_total`, "Bytes of checkpoints that were made by merging others."),
  rowCacheBytes: gauge(`${prefix}_row_cache_bytes`, "Blocks in the row data cache."),
  indexCacheBytes: gauge(`${prefix}_index_cache_bytes`, "Block indexes and bloom filters in the index cache."),
  memoryTableBytes: gauge(`${prefix}_memory_table_bytes`, "Commits in memory, with their overhead."),
});

const reshapeTimes = {
  prepare: "prepareMs",
  held: "heldMs",
  drain: "drainMs",
  write: "writeMs",
  hand_over: "handOverMs",
  load: "loadMs",
  begin: "beginMs",
  data_held: "dataHeldMs",
};

const lastReshape: Metrics = Object.fromEntries(
  Object.entries(reshapeTimes).map(([phase, fact]) => [
    fact,
    gauge(`${ps}_last_reshape_seconds`, "What the last split or merge took here.", { phase }),
  ]),
);

const rangeMetrics: Metrics = {
  ownerEpoch: gauge("range_owner_epoch", "Owner epoch with which it was loaded."),
  sequence: gauge("range_sequence", "Number of its last commit."),
  checkpointedSequence: gauge("range_checkpointed_sequence", "Number of the last commit that is in a checkpoint."),
  memoryTableBytes: gauge("range_memory_table_bytes", "Commits in memory, with their overhead."),
  memoryTableFirstSequence: gauge("range_memory_table_first_sequence", "Number of the oldest commit in memory."),
  checkpointCount: gauge("range_checkpoints", "Its checkpoints."),
  checkpointBytes: gauge("range_checkpoint_bytes", "Bytes of its checkpoints."),
  ...loadMetrics("range"),
  ...summary({ count: "totals.ended", sum: "totals.latencyMs" }, "range_request_duration_seconds", requestHelp),
  ...insideFacts("storage", storageMetrics("range")),
};

const geo = `${ps}_geo`;

/** Shipping to the second stamps of accounts, and from other stamps to copies here. */
const geoMetrics: Metrics = {
  seeding: gauge(`${geo}_ranges`, "Ranges of accounts with a second stamp, for each account, by what is done with them.", {
    state: "seeding",
  }),
  shipping: gauge(`${geo}_ranges`, "Ranges of accounts with a second stamp, for each account, by what is done with them.", {
    state: "shipping",
  }),
  reporting: gauge(`${geo}_ranges`, "Ranges of accounts with a second stamp, for each account, by what is done with them.", {
    state: "reporting",
  }),
  failing: gauge(`${geo}_failing_ranges`, "Of these, ranges whose last call to the other stamp failed or was refused."),
  unsynced: gauge(`${geo}_unsynced_ranges`, "Ranges that are shipped and whose Last Sync Time is not known."),
  lagMs: gauge(`${geo}_lag_seconds`, "Time since the oldest Last Sync Time of the ranges that are shipped from here."),
  pendingCommits: gauge(`${geo}_pending_commits`, "Commits that other stamps have not acknowledged."),
  pendingBytes: gauge(`${geo}_pending_bytes`, "Rows in them and the bytes of their blobs; an upper bound."),
  backlogBytes: gauge(`${geo}_backlog_bytes`, "Commit log that is kept for other stamps; geoBacklogBytesMax bounds it."),
  seededBytes: gauge(`${geo}_seeded_bytes`, "Of ranges that are seeded: estimated size of what the other stamp has."),
  seedBytes: gauge(`${geo}_seed_bytes`, "Of ranges that are seeded: estimated size of all."),
  shippedCommits: counter(`${geo}_shipped_commits_total`, "Commits that other stamps took, for each PartitionName that they wrote to."),
  shippedRowBytes: counter(`${geo}_shipped_bytes_total`, "Keys and values of rows, or bytes of blobs, that other stamps took.", {
    kind: "row",
  }),
  shippedBlobBytes: counter(`${geo}_shipped_bytes_total`, "Keys and values of rows, or bytes of blobs, that other stamps took.", {
    kind: "blob",
  }),
  failedCalls: counter(`${geo}_failed_calls_total`, "Calls to other stamps that failed or were refused."),
  appliedCommits: counter(`${geo}_applied_commits_total`, "Commits of other stamps that were applied here."),
  skippedCommits: counter(`${geo}_skipped_commits_total`, "Commits of other stamps that had been applied before."),
  appliedRowBytes: counter(`${geo}_applied_bytes_total`, "Keys and values of rows from other stamps that were applied here."),
};

export const partitionServerMetrics: Metrics = {
  leaseEpoch: gauge(`${ps}_lease_epoch`, "Epoch of its lease; 0 while it has none."),
  operations: gauge(`${ps}_operations`, "Operations at work or waiting, now."),
  ...insideFacts("admission", gateMetrics(ps, { gate: "operations" })),
  ...insideFacts("dataAdmission", gateMetrics(ps, { gate: "data" })),
  took: histogram(`${ps}_request_duration_seconds`, `${requestHelp} Kind data: appends of blob data, without it.`, ["kind"]),
  ...loadMetrics(ps),
  ...insideFacts("times", timesMetrics),
  ...insideFacts("storage", storageMetrics(ps)),
  ...insideFacts("codedReads", hedgeMetrics(ps)),
  ...insideFacts("geo", geoMetrics),
  reshapes: counter(`${ps}_reshapes_total`, "Splits and merges that were done here."),
  ...insideFacts("lastReshape", lastReshape),
  "collecting.rows": gauge(
    `${ps}_collecting_rows`,
    "Rows that the pass over a range that runs now has looked at, for what can be given back.",
  ),
  "ranges.length": gauge(`${ps}_ranges`, "Ranges that it has or loads; the page tells of the first thousand."),
  ...insideFacts("ranges.*", allLabelled(rangeMetrics, { range: "*" })),
};
