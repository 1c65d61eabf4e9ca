/** Declares how `/metrics` tells the facts of an extent node. */
import { counter, gauge, histogram, insideFacts, type Metrics, summary } from "@stamp/base";

const en = "extent_node";
const classes = ["journal", "append", "read", "repair", "scrub"] as const;

/** Metrics of one disk of the node; a journal with a disk of its own has its own scheduler. */
const diskMetrics: Metrics = {
  inHand: gauge(`${en}_disk_operations_in_hand`, "Operations that were given to the disk and have not ended."),
  queued: gauge(`${en}_disk_operations_queued`, "Operations that wait for their turn."),
  expectedMs: gauge(`${en}_disk_expected_seconds`, "What the operations in hand are expected to take."),
  oldestInHandMs: gauge(`${en}_disk_oldest_in_hand_seconds`, "How long the oldest operation in hand has taken by now."),
  oldestQueuedMs: gauge(`${en}_disk_oldest_queued_seconds`, "How long the oldest operation that waits has waited by now."),
  refused: counter(`${en}_disk_refused_total`, "Operations that were refused because they would have been too late."),
  cancelled: counter(`${en}_disk_cancelled_total`, "Operations that were given up while they waited."),
  "heldBack.*": counter(`${en}_disk_held_back_total`, "Operations that had to wait, by what stood in the way.", { by: "*" }),
  "atStart.expectedMsMax": gauge(
    `${en}_disk_expected_at_start_max_seconds`,
    "Most that was expected of the disk when an operation was given to it.",
  ),
  "atStart.oldestMsMax": gauge(`${en}_disk_oldest_at_start_max_seconds`, "Oldest in hand when an operation was given to the disk."),
  ...Object.assign({}, ...classes.map(classMetrics)),
};

function classMetrics(name: string): Metrics {
  const labels = { class: name };
  return insideFacts(name, {
    ...summary({ count: "started", sum: "waitedMs" }, `${en}_disk_wait_seconds`, "How long operations waited for their turn.", labels),
    waitedMsMax: gauge(`${en}_disk_wait_max_seconds`, "Longest wait for a turn since the process started.", labels),
  });
}

const scrubMetrics: Metrics = {
  enabled: gauge(`${en}_scrub_enabled`, "1 if replicas and fragments are read again and again."),
  running: gauge(`${en}_scrub_running`, "1 while a pass is under way."),
  pass: counter(`${en}_scrub_passes_total`, "Passes that were begun since the disk was made."),
  startedAtMs: gauge(`${en}_scrub_pass_start_time_seconds`, "When the pass began, since 1970."),
  extents: gauge(`${en}_scrub_pass_extents`, "Replicas and fragments that the pass has read by now."),
  bytes: gauge(`${en}_scrub_pass_bytes`, "Bytes that the pass has read by now."),
  findings: gauge(`${en}_scrub_pass_findings`, "What the pass has found damaged by now."),
  extentsLeft: gauge(`${en}_scrub_pass_extents_left`, "Extents that the pass has not read yet."),
  "finished.number": gauge(`${en}_scrub_finished_pass`, "Number of the last pass that was finished."),
  "finished.startedAtMs": gauge(`${en}_scrub_finished_pass_start_time_seconds`, "When that pass began, since 1970."),
  "finished.endedAtMs": gauge(`${en}_scrub_finished_pass_end_time_seconds`, "When that pass ended, since 1970."),
  "finished.extents": gauge(`${en}_scrub_finished_pass_extents`, "Extents that it read."),
  "finished.bytes": gauge(`${en}_scrub_finished_pass_bytes`, "Bytes that it read."),
  "finished.findings": gauge(`${en}_scrub_finished_pass_findings`, "What it found damaged."),
};

const appendHelp = "Appends as primary, from their arrival until all replicas had them synced, or until one failed.";

