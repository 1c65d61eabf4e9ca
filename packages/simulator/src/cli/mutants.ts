/**
 * The mutation gate: each safety rule is switched off, and some seed must then fail. A rule whose absence no seed notices is not tested.
 * Rules that stand for the same are switched off together; a rule that another backs up, together with that one.
 */
import type { RuleName } from "@stamp/base";
import type { Mutant } from "./mutant.ts";
import { consensusMutants } from "./mutants-consensus.ts";
import { geoMutants } from "./mutants-geo.ts";

export const mutants: readonly Mutant[] = [
  // The stream layer.
  {
    rules: ["ackNeedsAllReplicas"],
    workload: "streams",
    focus: "replicas",
    why: "an append is acknowledged before the secondaries have it",
  },
  { rules: ["ackOnlyDurable"], workload: "streams", focus: "power", why: "a secondary answers before it has synced" },
  {
    rules: ["contiguousOffsets"],
    backedUpBy: ["primaryStopsAtFailure"],
    workload: "streams",
    focus: "replication",
    why: "a secondary takes a record behind one that it missed",
  },
  {
    rules: ["primaryStopsAtFailure"],
    backedUpBy: ["contiguousOffsets"],
    workload: "streams",
    focus: "replication",
    why: "the primary goes on behind a record that a secondary has not",
  },
  { rules: ["pointedBytesSynced"], workload: "streams", focus: "power", why: "the journal points to bytes that are not on the disk" },
  { rules: ["clientExpectsOffset"], workload: "streams", focus: "appends", why: "an append lands in the place of one that was lost" },
  { rules: ["fenceBeforeLength"], workload: "streams", focus: "slow-disks", why: "an append is acknowledged behind the seal" },
  {
    rules: ["fenceDrains"],
    workload: "streams",
    focus: "slow-disks",
    why: "a fenced replica says its length before it has synced what it took",
  },
  {
    rules: ["fenceDurable"],
    backedUpBy: ["neverReopen"],
    workload: "streams",
    focus: "forgotten-fences",
    why: "fenced nodes restart, and take appends behind the seal that was made of their answers",
  },
  {
    rules: ["minCopiesBeforeTelling"],
    workload: "streams",
    focus: "lone-answers",
    why: "a length is told that one node holds, and that node's disk is lost",
  },
  {
    rules: ["unknownIsNotLength"],
    backedUpBy: ["diskIdentity"],
    workload: "streams",
    focus: "lone-answers",
    why: "an empty disk in the place of a replica's is taken for a replica of length 0",
  },
  {
    rules: ["diskIdentity"],
    backedUpBy: ["unknownIsNotLength"],
    workload: "streams",
    focus: "lone-answers",
    why: "a new disk answers for the one that it replaced",
  },
  {
    rules: ["newerSealOnly"],
    workload: "streams",
    focus: "late-seals",
    why: "a seal that was given up arrives when the extent is being sealed again",
  },
  {
    rules: ["smTermAtNode"],
    backedUpBy: ["newerSealOnly"],
    workload: "streams",
    focus: "late-commands",
    why: "what a manager sent before it was deposed cuts what its successor seals",
  },
  {
    rules: ["storeFence"],
    backedUpBy: ["storeCompareAndSet"],
    workload: "streams",
    focus: "late-transactions",
    why: "what a manager wrote before it was deposed is applied over what its successor wrote",
  },
  {
    rules: ["storeCompareAndSet"],
    backedUpBy: ["storeFence"],
    workload: "streams",
    focus: "late-transactions",
    why: "a transaction is applied to keys that changed since it was made",
  },
  {
    rules: ["recordSealBeforeTelling"],
    // A replica that was told a length reports it as committed, so the next seal finds the same.
    backedUpBy: ["knownCommittedLength"],
    workload: "streams",
    focus: "managers",
    why: "a sealed length is told, lost, and computed again",
  },
  {
    rules: ["journalBegunRecorded"],
    // Without both, a node that forgot what it acknowledged is believed.
    backedUpBy: ["knownCommittedLength"],
    workload: "streams",
    focus: "lost-files",
    why: "a node whose newest journal segment is lost takes what it still has for all it had",
  },
  {
    rules: ["knownCommittedLength"],
    backedUpBy: ["journalBegunRecorded"],
    workload: "streams",
    focus: "lost-files",
    why: "an extent is sealed shorter than what another replica knows to be acknowledged",
  },
  {
    rules: ["missingFileIsDamage"],
    workload: "streams",
    focus: "lost-files",
    why: "liveness: a node takes itself for a holder of bytes whose file is gone, and nobody copies them",
  },
  {
    rules: ["tableNotBehind"],
    workload: "streams",
    focus: "forgetful-tables",
    why: "a node takes an older table for what it holds: replicas are shorter, and records of them are in no journal any more",
  },
  {
    rules: ["checksumOfVerified"],
    workload: "registers",
    focus: "rot",
    why: "liveness: the checksum of a rotten replica is recorded, and every good one is taken for damaged",
  },
  { rules: ["createdOnEveryReplica"], workload: "streams", focus: "replicas", why: "liveness: an extent is told of that no replica has" },
  { rules: ["ownerEpochAtManager", "ownerEpochAtNode"], workload: "streams", why: "an old owner goes on writing" },
  { rules: ["checksumBeforeServing"], workload: "streams", focus: "rot", why: "bytes that rotted are served" },
  {
    rules: ["trimBeforeServing"],
    workload: "streams",
    focus: "accepted-losses",
    why: "what was given up with an extent is served by a replica that has not heard of it",
  },
  { rules: ["diskWorkBounded"], workload: "disks", why: "liveness: a disk that favours one file keeps all who want another waiting" },
  { rules: ["lateReadsRefused"], workload: "disks", why: "liveness: a reader waits for a disk that hangs until his time is over" },
  // Coded extents.
  {
    rules: ["fragmentsVerified"],
    workload: "coding",
    focus: "fragments",
    why: "replicas go for fragments that rotted before anybody read them, or that were never made",
  },
  {
    rules: ["fragmentSynced"],
    workload: "coding",
    focus: "fragment-power",
    why: "replicas go for fragments that the power takes along",
  },
  {
    rules: ["attemptVersionFresh"],
    workload: "coding",
    focus: "few-extents",
    why: "what an earlier attempt left is deleted, and a later one has files of the same names",
  },
  {
    rules: ["makersMeasureReplicas"],
    backedUpBy: ["fragmentsVerified"],
    workload: "coding",
    focus: "rotten-replicas",
    why: "fragments are made of a rotten replica",
  },
  {
    rules: ["replicasGoAtCommit"],
    workload: "coding",
    focus: "few-extents",
    why: "replicas are given up when an attempt begins, and the attempt comes to nothing",
  },
  {
    rules: ["fragmentsGoAfterAbort"],
    workload: "coding",
    focus: "few-extents",
    why: "fragments of an attempt under way are garbage, and the attempt is committed",
  },
  {
    rules: ["namedReplicasStay"],
    workload: "coding",
    focus: "slow-decodings",
    why: "a replica is made where an older one is to be deleted, and is deleted in its place",
  },
  {
    rules: ["attemptFragmentsStay"],
    workload: "coding",
    focus: "deleted-strays",
    why: "a person deletes a fragment that an attempt makes, and the attempt is committed",
  },
  {
    rules: ["newerFragmentsStay"],
    workload: "coding",
    focus: "older-metadata",
    why: "metadata of before a coding are restored, a person deletes the fragments, and the newer metadata that name them are restored",
  },
  {
    rules: ["graceOfItsRemoval"],
    workload: "coding",
    focus: "kept-replicas",
    why: "an extent is coded, decoded and coded again, and its replicas go at once",
  },
  {
    rules: ["deletionsNameVersions"],
    workload: "coding",
    focus: "late-deletions",
    why: "a late deletion of a replica meets the one that a decoding has made in its place",
  },
  { rules: ["fragmentChunkVerified"], workload: "coding", focus: "fragments", why: "bytes of a fragment that rotted are served" },
  { rules: ["fragmentReadsHedged"], workload: "coding", why: "liveness: a read waits for a node that stands still until its time is over" },
  {
    rules: ["doubtedPlacesRefreshed"],
    workload: "coding",
    why: "liveness: a reader whose places are old waits for a silent node of theirs, although others refused",
  },
  // Leases, and who serves what.
  {
    rules: ["leaseCountsFromSending"],
    workload: "registers",
    focus: "late-renewals",
    why: "a server believes in its lease for longer than it has it",
  },
  {
    rules: ["leaseCountsSuspends"],
    workload: "registers",
    focus: "suspends",
    why: "a server whose machine was suspended believes in a lease that ended meanwhile",
  },
  {
    rules: ["leaseRecheckedAfterAnswer"],
    workload: "registers",
    focus: "leases",
    why: "a server that was paused answers for what another serves",
  },
  {
    rules: ["leasesExtendedOnRestart"],
    workload: "registers",
    focus: "lock-service",
    why: "a lease ends early when the lock service restarts",
  },
  {
    rules: ["leaseEndRecorded"],
    workload: "locks",
    focus: "lock-restarts",
    why: "a lease that was said to have ended runs again after a restart of the lock service",
  },
  {
    rules: ["refusalDurable"],
    workload: "locks",
    focus: "lock-restarts",
    why: "a lease is renewed whose renewals were said to be refused",
  },
  {
    rules: ["storeComplete"],
    workload: "locks",
    focus: "forgetful-stores",
    why: "the metadata store has lost a key, and is served: an epoch is given twice",
  },
  {
    rules: ["storeNotBehind"],
    workload: "locks",
    focus: "forgetful-stores",
    why: "the metadata store has lost its last batches, and is served: an epoch is given twice",
  },
  {
    rules: ["storeNotOlder"],
    workload: "streams",
    focus: "older-folders",
    why: "the lock service's folder is put back from a backup, and is led by: owners are given lists without what was acknowledged since",
  },
  {
    rules: ["answersConfirmed"],
    workload: "locks",
    focus: "fail-overs",
    why: "a deposed lock service renews a lease beyond the term that its successor gave",
  },
  {
    rules: ["answersBeat"],
    workload: "locks",
    focus: "fail-overs",
    why: "a lock service renews without a beat: its successor counts the term from before the renewal",
  },
  {
    rules: ["batchesInOrder"],
    workload: "locks",
    focus: "fail-overs",
    why: "a transaction that arrives late at etcd takes the place of a later one",
  },
  {
    rules: ["electionConditional"],
    workload: "locks",
    focus: "fail-overs",
    why: "a deposed lock service writes over what its successor wrote",
  },
  { rules: ["neverRenewEnded"], workload: "locks", focus: "lock-restarts", why: "a lease that ran out is renewed" },
  {
    rules: ["dropBeforeNewLease"],
    workload: "registers",
    focus: "leases",
    why: "a server with a new lease answers for what it had under the old one",
  },
  { rules: ["waitLeaseOut"], workload: "registers", focus: "unreachable", why: "a range is given away while its server holds its lease" },
  {
    rules: ["assignmentBeforeLoad"],
    workload: "bank",
    focus: "map-writes",
    why: "a load that no map knows of: the next manager gives the range away without waiting for that lease's end",
  },
  {
    rules: ["waitForClosed"],
    workload: "bank",
    focus: "moves",
    why: "a range is loaded elsewhere while the server that had it still answers",
  },
  {
    rules: ["closedEpochRefused"],
    workload: "registers",
    focus: "overtaken",
    why: "a range is loaded by a command that its own Close has overtaken, while another server is to have it",
  },
  {
    rules: ["leaseEpochNamedInLoad"],
    workload: "registers",
    focus: "late-loads",
    why: "a server with a new lease loads what it was given under the old one, while another is to have it",
  },
  {
    rules: ["pmTermAtServer"],
    // Commands that a manager had sent before it lost its lease were closed by the next one.
    backedUpBy: ["closedEpochRefused"],
    workload: "registers",
    focus: "old-managers",
    why: "a range is loaded by the word of a manager that leads no more",
  },
  {
    rules: ["loadElsewhere"],
    workload: "loads",
    why: "liveness: a range stays with a server that holds its lease and can't load it",
  },
  // Ranges that are split and merged.
  {
    rules: ["cutNotAcknowledged"],
    workload: "bank",
    why: "a split: the parent's log acknowledges behind where the children's begins",
  },
  {
    rules: ["redoneWhenChanged"],
    workload: "bank",
    focus: "reshapes",
    why: "a split that does not happen: what was on its way to the log is done once more, and is there",
  },
  {
    rules: ["drainBeforeLeaving"],
    workload: "bank",
    why: "a merge: a transaction that was under way is acknowledged, and the child has it not",
  },
  {
    rules: ["namesBeforeSplit"],
    workload: "bank",
    focus: "map-writes",
    why: "liveness: the parents stand in the map, and their streams are the children's",
  },
  {
    rules: ["mapChangedInTurn"],
    workload: "bank",
    focus: "slow-maps",
    why: "the record of a split is overwritten by what was known before it, and what its children took is lost",
  },
  {
    rules: ["fenceBeforeAsking"],
    workload: "bank",
    focus: "reshapes",
    why: "liveness: a change that did not happen yet is taken back, and happens",
  },
  {
    rules: ["askWhetherItHappened"],
    workload: "bank",
    focus: "reshapes",
    why: "liveness: a change that happened is taken back",
  },
  {
    rules: ["childEndsParents"],
    workload: "bank",
    focus: "stopped-hand-overs",
    why: "a server that waits to hear of its split still answers for the parent, and has loaded the children",
  },
  // Objects.
  { rules: ["replayBySequence"], workload: "restarts", why: "efficiency: a load takes into memory what its checkpoints hold" },
  { rules: ["truncateAfterCheckpoint"], workload: "restarts", why: "the log is gone, and what it held is in no checkpoint" },
  { rules: ["restUntilCheckpointed"], workload: "bank", why: "what a parent had in memory is in no record of its child" },
  { rules: ["placesCheckedInRowOrder"], workload: "registers", why: "a row refers to bytes of another stream" },
  { rules: ["bytesPinTheirExtent"], workload: "uploads", why: "liveness: bytes of an upload are given back between two of its pieces" },
  { rules: ["pinsRenewed"], workload: "uploads", why: "liveness: an upload that takes longer than a term never commits" },
  { rules: ["pinTermAfterLoad"], workload: "uploads", why: "liveness: a new owner gives back what the old one knew to be pinned" },
  { rules: ["incarnationInKey"], workload: "blobs", why: "what was in a deleted container comes back with its name" },
  { rules: ["containerRowReadAfterArrival"], workload: "blobs", why: "the existence of a container is taken from a cache" },
  { rules: ["queueClockNeverBack"], workload: "queues", focus: "clocks", why: "a message is put before the head of the queue: lost" },
  { rules: ["pipelineSeesPending"], workload: "queues", why: "two take the same message before the first taking is durable" },
  {
    rules: ["pipelineAnswersDurable"],
    workload: "queues",
    focus: "held-commits",
    why: "somebody is told of a message whose put is lost",
  },
  { rules: ["pipelineSeesPending"], workload: "writers", why: "an append takes the place of one that is decided and not durable" },
  {
    rules: ["pipelineAnswersDurable"],
    workload: "writers",
    focus: "held-commits",
    why: "an append at the end is refused because of one that is lost",
  },
  {
    rules: ["plainAfterPipelined"],
    workload: "writers",
    why: "a collector's rewritten row takes the place of what was acknowledged",
  },
  { rules: ["protectedStatesStay"], workload: "holds", why: "a blob under a hold is overwritten, deleted, or expires" },
  {
    rules: ["leaseRestartedOnLoad"],
    workload: "leases",
    focus: "checkpoints",
    why: "a range changes servers, and a lease has a second holder",
  },
  ...geoMutants,
  ...consensusMutants,
];

/** Some rules are off in two workloads. */
export const mutantName = ({ rules, workload }: Mutant): string => `${rules.join("+")} (${workload})`;

export const rulesOffFor = (mutant: Mutant): RuleName[] => [...mutant.rules, ...(mutant.backedUpBy ?? [])];
