/**
 * Every row of docs/design/faults.md: which rules of the code close it, and which tests attack it. `./stamp sim --mutations --write-docs`
 * makes docs/faults.md of it; a test holds the rows, the rules and the files against each other.
 */
import type { RuleName } from "@stamp/base";

export interface FaultRow {
  /** Text of the first cell in docs/design/faults.md. */
  readonly fault: string;
  /** Empty: what closes it is no switch (a format, a machine without an alternative); the tests and the simulator's faults attack it. */
  readonly rules: readonly RuleName[];
  readonly tests: readonly string[];
  /** The simulator's faults that bring it about. */
  readonly faults: readonly string[];
}

export const faultRows: readonly FaultRow[] = [
  {
    fault: "a partition server has lost its lease but still appends",
    rules: ["ownerEpochAtManager", "ownerEpochAtNode"],
    tests: ["packages/stream-client/src/owned-stream.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["pause", "cut-pair", "partition"],
  },
  {
    fault: "a stale server answers a read",
    rules: ["leaseCountsFromSending", "leaseRecheckedAfterAnswer", "waitLeaseOut", "waitForClosed", "dropBeforeNewLease"],
    tests: [
      "packages/lease/src/lease.test.ts",
      "packages/partition-map/src/assignment.test.ts",
      "services/partition-server/src/ranges/moves.test.ts",
    ],
    faults: ["pause", "cut-pair"],
  },
  {
    fault: "two partition managers both believe they lead",
    rules: ["pmTermAtServer", "ownerEpochAtManager", "closedEpochRefused", "leaseEpochNamedInLoad"],
    tests: ["packages/partition-map/src/server-rules.test.ts"],
    faults: ["pause", "cut-pair", "crash", "broken-connection", "failpoints"],
  },
  {
    fault: "two stream managers",
    rules: ["storeFence", "storeCompareAndSet", "smTermAtNode"],
    tests: [
      "services/lock-service/src/lock-service.test.ts",
      "services/extent-node/src/rules.test.ts",
      "services/stream-manager/src/term/failover.test.ts",
    ],
    faults: ["pause", "partition", "crash"],
  },
  {
    fault: "a process sends a term that no leader was given, far ahead of the last one",
    rules: ["givenTermsOnly"],
    tests: [
      "services/extent-node/src/control.test.ts",
      "services/extent-node/src/rules.test.ts",
      "services/stream-manager/src/term/failover.test.ts",
    ],
    faults: [],
  },
  {
    fault: "a node obeys a term that no leader can have (its journal holds one since an older release)",
    rules: ["farTermsEndNothing"],
    tests: ["services/stream-manager/src/term/failover.test.ts"],
    faults: [],
  },
  {
    fault: "a process opens a stream with an owner epoch that nobody was given, far ahead of the last one",
    rules: ["mintedEpochsOnly"],
    tests: ["services/stream-manager/src/calls/streams.test.ts", "services/partition-server/src/far-epochs.test.ts"],
    faults: [],
  },
  {
    fault: "a process sends a partition server a command with a term or an owner epoch that nobody was given, far ahead of the last one",
    rules: ["commandsVouched"],
    tests: ["services/partition-server/src/ranges/far-commands.test.ts", "packages/metadata-store/src/given-numbers.test.ts"],
    faults: [],
  },
  {
    fault: "a process loads a range at a partition server with a range version that nobody gave",
    rules: ["epochHasOneVersion"],
    tests: ["services/partition-server/src/ranges/holdings.test.ts", "services/partition-server/src/far-numbers.test.ts"],
    faults: [],
  },
  {
    fault: "a process asks for a lease with an epoch far above the last one",
    rules: ["leaseAheadBounded"],
    tests: ["packages/lease/src/lease.test.ts", "services/lock-service/src/far-epochs.test.ts"],
    faults: [],
  },
  {
    fault: "a process tells a front-end a partition map with a version, or a range version, that the partition manager never gave",
    rules: ["mapsVouched"],
    tests: ["services/front-end/src/routing/map-cache.test.ts", "services/front-end/src/routing/router.test.ts"],
    faults: [],
  },
  {
    fault: "after a restart with other ports, a process of another role answers at the address that a lease or the map still names",
    rules: [],
    tests: [
      "packages/simulator/src/cluster.test.ts",
      "services/lock-service/src/lock-service.test.ts",
      "services/front-end/src/routing/router.test.ts",
    ],
    faults: [],
  },
  {
    fault: "a process sends a node a command with an extent version that nobody recorded",
    rules: ["versionsVouched"],
    tests: ["services/extent-node/src/far-versions.test.ts"],
    faults: [],
  },
  {
    fault: "a process reports a node with an incarnation or a report number that the node never had",
    rules: ["reportsVouched"],
    tests: ["services/stream-manager/src/nodes/far-reports.test.ts", "packages/stream/src/stream.test.ts"],
    faults: [],
  },
  {
    fault: "SM seals while a client still appends to the primary",
    rules: ["fenceBeforeLength", "fenceDrains", "fenceDurable", "neverReopen"],
    tests: ["services/extent-node/src/rules.test.ts", "services/stream-manager/src/stream-manager.test.ts"],
    faults: ["partition", "slow-disk", "failpoints"],
  },
  {
    fault: "primary dies after one secondary wrote",
    rules: ["ackNeedsAllReplicas", "ackOnlyDurable"],
    tests: ["packages/extent/src/machines.test.ts", "services/extent-node/src/append/faults.test.ts"],
    faults: ["crash", "partition", "power-loss"],
  },
  {
    fault: "the client's append timed out: did it happen?",
    rules: ["clientExpectsOffset"],
    tests: ["packages/stream-client/src/owned-stream.test.ts"],
    faults: ["bad-network", "failpoints"],
  },
  {
    fault: "a secondary missed a record",
    rules: ["contiguousOffsets"],
    tests: ["packages/extent/src/machines.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["failpoints", "partition"],
  },
  {
    fault: "a replica comes back from before a seal",
    rules: ["trimBeforeServing", "minCopiesBeforeTelling"],
    tests: ["packages/extent/src/machines.test.ts", "services/stream-manager/src/stream-manager.test.ts"],
    faults: ["crash", "old-replica", "lone-answer", "accepted loss"],
  },
  {
    fault: "a replica comes back empty (new disk)",
    rules: ["unknownIsNotLength", "diskIdentity"],
    tests: ["packages/stream/src/stream.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["replaced-disk", "lone-answer"],
  },
  {
    fault: "acknowledged bytes lost by a lying disk on one node",
    rules: ["knownCommittedLength"],
    tests: ["packages/stream/src/stream.test.ts"],
    faults: ["lying-disk"],
  },
  {
    fault: "torn write at the journal's tail, also out of order inside one batch",
    rules: [],
    tests: ["packages/extent/src/journal/journal-recovery.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["power-loss", "rack-loss"],
  },
  {
    fault: "power lost between a large append, its pointer in the journal and the acknowledgement; what is pointed to rots or is cut off",
    rules: ["pointedBytesSynced"],
    tests: ["services/extent-node/src/append/pointers.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["power-loss", "rack-loss", "bit-rot", "failed-fsync"],
  },
  {
    fault: "stale valid records of a reused journal segment",
    rules: [],
    tests: ["packages/extent/src/journal/journal-recovery.test.ts"],
    faults: ["crash"],
  },
  {
    fault: "damage in the middle of the journal",
    rules: [],
    tests: ["packages/extent/src/journal/journal-recovery.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: [],
  },
  {
    fault: "a journal segment lost, the newest too; the whole journal lost (or its disk not mounted)",
    rules: ["journalBegunRecorded"],
    tests: ["services/extent-node/src/journal/journal-loss.test.ts"],
    faults: ["lost-file"],
  },
  {
    fault: "a release is rolled back, and meets what the newer one wrote",
    rules: ["newerFormatsRefused"],
    tests: ["packages/embedded/src/newer-formats.slow.ts"],
    faults: [],
  },
  {
    fault: "a journal segment there twice; another node's journal",
    rules: [],
    tests: ["services/extent-node/src/journal/journal-loss.test.ts"],
    faults: [],
  },
  {
    fault: "an extent's file gone",
    rules: ["missingFileIsDamage"],
    tests: ["services/extent-node/src/journal/journal-loss.test.ts"],
    faults: ["lost-file", "replaced-disk"],
  },
  {
    fault: "a node's start counter lost with LevelDB",
    rules: [],
    tests: ["services/extent-node/src/journal/journal-loss.test.ts"],
    faults: [],
  },
  {
    fault: "replay of old records after a seal, a repair, a delete",
    rules: [],
    tests: ["packages/extent/src/machines.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["crash", "power-loss"],
  },
  {
    fault: "bit rot in an extent file",
    rules: ["checksumBeforeServing"],
    tests: ["services/extent-node/src/rules.test.ts", "services/extent-node/src/repair/scrub.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault: "LevelDB of an EN lost or corrupt",
    rules: [],
    tests: ["services/extent-node/src/recovery/recovery.test.ts", "services/extent-node/src/disk/table-damage.test.ts"],
    faults: ["lost-table"],
  },
  {
    fault: "the LevelDB of an EN opens, but has lost its end",
    rules: ["tableNotBehind"],
    tests: ["services/extent-node/src/disk/table-damage.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["forgetful-table"],
  },
  {
    fault: "pipelined append k fails and k+1 would land",
    rules: ["primaryStopsAtFailure", "clientExpectsOffset"],
    tests: ["packages/extent/src/machines.test.ts"],
    faults: ["failpoints"],
  },
  {
    fault: "two seals of one extent at once",
    rules: ["recordSealBeforeTelling", "storeCompareAndSet"],
    tests: ["services/stream-manager/src/stream-manager.test.ts", "services/stream-manager/src/term/failover.test.ts"],
    faults: ["pause", "partition"],
  },
  {
    fault: "a seal that was given up (told to nobody) still on its way to a node when the extent is sealed again",
    rules: ["newerSealOnly"],
    tests: ["services/extent-node/src/rules.test.ts", "services/stream-manager/src/seal/seal-again.test.ts"],
    faults: ["lone-answer", "failpoints"],
  },
  {
    fault: "garbage collection against a split or a reader",
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
    rules: ["truncateAfterCheckpoint", "replayBySequence"],
    tests: ["packages/range-partition/src/range-partition.test.ts", "packages/range-partition/src/load/load.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "an heir of a split or merge is loaded elsewhere before what its parent had in memory is in a checkpoint",
    rules: ["restUntilCheckpointed"],
    tests: ["packages/range-partition/src/handoff/reshape.test.ts"],
    faults: ["reshape", "crash"],
  },
  {
    fault: "a stale node report makes a dead replica look alive, so repair never runs",
    rules: [],
    tests: ["services/stream-manager/src/stream-manager.test.ts"],
    faults: ["partition", "pause"],
  },
  {
    fault: "repair copies from a bad replica",
    rules: ["checksumOfVerified"],
    tests: ["services/extent-node/src/control.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault: "a node loses power while it makes a fragment, or right after it acknowledged one",
    rules: ["fragmentSynced"],
    tests: ["services/extent-node/src/fragments/fragment-files.test.ts"],
    faults: ["power-loss", "rack-loss", "crash"],
  },
  {
    fault: "two nodes make the fragments of one attempt, one of them from a damaged replica",
    rules: ["fragmentWrittenOnce"],
    tests: ["services/extent-node/src/fragments/fragment-files.test.ts"],
    faults: ["bit-rot", "pause", "failpoints"],
  },
  {
    fault: "late writes and deletions of an attempt at coding that was taken back meet a later one",
    rules: ["attemptVersionFresh"],
    tests: ["packages/stream/src/coding/plan-coding.test.ts"],
    faults: ["cut-pair", "pause", "failpoints"],
  },
  {
    fault: "a replica, or a fragment that was just made, is damaged while its extent becomes fragments",
    rules: ["fragmentsVerified"],
    tests: ["services/stream-manager/src/coding/coding.test.ts", "services/extent-node/src/fragments/coding.test.ts"],
    faults: ["bit-rot", "fragment-damage"],
  },
  {
    fault: "a fragment rots on its disk, or its file is lost",
    rules: ["fragmentChunkVerified"],
    tests: ["services/extent-node/src/fragments/fragment-files.test.ts", "packages/stream-client/src/coded-reads.test.ts"],
    faults: ["fragment-damage"],
  },
  {
    fault: "a node with a fragment stands still while somebody reads",
    rules: ["fragmentReadsHedged"],
    tests: ["packages/stream-client/src/coded-reads.test.ts"],
    faults: ["pause", "partition"],
  },
  {
    fault: "a reader's places are old, and a node of them is silent",
    rules: ["doubtedPlacesRefreshed"],
    tests: ["packages/stream-client/src/replica-race.test.ts", "packages/stream-client/src/coded-reads.test.ts"],
    faults: ["pause", "partition"],
  },
  {
    fault: "fsync fails",
    rules: [],
    tests: ["services/extent-node/src/disk/fail-stop-disk.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["failed-fsync", "failpoints"],
  },
  {
    fault: "a server or partition manager dies in a split or merge, or what they tell each other of it is late or lost",
    rules: [
      "namesBeforeSplit",
      "mapChangedInTurn",
      "cutNotAcknowledged",
      "redoneWhenChanged",
      "drainBeforeLeaving",
      "fenceBeforeAsking",
      "askWhetherItHappened",
      "childEndsParents",
    ],
    tests: [
      "packages/range-partition/src/handoff/leave.test.ts",
      "packages/range-partition/src/handoff/reshape.test.ts",
      "packages/partition-map/src/reshape.test.ts",
      "services/partition-server/src/ranges/reshapes.test.ts",
    ],
    faults: ["reshape", "crash", "cut-pair", "failpoints"],
  },
  {
    fault: "SM dies mid-seal, PM mid-split, PS mid-checkpoint",
    rules: ["recordSealBeforeTelling", "assignmentBeforeLoad"],
    tests: ["services/stream-manager/src/term/failover.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "lock service dies",
    rules: ["leasesExtendedOnRestart", "leaseEndRecorded", "refusalDurable", "neverRenewEnded"],
    tests: ["packages/lease/src/lease.test.ts", "services/lock-service/src/lock-service.test.ts"],
    faults: ["crash", "failpoints", "whole restarts"],
  },
  {
    fault: "SM dies while creating an extent",
    rules: ["createdOnEveryReplica"],
    tests: ["services/stream-manager/src/term/failover.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "a host is away while extents are made, and two replicas of each lie in one fault domain",
    rules: ["replicasApart"],
    tests: ["services/stream-manager/src/repair/repair.test.ts", "packages/stream/src/placement.test.ts"],
    faults: ["crash"],
  },
  {
    fault: "PM can't reach a server that the lock service reaches",
    rules: ["waitLeaseOut", "refusalDurable"],
    tests: ["packages/partition-map/src/assignment.test.ts"],
    faults: ["cut-pair"],
  },
  {
    fault: "a partition server holds its lease and can't load (cut off from the streams, full, a load that hangs)",
    rules: ["loadElsewhere"],
    tests: [
      "services/partition-manager/src/assign/assigner.test.ts",
      "packages/partition-map/src/assignment.test.ts",
      "services/partition-server/src/ranges/holdings.test.ts",
    ],
    faults: ["cut off from the streams"],
  },
  {
    fault: "the metadata store opens, but has lost its last writes, a key or a bit",
    rules: ["storeComplete", "storeNotBehind"],
    tests: [
      "packages/virtual-time/src/ports/complete-store.test.ts",
      "services/lock-service/src/store/every-byte.test.ts",
      "services/lock-service/src/store/store.test.ts",
    ],
    faults: ["forgetful-store"],
  },
  {
    fault: "the whole folder of the lock service, store and mark, is put back from an older backup",
    rules: ["storeNotOlder"],
    tests: ["services/stream-manager/src/store-put-back.test.ts", "services/partition-server/src/store-put-back.test.ts"],
    faults: ["folder put back"],
  },
  {
    fault: "an active lock service over etcd is deposed and does not know it: a pause, a cut, an etcd lease that ran out",
    rules: ["electionConditional", "answersConfirmed"],
    tests: ["packages/etcd/src/etcd-key-value.test.ts", "services/lock-service/src/store/etcd.test.ts", "tests/etcd/adapter.slow.ts"],
    faults: ["pause", "cut-pair", "crash", "partition"],
  },
  {
    fault: "an answer of etcd is lost after the commit, or a transaction arrives there late",
    rules: ["batchesInOrder"],
    tests: ["packages/etcd/src/etcd-key-value.test.ts"],
    faults: ["partition", "pause"],
  },
  {
    fault: "the metadata store is empty or another stamp's",
    rules: [],
    tests: ["services/lock-service/src/lock-service.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["whole restarts with another stamp"],
  },
  {
    fault: "delete of a container while blobs are put into it elsewhere",
    rules: ["incarnationInKey", "containerRowReadAfterArrival"],
    tests: ["packages/objects/src/blobs/blobs.test.ts", "services/front-end/src/objects/parent-rows.test.ts"],
    faults: ["crash", "partition"],
  },
  {
    fault: "a blob under a policy or a hold expires, is written, deleted or collected",
    rules: ["protectedStatesStay"],
    tests: ["packages/objects/src/blobs/protect/protection.test.ts", "tests/conformance/immutability.ts"],
    faults: ["clock-jump", "crash", "reshape"],
  },
  {
    fault: "a policy or a hold is placed in a container while it is deleted",
    rules: ["protectionConfirmed", "deletionAsksMarks"],
    tests: ["services/front-end/src/objects/protecting.test.ts"],
    faults: ["failpoints", "crash", "partition"],
  },
  {
    fault: "a blob or container lease across a server change",
    rules: ["leaseRestartedOnLoad"],
    tests: ["packages/objects/src/blobs/protect/leases.test.ts"],
    faults: ["crash", "pause", "reshape"],
  },
  {
    fault: "container deleted while a slow download runs; blob data rewritten under it",
    rules: ["placesCheckedInRowOrder"],
    tests: ["services/front-end/src/content/download.test.ts", "packages/objects/src/blobs/blobs.test.ts"],
    faults: [],
  },
  {
    fault: "an upload takes hours; its range is split, moved or loaded anew meanwhile",
    rules: ["bytesPinTheirExtent", "pinsRenewed", "pinTermAfterLoad", "settledByAll"],
    tests: ["packages/range-partition/src/blob-data/data-pins.test.ts", "services/partition-server/src/collector/pins.test.ts"],
    faults: ["crash", "reshape"],
  },
  {
    fault: "ranges and managers change more often than garbage is old enough",
    rules: ["settledRecorded", "dropTimeRecorded"],
    tests: ["services/partition-server/src/collector/pins.test.ts", "services/stream-manager/src/calls/streams.test.ts"],
    faults: ["crash", "reshape"],
  },
  {
    fault: "network cut between SM and an EN that a client still reaches",
    rules: ["fenceBeforeLength"],
    tests: ["services/stream-manager/src/chaos.test.ts"],
    faults: ["cut-pair", "split"],
  },
  {
    fault: "network cut in one direction; slow network; slow disk",
    rules: [],
    tests: ["services/extent-node/src/append/faults.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["partition-one-way", "bad-network", "slow-disk"],
  },
  {
    fault: "one read or write hangs, or the disk favours some over others",
    rules: ["diskWorkBounded"],
    tests: ["packages/extent/src/disk/io-scheduler.test.ts"],
    faults: ["slow-disk", "unfair disks that hang"],
  },
  {
    fault: "a read that can't be answered in time",
    rules: ["lateReadsRefused"],
    tests: ["services/extent-node/src/disk/io.test.ts"],
    faults: ["slow-disk", "unfair disks that hang"],
  },
  {
    fault: "disk full on one EN, on all",
    rules: [],
    tests: [
      "services/extent-node/src/disk/disk-full.test.ts",
      "packages/stream-client/src/disk-full.test.ts",
      "tests/drills/disk-full.slow.ts",
    ],
    faults: ["full-disk"],
  },
  {
    fault: "clock jumps",
    rules: [],
    tests: ["services/lock-service/src/lock-service.test.ts"],
    faults: ["clock-jump"],
  },
  {
    fault: "a machine is suspended and resumed",
    rules: ["leaseCountsSuspends"],
    tests: [
      "packages/lease/src/lease.test.ts",
      "packages/ports-node/src/process/suspend.test.ts",
      "services/lock-service/src/lock-service.test.ts",
    ],
    faults: ["suspend"],
  },
  {
    fault: "the wall clock of a queue's server is set back, or the queue moves to a server with an earlier one",
    rules: ["queueClockNeverBack"],
    tests: ["packages/objects/src/queues/messages.test.ts", "packages/objects/src/queues/model.test.ts"],
    faults: ["clock-jump", "crash"],
  },
  {
    fault: "two take from one queue at once, and the server dies in between",
    rules: ["pipelineSeesPending", "pipelineAnswersDurable"],
    tests: ["packages/range-partition/src/commit/pipelined.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "process paused for long (GC, SIGSTOP) and resumed",
    rules: ["leaseRecheckedAfterAnswer", "dropBeforeNewLease"],
    tests: ["services/partition-server/src/ranges/moves.test.ts"],
    faults: ["pause"],
  },
  {
    fault: "the whole cluster loses power",
    rules: ["ackOnlyDurable"],
    tests: ["packages/simulator/src/cluster.test.ts"],
    faults: ["power-loss", "whole restarts"],
  },
  {
    fault: "a poisoned request (huge header, bad XML, endless body, bad protobuf)",
    rules: [],
    tests: ["packages/azure-rest/src/fuzz.test.ts", "packages/ports-node/src/http/http-server.test.ts"],
    faults: [],
  },
];
