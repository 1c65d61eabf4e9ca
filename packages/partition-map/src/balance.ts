/**
 * Plans for load and size: which range to split, which neighbours to merge, which range to move to another server. Pure: figures and
 * policy in, a plan with its reasons out; who carries it out does one step at a time and asks again.
 *
 * A range that is hot or large is split first (a server can't give half a range away), then load and rows are evened out by moving whole
 * ranges, and what is cold and small is merged. Nothing is planned for a range younger than `restMs`: its figures say nothing yet, and its server's
 * load counts it by what it had before (settled-loads.ts).
 */
import { compareBytes } from "@stamp/base";
import { byTableAndKey, type Range } from "./range.ts";

/** Figures of one range, from its server's last report. */
export interface RangeFigures {
  readonly rangeId: string;
  /** Reads and writes per second. */
  readonly requestsPerSecond: number;
  readonly throttledPerSecond: number;
  /** Requests of the range that its server has in progress. */
  readonly pending: number;
  readonly latencyMs: number;
  /** Bytes per second that requests brought, and that they read. */
  readonly bytesInPerSecond: number;
  readonly bytesOutPerSecond: number;
  /** Bytes of rows, without blob data. */
  readonly bytes: number;
  /** Time since the range was last loaded, moved, split or merged, in milliseconds. */
  readonly ageMs: number;
}

/** Load that a range counts with while its figures say nothing yet. */
export type SettledLoad = Pick<RangeFigures, "requestsPerSecond" | "throttledPerSecond" | "bytes">;

export interface BalancePolicy {
  /** Bytes of rows beyond which a range is split. */
  readonly splitBytes: number;
  /** Requests a second beyond which a range is split. */
  readonly splitRequestsPerSecond: number;
  /** Size of the rows of two neighbours below which they may be merged, in bytes. */
  readonly mergeBytes: number;
  readonly mergeRequestsPerSecond: number;
  /** Multiple of the least loaded server's load above which a server gives a range away. */
  readonly moveRatio: number;
  /** Difference in requests per second below which a move is not worth it. */
  readonly moveRequestsPerSecond: number;
  /** Difference in processors below which a move is not worth it. */
  readonly moveProcessors: number;
  /** Multiple of the smallest server's row bytes above which a server gives a range away. */
  readonly moveBytesRatio: number;
  /** Difference in bytes of rows below which a move is not worth it. */
  readonly moveBytes: number;
  readonly restMs: number;
  readonly rangesMax: number;
}

/**
 * Returns the contradictions of a policy: with one, ranges would be merged and split again for ever. Each begins with
 * the key to change.
 */
export function contradictions(policy: BalancePolicy): readonly string[] {
  const { mergeBytes, splitBytes, mergeRequestsPerSecond, splitRequestsPerSecond } = policy;
  const pairs = {
    mergeBytes: [mergeBytes, "splitBytes", splitBytes],
    mergeRequestsPerSecond: [mergeRequestsPerSecond, "splitRequestsPerSecond", splitRequestsPerSecond],
  } as const;
  return Object.entries(pairs).flatMap(([key, [merge, splitKey, split]]) =>
    merge < split ? [] : [`${key}: ${merge} is not below ${splitKey} (${split}): what is merged would be split again`],
  );
}

/** Cause of a step: requests, bytes of rows, CPU; or nearly no requests. */
export type BalanceCause = "byRequests" | "byBytes" | "byProcessors" | "byCold";

export type BalanceStep = { readonly rangeId: string; readonly why: string; readonly cause: BalanceCause } & (
  | { readonly kind: "split" }
  /** Merges the range with its neighbour above. */
  | { readonly kind: "merge" }
  | { readonly kind: "move"; readonly to: string }
);

export interface BalanceState {
  readonly ranges: readonly Range[];
  readonly figures: ReadonlyMap<string, RangeFigures>;
  /** Loads from before, which count for ranges younger than `restMs`. */
  readonly settled: ReadonlyMap<string, SettledLoad>;
  /** Names of the live servers. */
  readonly servers: readonly string[];
  /** Ranges of which a split or merge has just failed, or that have no key to be split at: only moved for now. */
  readonly resting: ReadonlySet<string>;
  /** Ranges that could not be moved lately. Without this the same one would be tried again and again, and nothing behind it. */
  readonly unmoved: ReadonlySet<string>;
  /** CPU that each server uses; servers of which it is not known are left out. */
  readonly processors: ReadonlyMap<string, number>;
}