export const extentNodeMetrics: Metrics = {
  "extents.*": gauge(`${en}_replicas`, "Replicas that it holds.", { state: "*" }),
  fragments: gauge(`${en}_fragments`, "Fragments of coded extents that it holds."),
  extentBytes: gauge(`${en}_replicas_bytes`, "Bytes of the replicas that it holds."),
  damagedFragments: gauge(`${en}_damaged_fragments`, "Those in which it has found damage since it started."),
  journalSegments: gauge(`${en}_journal_segments`, "Segments of the journal."),
  journalSegmentsWaiting: gauge(`${en}_journal_segments_waiting`, "Those that wait until what they hold is in extent files."),
  journalBatches: counter(`${en}_journal_batches_total`, "Writes to the journal, each synced once."),
  journalBytesWritten: counter(`${en}_journal_written_bytes_total`, "Bytes written to the journal."),
  fileBytesWritten: counter(`${en}_extent_files_written_bytes_total`, "Bytes written to extent files."),
  pendingBytes: gauge(`${en}_pending_bytes`, "Bytes that are durable in the journal and not in extent files yet."),
  "took.appendDone": histogram(`${en}_append_duration_seconds`, appendHelp, [], { outcome: "acknowledged" }),
  "took.appendFailed": histogram(`${en}_append_duration_seconds`, appendHelp, [], { outcome: "failed" }),
  "took.replicate": histogram(
    `${en}_replicate_duration_seconds`,
    "As primary: until one secondary answered, from the arrival of the append. The slowest of them and the own journal make the append.",
  ),
  "took.read": histogram(
    `${en}_read_duration_seconds`,
    "Reads for clients, from their arrival to verified bytes; copies are not among them.",
  ),
  journalSync: histogram(
    `${en}_journal_sync_duration_seconds`,
    "Writing and syncing one batch of the journal, without its wait for the disk.",
  ),
  appends: counter(`${en}_appends_total`, "Appends that it took, as primary or secondary."),
  appendsPerSecond: gauge(`${en}_appends_per_second`, "The same, in the last second or more."),
  smTerm: gauge(`${en}_stream_manager_term`, "Highest term of a stream manager that it knows."),
  freeBytes: gauge(`${en}_disk_free_bytes`, "Free on the disk of its extents."),
  totalBytes: gauge(`${en}_disk_size_bytes`, "Size of the disk of its extents, as of the last look; 0 before the first one."),
  freeFiles: gauge(`${en}_disk_free_files`, "Free inodes on the disk of its extents; absent where the file system has no fixed number."),
  totalFiles: gauge(`${en}_disk_files`, "Inodes of that disk, as of the last look; absent where there is no fixed number."),
  takesExtents: gauge(`${en}_takes_extents`, "1 while new extents may be made on it."),
  diskFull: gauge(`${en}_disk_full`, "1 while its disk has no room for appends."),
  ...insideFacts("disk", diskMetrics, { disk: "extents" }),
  ...insideFacts("journalDisk", diskMetrics, { disk: "journal" }),
  journalFreeBytes: gauge(`${en}_journal_disk_free_bytes`, "Free on the disk of the journal, where it has its own."),
  "copies.usualMs": gauge(`${en}_copies_usual_append_seconds`, "What appends take when no copy is made beside them."),
  "copies.besideMs": gauge(`${en}_copies_beside_append_seconds`, "What appends take beside copies."),
  "copies.restTimes": gauge(`${en}_copies_rest_ratio`, "How many times longer a copy rests than it works."),
  ...insideFacts("scrub", scrubMetrics),
  "metadataCopy.version": gauge(`${en}_metadata_copy_version`, "Transaction of the metadata store up to which its copy goes."),
  "metadataCopy.takenAtMs": gauge(`${en}_metadata_copy_time_seconds`, "When that copy was taken, since 1970."),
  "metadataCopy.ageMs": gauge(`${en}_metadata_copy_age_seconds`, "Since the lock service last gave a copy or had no newer one."),
  "metadataCopy.failures": gauge(`${en}_metadata_copy_failures`, "Attempts to copy the metadata that failed since then."),
  "metadataCopy.kept": gauge(`${en}_metadata_copies_kept`, "Copies of the metadata on this node's disk, as of the newest one."),
  replayedRecords: gauge(`${en}_recovery_replayed_records`, "Records of the journal that its start replayed."),
  tableRebuilt: gauge(`${en}_recovery_table_rebuilt`, "1 if its start had to make the extent table anew."),
  recoveryMs: gauge(`${en}_recovery_seconds`, "What recovery took at its start."),
};
