import type { FindingKind } from "./kind.ts";

export const extentKinds = {
  "extents-unknown": {
    severity: "warning",
    means: "The stream manager that leads did not answer in time, so nothing is known of extents and nodes.",
    help: "ask again: ./stamp health; if it stays so, see the logs stream-manager-*.log in DATA/logs",
  },
  "extents-unreachable": {
    severity: "critical",
    stops: true,
    means: "Sealed extents have no intact replica that can be reached. What lies in them can't be read.",
    help: "bring the nodes that have them back: ./stamp node list; never wipe a disk meanwhile",
    alert: { expr: "stamp_stream_manager_unreachable_extents > 0", lasts: "30s" },
  },
  "extents-endangered": {
    severity: "critical",
    means: "Extents have one intact replica left: if it is lost, their data are.",
    help: "bring nodes back, and watch: ./stamp repair status",
    alert: { expr: "stamp_stream_manager_endangered_replicas > 0", lasts: "1m" },
  },
  "replicas-missing": {
    severity: "warning",
    means: "Replicas are lost, damaged or on nodes that are being emptied, and wait to be made again.",
    help: "watch it: ./stamp repair status",
    alert: { expr: "stamp_stream_manager_under_replicated_extents > 0", lasts: "5m" },
  },
  "replicas-awaited": {
    severity: "warning",
    means: "Extents have a replica on a node that is away and may come back. After the grace (60 s) they are made again elsewhere.",
    help: "bring the node back: ./stamp node list",
    alert: { expr: "stamp_stream_manager_repair_grace_extents > 0", lasts: "2m" },
  },
  "repair-blocked": {
    severity: "warning",
    means: "Some replicas can't be made again now: there is no node with room, or in another fault domain.",
    help: "./stamp repair status; ./stamp up --extent-nodes N",
    alert: { expr: "stamp_stream_manager_repair_blocked_replicas > 0", lasts: "10m" },
  },
  "coded-unreachable": {
    severity: "critical",
    stops: true,
    means: "Coded extents have lost fragments that can't be computed from those that can be reached now. Parts of them can't be read.",
    help: "bring the nodes that have fragments back: ./stamp node list; never wipe a disk meanwhile",
    alert: { expr: "stamp_stream_manager_unreachable_coded_extents > 0", lasts: "30s" },
  },
  "coded-forgotten": {
    severity: "critical",
    stops: true,
    means:
      "Extents can't be read as their records say, and nodes hold fragments of them that are newer: the metadata were restored from an older copy.",
    help: "bring every node back, then take the fragments back: which extents: ./stamp coding status; ./stamp coding adopt EXTENT",
    alert: { expr: "stamp_stream_manager_adoptable_extents > 0", lasts: "30s" },
  },
  "coded-endangered": {
    severity: "critical",
    means: "Coded extents miss as many fragments as their code bears, or more. One more loss may lose their data.",
    help: "bring nodes back, and watch: ./stamp repair status",
    alert: { expr: "stamp_stream_manager_endangered_coded_extents > 0", lasts: "1m" },
  },
  "fragments-missing": {
    severity: "warning",
    means: "Fragments of coded extents are lost, damaged or on nodes that are being emptied, and wait to be made again.",
    help: "watch it: ./stamp repair status",
    alert: { expr: "stamp_stream_manager_fragments_waiting > 0", lasts: "5m" },
  },
  "fragments-awaited": {
    severity: "warning",
    means: "Coded extents have a fragment on a node that is away and may come back. After the grace (60 s) it is made again elsewhere.",
    help: "bring the node back: ./stamp node list",
    alert: { expr: "stamp_stream_manager_coded_extents_in_grace > 0", lasts: "2m" },
  },
  "coding-stuck": {
    severity: "warning",
    means: "Extents that the policy chose can't be coded: their last attempt was taken back. They stay replicas and take more disk.",
    help: "see why: ./stamp coding status",
    alert: { expr: "stamp_stream_manager_coding_failing_extents > 0", lasts: "30m" },
  },
  "coding-paused": {
    severity: "note",
    means: "A person has paused erasure coding. No further extent is coded until it is resumed.",
    help: "./stamp coding resume",
  },
  "stray-fragments": {
    severity: "note",
    means: "Extent nodes hold fragments that no record explains, as after metadata were restored. They are kept, and take disk.",
    help: "look: ./stamp coding strays list. Delete only what nobody needs: ./stamp coding strays delete",
    alert: { expr: "stamp_stream_manager_stray_fragments > 0", lasts: "30m" },
  },
  quarantine: {
    severity: "warning",
    means: "Extent nodes hold replicas that the metadata do not know. They are kept and never served: the metadata may be too old.",
    help: "look: ./stamp extent quarantine list. One that its extent lacks: ./stamp extent adopt SUBJECT EXTENT. Delete only what nobody needs",
    alert: { expr: "stamp_stream_manager_nodes_with_quarantined_extents > 0", lasts: "5m" },
  },
  "metadata-older": {
    severity: "critical",
    means:
      "Extent nodes hold what only a later metadata store can have told them: an older folder or backup of it was put back. What was acknowledged since is missing.",
    help: "write nothing more; stop the stamp: ./stamp down; put the newest folder of the lock service back (docs/guides/metadata.md); which extents: ./stamp fsck",
    alert: { expr: "stamp_stream_manager_nodes_with_later_replicas > 0", lasts: "0m" },
  },
  "restore-lost": {
    severity: "note",
    means:
      "Extents that began after the restored copy of the metadata did not come back: no node that was heard has them, or nothing proves where they belong. What was acknowledged in them is missing.",
    help: "what nodes still have of them: ./stamp extent quarantine list; docs/guides/metadata.md",
    alert: { expr: "stamp_stream_manager_extents_not_taken_back > 0", lasts: "0m" },
  },
  "sealed-with-loss": {
    severity: "note",
    means:
      "An extent was sealed although acknowledged data in it may be lost: by a person (`stamp extent seal --accept-loss`), or by a restore that found it on no node. Each such extent keeps who did it, and why.",
    help: "./stamp extent list --json (`loss`)",
    alert: { expr: "increase(stamp_stream_manager_extents_sealed_with_loss[1h]) > 0", lasts: "0m" },
  },
  "stream-manager-waits": {
    severity: "warning",
    means: "The stream manager waits for nodes or its store, to seal extents or to make new ones.",
    help: "./stamp node list; ./stamp stream list",
    alert: { expr: "stamp_stream_manager_waits > 0", lasts: "1m" },
  },
} as const satisfies Readonly<Record<string, FindingKind>>;
