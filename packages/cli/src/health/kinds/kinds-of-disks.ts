import type { FindingKind } from "./kind.ts";

export const diskKinds = {
  "node-down": {
    severity: "warning",
    means:
      "An extent node is down, does not answer, or is not heard by the stream manager. After 60 s its replicas are made again elsewhere.",
    help: "read its log: ./stamp logs --role SUBJECT --data DATA",
    alert: { expr: "stamp_stream_manager_extent_nodes_down > 0", lasts: "30s", help: "which: ./stamp node list; and why: ./stamp health" },
  },
  "nodes-below-minimum": {
    severity: "critical",
    stops: true,
    means: "Fewer extent nodes take extents than `minCopies`: writes wait.",
    help: "bring nodes back: ./stamp node list",
    alert: { expr: "stamp_stream_manager_extent_nodes_up < 2", lasts: "30s" },
  },
  "nodes-below-copies": {
    severity: "warning",
    means: "Fewer extent nodes take extents than `copies`: new extents get fewer replicas.",
    help: "bring nodes back or start more: ./stamp node list; ./stamp up --extent-nodes N",
    alert: { expr: "stamp_stream_manager_extent_nodes_up < 3", lasts: "2m" },
  },
  "no-spare-node": {
    severity: "note",
    means: "As many extent nodes take extents as there are copies: while one is away, new extents get fewer replicas.",
    help: "start one more: ./stamp up --extent-nodes N",
  },
  "node-not-started": {
    severity: "warning",
    means: "The data folder holds the disk of an extent node that was neither started nor decommissioned. Its replicas can't be read.",
    help: "start it: ./stamp node add SUBJECT; or remove it: ./stamp node remove SUBJECT",
  },
  "node-decommissioned": {
    severity: "warning",
    means: "An extent node was decommissioned and still runs. It holds nothing that is needed, and every later start starts it again.",
    help: "stop it for good: ./stamp node remove SUBJECT; in containers: docker compose rm -sf SUBJECT",
  },
  "node-draining": {
    severity: "note",
    means: "An extent node is being emptied and gets nothing new.",
    help: "stop that: ./stamp node undrain SUBJECT",
  },
  "node-drain-blocked": {
    severity: "warning",
    means: "An extent node is being emptied, and some of its replicas can't be made elsewhere now.",
    help: "./stamp node list; ./stamp repair status",
  },
  "disk-filling": {
    severity: "warning",
    means: "Less than 15 % and less than 40 GiB of an extent node's disk is free, or less than 15 % and fewer than 20,000 of its inodes.",
    help: "add a node or room: ./stamp up --extent-nodes N (docs/guides/disks.md)",
    alert: {
      expr:
        "(stamp_extent_node_disk_free_bytes < 40 * 2^30 and stamp_extent_node_disk_free_bytes < 0.15 * stamp_extent_node_disk_size_bytes)" +
        " or (stamp_extent_node_disk_free_files < 20000 and stamp_extent_node_disk_free_files < 0.15 * stamp_extent_node_disk_files)",
      lasts: "10m",
    },
  },
  "disk-full": {
    severity: "critical",
    means: "An extent node takes no new extents, because its disk is nearly full; when its reserve is reached it refuses appends, too.",
    help: "make room on the disk of DATA/SUBJECT, or add a node (docs/guides/disks.md)",
    alert: { expr: "stamp_extent_node_takes_extents == 0", lasts: "2m" },
  },
  "disks-full": {
    severity: "critical",
    stops: true,
    means: "No extent node takes new extents: writes wait or are refused.",
    help: "make room or add nodes (docs/guides/disks.md)",
    alert: { expr: "sum(stamp_extent_node_takes_extents) == 0", lasts: "30s" },
  },
  "disk-hangs": {
    severity: "critical",
    means: "An operation was given to a disk more than 5 s ago and has not ended.",
    help: "./stamp node disks; dmesg",
    alert: { expr: "stamp_extent_node_disk_oldest_in_hand_seconds > 5", lasts: "0m" },
  },
  "disk-queue": {
    severity: "warning",
    means: "An operation has waited for its turn at a disk for more than a second.",
    help: "./stamp node disks",
    alert: { expr: "stamp_extent_node_disk_oldest_queued_seconds > 1", lasts: "1m" },
  },
  "journal-slow": {
    severity: "warning",
    means: "One of a hundred syncs of an extent node's journal takes more than 200 ms. Every append with a replica there waits for it.",
    help: "./stamp node disks; give the journal a disk of its own: `journalDir` (docs/guides/disks.md)",
    alert: {
      expr: "histogram_quantile(0.99, sum by (name, le) (rate(stamp_extent_node_journal_sync_duration_seconds_bucket[5m]))) > 0.2",
      lasts: "10m",
    },
  },
  "journal-backlog": {
    severity: "warning",
    means: "More than 48 MiB wait in an extent node's journal for the extent files; at 64 MiB (`pendingBytesMax`) appends slow down.",
    help: "./stamp node disks",
    alert: { expr: "stamp_extent_node_pending_bytes > 48 * 2^20", lasts: "2m" },
  },
  "replica-damaged": {
    severity: "warning",
    means: "An extent node found damaged replicas on its disk. They are never served, and are copied anew from others.",
    help: "./stamp scrub status; ./stamp repair status. If it comes again, replace the disk",
    alert: { expr: 'stamp_extent_node_replicas{state="damaged"} > 0', lasts: "10m" },
  },
  "fragment-damaged": {
    severity: "warning",
    means: "An extent node found damaged fragments of coded extents on its disk. Bad chunks are never served; the fragments are made anew.",
    help: "./stamp scrub status; ./stamp repair status. If it comes again, replace the disk",
    alert: { expr: "stamp_extent_node_damaged_fragments > 0", lasts: "10m" },
  },
  "scrub-found": {
    severity: "warning",
    means: "Reading everything again found damage: bytes that rotted on a disk.",
    help: "./stamp scrub status; if it comes again, replace the disk",
    alert: { expr: "stamp_extent_node_scrub_pass_findings > 0 or stamp_extent_node_scrub_finished_pass_findings > 0", lasts: "0m" },
  },
  "scrub-off": {
    severity: "note",
    means: "An extent node does not read its replicas again: what rots is found only when it is read.",
    help: 'raise scrubBytesPerSecond above 0: {"roles":{"extent-node":{"scrubBytesPerSecond":4194304}}} in stamp.config.json',
    alert: { expr: "stamp_extent_node_scrub_enabled == 0", lasts: "1h" },
  },
  "table-rebuilt": {
    severity: "note",
    means: "An extent node made its extent table anew from files and journal when it started, because the table was lost or damaged.",
    help: "check all of them: ./stamp fsck",
    alert: { expr: "stamp_extent_node_recovery_table_rebuilt == 1", lasts: "0m" },
  },
  "metadata-copy-old": {
    severity: "warning",
    means: "An extent node has not been able to copy the metadata for more than two minutes.",
    help: "read its log: ./stamp logs --role SUBJECT --data DATA (docs/guides/metadata.md)",
    alert: { expr: "stamp_extent_node_metadata_copy_age_seconds > 120", lasts: "5m" },
  },
  "metadata-copies-none": {
    severity: "critical",
    means: "No extent node has a copy of the metadata: if the disk of the lock service is lost, so is everything.",
    help: "take one by hand: ./stamp metadata backup FILE (docs/guides/metadata.md)",
    alert: { expr: "max(stamp_extent_node_metadata_copies_kept) == 0", lasts: "5m" },
  },
} as const satisfies Readonly<Record<string, FindingKind>>;