/** Returns the steps, the most urgent first. Each step is planned as if nothing else were done. */
export function balancePlan(state: BalanceState, policy: BalancePolicy): BalanceStep[] {
  const rested = state.ranges.filter((range) => {
    const figures = state.figures.get(range.rangeId);
    return figures !== undefined && figures.ageMs >= policy.restMs && range.loaded && range.reshape === undefined;
  });
  const changeable = rested.filter(({ rangeId }) => !state.resting.has(rangeId));
  const movable = rested.filter(({ rangeId }) => !state.unmoved.has(rangeId));
  return [...splits(changeable, state, policy), ...moves(movable, state, policy), ...merges(changeable, state, policy)];
}

const figuresOf = (state: BalanceState, range: Range): RangeFigures => state.figures.get(range.rangeId) as RangeFigures;

/** Returns the load of a range on its server, refused requests included. */
const loadOf = ({ requestsPerSecond, throttledPerSecond }: SettledLoad): number => requestsPerSecond + throttledPerSecond;

function splits(rested: readonly Range[], state: BalanceState, policy: BalancePolicy): BalanceStep[] {
  if (state.ranges.length >= policy.rangesMax) return [];
  const urgent: { readonly step: BalanceStep; readonly urgency: number }[] = [];
  for (const range of rested) {
    const figures = figuresOf(state, range);
    const byLoad = loadOf(figures) / policy.splitRequestsPerSecond;
    const bySize = figures.bytes / policy.splitBytes;
    if (byLoad < 1 && bySize < 1) continue;
    const why =
      byLoad >= bySize ? `${Math.round(loadOf(figures))} requests a second` : `${Math.round(figures.bytes / 1_048_576)} MiB of rows`;
    const cause = byLoad >= bySize ? "byRequests" : "byBytes";
    urgent.push({ step: { kind: "split", rangeId: range.rangeId, why, cause }, urgency: Math.max(byLoad, bySize) });
  }
  return urgent.sort((a, b) => b.urgency - a.urgency).map(({ step }) => step);
}

/**
 * A range with more of the difference than this stays: moving it would turn most of the difference round. One hot range beside cold ones
 * has nearly all of it wherever it is.
 */
const movedPartMax = 3 / 4;

/**
 * A measure of balance: the share of one range in a server's load, and the difference and ratio from which servers are
 * uneven by it.
 */
interface Measure {
  readonly cause: BalanceCause;
  readonly least: number;
  readonly ratio: number;
  readonly costOf: (range: Range) => number;
  readonly text: (load: number) => string;
}

/** Returns the move that evens out the most and the least loaded server best: by requests, else CPU, else bytes of rows. */
function moves(rested: readonly Range[], state: BalanceState, policy: BalancePolicy): BalanceStep[] {
  const measures = measuresOf(state, policy);
  for (const [i, measure] of measures.entries()) {
    const step = moveBy(measure, measures.slice(0, i), rested, state);
    if (step) return [step];
  }
  return [];
}

/** Returns measures in order of priority. A move for one must not worsen an earlier one, or ranges would move to and fro. */
function measuresOf(state: BalanceState, policy: BalancePolicy): Measure[] {
  const counted = ({ rangeId }: Range): SettledLoad | undefined => {
    const figures = state.figures.get(rangeId);
    const isYoung = figures === undefined || figures.ageMs < policy.restMs;
    return (isYoung ? state.settled.get(rangeId) : undefined) ?? figures;
  };
  const requestsOf = (range: Range): number => {
    const load = counted(range);
    return load === undefined ? 0 : loadOf(load);
  };
  const requests: Measure = {
    cause: "byRequests",
    least: policy.moveRequestsPerSecond,
    ratio: policy.moveRatio,
    costOf: requestsOf,
    text: (load) => `${Math.round(load)} requests a second`,
  };
  const totals = totalsOf(requests, state);
  // CPU is known of servers only: a range has its part of it by its requests.
  const processors: Measure = {
    cause: "byProcessors",
    least: policy.moveProcessors,
    ratio: policy.moveRatio,
    costOf: (range) => ((state.processors.get(range.server) ?? 0) * requestsOf(range)) / Math.max(totals.get(range.server) ?? 0, 1),
    text: (load) => `${load.toFixed(2)} processors at work`,
  };
  // The rows that a server serves need room in its memory.
  const bytes: Measure = {
    cause: "byBytes",
    least: policy.moveBytes,
    ratio: policy.moveBytesRatio,
    costOf: (range) => counted(range)?.bytes ?? 0,
    text: (load) => `${Math.round(load / 1_048_576)} MiB of rows`,
  };
  const processorsKnown = state.servers.every((server) => state.processors.has(server));
  return [requests, ...(processorsKnown ? [processors] : []), bytes];
}

