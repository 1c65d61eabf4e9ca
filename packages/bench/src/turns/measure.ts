/**
 * Measures one input: asks it again until every process was quick enough once, or the tries are used up.
 *
 * Each try is compared with a calibration loop that runs just before it: a busy machine makes both slower. Of each process its quickest
 * try counts. Other programs, and a collection of the heap that happens to come, make a turn longer, never shorter; a handler that works
 * for too long does so in every try.
 */
import type { Input } from "./inputs.ts";
import type { LongestTurns, Probe } from "./probe.ts";

export interface TurnRow {
  readonly name: string;
  readonly expected: number | false;
  readonly status: number;
  readonly tookMs: number;
  /** Longest turn by process, in milliseconds; the quickest of the tries. */
  readonly turns: LongestTurns;
  /** Longest turn by process, in times of the calibration loop; the least of the tries. */
  readonly ratios: LongestTurns;
  /** Largest of `ratios`. */
  readonly ratio: number;
  readonly tries: number;
}

export interface TurnOptions {
  /** Number of times each input is asked at least. */
  readonly tries: number;
  /** Number of times an input that is above `bound` is asked at most. */
  readonly triesMax: number;
  /** Longest turn that is allowed, in times of the calibration loop. */
  readonly bound: number;
}

/** True if the answer has another status than expected. */
export const isWrong = ({ status, expected }: TurnRow): boolean => expected !== false && status !== expected;

/** Surroundings of the measurement. */
export interface TurnSurroundings {
  readonly probe: Probe;
  /** Milliseconds of the calibration loop now. */
  readonly calibrate: () => number;
  /** Waits for what a request leaves behind for a moment: a copy, a flush. */
  readonly settle: () => Promise<void>;
}

/** HTTP statuses that a busy machine may cause: 500, 503, and 0 for no answer. An input with such a status is asked again. */
const passing: ReadonlySet<number> = new Set([0, 500, 503]);

export async function measured(input: Input, around: TurnSurroundings, { tries, triesMax, bound }: TurnOptions): Promise<TurnRow> {
  await input.prepare?.();
  const turns = new Map<string, number>();
  const ratios = new Map<string, number>();
  const isAbove = (): boolean => Math.max(...ratios.values()) > bound;
  let [status, tookMs, tried] = [0, Number.POSITIVE_INFINITY, 0];
  const isWrongNow = (): boolean => input.status !== false && status !== input.status;
  while (tried < tries || (tried < triesMax && (isAbove() || (isWrongNow() && passing.has(status))))) {
    await input.ready?.(tried);
    const calibrationMs = around.calibrate();
    await around.probe.begin();
    const startMs = performance.now();
    ({ status } = await input.ask(tried));
    tookMs = Math.min(tookMs, performance.now() - startMs);
    await around.settle();
    for (const [name, ms] of await around.probe.end()) {
      turns.set(name, Math.min(turns.get(name) ?? Number.POSITIVE_INFINITY, ms));
      ratios.set(name, Math.min(ratios.get(name) ?? Number.POSITIVE_INFINITY, ms / calibrationMs));
    }
    tried += 1;
    if (isWrongNow() && !passing.has(status)) break;
  }
  return { name: input.name, expected: input.status, status, tookMs, turns, ratios, ratio: Math.max(...ratios.values()), tries: tried };
}

/** Returns one row of the same input measured twice: each process counts with its quickest try of both. */
export function joinedRows(first: TurnRow, later: TurnRow): TurnRow {
  const least = (a: LongestTurns, b: LongestTurns): LongestTurns =>
    new Map([...b].map(([name, value]) => [name, Math.min(value, a.get(name) ?? Number.POSITIVE_INFINITY)]));
  const ratios = least(first.ratios, later.ratios);
  return {
    ...later,
    tookMs: Math.min(first.tookMs, later.tookMs),
    turns: least(first.turns, later.turns),
    ratios,
    ratio: Math.max(...ratios.values()),
    tries: first.tries + later.tries,
  };
}
