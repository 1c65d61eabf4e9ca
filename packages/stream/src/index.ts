/**
 * Streams, extents and nodes as the stream manager records them, pure: codec of the records, placement, seals, repair,
 * erasure coding, garbage. A planner returns the transaction that makes a step. The caller owes: committing it under
 * its term before it tells anybody.
 */
export { type FoundReplica, planAdopt, refuseAdoption } from "./adoption.ts";
export {
  decodeStored,
  encodeStored,
  extentKey,
  idsKey,
  managerPrefix,
  nodeKey,
  recordKey,
  type StoredRecord,
  segmentKey,
  streamKey,
} from "./codec.ts";
export {
  type ChosenFragments,
  chooseFragments,
  type FoundFragment,
  planAdoptFragments,
  refuseFragments,
} from "./coding/adopt-fragments.ts";
export { codingAgesKey, decodeCodingAges, encodeCodingAges } from "./coding/coding-ages.ts";
export { type CodingPause, codingPauseKey, decodeCodingPause, encodeCodingPause } from "./coding/coding-pause.ts";
export { type CodingPolicy, chooseProfile, whyNotCoded } from "./coding/coding-policy.ts";
export { crowdedFragment } from "./coding/crowded-fragments.ts";
export { ExtentAges } from "./coding/extent-ages.ts";
export { assessFragments, type FragmentAssessment, type FragmentHealth, givesBack } from "./coding/fragment-health.ts";
export { placeFragment, placeFragments } from "./coding/place-fragments.ts";
export {
  notDecodable,
  planAbandonAttempt,
  planBeginCoding,
  planBeginDecoding,
  planBeginFragmentRepair,
  planFinishCoding,
  planFinishDecoding,
  planFinishFragmentRepair,
  planForgetFragment,
  planRecordFragmentChecksums,
} from "./coding/plan-coding.ts";
export { repairSources } from "./coding/repair-sources.ts";
export { whyFragmentStays } from "./coding/stray-fragments.ts";
export { holdersOf, targetsOf } from "./extent-counts.ts";
export { ExtentList } from "./extent-list.ts";
export { type PlacementNode, place } from "./placement.ts";
export {
  holds,
  planAbandonRepair,
  planAllocate,
  planBeginRepair,
  planBeginSeal,
  planDropAllocating,
  planFinishRepair,
  planForgetExtent,
  planForgetRemoved,
  planMarkReplicas,
  planOpenExtent,
  planRecordSealed,
  planReserveIds,
  planRoll,
  planSealAndOpen,
  planUnseal,
  samePlace,
  successorOf,
} from "./plan-extents.ts";
export { type ListRange, planMultiModify, type StreamEdit } from "./plan-lists.ts";
export { isDoubtful, planNode, planNodeDuty, type ReportNumbers } from "./plan-nodes.ts";
export {
  checkName,
  checkOwner,
  dropsPerTransactionMax,
  ownedStream,
  planConfirm,
  planCreateStream,
  planDeleteStream,
  planDropUnreferenced,
  planOpenStreams,
  planTruncate,
} from "./plan-streams.ts";
export {
  type AcceptedLoss,
  type AttemptRecord,
  type CodedRecord,
  type ExtentPhase,
  type ExtentRecord,
  type FragmentPlace,
  type NodeDuty,
  type NodeRecord,
  type ReplicaPlace,
  type ReplicaRecord,
  segmentExtentsMax,
} from "./records.ts";
export { type Assessment, assess, RepairQueue } from "./repair.ts";
export { type SealAnswer, SealMachine } from "./seal-machine.ts";
export { changedKey, keysOf, type StoredEntry, type TransactionPlan } from "./state/changes.ts";
export { StreamState } from "./state.ts";
export { type LeftExtent, mayComeBack, wentOnSince } from "./taken-back/choose-taken-back.ts";
export { type JudgedRestore, judgeRestored } from "./taken-back/judge-restored.ts";
export { goneInside, needsSegment, planTakeBack, takenAtOnceMax } from "./taken-back/plan-take-back.ts";
export type { ProvenExtent, UnknownReplica } from "./taken-back/prove-extent.ts";
export {
  decodeTakenBack,
  encodeTakenBack,
  type LostExtent,
  lostMax,
  type TakenBackRecord,
  takenBackKey,
} from "./taken-back/taken-back-record.ts";
