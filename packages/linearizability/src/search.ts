/**
 * The search: is there an order of these operations, each at one moment between its call and its return, in which the model gives the
 * answers that were seen? Wing and Gong's question, answered with Lowe's just-in-time linearization: calls and returns are gone through
 * in order of time with the set of all configurations that are possible up to there. A configuration is a state of the model, the
 * operations under way that were placed early, and the lost ones (of unknown outcome) that were placed. At the return of an operation
 * every configuration in which it has no place yet is led through all sequences of others that can come before it.
 *
 * What keeps the set small:
 *  - a call that changes nothing in any state (`readOnly`) is placed as soon as it may be: placing it later allows nothing more. That it
 *    changes nothing in this one is not enough: a write of the same value may be wanted later, over another;
 *  - a lost one that would change nothing is not placed at all;
 *  - of two configurations that differ only in the lost operations they used up, the one that used more is dropped. So a history with many
 *    timeouts costs about as many configurations as there are lost operations, not two to the power of them.
 *
 * The problem is NP-complete: the search ends with "unknown" at its bounds.
 */
import { assert } from "@stamp/base";
import type { Model, RecordedOperation } from "./history.ts";

export interface SearchBounds {
  /** Bound of the number of calls of the model. */
  readonly stepsMax?: number;
  /** Configurations at one moment. */
  readonly configurationsMax?: number;
  /** Milliseconds of `nowMs`; without a clock only the others count. */
  readonly timeMaxMs?: number;
  readonly nowMs?: () => number;
}

export const defaultStepsMax = 5_000_000;
export const defaultConfigurationsMax = 200_000;

export type SearchResult<State> =
  /** `order`: indexes of the operations; operations that never happened are left out. */
  | { readonly kind: "linearizable"; readonly order: readonly number[]; readonly steps: number }
  /** `longest`: longest order that could begin before the first answer that can't be explained, and the state after it. */
  | { readonly kind: "violation"; readonly longest: readonly number[]; readonly state: State; readonly steps: number }
  | { readonly kind: "unknown"; readonly why: string; readonly steps: number };

/** Operations that were placed, newest first. */
interface Placed {
  readonly index: number;
  readonly before: Placed | undefined;
  readonly count: number;
}

interface Configuration<State> {
  readonly state: State;
  readonly stateKey: string;
  /** Operations under way that are placed already: indexes, ascending. */
  readonly early: readonly number[];
  /** Lost ones that were placed: indexes, ascending. */
  readonly used: readonly number[];
  readonly placed: Placed | undefined;
}

class BoundMet extends Error {}

export function search<State, Call>(
  model: Model<State, Call>,
  operations: readonly RecordedOperation<Call>[],
  bounds: SearchBounds = {},
): SearchResult<State> {
  const run = new Search(model, operations, bounds);
  try {
    return run.run();
  } catch (error) {
    if (error instanceof BoundMet) return { kind: "unknown", why: error.message, steps: run.steps };
    throw error;
  }
}

const clockEverySteps = 1_024;

class Search<State, Call> {
  steps = 0;
  readonly #model: Model<State, Call>;
  readonly #operations: readonly RecordedOperation<Call>[];
  readonly #bounds: SearchBounds;
  readonly #stepsMax: number;
  readonly #configurationsMax: number;
  readonly #endMs: number | undefined;
  /** Called, not returned yet, will return. */
  readonly #open = new Set<number>();
  /** Called, outcome unknown for ever. */
  readonly #lost: number[] = [];

  constructor(model: Model<State, Call>, operations: readonly RecordedOperation<Call>[], bounds: SearchBounds) {
    this.#model = model;
    this.#operations = operations;
    this.#bounds = bounds;
    this.#stepsMax = bounds.stepsMax ?? defaultStepsMax;
    this.#configurationsMax = bounds.configurationsMax ?? defaultConfigurationsMax;
    this.#endMs = bounds.timeMaxMs !== undefined && bounds.nowMs ? bounds.nowMs() + bounds.timeMaxMs : undefined;
  }

