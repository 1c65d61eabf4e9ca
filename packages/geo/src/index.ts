/**
 * Decisions of replication between stamps: the role of an account at each stamp, the operations of the location service,
 * shipping, seeding, Last Sync Time and placement. Pure machines: state in, state out. The caller owes: a row or record
 * is durable before its command is answered or sent (docs/design/geo.md).
 */
export {
  type AccountRole,
  acceptsShipment,
  answersFromMs,
  type CommandOrder,
  commandPhases,
  commandWaitMs,
  copyTermMs,
  type GeoPoint,
  type GeoRole,
  type ObeyedRole,
  planObey,
  type RangePoint,
  type RoleCommand,
  type RoleFacts,
  removalOf,
  reportComplete,
  roleTermMs,
  roleWithoutRow,
  seedingEnded,
  settingsTermMs,
  ships,
  takesWrites,
  tenureOf,
  tenureOfCopy,
} from "./account-role.ts";
export { Acknowledgements } from "./acknowledgements.ts";
export { isDiverged, owesReport, tellsVersions } from "./diverged.ts";
export {
  type AccountRecord,
  accountKey,
  decodeLocationRecord,
  encodeLocationRecord,
  type LocationRecord,
  locationPrefix,
  type StampRecord,
  stampKey,
} from "./location-records.ts";
export { owedTo, planLost, planTold } from "./lost-stamps.ts";
export {
  type AccountState,
  commandOf,
  commandToSend,
  type GeoAccount,
  type GeoOperationKind,
  type MigrationChoices,
  type OperationStep,
  operationState,
  planAnswer,
  planCreate,
  planDrainLate,
  planFailover,
  planForcedFailover,
  planGiveUp,
  planMigrate,
  planProtect,
  planSeeded,
  planUnprotect,
  type RunningOperation,
  type StampCommand,
  type StepAnswer,
} from "./operations.ts";
export {
  givesAway,
  type MovableAccount,
  notPlaceable,
  type PlacedStamp,
  type PlacementLimits,
  type ProposedMove,
  placeAccount,
  placementLimits,
  proposeMoves,
  type StampCapacity,
  type StampState,
} from "./placement.ts";
export { outgrown, RangeCursor, type RangeLog } from "./range-cursor.ts";
export { type Backlog, BacklogRate } from "./rates/backlog-rate.ts";
export { ShippingRate, type ShippingRates } from "./rates/shipping-rate.ts";
export { decodeRole, encodeRole, roleOf } from "./role-row.ts";
export {
  appliesRow,
  compareVersions,
  forgottenAt,
  type HeldVersions,
  isOfEarlierLineage,
  nextFloor,
  type RowVersion,
  tombstoneOf,
} from "./row-versions.ts";
export { RangeSeeding, type SeedingProgress, seededSoFar, seedingPercent } from "./seeding.ts";
export {
  type AccountProgress,
  accountProgress,
  type RangeProgress,
  type RangeShippingState,
} from "./shipping-progress.ts";
export { type LaneBatch, type LanePart, ShippingWindow, type WindowLimits } from "./shipping-window.ts";
export { accountSyncTime, notAhead, RangeSyncTime, wholeSeconds } from "./sync-time.ts";
