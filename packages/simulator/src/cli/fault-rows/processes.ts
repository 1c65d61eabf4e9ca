/** Processes that die, hang or are away: servers, managers, hosts, and the lock service with its store. */
import type { FaultRow } from "./fault-row.ts";

export const processRows: readonly FaultRow[] = [
  {
    fault: "fsync fails",
    closedBy:
      "the process stops; it never calls fsync again and hopes; what is not known to be synced is written again from the journal, whatever the files seem to hold",
    rules: [],
    tests: ["services/extent-node/src/disk/fail-stop-disk.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["failed-fsync", "failpoints"],
  },
  {
    fault: "a server or partition manager dies in a split or merge, or what they tell each other of it is late or lost",
    closedBy:
      "names and epochs are recorded first; the parents take no write while their streams change hands in one transaction, and acknowledge none from when their log is cut; what was on its way is done anew only when the change is known to have happened; who resolves it fences the parents and then asks whether it happened",
    rules: [
      {
        name: "namesBeforeSplit",
        workload: "bank",
        focus: "map-writes",
        why: "liveness: the parents stand in the map, and their streams are the children's",
      },
      {
        name: "mapChangedInTurn",
        workload: "bank",
        focus: "slow-maps",
        why: "the record of a split is overwritten by what was known before it, and what its children took is lost",
      },
      { name: "cutNotAcknowledged", workload: "bank", why: "a split: the parent's log acknowledges behind where the children's begins" },
      {
        name: "redoneWhenChanged",
        workload: "bank",
        focus: "reshapes",
        why: "a split that does not happen: what was on its way to the log is done once more, and is there",
      },
      {
        name: "drainBeforeLeaving",
        workload: "bank",
        why: "a merge: a transaction that was under way is acknowledged, and the child has it not",
      },
      {
        name: "fenceBeforeAsking",
        workload: "bank",
        focus: "reshapes",
        why: "liveness: a change that did not happen yet is taken back, and happens",
      },
      { name: "askWhetherItHappened", workload: "bank", focus: "reshapes", why: "liveness: a change that happened is taken back" },
      {
        name: "childEndsParents",
        workload: "bank",
        focus: "stopped-hand-overs",
        why: "a server that waits to hear of its split still answers for the parent, and has loaded the children",
      },
    ],
    tests: [
      "packages/range-partition/src/handoff/leave.test.ts",
      "packages/range-partition/src/handoff/merge.test.ts",
      "packages/range-partition/src/handoff/reshape.test.ts",
      "packages/partition-map/src/reshape.test.ts",
      "services/partition-server/src/ranges/reshapes.test.ts",
    ],
    faults: ["reshape", "crash", "cut-pair", "failpoints"],
  },
  {
    fault: "SM dies mid-seal, PM mid-split, PS mid-checkpoint",
    closedBy: "each step is recorded before it acts and can be repeated",
    rules: [
      "recordSealBeforeTelling",
      {
        name: "assignmentBeforeLoad",
        workload: "bank",
        focus: "map-writes",
        why: "a load that no map knows of: the next manager gives the range away without waiting for that lease's end",
      },
    ],
    tests: ["services/stream-manager/src/term/failover.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "lock service dies",
    closedBy:
      "within 4.5 s (a term less the margin and the time between renewals) nobody notices; it restarts with every epoch it ever gave and extends every lease by a full term",
    rules: [
      {
        name: "leasesExtendedOnRestart",
        workload: "registers",
        focus: "lock-service",
        why: "a lease ends early when the lock service restarts",
      },
      {
        name: "leaseEndRecorded",
        workload: "locks",
        focus: "lock-restarts",
        why: "a lease that was said to have ended runs again after a restart of the lock service",
      },
      {
        name: "refusalDurable",
        workload: "locks",
        focus: "lock-restarts",
        why: "a lease is renewed whose renewals were said to be refused",
      },
      { name: "neverRenewEnded", workload: "locks", focus: "lock-restarts", why: "a lease that ran out is renewed" },
    ],
    tests: ["packages/lease/src/lease.test.ts", "services/lock-service/src/leases.test.ts"],
    faults: ["crash", "failpoints", "whole restarts"],
  },
  {
    fault: "SM dies while creating an extent",
    closedBy: "`allocating` was told to nobody: dropped; `open` means that every replica has it durably",
    rules: [
      { name: "createdOnEveryReplica", workload: "streams", focus: "replicas", why: "liveness: an extent is told of that no replica has" },
    ],
    tests: ["services/stream-manager/src/term/failover.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "a host is away while extents are made, and two replicas of each lie in one fault domain",
    closedBy:
      "as soon as a node of another domain has room, the second one is copied there, and only then given up; rate-limited as other copies",
    rules: [
      {
        name: "replicasApart",
        unnoticed:
          "every node of a workload is a fault domain of its own, and no workload loses a whole domain after another one came back",
      },
    ],
    tests: ["services/stream-manager/src/repair/repair.test.ts", "packages/stream/src/placement.test.ts"],
    faults: ["crash"],
  },
  {
    fault: "a host is away while extents are coded, and two fragments of each lie in one fault domain",
    closedBy: "as soon as a node of a domain with fewer has room, one is made there and then given up; one at a time, after all repairs",
    rules: [
      {
        name: "fragmentsApart",
        unnoticed:
          "every node of a workload is a fault domain of its own, and no workload loses a whole domain after another one came back",
      },
    ],
    tests: ["services/stream-manager/src/coding/fragment-turns.test.ts", "packages/stream/src/coding/crowded-fragments.test.ts"],
    faults: ["crash"],
  },
  {
    fault: "PM can't reach a server that the lock service reaches",
    closedBy: "renewals are refused for it, its lease is waited out, then its partitions move",
    rules: ["waitLeaseOut", "refusalDurable"],
    tests: ["packages/partition-map/src/assignment.test.ts"],
    faults: ["cut-pair"],
  },
  {
    fault: "a partition server holds its lease and can't load (cut off from the streams, full, a load that hangs)",
    closedBy:
      "after 30 s of failed loads the partition is closed there and given to another server, ever more rarely; such a server gets none while there is another",
    rules: [
      { name: "loadElsewhere", workload: "loads", why: "liveness: a range stays with a server that holds its lease and can't load it" },
    ],
    tests: [
      "services/partition-manager/src/assign/assigner.test.ts",
      "packages/partition-map/src/assignment.test.ts",
      "services/partition-server/src/ranges/holdings.test.ts",
    ],
    faults: ["cut off from the streams"],
  },
  {
    fault: "the metadata store opens, but has lost its last writes, a key or a bit",
    closedBy:
      "each batch carries count and hash of all entries, checked at each opening and with each copy; a mark outside the store names the last acknowledged batch; otherwise it is not served, until it is restored",
    rules: [
      {
        name: "storeComplete",
        workload: "locks",
        focus: "forgetful-stores",
        why: "the metadata store has lost a key, and is served: an epoch is given twice",
      },
      {
        name: "storeNotBehind",
        workload: "locks",
        focus: "forgetful-stores",
        why: "the metadata store has lost its last batches, and is served: an epoch is given twice",
      },
    ],
    tests: [
      "packages/virtual-time/src/ports/complete-store.test.ts",
      "services/lock-service/src/store/every-byte.test.ts",
      "services/lock-service/src/store/store.test.ts",
    ],
    faults: ["forgetful-store"],
  },
  {
    fault: "the whole folder of the lock service, store and mark, is put back from an older backup",
    closedBy:
      "a manager refuses a store of its stamp below the highest transaction that it has read, or (stream manager) that two nodes' copies have; a leading stream manager asks the nodes before it acts",
    rules: [
      {
        name: "storeNotOlder",
        workload: "streams",
        focus: "older-folders",
        why: "the lock service's folder is put back from a backup, and is led by: owners are given lists without what was acknowledged since",
      },
    ],
    tests: ["services/stream-manager/src/store-put-back.test.ts", "services/partition-server/src/store-put-back.test.ts"],
    faults: ["folder put back"],
  },
  {
    fault: "a number of an extent is given twice, because an older metadata store was put back, and both extents have content",
    closedBy:
      "each extent has a random creation number, in its record, its replicas and its fragments; commands name it, and a node touches no replica and no fragment of another creation",
    rules: [
      {
        name: "commandsNameCreations",
        unnoticed:
          "the workloads put back no folder that is newer than every node's copy and served; the tests do, and without the rule the repair of the second extent replaces the first",
      },
    ],
    tests: ["services/stream-manager/src/store-put-back.test.ts", "services/extent-node/src/creations.test.ts"],
    faults: ["folder put back"],
  },
  {
    fault: "a majority of the lock services is lost, and a restored copy of the metadata does not know the extents that began after it",
    closedBy:
      "before it serves, the first leader after a restore takes back what replicas prove (stream, predecessor, creation, seal, checksum), behind the list's last; nothing that was deleted before or is of another history (`design/model/taken-back.pml`)",
    rules: [
      {
        name: "extentsComeBack",
        workload: "restores",
        why: "a record that was acknowledged in an extent that began after the copy is in no list any more",
      },
      {
        name: "deletedStaysDeleted",
        workload: "restores",
        why: "the older disk of a node comes back, and an extent that was deleted before the copy is in the list of the stream that was made anew",
      },
      {
        name: "oneHistoryComesBack",
        workload: "restores",
        why: "an extent that its stream went on without after a restore comes back at the next one",
      },
    ],
    tests: ["services/stream-manager/src/restored/take-back.test.ts", "packages/stream/src/taken-back/taken-back.test.ts"],
    faults: ["restores"],
  },
  {
    fault: "a restored copy of the metadata does not know the streams of ranges that were split or merged after it",
    closedBy:
      "the first leading stream manager makes those streams anew of the extents that began since; the map names the ranges that each range came from, and the partition manager puts their lists in front before the range is served (`docs/guides/metadata.md`)",
    rules: [
      {
        name: "newStreamsComeBack",
        workload: "restores",
        why: "a range is split after the copy, and a row that was acknowledged since is lost, although no node is away",
      },
      {
        name: "rangesHaveOrigins",
        workload: "restores",
        why: "a range is split after the copy, and is never loaded again",
      },
    ],
    tests: [
      "packages/stream/src/taken-back/taken-back.test.ts",
      "services/stream-manager/src/restored/take-back.test.ts",
      "services/partition-manager/src/restored/restored-ranges.test.ts",
    ],
    faults: ["restores"],
  },
  {
    fault: "an active lock service over etcd is deposed and does not know it: a pause, a cut, an etcd lease that ran out",
    closedBy:
      "every batch is conditional on the create revision of its election, so it writes nothing; it answers nothing, reads and renewals neither, before etcd has confirmed the election; its successor reads after its own election and extends every lease by a full term",
    rules: [
      {
        name: "electionConditional",
        workload: "locks",
        focus: "fail-overs",
        why: "a deposed lock service writes over what its successor wrote",
      },
      {
        name: "answersConfirmed",
        workload: "locks",
        focus: "fail-overs",
        why: "a deposed lock service renews a lease beyond the term that its successor gave",
      },
    ],
    tests: ["packages/etcd/src/etcd-key-value.test.ts", "services/lock-service/src/store/etcd.test.ts", "tests/etcd/adapter.slow.ts"],
    faults: ["pause", "cut-pair", "crash", "partition"],
  },
  {
    fault: "the active lock service over etcd dies at the same moment as the holder of a lease",
    closedBy:
      "it beats: a key in etcd changes before answers that nothing else there tells of. A standby that looks at it counts the terms from the last moment at which its predecessor can have judged a renewal, if it finds everything as it saw it last; otherwise from its election",
    rules: [
      {
        name: "answersBeat",
        workload: "locks",
        focus: "fail-overs",
        why: "a lock service renews without a beat: its successor counts the term from before the renewal",
      },
      {
        name: "sightsStand",
        unnoticed:
          "a standby looks five times a second until its predecessor's etcd lease ends, so only one that is cut off until then, and elected at once, has seen too little: 0 of 60 seeds of locks with focus fail-overs",
      },
    ],
    tests: ["packages/etcd/src/beats.test.ts", "services/lock-service/src/store/etcd.test.ts"],
    faults: ["pause", "cut-pair", "crash", "partition"],
  },
  {
    fault: "an answer of etcd is lost after the commit, or a transaction arrives there late",
    closedBy:
      "every batch is conditional on the batch before it; without an answer the same batch is sent again until etcd says whether it is there",
    rules: [
      {
        name: "batchesInOrder",
        workload: "locks",
        focus: "fail-overs",
        why: "a transaction that arrives late at etcd takes the place of a later one",
      },
    ],
    tests: ["packages/etcd/src/etcd-key-value.test.ts"],
    faults: ["partition", "pause"],
  },
  {
    fault: "the metadata store is empty or another stamp's",
    closedBy:
      "stamp id on every disk: nobody starts; unknown extents are quarantined, never deleted; a person restores the newest copy, which health names",
    rules: [],
    tests: ["services/lock-service/src/lock-service.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["whole restarts with another stamp"],
  },
];
