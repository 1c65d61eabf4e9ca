/** Leaders and owners: leases, terms, epochs and versions; also processes that make up a term or an epoch. */
import type { FaultRow } from "./fault-row.ts";

export const leaderRows: readonly FaultRow[] = [
  {
    fault: "a partition server has lost its lease but still appends",
    rules: [
      { name: "ownerEpochAtManager", together: ["ownerEpochAtNode"], workload: "streams", why: "an old owner goes on writing" },
      "ownerEpochAtNode",
    ],
    tests: ["packages/stream-client/src/owned-stream.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["pause", "cut-pair", "partition"],
  },
  {
    fault: "a stale server answers a read",
    rules: [
      {
        name: "leaseCountsFromSending",
        workload: "registers",
        focus: "late-renewals",
        why: "a server believes in its lease for longer than it has it",
      },
      {
        name: "leaseRecheckedAfterAnswer",
        workload: "registers",
        focus: "leases",
        why: "a server that was paused answers for what another serves",
      },
      { name: "waitLeaseOut", workload: "registers", focus: "unreachable", why: "a range is given away while its server holds its lease" },
      {
        name: "waitForClosed",
        workload: "bank",
        focus: "moves",
        why: "a range is loaded elsewhere while the server that had it still answers",
      },
      {
        name: "dropBeforeNewLease",
        workload: "registers",
        focus: "leases",
        why: "a server with a new lease answers for what it had under the old one",
      },
    ],
    tests: [
      "packages/lease/src/lease.test.ts",
      "packages/partition-map/src/assignment.test.ts",
      "services/partition-server/src/ranges/moves.test.ts",
    ],
    faults: ["pause", "cut-pair"],
  },
  {
    fault: "two partition managers both believe they lead",
    rules: [
      {
        name: "pmTermAtServer",
        // Commands that a manager had sent before it lost its lease were closed by the next one.
        backedUpBy: ["closedEpochRefused"],
        workload: "registers",
        focus: "old-managers",
        why: "a range is loaded by the word of a manager that leads no more",
      },
      "ownerEpochAtManager",
      {
        name: "closedEpochRefused",
        workload: "registers",
        focus: "overtaken",
        why: "a range is loaded by a command that its own Close has overtaken, while another server is to have it",
      },
      {
        name: "leaseEpochNamedInLoad",
        workload: "registers",
        focus: "late-loads",
        why: "a server with a new lease loads what it was given under the old one, while another is to have it",
      },
    ],
    tests: ["packages/partition-map/src/server-rules.test.ts"],
    faults: ["pause", "cut-pair", "crash", "broken-connection", "failpoints"],
  },
  {
    fault: "two stream managers",
    rules: [
      {
        name: "storeFence",
        backedUpBy: ["storeCompareAndSet"],
        workload: "streams",
        focus: "late-transactions",
        why: "what a manager wrote before it was deposed is applied over what its successor wrote",
      },
      {
        name: "storeCompareAndSet",
        backedUpBy: ["storeFence"],
        workload: "streams",
        focus: "late-transactions",
        why: "a transaction is applied to keys that changed since it was made",
      },
      {
        name: "smTermAtNode",
        backedUpBy: ["newerSealOnly"],
        workload: "streams",
        focus: "late-commands",
        why: "what a manager sent before it was deposed cuts what its successor seals",
      },
    ],
    tests: [
      "services/lock-service/src/lock-service.test.ts",
      "services/extent-node/src/rules.test.ts",
      "services/stream-manager/src/term/failover.test.ts",
    ],
    faults: ["pause", "partition", "crash"],
  },
  {
    fault: "a process sends a term that no leader was given, far ahead of the last one",
    rules: [
      {
        name: "givenTermsOnly",
        unnoticed: "only a faulty process sends a term that was never given; every process of a workload runs this code",
      },
    ],
    tests: [
      "services/extent-node/src/control.test.ts",
      "services/extent-node/src/rules.test.ts",
      "services/stream-manager/src/term/failover.test.ts",
    ],
    faults: [],
  },
  {
    fault: "a node obeys a term that no leader can have (its journal holds one since an older release)",
    rules: [
      {
        name: "farTermsEndNothing",
        unnoticed: "only a faulty process brings a node to such a term; every process of a workload runs this code",
      },
    ],
    tests: ["services/stream-manager/src/term/failover.test.ts"],
    faults: [],
  },
  {
    fault: "a process opens a stream with an owner epoch that nobody was given, far ahead of the last one",
    rules: [
      {
        name: "mintedEpochsOnly",
        unnoticed: "only a faulty process opens a stream with an epoch that nobody was given; every process of a workload runs this code",
      },
    ],
    tests: ["services/stream-manager/src/calls/streams.test.ts", "services/partition-server/src/far-epochs.test.ts"],
    faults: [],
  },
  {
    fault: "a process sends a partition server a command with a term or an owner epoch that nobody was given, far ahead of the last one",
    rules: [
      {
        name: "commandsVouched",
        unnoticed: "only a faulty process sends a command with a number that was never given; every process of a workload runs this code",
      },
    ],
    tests: ["services/partition-server/src/ranges/far-commands.test.ts", "packages/metadata-store/src/given-numbers.test.ts"],
    faults: [],
  },
  {
    fault: "a process loads a range at a partition server with a range version that nobody gave",
    rules: [
      {
        name: "epochHasOneVersion",
        unnoticed: "only a faulty process loads a range with a version that nobody gave; every process of a workload runs this code",
      },
    ],
    tests: ["services/partition-server/src/ranges/holdings.test.ts", "services/partition-server/src/far-numbers.test.ts"],
    faults: [],
  },
  {
    fault: "a process asks for a lease with an epoch far above the last one",
    rules: [
      {
        name: "leaseAheadBounded",
        unnoticed: "only a faulty process asks for an epoch above one that nobody was given; every process of a workload runs this code",
      },
    ],
    tests: ["packages/lease/src/lease.test.ts", "services/lock-service/src/far-epochs.test.ts"],
    faults: [],
  },
  {
    fault: "a process tells a front-end a partition map with a version, or a range version, that the partition manager never gave",
    rules: [
      {
        name: "mapsVouched",
        unnoticed: "only a faulty process tells a map that its manager never had; every process of a workload runs this code",
      },
    ],
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
    rules: [
      {
        name: "versionsVouched",
        unnoticed: "only a faulty process sends a version that nobody recorded; every process of a workload runs this code",
      },
    ],
    tests: ["services/extent-node/src/far-versions.test.ts"],
    faults: [],
  },
  {
    fault: "a process reports a node with an incarnation or a report number that the node never had",
    rules: [
      {
        name: "reportsVouched",
        unnoticed: "only a faulty process reports a number that its node never had; every process of a workload runs this code",
      },
    ],
    tests: ["services/stream-manager/src/nodes/far-reports.test.ts", "packages/stream/src/stream.test.ts"],
    faults: [],
  },
];
