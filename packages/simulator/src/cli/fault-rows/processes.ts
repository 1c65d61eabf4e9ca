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
      "packages/range-partition/src/handoff/merge.test.ts",
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
    tests: ["packages/lease/src/lease.test.ts", "services/lock-service/src/leases.test.ts"],
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
    fault: "a host is away while extents are coded, and two fragments of each lie in one fault domain",
    rules: ["fragmentsApart"],
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
    fault: "the active lock service over etcd dies at the same moment as the holder of a lease",
    rules: ["answersBeat", "sightsStand"],
    tests: ["packages/etcd/src/beats.test.ts", "services/lock-service/src/store/etcd.test.ts"],
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
];
