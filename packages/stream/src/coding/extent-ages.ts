/**
 * Tells which extents were seen sealed for a given time, without a time for each of a million extents: now and then it notes which extents
 * were not sealed then. An extent that was sealed at a look long ago is old. A new leader knows no earlier looks, so ages begin anew with it.
 *
 * Invariant: at most `looksMax` looks are kept, each with the extents that were not sealed (about as many as there are streams).
 */
import type { ExtentId } from "@stamp/base";

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

  /** `afterMs`: how long an extent must have been sealed to be old. */
  constructor(afterMs: number) {
    this.#afterMs = afterMs;
  }

  /** Takes what a look over all extents has found: `unsealed` ones, and the highest number. Looks that follow too soon are not kept. */
  looked(nowMs: number, lastId: number, unsealed: Iterable<ExtentId>): void {
    const last = this.#looks.at(-1);
    if (last === undefined || nowMs - last.atMs >= this.#afterMs / (looksMax - 2)) {
      this.#looks.push({ atMs: nowMs, lastId, young: new Set(unsealed) });
    }
    while (this.#looks.length > 1 && nowMs - (this.#looks[1] as Look).atMs >= this.#afterMs) this.#looks.shift();
  }

  /** True if the extent, which is sealed, was sealed at a look of `afterMs` ago or earlier. */
  isOld(id: ExtentId, nowMs: number): boolean {
    const [first] = this.#looks;
    return first !== undefined && nowMs - first.atMs >= this.#afterMs && id <= first.lastId && !first.young.has(id);
  }

  /** The age of the extent begins now: a person had it stored as replicas. */
  renew(id: ExtentId): void {
    for (const look of this.#looks) look.young.add(id);
  }
}