type Totals = Map<string, number>;

function totalsOf({ costOf }: Measure, state: BalanceState): Totals {
  const loads = new Map(state.servers.map((server) => [server, 0]));
  for (const range of state.ranges) {
    const held = loads.get(range.server);
    if (held !== undefined) loads.set(range.server, held + costOf(range));
  }
  return loads;
}

/** Returns the busiest and the least busy server by this measure; undefined: the servers are even. */
function unevenness({ least, ratio }: Measure, totals: Totals) {
  const sorted = [...totals].sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1));
  const [low, high] = [sorted[0], sorted.at(-1)];
  if (!low || !high) return undefined;
  const difference = high[1] - low[1];
  return difference < least || high[1] < low[1] * ratio ? undefined : { from: high[0], to: low[0], difference };
}

function moveBy(measure: Measure, before: readonly Measure[], rested: readonly Range[], state: BalanceState): BalanceStep | undefined {
  const { costOf, text, cause, least } = measure;
  const totals = totalsOf(measure, state);
  const uneven = unevenness(measure, totals);
  if (uneven === undefined) return undefined;
  const { from, to, difference } = uneven;
  // Added up once: thousands of ranges may be asked about.
  const others = before.map((other) => ({ other, now: totalsOf(other, state) }));
  const noWorse = (range: Range): boolean =>
    others.every(({ other, now }) => {
      const then = new Map(now);
      then.set(from, (now.get(from) ?? 0) - other.costOf(range));
      then.set(to, (now.get(to) ?? 0) + other.costOf(range));
      return (unevenness(other, then)?.difference ?? 0) <= (unevenness(other, now)?.difference ?? 0);
    });
  const distance = (range: Range): number => Math.abs(costOf(range) - difference / 2);
  const best = rested
    .filter((range) => range.server === from && costOf(range) <= difference * movedPartMax && costOf(range) >= least / 4)
    // The smaller one of two equal moves wins: a moved range has to be loaded, and finds nothing in the cache.
    .sort((a, b) => distance(a) - distance(b) || costOf(a) - costOf(b) || (a.rangeId < b.rangeId ? -1 : 1))
    .find(noWorse);
  if (!best) return undefined;
  const why = `${from} has ${text(totals.get(from) ?? 0)}, ${to} ${text(totals.get(to) ?? 0)}`;
  return { kind: "move", rangeId: best.rangeId, to, why, cause };
}

function merges(rested: readonly Range[], state: BalanceState, policy: BalancePolicy): BalanceStep[] {
  const steps: BalanceStep[] = [];
  const taken = new Set<string>();
  const sorted = rested.toSorted(byTableAndKey);
  for (const [i, low] of sorted.entries()) {
    const high = sorted[i + 1];
    if (!high || high.table !== low.table || low.high.length === 0 || compareBytes(high.low, low.high) !== 0) continue;
    if (taken.has(low.rangeId)) continue;
    const pair = [figuresOf(state, low), figuresOf(state, high)] as const;
    const bytes = pair[0].bytes + pair[1].bytes;
    const load = loadOf(pair[0]) + loadOf(pair[1]);
    if (bytes > policy.mergeBytes || load > policy.mergeRequestsPerSecond) continue;
    taken.add(high.rangeId);
    const why = `${low.rangeId} and ${high.rangeId} have ${Math.round(bytes / 1024)} KiB and ${load.toFixed(1)} requests a second together`;
    steps.push({ kind: "merge", rangeId: low.rangeId, why, cause: "byCold" });
  }
  return steps;
}
