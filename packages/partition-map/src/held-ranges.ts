/**
 * The ranges that a server holds, by id and by key: overlaps of a range, and holders of a key, are found without a look at all of them, also when it
 * holds thousands.
 *
 * Nearly always no two of them overlap. Those that overlap one that was there before them (what became others is about to go, or a command
 * was late) are kept aside and looked at one by one.
 */
import { compareBytes } from "@stamp/base";
import type { ObjectTable } from "@stamp/objects";
import { holdsKey, overlap, type Range } from "./range.ts";

interface Holding {
  readonly range: Range;
}

export class HeldRanges<T extends Holding> {
  readonly #byId = new Map<string, T>();
  /** Keyed by table, then low key; no two of a table overlap. */
  readonly #sorted = new Map<ObjectTable, T[]>();
  readonly #aside = new Set<T>();

  get size(): number {
    return this.#byId.size;
  }

  /** Returns the ranges in the order in which they were added. */
  values(): IterableIterator<T> {
    return this.#byId.values();
  }

  get(rangeId: string): T | undefined {
    return this.#byId.get(rangeId);
  }

  /** Adds the range, or replaces the one with its id. */
  set(one: T): void {
    this.delete(one.range.rangeId);
    const others = this.overlapping(one.range);
    this.#byId.set(one.range.rangeId, one);
    if (others.length > 0) {
      this.#aside.add(one);
      return;
    }
    const sorted = this.#sorted.get(one.range.table) ?? [];
    sorted.splice(firstFrom(sorted, one.range.low), 0, one);
    this.#sorted.set(one.range.table, sorted);
  }

  delete(rangeId: string): void {
    const one = this.#byId.get(rangeId);
    if (one === undefined) return;
    this.#byId.delete(rangeId);
    if (this.#aside.delete(one)) return;
    const sorted = this.#sorted.get(one.range.table) as T[];
    sorted.splice(firstFrom(sorted, one.range.low), 1);
  }

  clear(): void {
    this.#byId.clear();
    this.#sorted.clear();
    this.#aside.clear();
  }

  /** Returns the ranges that can have a row of this range. */
  overlapping(range: Pick<Range, "table" | "low" | "high">): readonly T[] {
    const found = [...this.#aside].filter((one) => overlap(one.range, range));
    const sorted = this.#sorted.get(range.table) ?? [];
    // The last range that begins before this one may reach into it; no earlier range can.
    for (let i = Math.max(firstFrom(sorted, range.low) - 1, 0); i < sorted.length; i++) {
      const one = sorted[i] as T;
      if (overlap(one.range, range)) found.push(one);
      else if (compareBytes(one.range.low, range.low) >= 0) break;
    }
    return found;
  }

  /** Returns the ranges that hold the key. */
  holding(table: ObjectTable, key: Uint8Array): readonly T[] {
    const found = [...this.#aside].filter(({ range }) => range.table === table && holdsKey(range, key));
    const sorted = this.#sorted.get(table) ?? [];
    const at = firstFrom(sorted, key);
    for (const one of sorted.slice(Math.max(at - 1, 0), at + 1)) if (holdsKey(one.range, key)) found.push(one);
    return found;
  }
}

/** Returns the index of the first range whose low key is at or after `key`. */
function firstFrom(sorted: readonly Holding[], key: Uint8Array): number {
  let from = 0;
  let to = sorted.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (compareBytes((sorted[middle] as Holding).range.low, key) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}
