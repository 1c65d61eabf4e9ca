/** An account at two stamps: commands of the location service, shipping, seeding, reports. */
import type { FaultRow } from "./fault-row.ts";

const failoverModel = "packages/geo/src/failover-model.test.ts";
const shippingModel = "packages/geo/src/shipping-model.test.ts";
const failover = "packages/simulator/src/geo/failover.test.ts";
const pairs = "packages/simulator/src/geo/two-stamps.test.ts";
const shipping = "packages/range-partition/src/shipping/shipping.test.ts";

const oneVersion =
  "the product has one version for each PartitionName, which outlives its rows, in the place of tombstones and floor: no row is ever asked about them. The model's test runs the machine";

export const geoRows: readonly FaultRow[] = [
  {
    fault: "a command about an account's role arrives late at its stamp, or twice",
    closedBy: "a stamp obeys no command that is older than the last one it obeyed: number of the operation, then its step",
    rules: [
      {
        name: "geoCommandsInOrder",
        workload: "geo",
        focus: "geo-late-commands",
        why: "a late command of an operation that was given up wakes a drained primary, or stops one",
      },
    ],
    tests: [failoverModel, "services/location-service/src/operations.test.ts"],
    faults: ["failpoints", "partition", "link cut"],
  },
  {
    fault: "a front-end acts on the role that an account had before",
    closedBy: "a role is acted on for a term; `drain` and `demote` are answered a term after the row was written",
    rules: [
      {
        name: "geoCachedRolesEnd",
        workload: "geo",
        focus: "geo-failovers",
        why: "a front-end acknowledges writes after everything was shipped",
      },
    ],
    tests: [failoverModel, failover],
    faults: ["failpoints", "slow links"],
  },
  {
    fault: "a write that was let in before the account was drained is still on its way when everything else was shipped",
    closedBy: "a range of a drained account has something pending until what began before is shipped",
    rules: [
      {
        name: "geoDrainedIsQuiet",
        unnoticed:
          "seed 1 of geo with focus geo-failovers noticed it in the code of 4106be67, and seeds 1 to 7 notice nothing in that of babc072c, whose runs differ: none is kept until one is searched again",
      },
    ],
    tests: ["services/partition-server/src/shipping/drained.test.ts"],
    faults: ["slow links", "reshape"],
  },
  {
    fault: "the location service dies between a step of an operation and its record",
    closedBy: "it records a step before it sends the step's command",
    rules: [
      {
        name: "geoStepRecorded",
        unnoticed:
          "the next attempt goes on with the step that was sent too early, unless a person gives the operation up in between: 14 seeds of geo with focus geo-location had no such run. Model geo-failover.pml has the rule as RECORD",
      },
    ],
    tests: [failoverModel, "services/location-service/src/operations.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "what an earlier primary has shipped arrives when the stamp follows another one, or was promoted",
    closedBy:
      "a stamp takes only what was shipped under its own role epoch; a promotion fences every range first, and waits for what was decided before",
    rules: [
      {
        name: "geoShippedUnderEpoch",
        unnoticed:
          "geoPromotionFences and geoRowVersionsRise back it up: a promotion fences the ranges against earlier role epochs, and seeding replaces every marker by one of the new role epoch, which is above all that was shipped before. Without all three the run fails for want of the other two",
      },
      {
        name: "geoPromotionFences",
        unnoticed:
          "seed 3 of geo with focus geo-late-applies noticed it in the code of 777bcba8, and notices nothing in that of b3b365d0, whose runs differ: none is kept until one is searched again",
      },
    ],
    tests: [failoverModel, "packages/range-partition/src/shipping/shipped-fences.test.ts"],
    faults: ["failpoints", "slow links", "forced failovers"],
  },
  {
    fault: "an account comes back to a stamp that still deletes what it had of it",
    closedBy:
      'the range keeps the highest tenure of the account, durably; a removal of an earlier one deletes nothing (`design/geo-shipping.md`, "Removal")',
    rules: [
      {
        name: "geoRemovalEnds",
        unnoticed:
          "servers hear of a role every 0.3 to 1 s in workload geo, and a copy that begins anew is seeded later than that, so that no removal is under way then. Model geo-removal.pml has the rule as CHECK",
      },
    ],
    tests: ["packages/range-partition/src/removal/remove-page.test.ts", "packages/simulator/src/geo/removal.test.ts"],
    faults: ["slow links", "crash", "reshape"],
  },
  {
    fault: "a primary that was deposed by force has commits that its copy lacked",
    closedBy:
      "the markers of the new primary's rows say what it has; what is above them is reported, durably, before the old primary is seeded again",
    rules: [
      {
        name: "geoReportFromPromotion",
        unnoticed:
          "the product's report begins at the markers of the new primary's rows, and a promotion answers with an empty point: the machine decides about the point of the model and of the location service's tests only",
      },
      {
        name: "geoReportBeforeSeeding",
        workload: "geo",
        focus: "geo-forced",
        why: "the rows of a deposed primary are replaced before they are reported",
      },
      {
        name: "geoReportLacksShipped",
        workload: "geo",
        focus: "geo-forced",
        why: "the report of a deposed primary has what the new one has",
      },
    ],
    tests: [failoverModel, "packages/simulator/src/geo/report.test.ts"],
    faults: ["forced failovers", "link cut", "crash"],
  },
  {
    fault: "a collector of a deposed primary meets bytes that only its report names",
    closedBy:
      "the places of a report row count as those of any row, as long as the report is kept; they are moved out of extents that are mostly garbage",
    rules: [
      {
        name: "geoReportedBytesCount",
        unnoticed: "workload geo compares the report's rows with its history, and does not read the bytes of blobs that they name",
      },
    ],
    tests: ["packages/simulator/src/geo/report-bytes.test.ts", "services/partition-server/src/collector/reported-places.test.ts"],
    faults: ["forced failovers", "collections"],
  },
  {
    fault: "a person reads a blob back, and the report of the deposed primary has only a part of it",
    closedBy:
      "the content is read from rows of the report alone; if a row of it is not there, or a page blob was begun before, all of it is refused",
    rules: [
      {
        name: "geoReportedContentWhole",
        unnoticed: "workload geo compares the report's rows with its history, and does not read the bytes of blobs that they name",
      },
    ],
    tests: ["packages/simulator/src/geo/report-read.test.ts"],
    faults: ["forced failovers"],
  },
  {
    fault: "a shipment arrives twice, or behind a later one",
    closedBy:
      "each PartitionName keeps the version that it was shipped up to, also when its rows are deleted; a commit is applied only above it",
    rules: [
      {
        name: "geoRowVersionsRise",
        workload: "geo",
        focus: "geo-late-shipments",
        why: "a shipment that is late is applied over a later one",
      },
      {
        name: "geoFloorRefuses",
        unnoticed: oneVersion,
      },
      {
        name: "geoDeletionsLeaveTombstones",
        unnoticed: oneVersion,
      },
      {
        name: "geoTombstonesKeptInSeeding",
        unnoticed: oneVersion,
      },
    ],
    tests: [shippingModel, shipping],
    faults: ["failpoints", "slow links"],
  },
  {
    fault: "a key is rotated at the primary while its copy is not reached",
    closedBy:
      'a copy that has heard neither its primary nor a word of the location service for 60 s is not read from (`design/geo.md`, "Keys and settings")',
    rules: [{ name: "copiesServeWhileHeard", unnoticed: "no run of workload geo changes the keys of an account" }],
    tests: ["packages/simulator/src/geo/settings.test.ts"],
    faults: ["link cut"],
  },
  {
    fault: "a location service, or who has taken its place, asks a stamp for keys of accounts, or brings some",
    closedBy: "from feature level 4 on a stamp refuses both, also before its partition manager has heard the level",
    rules: [
      {
        name: "geoKeysByDoorsOnly",
        unnoticed:
          "the location service of workload geo asks for no keys at its stamps' level: only one of a release before, or a stranger in its place, does",
      },
    ],
    tests: ["packages/simulator/src/geo/location-keys.test.ts", "services/partition-manager/src/roles/role-settings.test.ts"],
    faults: [],
  },
  {
    fault: "the rows of a copy are complete before its keys have come, or a key is rotated right before a planned failover",
    closedBy:
      'a copy without keys does not become secondary; a drained primary is followed by a promotion only when the copy\'s row has its settings, and the promotion writes the settings that it compared (`design/geo.md`, "Keys and settings")',
    rules: [
      {
        name: "geoCopiesHaveKeys",
        unnoticed: "the primary pushes keys within seconds, and no run of workload geo reads a copy with its keys before that",
      },
      { name: "geoSettingsBeforePromotion", unnoticed: "no run of workload geo changes the keys of an account" },
      { name: "geoPromotedAsCompared", unnoticed: "no process of workload geo says what is not so" },
    ],
    tests: ["services/partition-manager/src/roles/role-settings.test.ts", "services/location-service/src/copies/copy-settings.test.ts"],
    faults: ["link cut"],
  },
  {
    fault: "keys that a primary has given arrive late, behind later ones or at a later copy of the account",
    closedBy:
      "a copy tells which settings it has, and takes others only in their place and for itself, in one transaction of its row (model `geo-keys.pml`)",
    rules: [
      {
        name: "geoKeysReplaceKnown",
        unnoticed: "no run of workload geo changes the keys of an account. Model geo-keys.pml has the rule as PAIRED and CAS",
      },
    ],
    tests: ["services/partition-manager/src/roles/role-settings.test.ts", "services/partition-server/src/shipping/settings-push.test.ts"],
    faults: ["slow links"],
  },
  {
    fault: "whoever holds a stamp reads the keys of an account that was removed from it",
    closedBy: "the row that stays of the account has a role, and no keys and settings",
    rules: [{ name: "geoRemovedKeepNoKeys", unnoticed: "no run of workload geo reads the row of an account that was removed" }],
    tests: ["services/partition-manager/src/roles/role-settings.test.ts"],
    faults: [],
  },
  {
    fault: "an intruder who has the primary's secret ships rows to the copy, under commit numbers that the primary has not reached",
    closedBy:
      "the copy answers with the version because of which it left something out; if the range's log never had that version, the copy is seeded anew under a new lineage, and is not complete until then (`design/geo.md`)",
    rules: [{ name: "copiesAreNotAhead", unnoticed: "no run of workload geo ships what its primary never committed" }],
    tests: ["packages/simulator/src/geo/ahead.test.ts"],
    faults: [],
  },
  {
    fault: "the metadata store of the primary or of the secondary is put back from a copy, or a commit log loses its end",
    closedBy:
      'versions carry the lineage of their log, and what follows another lineage is seeded again (`design/geo-shipping.md`, "Lineage")',
    rules: [
      {
        name: "logsHaveLineages",
        unnoticed: "no run of workload geo puts a metadata store back. Model geo-lineage.pml has the rule as LINEAGE, ENDS, COPY and TELL",
      },
    ],
    tests: ["packages/simulator/src/geo/restore.test.ts", "packages/lsm/src/log-lineage.test.ts", shipping],
    faults: ["restores"],
  },
  {
    fault: "the metadata store of a stamp is put back from a copy that is older than a failover away from it",
    closedBy:
      'the location service compares the roles at each stamp with its records, at once when a stamp answers again, and sends the deposed primary its `demote` again (`design/geo.md`, "A restored role")',
    rules: [
      {
        name: "geoOlderRolesEnd",
        unnoticed: "no run of workload geo puts a metadata store back; the test does, and two stamps go on as primaries without the rule",
      },
    ],
    tests: ["packages/simulator/src/geo/restore.test.ts", "services/location-service/src/copies/older-roles.test.ts"],
    faults: ["restores"],
  },
  {
    fault: "a metadata store is put back that does not know the extents of a range's newest checkpoints",
    closedBy:
      "the range begins with the last record whose checkpoints are in known extents, or gives up those that are not, and replays its log, also over commits that are gone; what it lacks it keeps in its state and tells (`docs/guides/metadata.md`)",
    rules: [
      {
        name: "restoredLogsMayLack",
        workload: "restores",
        why: "an extent inside a log is lost at a restore, and its range is never loaded again",
      },
      {
        name: "knownCheckpointsCount",
        workload: "restores",
        why: "a checkpoint was written to an extent that is lost at a restore, and its range is never loaded again",
      },
    ],
    tests: [
      "packages/simulator/src/geo/restore.test.ts",
      "packages/range-partition/src/load/rolled-back.test.ts",
      "packages/range-partition/src/load/load.test.ts",
    ],
    faults: ["restores"],
  },
  {
    fault: "a server dies with shipments on their way, or their range is moved, split or merged",
    closedBy: "the durable cursor is what the receiver has made durable; a new owner goes on there, in its predecessor's log",
    rules: [
      {
        name: "geoCursorAcknowledged",
        workload: "geo",
        focus: "geo-late-shipments",
        why: "what was sent counts as acknowledged, and is lost with its server",
      },
      {
        name: "geoHeirContinues",
        workload: "geo",
        focus: "geo-late-shipments",
        why: "a new owner of a range begins at the end of the log, and what its predecessor had not shipped is left out",
      },
      {
        name: "geoAcknowledgedIsSynced",
        unnoticed:
          "applyShipped answers when its transaction is durable and keeps no other position: the product does not ask the machine, which the model's test runs",
      },
    ],
    tests: [shippingModel, "packages/range-partition/src/followers/log-followers.test.ts"],
    faults: ["crash", "reshape", "link cut"],
  },
  {
    fault: "while a range is seeded, later commits of it are shipped too, and the sender or the receiver dies in between",
    closedBy:
      "a part replaces whole PartitionNames in one transaction with their versions; a PartitionName of which only some pieces are there takes no commit; the copy is complete when the log is acknowledged to where it was at the end of the scan",
    rules: [
      {
        name: "geoSeedingHoldsCommits",
        unnoticed: "only a PartitionName of more than 1 MiB is seeded in pieces, and the names of workload geo are far smaller",
      },
      {
        name: "geoScanIsSynced",
        unnoticed:
          "applySeed answers when the part is durable: RangeSeeder hears of applied and synced at once, so that nothing is in between. The model's test runs the machine with a crash there",
      },
      {
        name: "geoSeedingEndsAtScanEnd",
        unnoticed:
          "a part replaces whole PartitionNames by states of one moment: a copy that is called complete too early still shows prefixes, and Last Sync Time has a position of its own",
      },
    ],
    tests: [shippingModel, "packages/range-partition/src/shipping/seeding.test.ts"],
    faults: ["crash", "reshape", "link cut"],
  },
  {
    fault: "a collector of the second stamp meets rows, or bytes, before what uses them has arrived",
    closedBy:
      "the collector of a copy deletes no rows; a row of a blob is applied only if its bytes are in the blob data of its range, which is decided in the row's order",
    rules: [
      {
        name: "geoPlacesChecked",
        unnoticed:
          "a sender pins the bytes six times in a term, so that a collector of the second stamp seldom gives them back between their arrival and their row: 13 seeds of geo, some with small extents, had no such run",
      },
      {
        name: "geoCopiesNotCollected",
        unnoticed:
          "seed 1 of geo with focus geo-collections noticed it in the code before 777bcba8, and seeds 1 and 2 notice nothing in that of b3b365d0, whose runs differ: none is kept until one is searched again",
      },
    ],
    tests: [pairs, "packages/simulator/src/geo/blobs.test.ts"],
    faults: ["collections", "failpoints"],
  },
  {
    fault: "another stamp ships a row that names bytes of an account that it has nothing to do with",
    closedBy:
      "a row from another stamp names only bytes that were written here for its account and PartitionName, as a handle with a MAC over both says, or that the row before it has",
    rules: [{ name: "geoPlacesVouched", unnoticed: "the stamps of a run are honest: they name only places that they were given" }],
    tests: ["packages/simulator/src/geo/strangers.test.ts", "services/partition-server/src/shipping/data/admission.test.ts"],
    faults: [],
  },
  {
    fault: "another stamp ships a number far ahead",
    closedBy:
      "tickets of shipped rows count for their account alone, and none above 2^52 + 2^51 is taken; a number that is none is refused, in calls and in answers",
    rules: [{ name: "geoTicketsApart", unnoticed: "the stamps of a run are honest: their tickets are near to each other" }],
    tests: [
      "packages/simulator/src/geo/strangers.test.ts",
      "packages/range-partition/src/shipping/shipped-fences.test.ts",
      "services/partition-server/src/shipping/far-answers.test.ts",
    ],
    faults: [],
  },
];