  run(): SearchResult<State> {
    const { initial } = this.#model;
    let all: readonly Configuration<State>[] = [
      { state: initial, stateKey: this.#model.key(initial), early: [], used: [], placed: undefined },
    ];
    for (const { index, isCall } of inOrderOfTime(this.#operations)) {
      if (isCall && this.#operations[index]?.returnedAt === undefined) {
        this.#lost.push(index);
      } else if (isCall) {
        this.#open.add(index);
        all = all.map((configuration) => this.#placeIfRead(configuration, index));
      } else {
        const next = this.#afterReturn(all, index);
        this.#open.delete(index);
        if (next.length === 0) return this.#violation(all);
        all = next;
      }
    }
    return { kind: "linearizable", order: orderOf(all[0] as Configuration<State>), steps: this.steps };
  }

  /** Returns every configuration in which the operation has its place, no longer among the early ones. */
  #afterReturn(all: readonly Configuration<State>[], index: number): readonly Configuration<State>[] {
    const done = new Frontier<State>();
    const met = new Frontier<State>();
    let level = all.filter((configuration) => met.add(configuration));
    while (level.length > 0) {
      const deeper: Configuration<State>[] = [];
      for (const configuration of level) {
        if (configuration.early.includes(index)) {
          done.add({ ...configuration, early: configuration.early.filter((each) => each !== index) });
          continue;
        }
        for (const next of this.#successors(configuration)) if (met.add(next)) deeper.push(next);
        if (met.size > this.#configurationsMax) throw new BoundMet(`more than ${this.#configurationsMax} configurations at one moment`);
      }
      level = deeper;
    }
    return done.all();
  }

  #successors(configuration: Configuration<State>): Configuration<State>[] {
    const found: Configuration<State>[] = [];
    for (const index of this.#open) {
      if (configuration.early.includes(index)) continue;
      const next = this.#step(configuration.state, index);
      if (next !== undefined) found.push(this.#placed(configuration, index, next, { early: inserted(configuration.early, index) }));
    }
    for (const index of this.#lost) {
      if (configuration.used.includes(index)) continue;
      const next = this.#step(configuration.state, index);
      if (next === undefined || this.#model.key(next) === configuration.stateKey) continue;
      found.push(this.#placed(configuration, index, next, { used: inserted(configuration.used, index) }));
    }
    return found;
  }

  #placed(
    from: Configuration<State>,
    index: number,
    state: State,
    change: Partial<Pick<Configuration<State>, "early" | "used">>,
  ): Configuration<State> {
    const placed: Placed = { index, before: from.placed, count: (from.placed?.count ?? 0) + 1 };
    let made: Configuration<State> = { ...from, state, stateKey: this.#model.key(state), placed, ...change };
    for (const other of this.#open) made = this.#placeIfRead(made, other);
    return made;
  }

  #placeIfRead(configuration: Configuration<State>, index: number): Configuration<State> {
    if (configuration.early.includes(index) || !this.#model.readOnly?.((this.#operations[index] as RecordedOperation<Call>).call))
      return configuration;
    if (this.#step(configuration.state, index) === undefined) return configuration;
    const placed: Placed = { index, before: configuration.placed, count: (configuration.placed?.count ?? 0) + 1 };
    return { ...configuration, early: inserted(configuration.early, index), placed };
  }

  #step(state: State, index: number): State | undefined {
    this.steps += 1;
    if (this.steps > this.#stepsMax) throw new BoundMet(`more than ${this.#stepsMax} steps`);
    if (this.#endMs !== undefined && this.steps % clockEverySteps === 0 && (this.#bounds.nowMs as () => number)() > this.#endMs) {
      throw new BoundMet(`more than ${this.#bounds.timeMaxMs} ms`);
    }
    return this.#model.step(state, (this.#operations[index] as RecordedOperation<Call>).call);
  }

  #violation(all: readonly Configuration<State>[]): SearchResult<State> {
    const longest = all.reduce((a, b) => ((b.placed?.count ?? 0) > (a.placed?.count ?? 0) ? b : a));
    return { kind: "violation", longest: orderOf(longest), state: longest.state, steps: this.steps };
  }
}

/** Configurations none of which makes another superfluous. */
class Frontier<State> {
  readonly #byKey = new Map<string, Configuration<State>[]>();
  size = 0;

  /** Adds a configuration; false if one is there that allows all that this one does. */
  add(configuration: Configuration<State>): boolean {
    const key = `${configuration.early.join(",")}|${configuration.stateKey}`;
    const alike = this.#byKey.get(key);
    if (!alike) {
      this.#byKey.set(key, [configuration]);
      this.size += 1;
      return true;
    }
    if (alike.some(({ used }) => isSubset(used, configuration.used))) return false;
    const kept = alike.filter(({ used }) => !isSubset(configuration.used, used));
    this.size += kept.length + 1 - alike.length;
    this.#byKey.set(key, [...kept, configuration]);
    return true;
  }

  all(): Configuration<State>[] {
    return [...this.#byKey.values()].flat();
  }
}

/** Calls and returns; at one moment calls come before returns. */
function inOrderOfTime(operations: readonly RecordedOperation<unknown>[]): { readonly index: number; readonly isCall: boolean }[] {
  const events: { readonly at: number; readonly index: number; readonly isCall: boolean }[] = [];
  operations.forEach(({ calledAt, returnedAt }, index) => {
    assert(returnedAt === undefined || returnedAt >= calledAt, "an operation returns after it was called");
    events.push({ at: calledAt, index, isCall: true });
    if (returnedAt !== undefined) events.push({ at: returnedAt, index, isCall: false });
  });
  return events.sort((a, b) => a.at - b.at || Number(b.isCall) - Number(a.isCall) || a.index - b.index);
}

function orderOf(configuration: Configuration<unknown>): number[] {
  const order: number[] = [];
  for (let at = configuration.placed; at; at = at.before) order.push(at.index);
  return order.reverse();
}

/** True if `part` is a subset of `whole`; both ascending. */
function isSubset(part: readonly number[], whole: readonly number[]): boolean {
  if (part.length > whole.length) return false;
  let at = 0;
  for (const each of whole) if (part[at] === each) at += 1;
  return at === part.length;
}

function inserted(ascending: readonly number[], value: number): readonly number[] {
  const at = ascending.findIndex((each) => each > value);
  return at < 0 ? [...ascending, value] : [...ascending.slice(0, at), value, ...ascending.slice(at)];
}
