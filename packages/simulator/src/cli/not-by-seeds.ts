/**
 * Rules whose absence no seed has noticed, why, and the test that fails without the rule, if any. Not a place to put a rule for convenience: what
 * is said here of back-ups and of missing workloads is what would have to change for a seed to notice.
 */
import type { RuleName } from "@stamp/base";

export interface NotBySeeds {
  readonly rule: RuleName;
  readonly why: string;
  /** Undefined: none; then the rule is a candidate for deletion. */
  readonly test: string | undefined;
}

export const notBySeeds: readonly NotBySeeds[] = [
  {
    rule: "neverReopen",
    why: "fenceDurable backs it up: a node that forgot nothing refuses appends behind a seal. 1 seed of 150 noticed it alone at commit a3f7bfd, 0 of 600 at 439f4a9",
    test: "services/extent-node/src/rules.test.ts",
  },
  {
    rule: "copiesReadBeforeTold",
    why: "a replica must rot in the grace of its deletion, on the node that a decoding chooses, before the scrub finds it",
    test: "services/extent-node/src/fragments/attacks.test.ts",
  },
  {
    rule: "fragmentsCompared",
    why: "A bit has to flip in the memory of a process, between the computation of a fragment and the checksums of its chunks; no fault does that.",
    test: "services/stream-manager/src/coding/compared-fragments.test.ts",
  },
  {
    rule: "checksumsAgreed",
    why: "a bit has to flip in the memory of the process that verifies; no fault does that",
    test: "services/stream-manager/src/coding/compared-fragments.test.ts",
  },
  {
    rule: "wrongFragmentGivenUp",
    why: "only a release before level 4 makes a wrong fragment; a run has one release",
    test: "services/stream-manager/src/coding/compared-fragments.test.ts",
  },
  {
    rule: "fragmentsOfTheirCode",
    why: "the metadata must be restored from a copy, and the extent coded anew with another code under the same version; no workload restores and changes the code",
    test: "services/extent-node/src/fragments/attacks.test.ts",
  },
  {
    rule: "hedgesBounded",
    why: "nothing is lost without it: slow nodes get several times the load. The time of simulated nodes does not depend on their load",
    test: "packages/stream-client/src/read/fragment-race.test.ts",
  },
  {
    rule: "sightsStand",
    why: "a standby looks five times a second until its predecessor's etcd lease ends, so only one that is cut off until then, and elected at once, has seen too little: 0 of 60 seeds of locks with focus fail-overs",
    test: "packages/etcd/src/beats.test.ts",
  },
  {
    rule: "takenBackTogether",
    why: "the stream refuses the next group at once, too, as long as no node has room: 0 of 40 seeds of queues and 60 of writers with focus full-disks",
    test: "packages/range-partition/src/commit/group-commit.test.ts",
  },
  {
    rule: "decidedByLostRefused",
    why: "a transaction must be decided from before the refusal until there is room again; until then it finds none itself: 0 of 40 seeds of queues and 60 of writers with focus full-disks",
    test: "packages/range-partition/src/disk-full.test.ts",
  },
  {
    rule: "mintedEpochsOnly",
    why: "only a faulty process opens a stream with an epoch that nobody was given; every process of a workload runs this code",
    test: "services/stream-manager/src/calls/streams.test.ts",
  },
  {
    rule: "commandsVouched",
    why: "only a faulty process sends a command with a number that was never given; every process of a workload runs this code",
    test: "services/partition-server/src/ranges/far-commands.test.ts",
  },
  {
    rule: "epochHasOneVersion",
    why: "only a faulty process loads a range with a version that nobody gave; every process of a workload runs this code",
    test: "services/partition-server/src/ranges/holdings.test.ts",
  },
  {
    rule: "leaseAheadBounded",
    why: "only a faulty process asks for an epoch above one that nobody was given; every process of a workload runs this code",
    test: "packages/lease/src/lease.test.ts",
  },
  {
    rule: "mapsVouched",
    why: "only a faulty process tells a map that its manager never had; every process of a workload runs this code",
    test: "services/front-end/src/routing/map-cache.test.ts",
  },
  {
    rule: "versionsVouched",
    why: "only a faulty process sends a version that nobody recorded; every process of a workload runs this code",
    test: "services/extent-node/src/far-versions.test.ts",
  },
  {
    rule: "givenTermsOnly",
    why: "only a faulty process sends a term that was never given; every process of a workload runs this code",
    test: "services/extent-node/src/rules.test.ts",
  },
  {
    rule: "farTermsEndNothing",
    why: "only a faulty process brings a node to such a term; every process of a workload runs this code",
    test: "services/stream-manager/src/term/failover.test.ts",
  },
  {
    rule: "reportsVouched",
    why: "only a faulty process reports a number that its node never had; every process of a workload runs this code",
    test: "services/stream-manager/src/nodes/far-reports.test.ts",
  },
  {
    rule: "settledRecorded",
    why: "garbage is late, not lost; workload uploads moves ranges until it is gone, but no range so often that none of its owners serves for a term",
    test: "services/partition-server/src/collector/pins.test.ts",
  },
  {
    rule: "settledByAll",
    why: "it takes a split, an upload that began before it, a pass at the sibling a term later and a merge before the commit; model pins.pml has it",
    test: "packages/range-partition/src/blob-data/data-pins.test.ts",
  },
  {
    rule: "dropTimeRecorded",
    why: "the grace begins anew when another stream manager leads; no seed deposes one in every grace",
    test: "services/stream-manager/src/calls/streams.test.ts",
  },
  {
    rule: "protectionConfirmed",
    why: "a hold has to end between two neighbouring calls of a deletion; one seed of eight had such a run, with twice the rounds",
    test: "services/front-end/src/objects/protecting.test.ts",
  },
  {
    rule: "deletionAsksMarks",
    why: "a whole hold has to lie between two neighbouring calls of a deletion; eighteen seeds of holds had no such run",
    test: "services/front-end/src/objects/protecting.test.ts",
  },
  {
    rule: "newerFormatsRefused",
    why: "A run has one release. A newer one would have to be written first; its bytes are made by the test instead.",
    test: "packages/embedded/src/newer-formats.slow.ts",
  },
  {
    rule: "formatsAwaitTheirLevel",
    why: "A run has one release, which reads all that it writes. The test begins with a stamp that the release before has made.",
    test: "services/stream-manager/src/feature-level/stamp-level.test.ts",
  },
  {
    rule: "fragmentWrittenOnce",
    why: "makersMeasureReplicas backs it up. Without both, a rotten replica's maker has to be later than its deadline, and another maker faster: about 20 seeds had no such run",
    test: "services/extent-node/src/fragments/fragment-files.test.ts",
  },
  {
    rule: "attemptVersionAboveHeld",
    why: "its seed has to restore metadata of before a coding, code again onto a node with an old fragment, and need that fragment: none is known",
    test: "services/stream-manager/src/coding/fragment-adoption.test.ts",
  },
  {
    rule: "replicasApart",
    why: "every node of a workload is a fault domain of its own, and no workload loses a whole domain after another one came back",
    test: "services/stream-manager/src/repair/repair.test.ts",
  },
  {
    rule: "fragmentsApart",
    why: "every node of a workload is a fault domain of its own, and no workload loses a whole domain after another one came back",
    test: "services/stream-manager/src/coding/fragment-turns.test.ts",
  },
  {
    rule: "geoShippedUnderEpoch",
    why: "geoPromotionFences and geoRowVersionsRise back it up: a promotion fences the ranges against earlier role epochs, and seeding replaces every marker by one of the new role epoch, which is above all that was shipped before. Without all three the run fails for want of the other two",
    test: "packages/geo/src/failover-model.test.ts",
  },
  {
    rule: "geoReportFromPromotion",
    why: "the product's report begins at the markers of the new primary's rows, and a promotion answers with an empty point (decision 0488): the machine decides about the point of the model and of the location service's tests only",
    test: "packages/geo/src/failover-model.test.ts",
  },
  {
    rule: "copiesServeWhileHeard",
    why: "no run of workload geo changes the keys of an account",
    test: "packages/simulator/src/geo/settings.test.ts",
  },
  {
    rule: "geoKeysByDoorsOnly",
    why: "the location service of workload geo asks for no keys at its stamps' level: only one of a release before, or a stranger in its place, does",
    test: "services/partition-manager/src/roles/role-settings.test.ts",
  },
  {
    rule: "geoCopiesHaveKeys",
    why: "the primary pushes keys within seconds, and no run of workload geo reads a copy with its keys before that",
    test: "services/partition-manager/src/roles/role-settings.test.ts",
  },
  {
    rule: "geoSettingsBeforePromotion",
    why: "no run of workload geo changes the keys of an account",
    test: "services/location-service/src/copies/copy-settings.test.ts",
  },
  {
    rule: "geoPromotedAsCompared",
    why: "no process of workload geo says what is not so",
    test: "services/partition-manager/src/roles/role-settings.test.ts",
  },
  {
    rule: "geoRemovedKeepNoKeys",
    why: "no run of workload geo reads the row of an account that was removed",
    test: "services/partition-manager/src/roles/role-settings.test.ts",
  },
  {
    rule: "geoKeysReplaceKnown",
    why: "no run of workload geo changes the keys of an account. Model geo-keys.pml has the rule as PAIRED and CAS",
    test: "services/partition-manager/src/roles/role-settings.test.ts",
  },
  {
    rule: "copiesAreNotAhead",
    why: "no run of workload geo ships what its primary never committed",
    test: "packages/simulator/src/geo/ahead.test.ts",
  },
  {
    rule: "logsHaveLineages",
    why: "no run of workload geo puts a metadata store back. Model geo-lineage.pml has the rule as LINEAGE, ENDS, COPY and TELL",
    test: "packages/simulator/src/geo/restore.test.ts",
  },
  {
    rule: "knownCheckpointsCount",
    why: "no run with ranges puts a metadata store back; the test does, and the range is not loaded without the rule",
    test: "packages/simulator/src/geo/restore.test.ts",
  },
  {
    rule: "geoSeedingHoldsCommits",
    why: "only a PartitionName of more than 1 MiB is seeded in pieces, and the names of workload geo are far smaller",
    test: "packages/range-partition/src/shipping/seeding.test.ts",
  },
  {
    rule: "geoAcknowledgedIsSynced",
    why: "applyShipped answers when its transaction is durable and keeps no other position: the product does not ask the machine, which the model's test runs",
    test: "packages/geo/src/shipping-model.test.ts",
  },
  {
    rule: "geoFloorRefuses",
    why: "the product has one version for each PartitionName, which outlives its rows, in the place of tombstones and floor (decision 0472): no row is ever asked about them. The model's test runs the machine",
    test: "packages/geo/src/shipping-model.test.ts",
  },
  {
    rule: "geoDeletionsLeaveTombstones",
    why: "the product has one version for each PartitionName, which outlives its rows, in the place of tombstones and floor (decision 0472): no row is ever asked about them. The model's test runs the machine",
    test: "packages/geo/src/shipping-model.test.ts",
  },
  {
    rule: "geoTombstonesKeptInSeeding",
    why: "the product has one version for each PartitionName, which outlives its rows, in the place of tombstones and floor (decision 0472): no row is ever asked about them. The model's test runs the machine",
    test: "packages/geo/src/shipping-model.test.ts",
  },
  {
    rule: "geoScanIsSynced",
    why: "applySeed answers when the part is durable: RangeSeeder hears of applied and synced at once, so that nothing is in between. The model's test runs the machine with a crash there",
    test: "packages/geo/src/shipping-model.test.ts",
  },
  {
    rule: "geoSeedingEndsAtScanEnd",
    why: "a part replaces whole PartitionNames by states of one moment (decision 0501): a copy that is called complete too early still shows prefixes, and Last Sync Time has a position of its own",
    test: "packages/geo/src/shipping-model.test.ts",
  },
  {
    rule: "geoOlderRolesEnd",
    why: "no run of workload geo puts a metadata store back; the test does, and two stamps go on as primaries without the rule",
    test: "packages/simulator/src/geo/restore.test.ts",
  },
  {
    rule: "geoStepRecorded",
    why: "the next attempt goes on with the step that was sent too early, unless a person gives the operation up in between: 14 seeds of geo with focus geo-location had no such run. Model geo-failover.pml has the rule as RECORD",
    test: "packages/geo/src/failover-model.test.ts",
  },
  {
    rule: "geoCopiesNotCollected",
    why: "seed 1 of geo with focus geo-collections noticed it in the code before 777bcba8, and seeds 1 and 2 notice nothing in that of b3b365d0, whose runs differ: none is kept until one is searched again",
    test: "packages/simulator/src/geo/two-stamps.test.ts",
  },
  {
    rule: "geoPromotionFences",
    why: "seed 3 of geo with focus geo-late-applies noticed it in the code of 777bcba8, and notices nothing in that of b3b365d0, whose runs differ: none is kept until one is searched again",
    test: "packages/range-partition/src/shipping/shipped-fences.test.ts",
  },
  {
    rule: "geoDrainedIsQuiet",
    why: "seed 1 of geo with focus geo-failovers noticed it in the code of 4106be67, and seeds 1 to 7 notice nothing in that of babc072c, whose runs differ: none is kept until one is searched again",
    test: "services/partition-server/src/shipping/drained.test.ts",
  },
  {
    rule: "geoRemovalEnds",
    why: "servers hear of a role every 0.3 to 1 s in workload geo, and a copy that begins anew is seeded later than that, so that no removal is under way then. Model geo-removal.pml has the rule as CHECK",
    test: "packages/range-partition/src/removal/remove-page.test.ts",
  },
  {
    rule: "geoPlacesChecked",
    why: "a sender pins the bytes six times in a term, so that a collector of the second stamp seldom gives them back between their arrival and their row: 13 seeds of geo, some with small extents, had no such run",
    test: "packages/simulator/src/geo/blobs.test.ts",
  },
  {
    rule: "geoReportedBytesCount",
    why: "workload geo compares the report's rows with its history, and does not read the bytes of blobs that they name",
    test: "packages/simulator/src/geo/report-bytes.test.ts",
  },
  {
    rule: "geoReportedContentWhole",
    why: "workload geo compares the report's rows with its history, and does not read the bytes of blobs that they name",
    test: "packages/simulator/src/geo/report-read.test.ts",
  },
  {
    rule: "geoPlacesVouched",
    why: "the stamps of a run are honest: they name only places that they were given",
    test: "packages/simulator/src/geo/strangers.test.ts",
  },
  {
    rule: "geoTicketsApart",
    why: "the stamps of a run are honest: their tickets are near to each other",
    test: "packages/simulator/src/geo/strangers.test.ts",
  },
  {
    rule: "treeBegunBeforeMarks",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as BEGIN",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeDecidedWhereBegun",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as DECIDE",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeMarksAskPrimary",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as ASK",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeMarksReadAgain",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as REREAD",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treePrimaryFinished",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as FINISH",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeMarksOutliveClocks",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as ABORT",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeAttemptsFresh",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as FRESH",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeWriteBeforeLook",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as WRITE",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeMarkBeforeLook",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as MARK",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeBegunIsEntry",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as PENDING",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeCollectsRemoved",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule's other half as SETTLE",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeMoveLock",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as LOCK",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "treeWalkUnderLock",
    why: "no door of the product changes a tree yet, so no workload does. Model tree.pml has the rule as WALK",
    test: "packages/tree/src/rules.test.ts",
  },
  {
    rule: "raftCommitsOwnTerm",
    why: "a lock service's appends are large, and that of a new leader has an entry of its own term behind those of earlier ones: both are acknowledged together. 0 of 550 seeds of workload consensus noticed; the simulation of the package, which sends entries one by one at times, does",
    test: "packages/raft/src/simulation.test.ts",
  },
  {
    rule: "raftOneChangeAtATime",
    why: "members are changed by command (stamp lock-service), and no workload has an operator who does. While changes are not committed the quorums of all of them are needed here, so few histories go wrong",
    test: "packages/raft/src/simulation.test.ts",
  },
  {
    rule: "consensusSameLineage",
    why: "the folders that the simulator puts back are the member's own, and none is of another stamp",
    test: "services/lock-service/src/consensus/member-folders.test.ts",
  },
];
