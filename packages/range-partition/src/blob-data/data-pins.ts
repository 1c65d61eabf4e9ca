/**
 * Decides which extents of blob data the collector may look at (docs/decisions/0370, docs/design/model/pins.pml). Between the append of bytes and the
 * commit of the row that refers to them only the writer knows of them. So bytes pin their extent for a term, and whoever brought them renews
 * the pin until that commit. Decides; keeps no clock.
 *
 * An extent is settled when it is sealed and nobody holds a pin on it. That is for ever: a sealed extent gets no more bytes, so no pin can
 * begin. Settled extents are in the partition's metadata; pins are in memory.
 *
 * Invariants:
 * - Nothing is settled before this owner has served for half a term: until then it need not have heard of every pin (rule pinTermAfterLoad).
 * - Pins save work, not data: the place of a late commit is checked in row order (rule placesCheckedInRowOrder), pinned or not.
 */
import type { Rules } from "@stamp/base";

export interface DataPinsOptions {
  readonly rules: Rules;
  /** Life of a pin after it was set or renewed, in milliseconds; 0: pins hold nothing. */
  readonly termMs: number;
  /** Time at which this owner began to serve, by its monotonic clock, in milliseconds. */
  readonly nowMs: number;
  /** Extents that the metadata say are settled. */
  readonly settled: readonly number[];
}

/** A new owner has heard of every upload in progress after this share of a term: three of six renewals, of which one may be lost. */
const heardAfter = 1 / 2;

export class DataPins {
  readonly termMs: number;
  readonly #rules: Rules;
  readonly #sinceMs: number;
  readonly #settled: Set<number>;
  /** End of the pin, by extent. */
  readonly #pinnedUntilMs = new Map<number, number>();

  constructor({ rules, termMs, nowMs, settled }: DataPinsOptions) {
    this.#rules = rules;
    this.termMs = termMs;
    this.#sinceMs = nowMs;
    this.#settled = new Set(rules.on("settledRecorded") ? settled : []);
  }

  /** Sets or renews the pins of these extents. */
  pin(extentIds: Iterable<number>, nowMs: number): void {
    if (!this.#rules.on("bytesPinTheirExtent")) return;
    for (const extentId of extentIds) this.#pinnedUntilMs.set(extentId, nowMs + this.termMs);
  }

  /** Settles the sealed extents that have no pin, and forgets extents that left the stream. */
  settle(sealed: readonly number[], nowMs: number): void {
    const listed = new Set(sealed);
    for (const extentId of this.#settled) if (!listed.has(extentId)) this.#settled.delete(extentId);
    for (const [extentId, untilMs] of this.#pinnedUntilMs) if (untilMs <= nowMs) this.#pinnedUntilMs.delete(extentId);
    if (this.#rules.on("pinTermAfterLoad") && nowMs - this.#sinceMs < this.termMs * heardAfter) return;
    for (const extentId of sealed) if (!this.#pinnedUntilMs.has(extentId)) this.#settled.add(extentId);
  }

  /** Settled extents, lowest number first. */
  get settled(): readonly number[] {
    return [...this.#settled].sort((a, b) => a - b);
  }

  isSettled(extentId: number): boolean {
    return this.#settled.has(extentId);
  }
}

/** Settled extents of one partition, with all extents of its blob data stream. */
export interface SettledShare {
  readonly settled: readonly number[];
  readonly listed: readonly number[];
}

/**
 * Returns what is settled in the range that two neighbours become. An extent that both list is settled only if it was settled in both (rule
 * settledByAll): an upload to the keys of one pins nothing in the other.
 */
export function settledOfBoth(rules: Rules, first: SettledShare, second: SettledShare): readonly number[] {
  const all = [...new Set([...first.settled, ...second.settled])].sort((a, b) => a - b);
  if (!rules.on("settledByAll")) return all;
  const inFirst = new Set(first.settled);
  const inSecond = new Set(second.settled);
  const listedByFirst = new Set(first.listed);
  const listedBySecond = new Set(second.listed);
  return all.filter((id) => (inFirst.has(id) || !listedByFirst.has(id)) && (inSecond.has(id) || !listedBySecond.has(id)));
}
