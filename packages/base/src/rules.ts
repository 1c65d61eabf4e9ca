/**
 * The names of the safety rules of `docs/design/faults.md` that live in the code. Each rule is enforced in one place, which asks
 * `rules.on(name)`; production passes `allRules`, and only the simulator's mutation gate switches one off.
 */
export type RuleName =
  | "ackNeedsAllReplicas"
  | "ackOnlyDurable"
  | "contiguousOffsets"
  | "primaryStopsAtFailure"
  | "clientExpectsOffset"
  | "fenceBeforeLength"
  | "fenceDrains"
  | "fenceDurable"
  | "neverReopen"
  | "unknownIsNotLength"
  | "knownCommittedLength"
  | "recordSealBeforeTelling"
  | "createdOnEveryReplica"
  | "trimBeforeServing"
  | "minCopiesBeforeTelling"
  | "newerSealOnly"
  | "diskIdentity"
  | "smTermAtNode"
  | "ownerEpochAtNode"
  | "ownerEpochAtManager"
  | "storeComplete"
  | "storeNotBehind"
  | "storeFence"
  | "storeCompareAndSet"
  | "leaseCountsFromSending"
  | "leaseRecheckedAfterAnswer"
  | "leasesExtendedOnRestart"
  | "leaseEndRecorded"
  | "refusalDurable"
  | "neverRenewEnded"
  | "waitLeaseOut"
  | "waitForClosed"
  | "assignmentBeforeLoad"
  | "closedEpochRefused"
  | "leaseEpochNamedInLoad"
  | "dropBeforeNewLease"
  | "loadElsewhere"
  | "cutNotAcknowledged"
  | "redoneWhenChanged"
  | "drainBeforeLeaving"
  | "childEndsParents"
  | "namesBeforeSplit"
  | "mapChangedInTurn"
  | "fenceBeforeAsking"
  | "askWhetherItHappened"
  | "pmTermAtServer"
  | "containerRowReadAfterArrival"
  | "incarnationInKey"
  | "protectedStatesStay"
  | "protectionConfirmed"
  | "deletionAsksMarks"
  | "queueClockNeverBack"
  | "pipelineSeesPending"
  | "pipelineAnswersDurable"
  | "replayBySequence"
  | "truncateAfterCheckpoint"
  | "restUntilCheckpointed"
  | "placesCheckedInRowOrder"
  | "bytesPinTheirExtent"
  | "pinsRenewed"
  | "pinTermAfterLoad"
  | "settledRecorded"
  | "settledByAll"
  | "dropTimeRecorded"
  | "checksumBeforeServing"
  | "checksumOfVerified"
  | "journalBegunRecorded"
  | "newerFormatsRefused"
  | "missingFileIsDamage"
  | "pointedBytesSynced"
  | "diskWorkBounded"
  | "lateReadsRefused"
  | "leaseRestartedOnLoad";

export interface Rules {
  on(name: RuleName): boolean;
}

export const allRules: Rules = { on: () => true };

export function rulesWithout(...off: readonly RuleName[]): Rules {
  const set = new Set(off);
  return { on: (name) => !set.has(name) };
}
