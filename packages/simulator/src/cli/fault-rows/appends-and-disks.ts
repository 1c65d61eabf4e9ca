/** Appends, seals and replicas of an extent, and what an extent node's disk, journal and table may lose. */
import type { FaultRow } from "./fault-row.ts";

export const appendRows: readonly FaultRow[] = [
  {
    fault: "SM seals while a client still appends to the primary",
    closedBy: "one fenced replica is enough: the append can't be acknowledged",
    rules: [
      { name: "fenceBeforeLength", workload: "streams", focus: "slow-disks", why: "an append is acknowledged behind the seal" },
      {
        name: "fenceDrains",
        workload: "streams",
        focus: "slow-disks",
        why: "a fenced replica says its length before it has synced what it took",
      },
      {
        name: "fenceDurable",
        backedUpBy: ["neverReopen"],
        workload: "streams",
        focus: "forgotten-fences",
        why: "fenced nodes restart, and take appends behind the seal that was made of their answers",
      },
      {
        name: "neverReopen",
        unnoticed:
          "fenceDurable backs it up: a node that forgot nothing refuses appends behind a seal. 1 seed of 150 noticed it alone at commit a3f7bfd, 0 of 600 at 439f4a9",
      },
    ],
    tests: ["services/extent-node/src/rules.test.ts", "services/stream-manager/src/rules.test.ts"],
    faults: ["partition", "slow-disk", "failpoints"],
  },
  {
    fault: "primary dies after one secondary wrote",
    closedBy:
      "the append was not acknowledged; seal takes the smallest intact length, or includes it: both are right, and the client learns which from the sealed length",
    rules: [
      {
        name: "ackNeedsAllReplicas",
        workload: "streams",
        focus: "replicas",
        why: "an append is acknowledged before the secondaries have it",
      },
      { name: "ackOnlyDurable", workload: "streams", focus: "power", why: "a secondary answers before it has synced" },
    ],
    tests: ["packages/extent/src/machines.test.ts", "services/extent-node/src/append/faults.test.ts"],
    faults: ["crash", "partition", "power-loss"],
  },
  {
    fault: "the client's append timed out: did it happen?",
    closedBy: "seal tells: below the sealed length it did, else it did not; then re-append. Never guess",
    rules: [
      { name: "clientExpectsOffset", workload: "streams", focus: "appends", why: "an append lands in the place of one that was lost" },
    ],
    tests: ["packages/stream-client/src/owned-stream.test.ts"],
    faults: ["bad-network", "failpoints"],
  },
  {
    fault: "a secondary missed a record",
    closedBy: "offsets must be contiguous: it refuses the next one, the primary fails the extent, seal",
    rules: [
      {
        name: "contiguousOffsets",
        backedUpBy: ["primaryStopsAtFailure"],
        workload: "streams",
        focus: "replication",
        why: "a secondary takes a record behind one that it missed",
      },
    ],
    tests: ["packages/extent/src/machines.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["failpoints", "partition"],
  },
  {
    fault: "a replica comes back from before a seal",
    closedBy: "it learns the sealed length from SM before it serves anything of that extent",
    rules: [
      {
        name: "trimBeforeServing",
        workload: "streams",
        focus: "accepted-losses",
        why: "what was given up with an extent is served by a replica that has not heard of it",
      },
      {
        name: "minCopiesBeforeTelling",
        workload: "streams",
        focus: "lone-answers",
        why: "a length is told that one node holds, and that node's disk is lost",
      },
    ],
    tests: ["packages/extent/src/machines.test.ts", "services/stream-manager/src/rules.test.ts"],
    faults: ["crash", "old-replica", "lone-answer", "accepted loss"],
  },
  {
    fault: "a replica comes back empty (new disk)",
    closedBy: "'unknown extent' is not a length; SM re-replicates",
    rules: [
      {
        name: "unknownIsNotLength",
        backedUpBy: ["diskIdentity"],
        workload: "streams",
        focus: "lone-answers",
        why: "an empty disk in the place of a replica's is taken for a replica of length 0",
      },
      {
        name: "diskIdentity",
        backedUpBy: ["unknownIsNotLength"],
        workload: "streams",
        focus: "lone-answers",
        why: "a new disk answers for the one that it replaced",
      },
    ],
    tests: ["packages/stream/src/seal-machine.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["replaced-disk", "lone-answer"],
  },
  {
    fault: "acknowledged bytes lost by a lying disk on one node",
    closedBy:
      "its length is below a committed length that another replica or the client knows: suspect, does not count in the seal, repaired (the very last acknowledged appends are covered only while the client or another replica that heard of them lives)",
    rules: [
      {
        name: "knownCommittedLength",
        backedUpBy: ["journalBegunRecorded"],
        workload: "streams",
        focus: "lost-files",
        why: "an extent is sealed shorter than what another replica knows to be acknowledged",
      },
    ],
    tests: ["packages/stream/src/seal-machine.test.ts"],
    faults: ["lying-disk"],
  },
  {
    fault: "torn write at the journal's tail, also out of order inside one batch",
    closedBy:
      "a bad record counts as damage only if a later one says that it had been synced; else it is the tail, nothing of it was acknowledged",
    rules: [],
    tests: ["packages/extent/src/journal/journal-recovery.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["power-loss", "rack-loss"],
  },
  {
    fault: "power lost between a large append, its pointer in the journal and the acknowledgement; what is pointed to rots or is cut off",
    closedBy:
      "the bytes are synced in the extent's file before the pointer is written, so a pointer that is there always has its bytes; recovery reads them again: otherwise the replica is damaged",
    rules: [
      { name: "pointedBytesSynced", workload: "streams", focus: "power", why: "the journal points to bytes that are not on the disk" },
    ],
    tests: ["services/extent-node/src/append/pointers.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["power-loss", "rack-loss", "bit-rot", "failed-fsync"],
  },
  {
    fault: "stale valid records of a reused journal segment",
    closedBy: "segment generation in each record",
    rules: [],
    tests: ["packages/extent/src/journal/journal-recovery.test.ts"],
    faults: ["crash"],
  },
  {
    fault: "damage in the middle of the journal",
    closedBy: "marked damaged, never shorter; repaired from other replicas",
    rules: [],
    tests: ["packages/extent/src/journal/journal-recovery.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: [],
  },
  {
    fault: "a journal segment lost, the newest too; the whole journal lost (or its disk not mounted)",
    closedBy:
      "the generation begun last is recorded apart from it: what was not sealed is damaged; without any segment the node does not start by itself",
    rules: [
      {
        name: "journalBegunRecorded",
        // Without both, a node that forgot what it acknowledged is believed.
        backedUpBy: ["knownCommittedLength"],
        workload: "streams",
        focus: "lost-files",
        why: "a node whose newest journal segment is lost takes what it still has for all it had",
      },
    ],
    tests: ["services/extent-node/src/journal/journal-loss.test.ts"],
    faults: ["lost-file"],
  },
  {
    fault: "a release is rolled back, and meets what the newer one wrote",
    closedBy:
      "a marker in each folder is raised before the first write of a new format, and every decoder tells intact and newer from malformed: the process refuses to start and touches nothing",
    rules: [
      {
        name: "newerFormatsRefused",
        unnoticed: "A run has one release. A newer one would have to be written first; its bytes are made by the test instead.",
      },
    ],
    tests: ["packages/embedded/src/newer-formats.slow.ts"],
    faults: [],
  },
  {
    fault: "a release is rolled back before its upgrade is finalized",
    closedBy:
      "what a feature level brings is written only when the stream manager has recorded the level, and it records one only if every process is known to read it: until then the older release finds nothing new",
    rules: [
      {
        name: "formatsAwaitTheirLevel",
        unnoticed: "A run has one release, which reads all that it writes. The test begins with a stamp that the release before has made.",
      },
    ],
    tests: ["services/stream-manager/src/feature-level/stamp-level.test.ts"],
    faults: [],
  },
  {
    fault: "a person copies journal files: a folder has one segment in two files, or the journal of another node",
    closedBy:
      "of two copies of a segment the node reads the one with more records; with two journals in one folder, or with another node's disk, it does not start",
    rules: [],
    tests: ["services/extent-node/src/journal/journal-loss.test.ts"],
    faults: [],
  },
  {
    fault: "an extent's file gone",
    closedBy: "damaged from the start, never unknown or shorter",
    rules: [
      {
        name: "missingFileIsDamage",
        workload: "streams",
        focus: "lost-files",
        why: "liveness: a node takes itself for a holder of bytes whose file is gone, and nobody copies them",
      },
    ],
    tests: ["services/extent-node/src/journal/journal-loss.test.ts"],
    faults: ["lost-file", "replaced-disk"],
  },
  {
    fault: "a node's start counter lost with LevelDB",
    closedBy: "kept in a file too: the higher counts, so that its reports are never older",
    rules: [],
    tests: ["services/extent-node/src/journal/journal-loss.test.ts"],
    faults: [],
  },
  {
    fault: "replay of old records after a seal, a repair, a delete",
    closedBy: "those are journal records too; data beyond a seal or of an old extent version are skipped",
    rules: [],
    tests: ["packages/extent/src/machines.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["crash", "power-loss"],
  },
  {
    fault: "bit rot in an extent file",
    closedBy: "checksum before sending; another replica serves; SM repairs",
    rules: [{ name: "checksumBeforeServing", workload: "streams", focus: "rot", why: "bytes that rotted are served" }],
    tests: ["services/extent-node/src/rules.test.ts", "services/extent-node/src/repair/scrub.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault: "LevelDB of an EN lost or corrupt",
    closedBy: "rebuilt from extent files and journal, else the node joins as empty",
    rules: [],
    tests: ["services/extent-node/src/recovery/recovery.test.ts", "services/extent-node/src/disk/table-damage.test.ts"],
    faults: ["lost-table"],
  },
  {
    fault: "the LevelDB of an EN opens, but has lost its end",
    closedBy: "a mark beside it names its last sync, written before a journal segment is released: a table behind its mark is rebuilt",
    rules: [
      {
        name: "tableNotBehind",
        workload: "streams",
        focus: "forgetful-tables",
        why: "a node takes an older table for what it holds: replicas are shorter, and records of them are in no journal any more",
      },
    ],
    tests: ["services/extent-node/src/disk/table-damage.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["forgetful-table"],
  },
  {
    fault: "pipelined append k fails and k+1 would land",
    closedBy: "the primary stops at the first failure; the client re-appends from k in order",
    rules: [
      {
        name: "primaryStopsAtFailure",
        backedUpBy: ["contiguousOffsets"],
        workload: "streams",
        focus: "replication",
        why: "the primary goes on behind a record that a secondary has not",
      },
      "clientExpectsOffset",
    ],
    tests: ["packages/extent/src/machines.test.ts"],
    faults: ["failpoints"],
  },
  {
    fault: "two seals of one extent at once",
    closedBy: "the first recorded length wins, the other adopts it",
    rules: [
      {
        name: "recordSealBeforeTelling",
        // A replica that was told a length reports it as committed, so the next seal finds the same.
        backedUpBy: ["knownCommittedLength"],
        workload: "streams",
        focus: "managers",
        why: "a sealed length is told, lost, and computed again",
      },
      "storeCompareAndSet",
    ],
    tests: ["services/stream-manager/src/rules.test.ts", "services/stream-manager/src/term/failover.test.ts"],
    faults: ["pause", "partition"],
  },
  {
    fault: "a seal that was given up (told to nobody) still on its way to a node when the extent is sealed again",
    closedBy: "a Fence carries the extent's version; a node refuses seals of earlier ones",
    rules: [
      {
        name: "newerSealOnly",
        workload: "streams",
        focus: "late-seals",
        why: "a seal that was given up arrives when the extent is being sealed again",
      },
    ],
    tests: ["services/extent-node/src/rules.test.ts", "services/stream-manager/src/seal/seal-again.test.ts"],
    faults: ["lone-answer", "failpoints"],
  },
  {
    fault: "garbage collection against a split or a reader",
    closedBy: "reference counts change in the split's own transaction; grace period; a delete carries SM term and extent version",
    rules: [],
    tests: [
      "services/stream-manager/src/calls/streams.test.ts",
      "services/partition-server/src/collector/collector.test.ts",
      "packages/range-partition/src/bounds.test.ts",
    ],
    faults: ["reshape", "crash"],
  },
  {
    fault: "log truncated before its checkpoint is safe",
    closedBy: "order: row data acknowledged, then metadata record acknowledged, then truncate",
    rules: [
      { name: "truncateAfterCheckpoint", workload: "restarts", why: "the log is gone, and what it held is in no checkpoint" },
      { name: "replayBySequence", workload: "restarts", why: "efficiency: a load takes into memory what its checkpoints hold" },
    ],
    tests: ["packages/range-partition/src/range-partition.test.ts", "packages/range-partition/src/load/load.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "a child of a split or merge is loaded elsewhere before what its parent had in memory is in a checkpoint",
    closedBy:
      "a split: the row is in the log, which the children share until a checkpoint of theirs has it. A merge: the record that the parents leave carries the row as the first commit of the child, and so does every later record until a checkpoint has it",
    rules: [{ name: "restUntilCheckpointed", workload: "bank", why: "what a parent had in memory is in no record of its child" }],
    tests: ["packages/range-partition/src/handoff/reshape.test.ts"],
    faults: ["reshape", "crash"],
  },
];
