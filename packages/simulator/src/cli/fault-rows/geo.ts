/** An account at two stamps: commands of the location service, shipping, seeding, reports. */
import type { FaultRow } from "./fault-row.ts";

const failoverModel = "packages/geo/src/failover-model.test.ts";
const shippingModel = "packages/geo/src/shipping-model.test.ts";
const failover = "packages/simulator/src/geo/failover.test.ts";
const pairs = "packages/simulator/src/geo/two-stamps.test.ts";
const shipping = "packages/range-partition/src/shipping/shipping.test.ts";

export const geoRows: readonly FaultRow[] = [
  {
    fault: "a command about an account's role arrives late at its stamp, or twice",
    rules: ["geoCommandsInOrder"],
    tests: [failoverModel, "services/location-service/src/operations.test.ts"],
    faults: ["failpoints", "partition", "link cut"],
  },
  {
    fault: "a front-end acts on the role that an account had before",
    rules: ["geoCachedRolesEnd"],
    tests: [failoverModel, failover],
    faults: ["failpoints", "slow links"],
  },
  {
    fault: "a write that was let in before the account was drained is still on its way when everything else was shipped",
    rules: ["geoDrainedIsQuiet"],
    tests: ["services/partition-server/src/shipping/drained.test.ts"],
    faults: ["slow links", "reshape"],
  },
  {
    fault: "the location service dies between a step of an operation and its record",
    rules: ["geoStepRecorded"],
    tests: [failoverModel, "services/location-service/src/operations.test.ts"],
    faults: ["crash", "failpoints"],
  },
  {
    fault: "what an earlier primary has shipped arrives when the stamp follows another one, or was promoted",
    rules: ["geoShippedUnderEpoch", "geoPromotionFences"],
    tests: [failoverModel, "packages/range-partition/src/shipping/shipped-fences.test.ts"],
    faults: ["failpoints", "slow links", "forced failovers"],
  },
  {
    fault: "an account comes back to a stamp that still deletes what it had of it",
    rules: ["geoRemovalEnds"],
    tests: ["packages/range-partition/src/removal/remove-page.test.ts", "packages/simulator/src/geo/removal.test.ts"],
    faults: ["slow links", "crash", "reshape"],
  },
  {
    fault: "a primary that was deposed by force has commits that its copy lacked",
    rules: ["geoReportFromPromotion", "geoReportBeforeSeeding", "geoReportLacksShipped"],
    tests: [failoverModel, "packages/simulator/src/geo/report.test.ts"],
    faults: ["forced failovers", "link cut", "crash"],
  },
  {
    fault: "a collector of a deposed primary meets bytes that only its report names",
    rules: ["geoReportedBytesCount"],
    tests: ["packages/simulator/src/geo/report-bytes.test.ts", "services/partition-server/src/collector/reported-places.test.ts"],
    faults: ["forced failovers", "collections"],
  },
  {
    fault: "a person reads a blob back, and the report of the deposed primary has only a part of it",
    rules: ["geoReportedContentWhole"],
    tests: ["packages/simulator/src/geo/report-read.test.ts"],
    faults: ["forced failovers"],
  },
  {
    fault: "a shipment arrives twice, or behind a later one",
    rules: ["geoRowVersionsRise", "geoFloorRefuses", "geoDeletionsLeaveTombstones", "geoTombstonesKeptInSeeding"],
    tests: [shippingModel, shipping],
    faults: ["failpoints", "slow links"],
  },
  {
    fault: "a key is rotated at the primary while its copy is not reached",
    rules: ["copiesServeWhileHeard"],
    tests: ["packages/simulator/src/geo/settings.test.ts"],
    faults: ["link cut"],
  },
  {
    fault: "a location service, or who has taken its place, asks a stamp for keys of accounts, or brings some",
    rules: ["geoKeysByDoorsOnly"],
    tests: ["packages/simulator/src/geo/location-keys.test.ts", "services/partition-manager/src/roles/role-settings.test.ts"],
    faults: [],
  },
  {
    fault: "the rows of a copy are complete before its keys have come, or a key is rotated right before a planned failover",
    rules: ["geoCopiesHaveKeys", "geoSettingsBeforePromotion", "geoPromotedAsCompared"],
    tests: ["services/partition-manager/src/roles/role-settings.test.ts", "services/location-service/src/copies/copy-settings.test.ts"],
    faults: ["link cut"],
  },
  {
    fault: "keys that a primary has given arrive late, behind later ones or at a later copy of the account",
    rules: ["geoKeysReplaceKnown"],
    tests: ["services/partition-manager/src/roles/role-settings.test.ts", "services/partition-server/src/shipping/settings-push.test.ts"],
    faults: ["slow links"],
  },
  {
    fault: "whoever holds a stamp reads the keys of an account that was removed from it",
    rules: ["geoRemovedKeepNoKeys"],
    tests: ["services/partition-manager/src/roles/role-settings.test.ts"],
    faults: [],
  },
  {
    fault: "a process with the primary's secret ships rows of commits that the primary never makes",
    rules: ["copiesAreNotAhead"],
    tests: ["packages/simulator/src/geo/ahead.test.ts"],
    faults: [],
  },
  {
    fault: "the metadata store of the primary or of the secondary is put back from a copy, or a commit log loses its end",
    rules: ["logsHaveLineages"],
    tests: ["packages/simulator/src/geo/restore.test.ts", "packages/lsm/src/log-lineage.test.ts", shipping],
    faults: ["restores"],
  },
  {
    fault: "the metadata store of a stamp is put back from a copy that is older than a failover away from it",
    rules: ["geoOlderRolesEnd"],
    tests: ["packages/simulator/src/geo/restore.test.ts", "services/location-service/src/copies/older-roles.test.ts"],
    faults: ["restores"],
  },
  {
    fault: "a metadata store is put back that does not know the extents of a range's newest checkpoints",
    rules: ["knownCheckpointsCount"],
    tests: ["packages/simulator/src/geo/restore.test.ts", "packages/range-partition/src/load/rolled-back.test.ts"],
    faults: ["restores"],
  },
  {
    fault: "a server dies with shipments on their way, or their range is moved, split or merged",
    rules: ["geoCursorAcknowledged", "geoHeirContinues", "geoAcknowledgedIsSynced"],
    tests: [shippingModel, "packages/range-partition/src/followers/log-followers.test.ts"],
    faults: ["crash", "reshape", "link cut"],
  },
  {
    fault: "a range is seeded while commits of it are on their way, and the sender or the receiver dies",
    rules: ["geoSeedingHoldsCommits", "geoScanIsSynced", "geoSeedingEndsAtScanEnd"],
    tests: [shippingModel, "packages/range-partition/src/shipping/seeding.test.ts"],
    faults: ["crash", "reshape", "link cut"],
  },
  {
    fault: "a collector of the second stamp meets rows, or bytes, before what uses them has arrived",
    rules: ["geoPlacesChecked", "geoCopiesNotCollected"],
    tests: [pairs, "packages/simulator/src/geo/blobs.test.ts"],
    faults: ["collections", "failpoints"],
  },
  {
    fault: "another stamp ships a row that names bytes of an account that it has nothing to do with",
    rules: ["geoPlacesVouched"],
    tests: ["packages/simulator/src/geo/strangers.test.ts", "services/partition-server/src/shipping/data/admission.test.ts"],
    faults: [],
  },
  {
    fault: "another stamp ships a number far ahead",
    rules: ["geoTicketsApart"],
    tests: [
      "packages/simulator/src/geo/strangers.test.ts",
      "packages/range-partition/src/shipping/shipped-fences.test.ts",
      "services/partition-server/src/shipping/far-answers.test.ts",
    ],
    faults: [],
  },
];
