/** Leaders and owners: leases, terms, epochs and versions; also processes that make up a term or an epoch. */
import type { FaultRow } from "./fault-row.ts";

export const leaderRows: readonly FaultRow[] = [
  {
    fault: "a partition server has lost its lease but still appends",
    closedBy:
      "its owner epoch is below the one recorded at OpenStream: the extent it knows is sealed (fenced), and SM refuses it a new one",
    rules: [
      { name: "ownerEpochAtManager", together: ["ownerEpochAtNode"], workload: "streams", why: "an old owner goes on writing" },
      "ownerEpochAtNode",
    ],
    tests: ["packages/stream-client/src/owned-stream.test.ts", "services/stream-manager/src/chaos.test.ts"],
    faults: ["pause", "cut-pair", "partition"],
  },
  {
    fault: "a stale server answers a read",
    closedBy:
      "the lease is checked again *after* the answer is made; its end counts from when the renewal was *sent*, less a drift margin; a successor waits the old lease out",
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
    closedBy:
      "their streams (map, schema) are opened with the leader epoch: the older one's next write fails; PS refuse commands with a lower PM epoch",
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
    closedBy: "every metadata-store write is conditional on the leader epoch; ENs refuse a lower SM epoch",
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
    closedBy:
      "ENs obey a term more than 16 above the last vouched one only when the lock service says that it gave it; otherwise no leader could ever be obeyed again",
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
    closedBy:
      "a refusal for a term more than 16 above its own ends no leader's term: SM goes on without the node and names it, with the way back",
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
    fault: "a process opens a stream with an invented owner epoch, far above the last one that the partition manager gave out",
    closedBy:
      "before SM records an owner epoch more than 256 above the last given one (a PM term: 16), it reads the counter and the lease in the metadata store, and refuses what was never given; if a stream already has a higher epoch, PM gives out the next one above it, in one step",
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
    fault: "a process sends a partition server a command with an invented term or owner epoch, far above the last one that was given out",
    closedBy:
      "PS obeys at once what is at most 16 terms and 256 owner epochs above the last ones that the lock service told it; before a higher one it asks the lock service, and refuses what was never given; PM mints above an epoch that a server names, in one step",
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
    fault: "a process tells a partition server to load a range under an invented range version",
    closedBy: "an owner epoch is given with one range version: PS ends an epoch for which it was told two, and PM assigns the range anew",
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
    closedBy:
      "the lock service goes at most 16 above the last epoch at once, so nobody uses the numbers up; managers ask for one above a term that a receiver obeys, and need one change of term",
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
    closedBy:
      "a front-end asks who leads, and takes the whole map of that manager, before it takes a version that is below the known one or more than 1,000 above it, and while servers go on refusing what the map says",
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
    closedBy:
      "it refuses a method that it does not serve: that refusal is not the leader's, nor the server's. The caller looks up who leads, or waits for a newer map, and asks again",
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
    closedBy:
      "ENs obey at once a version up to the replica's, and one above it while it is not sealed; before a higher one they ask SM, which records a version before it sends it, and refuse what it has not recorded",
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
    closedBy:
      "SM asks the node itself before it takes a report that is far ahead of what it knows, or below, or tells of a copy of the metadata beyond the store; the answer is taken, also in the place of a recorded number that was never true",
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
