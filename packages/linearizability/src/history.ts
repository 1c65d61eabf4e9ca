/**
 * A history: what clients asked and were answered, with the moments of asking and answering. A call carries its answer; a call of which
 * nobody knows whether it happened (a timeout, a 500) has no moment of return: it may take effect at any moment after it was asked, or
 * never.
 */
export interface RecordedOperation<Call> {
  readonly call: Call;
  /** Name of the client; shown to people only. */
  readonly client?: string;
  /** Milliseconds by one clock for the whole history. */
  readonly calledAt: number;
  /** Time of the answer; undefined: it is not known whether the operation happened. */
  readonly returnedAt: number | undefined;
}

/**
 * The service as a sequential machine. Small and exact: what it refuses, no correct service can answer.
 *
 * `State` is never changed in place.
 */
export interface Model<State, Call> {
  readonly initial: State;
  /** Returns the state after the call, or undefined when the answer that was seen can't be given in this state. */
  step(state: State, call: Call): State | undefined;
  /** Returns a text that is equal for equal states only. */
  key(state: State): string;
  /** Calls of different partitions have nothing to do with each other and are checked for themselves. */
  partition?(call: Call): string;
  /** Returns true if the call with this answer changes no state: a read, a refusal. */
  readOnly?(call: Call): boolean;
  /**
   * The same call as if nobody had been told its outcome; undefined: without an answer it says nothing (a read). Used to find what a
   * violation does not depend on.
   */
  withoutAnswer?(call: Call): Call | undefined;
  describe?(call: Call): string;
  describeState?(state: State): string;
}

/** Divides operations by their partition, each in the order given. */
export function operationsByPartition<State, Call>(
  model: Model<State, Call>,
  history: readonly RecordedOperation<Call>[],
): ReadonlyMap<string, readonly RecordedOperation<Call>[]> {
  const parts = new Map<string, RecordedOperation<Call>[]>();
  for (const operation of history) {
    const name = model.partition?.(operation.call) ?? "";
    const part = parts.get(name);
    if (part) part.push(operation);
    else parts.set(name, [operation]);
  }
  return parts;
}
