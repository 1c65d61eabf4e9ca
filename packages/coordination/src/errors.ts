/** Errors of this package. Each message says what happened and what to do next. */

/** Error for an option out of its range, or a method called at the wrong time. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The lease ended, was broken or was taken while the task ran. Reason of the task's signal. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
}

/** The health check of the leader's task said no, or did not answer in time. Reason of the task's signal. */
export class UnhealthyLeaderError extends Error {
  override readonly name = "UnhealthyLeaderError";
}

/** The blob of a lease holds data or metadata of somebody else. */
export class LeaseBlobInUseError extends Error {
  override readonly name = "LeaseBlobInUseError";
}

/** A counter in storage does not hold a number. */
export class CorruptCounterError extends Error {
  override readonly name = "CorruptCounterError";
}

/** Every attempt of an optimistic update met another writer. */
export class RetriesExhaustedError extends Error {
  override readonly name = "RetriesExhaustedError";
}

/** A later leader has written already: this one's fencing token is too low. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/** Error of a wait that did not end before its deadline. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/** Refuses a number that is no integer of [min, max]. */
export function requireInteger(name: string, value: number, min: number, max: number, hint = ""): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new UsageError(`${name} is ${value}; give an integer from ${min} to ${max}${hint}`);
  }
}

/** Refuses a number that is not finite or lies outside [min, max]. */
export function requireNumber(name: string, value: number, min: number, max: number, hint = ""): void {
  if (!(value >= min && value <= max)) throw new UsageError(`${name} is ${value}; give a number from ${min} to ${max}${hint}`);
}
