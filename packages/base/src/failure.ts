/**
 * Expected failures are values. Every operation that can fail in production returns an `Outcome`, and a failure says what went wrong
 * (`code`, the class that gRPC tools see), why in our own terms (`reason`, switched on by code) and, above all, whether the thing
 * happened (`applied`). A timeout is `unknown`; nobody retries it as if it were `no`.
 */
export type FailureCode =
  | "cancelled"
  | "invalidArgument"
  | "deadlineExceeded"
  | "notFound"
  | "alreadyExists"
  | "permissionDenied"
  | "unauthenticated"
  | "resourceExhausted"
  | "failedPrecondition"
  | "aborted"
  | "outOfRange"
  | "unimplemented"
  | "internal"
  | "unavailable"
  | "dataLoss";

/** The closed set of reasons. Add one here when a caller has to tell it from the others. */
export type FailureReason =
  // transport
  | "connectionLost"
  | "connectFailed"
  | "timeout"
  | "cancelled"
  | "overloaded"
  | "messageTooLarge"
  | "badRequest"
  | "unknownMethod"
  | "bug"
  | "stopping"
  | "notReady"
  // leadership, leases, epochs
  | "notLeader"
  | "staleTerm"
  | "staleOwnerEpoch"
  | "staleLeaseEpoch"
  | "leaseHeld"
  | "leaseEnded"
  | "leaseRefused"
  | "wrongStamp"
  | "conflict"
  // streams and extents
  | "streamNotFound"
  | "streamExists"
  | "unknownExtent"
  | "extentFenced"
  | "extentSealed"
  | "extentFailed"
  | "extentStale"
  | "extentFull"
  | "notPrimary"
  | "offsetGap"
  | "outOfRange"
  | "damaged"
  | "newerFormat"
  | "wrongDisk"
  | "diskFull"
  | "diskFailed"
  | "noPlacement"
  | "sealUnresolved"
  // partitions and objects
  | "wrongPartition"
  | "partitionLoading"
  | "noSplitKey"
  | "rangeChanging"
  | "notBegun"
  | "leaseLost"
  | "badPlace"
  | "throttled"
  | "unauthorized"
  | "masterKeyMissing"
  // replication between stamps
  | "staleRoleEpoch"
  | "staleLineage"
  | "notSeeded";

export interface Failure {
  readonly code: FailureCode;
  readonly reason: FailureReason;
  /** Text for people: what happened and, where it helps, what to do next. Never parsed. */
  readonly message: string;
  /** Outcome of what failed. `no`: it certainly did not happen and never will. `unknown`: it may have happened, or may still. */
  readonly applied: "no" | "unknown";
  /** Small facts a caller may act on, e.g. `{ currentTerm: "7" }`. */
  readonly details?: Readonly<Record<string, string>>;
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: Failure };

export function ok<T>(value: T): Outcome<T>;
export function ok(): Outcome<void>;
export function ok<T>(value?: T): Outcome<T | undefined> {
  return { ok: true, value };
}

export type Failed = { readonly ok: false; readonly failure: Failure };

/** Returns a failure of which it is certain that nothing happened. */
export function refused(code: FailureCode, reason: FailureReason, message: string, details?: Record<string, string>): Failed {
  return { ok: false, failure: { code, reason, message, applied: "no", ...(details ? { details } : {}) } };
}

/** Returns a failure after which it may or may not have happened. */
export function unknownOutcome(code: FailureCode, reason: FailureReason, message: string, details?: Record<string, string>): Failed {
  return { ok: false, failure: { code, reason, message, applied: "unknown", ...(details ? { details } : {}) } };
}

/** A failure for the few places (async iterables, constructors) where it can only be thrown. */
export class FailureError extends Error {
  override readonly name = "FailureError";
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(`${failure.reason}: ${failure.message}`);
    this.failure = failure;
  }
}

/** Returns the value, or throws the failure as a `FailureError`. For tests, tools and start-up code. */
export function unwrap<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new FailureError(outcome.failure);
  return outcome.value;
}
