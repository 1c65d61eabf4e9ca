/**
 * Loads of ranges whose own figures say nothing yet. A range that was loaded, split or merged a moment ago has the load of before: its own when
 * another server served it, or its part of what the ranges had that its keys belonged to. Without this a server to which much was just moved looks
 * idle, gets more, and gives it back a minute later.
 *
 * Bounded by the number of ranges.
 */
import type { RangeFigures, SettledLoad } from "./balance.ts";
import { overlap, type Range } from "./range.ts";

export class SettledLoads {
  #ranges: readonly Range[] = [];
  #loads = new Map<string, SettledLoad>();

  get loads(): ReadonlyMap<string, SettledLoad> {
    return this.#loads;
  }

  /** Takes figures of a range that has been as it is for `ageMs`; those of a range younger than `restMs` are passed over. */
  told({ rangeId, ageMs, requestsPerSecond, throttledPerSecond, bytes }: RangeFigures, restMs: number): void {
    if (ageMs >= restMs) this.#loads.set(rangeId, { requestsPerSecond, throttledPerSecond, bytes });
  }

  /** Takes the ranges that there are now. A new one inherits: each range that is gone divides its load among those that have its keys. */
  follow(ranges: readonly Range[]): void {
    if (ranges === this.#ranges) return;
    const present = new Set(ranges.map(({ rangeId }) => rangeId));
    const known = new Set(this.#ranges.map(({ rangeId }) => rangeId));
    const added = ranges.filter(({ rangeId }) => !known.has(rangeId) && !this.#loads.has(rangeId));
    for (const gone of this.#ranges.filter(({ rangeId }) => !present.has(rangeId))) {
      const load = this.#loads.get(gone.rangeId);
      const children = added.filter((range) => overlap(range, gone));
      if (load !== undefined)
        for (const { rangeId } of children) this.#loads.set(rangeId, sum(this.#loads.get(rangeId), load, children.length));
    }
    for (const rangeId of this.#loads.keys()) if (!present.has(rangeId)) this.#loads.delete(rangeId);
    this.#ranges = ranges;
  }
}

const sum = (before: SettledLoad | undefined, load: SettledLoad, parts: number): SettledLoad => ({
  requestsPerSecond: (before?.requestsPerSecond ?? 0) + load.requestsPerSecond / parts,
  throttledPerSecond: (before?.throttledPerSecond ?? 0) + load.throttledPerSecond / parts,
  bytes: (before?.bytes ?? 0) + load.bytes / parts,
});
