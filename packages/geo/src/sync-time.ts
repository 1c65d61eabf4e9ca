/**
 * Last Sync Time: every commit of the primary with a commit time at or before it is acknowledged by the secondary. It
 * never overstates. Times are whole milliseconds since 1970, by the clock of the range's owner.
 *
 * A clock may be set back, and commits may share a millisecond. So a range gives its commits times that never fall, and
 * the sync time is one millisecond before the first time that a commit which is not acknowledged has, or may get.
 */
import { assert } from "@stamp/base";

/** Times of the commits of one range, and what follows for its Last Sync Time. */
export class RangeSyncTime {
  /** Sync time that was told last; it never falls. */
  #told: number | undefined;
  /** Time that the last commit has. */
  #lastCommitMs: number;
  #acknowledged: number;
  #end: number;
  /** Commits that are not acknowledged, in order; the times of later ones are not kept when there are too many. */
  #pending: { readonly position: number; readonly timeMs: number }[] = [];
  readonly #pendingMax: number;

  /**
   * `cursor`: what is acknowledged. `end`: position of the last commit. `cursorTimeMs`: lower bound of the times of
   * commits behind the cursor, undefined if there is none. `lastCommitMs`: time of the last commit, so that times do
   * not fall when the range moves.
   */
  constructor(cursor: number, end: number, cursorTimeMs: number | undefined, lastCommitMs: number, pendingMax = 10_000) {
    assert(cursor <= end, "a cursor is in its log");
    assert(pendingMax >= 1, "at least one commit is kept");
    this.#acknowledged = cursor;
    this.#end = end;
    this.#lastCommitMs = lastCommitMs;
    this.#pendingMax = pendingMax;
    if (cursor < end && cursorTimeMs !== undefined) this.#pending.push({ position: cursor + 1, timeMs: cursorTimeMs });
  }

  /**
   * Time that a commit at `position` gets when the clock says `nowMs`: not before that of the commit in front of it.
   */
  committed(position: number, nowMs: number): number {
    assert(position > this.#end, "commits are in order");
    this.#lastCommitMs = Math.max(this.#lastCommitMs, nowMs);
    this.#end = position;
    if (this.#pending.length < this.#pendingMax) this.#pending.push({ position, timeMs: this.#lastCommitMs });
    return this.#lastCommitMs;
  }

  acknowledged(position: number): void {
    assert(position <= this.#end, "only commits are acknowledged");
    this.#acknowledged = Math.max(this.#acknowledged, position);
    let passed: number | undefined;
    while (this.#pending[0] !== undefined && this.#pending[0].position <= this.#acknowledged) passed = this.#pending.shift()?.timeMs;
    // The times of the commits behind the kept ones are unknown, but none is earlier than the last one that was kept.
    if (passed !== undefined && this.#pending.length === 0 && this.#acknowledged < this.#end) {
      this.#pending.push({ position: this.#acknowledged + 1, timeMs: passed });
    }
  }

  /**
   * Last Sync Time when the clock says `nowMs`; undefined: nothing is known yet. An idle range advances with the clock.
   */
  at(nowMs: number): number | undefined {
    const next = this.#end === this.#acknowledged ? Math.max(nowMs, this.#lastCommitMs) : this.#pending[0]?.timeMs;
    if (next !== undefined && (this.#told === undefined || next - 1 > this.#told)) this.#told = next - 1;
    if (this.#end === this.#acknowledged) this.#lastCommitMs = Math.max(this.#lastCommitMs, nowMs);
    return this.#told;
  }
}

/**
 * Last Sync Time of an account: the earliest of its ranges. Undefined if that of one range is unknown, or if there is
 * none.
 */
export function accountSyncTime(ranges: Iterable<number | undefined>): number | undefined {
  let earliest: number | undefined;
  for (const range of ranges) {
    if (range === undefined) return undefined;
    earliest = earliest === undefined ? range : Math.min(earliest, range);
  }
  return earliest;
}

/** Last Sync Time as HTTP tells it, in whole seconds: rounded down, so that it does not overstate. */
export const wholeSeconds = (timeMs: number): number => Math.floor(timeMs / 1_000) * 1_000;
