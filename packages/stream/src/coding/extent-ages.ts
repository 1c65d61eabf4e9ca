/**
 * Tells which extents were seen sealed for a given time, without a time for each of a million extents: now and then it notes which extents
 * were not sealed then. An extent that was sealed at a look long ago is old. Looks are saved (coding-ages.ts), so that a new leader goes on with
 * those of the last one.
 *
 * Invariant: at most `looksMax` looks are kept, each with the extents that were not sealed (about as many as there are streams).
 */
import { type ExtentId, extentId } from "@stamp/base";
import type { SavedLook } from "./coding-ages.ts";

interface Look {
  readonly atMs: number;
  /** Highest number of an extent that existed. */
  readonly lastId: number;
  readonly young: Set<ExtentId>;
}

const looksMax = 16;

export class ExtentAges {
  readonly #afterMs: number;
  /** Oldest first. The first one may be older than `afterMs`, no other is. */
  readonly #looks: Look[] = [];

  /** `afterMs`: time for which an extent must have been sealed to count as old. */
  constructor(afterMs: number) {
    this.#afterMs = afterMs;
  }

  /** Takes what a look over all extents has found: `unsealed` ones, and the highest number. False: it follows too soon, and is not kept. */
  looked(nowMs: number, lastId: number, unsealed: Iterable<ExtentId>): boolean {
    const last = this.#looks.at(-1);
    const isKept = last === undefined || nowMs - last.atMs >= this.#afterMs / (looksMax - 2);
    if (isKept) this.#looks.push({ atMs: nowMs, lastId, young: new Set(unsealed) });
    while (this.#looks.length > 1 && nowMs - (this.#looks[1] as Look).atMs >= this.#afterMs) this.#looks.shift();
    return isKept;
  }

  /** Returns the looks with their wall-clock times, oldest first. */
  saved(nowMs: number, wallMs: number): SavedLook[] {
    return this.#looks.map(({ atMs, lastId, young }) => ({
      wallMs: Math.max(0, Math.round(wallMs - (nowMs - atMs))),
      lastId,
      young: [...young],
    }));
  }

  /** Takes looks of an earlier leader, before any other. Those that the wall clock puts into the future are left out: nobody knows their age. */
  restore(looks: readonly SavedLook[], nowMs: number, wallMs: number): void {
    const past = looks.filter((look) => look.wallMs <= wallMs).sort((a, b) => a.wallMs - b.wallMs);
    for (const { wallMs: seenMs, lastId, young } of past.slice(-looksMax))
      this.#looks.push({ atMs: nowMs - (wallMs - seenMs), lastId, young: new Set(young.map(extentId)) });
  }

  /** True if the extent, which is sealed, was sealed at a look of `afterMs` ago or earlier. */
  isOld(id: ExtentId, nowMs: number): boolean {
    const [first] = this.#looks;
    return first !== undefined && nowMs - first.atMs >= this.#afterMs && id <= first.lastId && !first.young.has(id);
  }

  /** Begins the age of an extent anew: a person had it stored as replicas. */
  renew(id: ExtentId): void {
    for (const look of this.#looks) look.young.add(id);
  }
}
