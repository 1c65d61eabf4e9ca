/** Leaders and owners: leases, terms, epochs and versions; also processes that make up a term or an epoch. */
import type { FaultRow } from "./fault-row.ts";

export const leaderRows: readonly FaultRow[] = [
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
      "services/lock-service/src/leader-calls.test.ts",
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
];
