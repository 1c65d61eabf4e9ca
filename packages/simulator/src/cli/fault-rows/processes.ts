/** Processes that die, hang or are away: servers, managers, hosts, and the lock service with its store. */
import type { FaultRow } from "./fault-row.ts";

export const processRows: readonly FaultRow[] = [
  {
    fault: "fsync fails",
    rules: [],
    tests: ["services/extent-node/src/disk/fail-stop-disk.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["failed-fsync", "failpoints"],
  },
  {
    fault: "a server or partition manager dies in a split or merge, or what they tell each other of it is late or lost",
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
    rules: [
      { name: "createdOnEveryReplica", workload: "streams", focus: "replicas", why: "liveness: an extent is told of that no replica has" },
    ],
    tests: ["services/stream-manager/src/term/failover.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "a host is away while extents are made, and two replicas of each lie in one fault domain",
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
    rules: ["waitLeaseOut", "refusalDurable"],
    tests: ["packages/partition-map/src/assignment.test.ts"],
    faults: ["cut-pair"],
  },
  {
    fault: "a partition server holds its lease and can't load (cut off from the streams, full, a load that hangs)",
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
    fault: "an active lock service over etcd is deposed and does not know it: a pause, a cut, an etcd lease that ran out",
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
    rules: [],
    tests: ["services/lock-service/src/lock-service.test.ts", "services/extent-node/src/recovery/recovery.test.ts"],
    faults: ["whole restarts with another stamp"],
  },
];
