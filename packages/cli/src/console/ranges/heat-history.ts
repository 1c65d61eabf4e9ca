/**
 * Load over key space and time: for each half minute of the last hour, the most requests per second that each range had in it.
 *
 * Ranges split and merge meanwhile. A column keeps the bounds of its time; they are laid over the ranges of now when a page asks.
 *
 * Invariants:
 * - Memory is bounded: 120 columns of at most 512 bands and one band per table. With more ranges, a band is neighbours of one table, and
 *   has the load of the busiest.
 * - A band that nothing is known of is no band without load.
 */
import { compareBytes, equalBytes } from "@stamp/base";
import type { HeatMap } from "@stamp/console-page";
import type { RangePartition } from "@stamp/wire";
import type { StampFacts } from "../../health/facts.ts";
import { keyText } from "../../key-text.ts";
import { requestsOf, servedIn } from "./range-rows.ts";

const columnMs = 30_000;
const columnsMax = 120;
/** Loads are means of 10 s. Of looks that come faster some are passed over: thousands of ranges take their time. */
const lookEveryMs = 5_000;
const bandsMax = 512;
/** Bands that a page gets. */
const shownMax = 64;

interface Bound {
  readonly table: string;
  /** First key of the band. */
  readonly low: Uint8Array;
}

interface Band extends Bound {
  /** First key behind the band; empty: the band goes to the end of the table. */
  readonly high: Uint8Array;
  readonly first: string;
  readonly last: string;
  readonly count: number;
}

interface Column {
  readonly atMs: number;
  readonly bounds: readonly Bound[];
  /** Requests per second of each band; NaN: not known. */
  readonly loads: Float64Array;
}

export class HeatHistory {
  readonly #columns: Column[] = [];
  #bands: readonly Band[] = [];
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  /** Takes what the stamp told at one look. */
  took(facts: Pick<StampFacts, "nowMs" | "processes" | "partitionLayer">): void {
    const ranges = facts.partitionLayer?.ranges ?? [];
    const sinceMs = facts.nowMs - this.#lookedAtMs;
    // A clock that was set back stops nothing.
    if (ranges.length === 0 || (sinceMs >= 0 && sinceMs < lookEveryMs)) return;
    this.#lookedAtMs = facts.nowMs;
    const chunks = chunksOf(ranges.toSorted(byKey), bandsMax);
    const servedOf = servedIn(facts);
    const loads = Float64Array.from(chunks, (chunk) => mostOf(chunk.map((range) => requestsOf(servedOf(range)) ?? Number.NaN)));
    this.#bands = chunks.map(bandOf);
    const atMs = Math.floor(facts.nowMs / columnMs) * columnMs;
    const last = this.#columns.at(-1);
    // One array of bounds is kept while they stay the same.
    const bounds =
      last !== undefined && areEqual(last.bounds, this.#bands) ? last.bounds : this.#bands.map(({ table, low }) => ({ table, low }));
    if (last?.atMs === atMs) {
      if (last.bounds === bounds) for (const [at, load] of last.loads.entries()) loads[at] = mostOf([load, loads[at] ?? Number.NaN]);
      this.#columns.pop();
    }
    this.#columns.push({ atMs, bounds, loads });
    if (this.#columns.length > columnsMax) this.#columns.shift();
  }

  /** Returns the bands of now, or the one of a range, each with its load over time. */
  map(range?: RangePartition): HeatMap {
    const all = range === undefined ? chunked(this.#bands) : [bandOf([range])];
    return {
      columnMs,
      columns: this.#columns.map(({ atMs }) => atMs),
      bands: all.map((band) => ({
        table: band.table,
        lowKey: band.low.length === 0 ? "" : keyText(band.low),
        highKey: band.high.length === 0 ? "" : keyText(band.high),
        firstRange: band.first,
        lastRange: band.last,
        ranges: band.count,
        loads: this.#columns.map((column) => loadIn(column, band)),
      })),
    };
  }
}

const byKey = (a: Bound | RangePartition, b: Bound | RangePartition): number =>
  a.table === b.table ? compareBytes(lowOf(a), lowOf(b)) : a.table < b.table ? -1 : 1;

const lowOf = (one: Bound | RangePartition): Uint8Array => ("low" in one ? one.low : one.lowKey);

const areEqual = (some: readonly Bound[], others: readonly Bound[]): boolean =>
  some.length === others.length && some.every(({ table, low }, at) => table === others[at]?.table && equalBytes(low, others[at].low));

/** Returns the highest number that is known; NaN: none is. */
function mostOf(loads: readonly number[]): number {
  const known = loads.filter((load) => !Number.isNaN(load));
  return known.length === 0 ? Number.NaN : Math.max(...known);
}

/** Divides what is sorted by table and key into runs of neighbours: at most `max`, and one more for each table. */
function chunksOf<T extends { readonly table: string }>(sorted: readonly T[], max: number): T[][] {
  const size = Math.ceil(sorted.length / max);
  const chunks: T[][] = [];
  for (const one of sorted) {
    const last = chunks.at(-1);
    if (last !== undefined && last.length < size && last[0]?.table === one.table) last.push(one);
    else chunks.push([one]);
  }
  return chunks;
}

function bandOf(chunk: readonly RangePartition[]): Band {
  const [first, last] = [chunk[0], chunk.at(-1)] as [RangePartition, RangePartition];
  const { table, lowKey: low, rangeId } = first;
  return { table, low, high: last.highKey, first: rangeId, last: last.rangeId, count: chunk.length };
}

const chunked = (bands: readonly Band[]): Band[] =>
  chunksOf(bands, shownMax).map((chunk) => {
    const [first, last] = [chunk[0], chunk.at(-1)] as [Band, Band];
    return { ...first, high: last.high, last: last.last, count: chunk.reduce((sum, { count }) => sum + count, 0) };
  });

/** Returns the load of the busiest band of the column that shares keys with the band; null: not known. */
function loadIn({ bounds, loads }: Column, { table, low, high }: Band): number | null {
  let most = Number.NaN;
  for (const [at, bound] of bounds.entries()) {
    if (bound.table !== table || (high.length > 0 && compareBytes(bound.low, high) >= 0)) continue;
    const next = bounds[at + 1];
    const end = next?.table === table ? next.low : undefined;
    if (end === undefined || compareBytes(end, low) > 0) most = mostOf([most, loads[at] ?? Number.NaN]);
  }
  return Number.isNaN(most) ? null : Math.round(most * 10) / 10;
}
