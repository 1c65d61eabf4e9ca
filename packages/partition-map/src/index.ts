/**
 * Key ranges and the partition map, pure: assignment to servers, records of splits and merges, balance of load, and the
 * rules of a server that holds ranges. The caller owes: making a record durable before the step that follows it.
 */
export {
  type AssignmentState,
  type AssignmentStep,
  hasIdleServer,
  heldCounts,
  isLive,
  leaseOver,
  leastLoaded,
  nextSteps,
  type Progress,
  rebalance,
  type ServerLease,
} from "./assignment.ts";
export { type BalancePolicy, type BalanceStep, balancePlan, contradictions, type RangeFigures } from "./balance.ts";
export { HeldRanges } from "./held-ranges.ts";
export { decodeMapRow, encodeMapRow, mapKey, partitionMapSchema } from "./map-row.ts";
export { firstRangeOf, holdsKey, type Origin, type Range, rangeEnd, streamsOf } from "./range.ts";
export { checkCover, RangeMap } from "./range-map.ts";
export { childRanges, isUnchanged, mergeRecords, parentsOf, splitRecord, withoutReshape } from "./reshape.ts";
export { type LoadCommand, ServerRules } from "./server-rules.ts";
export { SettledLoads } from "./settled-loads.ts";
