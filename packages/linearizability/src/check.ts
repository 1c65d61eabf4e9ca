/**
 * The check of a whole history: each partition for itself, and for one that breaks the model the smallest reason that can be found.
 *
 * How a violation is made small, each step leaving a violation: the history is cut behind the first return that can't be explained (a
 * history that is linearizable is so up to every moment); then, newest first, each operation loses its answer (a read is left out) when
 * what remains can't be explained either. What still has its answer then is the contradiction.
 */
import type { Model, RecordedOperation } from "./history.ts";
import { operationsByPartition } from "./history.ts";
import type { SearchBounds, SearchResult } from "./search.ts";
import { search } from "./search.ts";

export interface Violation<State, Call> {
  readonly kind: "violation";
  readonly partition: string;
  /** Operations whose answers contradict each other, in order of call. */
  readonly contradiction: readonly RecordedOperation<Call>[];
  /** Others up to that moment that may have happened in any way; none of them resolves it. */
  readonly others: readonly RecordedOperation<Call>[];
  /** Longest order of both operations that could begin, and the state after it. */
  readonly longest: readonly RecordedOperation<Call>[];
  readonly state: State;
}

export type PartitionVerdict<State, Call> =
  | { readonly kind: "linearizable"; readonly partition: string; readonly order: readonly RecordedOperation<Call>[] }
  | Violation<State, Call>
  /** Neither proven nor refuted: the search met its bound. */
  | { readonly kind: "unknown"; readonly partition: string; readonly why: string; readonly operations: number };

export interface HistoryVerdict<State, Call> {
  /** The worst of all partitions: violation, then unknown. */
  readonly kind: "linearizable" | "violation" | "unknown";
  readonly violations: readonly Violation<State, Call>[];
  readonly unknown: readonly Extract<PartitionVerdict<State, Call>, { kind: "unknown" }>[];
  readonly partitions: number;
  readonly operations: number;
}

/** `bounds` hold for each partition; making a violation small takes at most three times as much more. */
export function checkHistory<State, Call>(
  model: Model<State, Call>,
  history: readonly RecordedOperation<Call>[],
  bounds: SearchBounds = {},
): HistoryVerdict<State, Call> {
  const verdicts = [...operationsByPartition(model, history)].map(([name, operations]) => checkPartition(model, name, operations, bounds));
  const violations = verdicts.filter((verdict) => verdict.kind === "violation");
  const unknown = verdicts.filter((verdict) => verdict.kind === "unknown");
  const kind = violations.length > 0 ? "violation" : unknown.length > 0 ? "unknown" : "linearizable";
  return { kind, violations, unknown, partitions: verdicts.length, operations: history.length };
}

function checkPartition<State, Call>(
  model: Model<State, Call>,
  partition: string,
  operations: readonly RecordedOperation<Call>[],
  bounds: SearchBounds,
): PartitionVerdict<State, Call> {
  const result = search(model, operations, bounds);
  if (result.kind === "unknown") return { kind: "unknown", partition, why: result.why, operations: operations.length };
  if (result.kind === "linearizable")
    return { kind: "linearizable", partition, order: result.order.map((at) => operationAt(operations, at)) };
  return small(model, partition, operations, result, bounds);
}

type Refuted<State> = Extract<SearchResult<State>, { kind: "violation" }>;

const shrinkFactor = 3;
const shrinkStepsMin = 2_000_000;

class Shrinker<State, Call> {
  readonly #model: Model<State, Call>;
  readonly #bounds: SearchBounds;
  #stepsLeft: number;

  constructor(model: Model<State, Call>, bounds: SearchBounds, stepsFirst: number) {
    this.#model = model;
    this.#bounds = bounds;
    this.#stepsLeft = Math.max(shrinkFactor * stepsFirst, shrinkStepsMin);
  }

  /** Returns the search's result when it refutes them, undefined when it does not or the budget is used up. */
  refuted(operations: readonly RecordedOperation<Call>[]): Refuted<State> | undefined {
    if (this.#stepsLeft <= 0) return undefined;
    const result = search(this.#model, operations, { ...this.#bounds, stepsMax: this.#stepsLeft });
    this.#stepsLeft -= result.steps;
    return result.kind === "violation" ? result : undefined;
  }
}

function small<State, Call>(
  model: Model<State, Call>,
  partition: string,
  operations: readonly RecordedOperation<Call>[],
  first: Refuted<State>,
  bounds: SearchBounds,
): Violation<State, Call> {
  const shrinker = new Shrinker(model, bounds, first.steps);
  const cut = cutShort(model, operations, shrinker);
  let kept = cut ? [...cut.operations] : [...operations];
  let result = cut?.result ?? first;
  const weak = new Set<RecordedOperation<Call>>(kept.filter((operation) => operation.returnedAt === undefined));
  for (const operation of [...kept].sort((a, b) => b.calledAt - a.calledAt)) {
    if (weak.has(operation)) continue;
    const weaker = withoutAnswer(model, operation);
    if (weaker === operation) continue;
    const tried = kept.flatMap((each) => (each === operation ? (weaker ? [weaker] : []) : [each]));
    const refuted = shrinker.refuted(tried);
    if (!refuted) continue;
    kept = tried;
    result = refuted;
    if (weaker) weak.add(weaker);
  }
  const inOrder = [...kept].sort((a, b) => a.calledAt - b.calledAt);
  return {
    kind: "violation",
    partition,
    contradiction: inOrder.filter((operation) => !weak.has(operation)),
    others: inOrder.filter((operation) => weak.has(operation)),
    longest: result.longest.map((at) => operationAt(kept, at)),
    state: result.state,
  };
}

/** Returns undefined if the operation says nothing any more, and the same one if the model has no such form. */
function withoutAnswer<State, Call>(model: Model<State, Call>, operation: RecordedOperation<Call>): RecordedOperation<Call> | undefined {
  if (!model.withoutAnswer) return operation;
  const call = model.withoutAnswer(operation.call);
  return call === undefined ? undefined : { ...operation, call, returnedAt: undefined };
}

/** Returns the history up to the first answer that can't be explained. */
function cutShort<State, Call>(
  model: Model<State, Call>,
  operations: readonly RecordedOperation<Call>[],
  shrinker: Shrinker<State, Call>,
): { readonly operations: readonly RecordedOperation<Call>[]; readonly result: Refuted<State> } | undefined {
  if (!model.withoutAnswer) return undefined;
  const moments = operations.flatMap(({ returnedAt }) => (returnedAt === undefined ? [] : [returnedAt])).sort((a, b) => a - b);
  const upTo = (moment: number): RecordedOperation<Call>[] =>
    operations.flatMap((operation) => {
      if (operation.calledAt > moment) return [];
      if (operation.returnedAt === undefined || operation.returnedAt <= moment) return [operation];
      const open = withoutAnswer(model, operation);
      return open ? [open] : [];
    });
  let low = 0;
  let high = moments.length - 1;
  let best: { readonly operations: readonly RecordedOperation<Call>[]; readonly result: Refuted<State> } | undefined;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const part = upTo(moments[middle] as number);
    const result = shrinker.refuted(part);
    if (result) {
      best = { operations: part, result };
      high = middle - 1;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

const operationAt = <Call>(operations: readonly RecordedOperation<Call>[], at: number): RecordedOperation<Call> =>
  operations[at] as RecordedOperation<Call>;
