/**
 * Last Sync Time: everything that was begun at the primary before it and acknowledged there, the secondary has. It never
 * overstates. Times are whole milliseconds since 1970, by the clock of the range's owner.
 *
 *     noted(40, 10:00:01) noted(57, 10:00:02) ──► acknowledged up to 49 ──► Last Sync Time 10:00:00.999
 *
 * A row gets its time when its transaction is decided, before the transaction has a place in the log. So a moment of a
 * range is a position of its log and the time at which the oldest transaction in progress began: everything that began
 * before is at or below the position, or came to nothing.
 */
import { assert } from "@stamp/base";

interface RangeMoment {
  readonly position: number;
  readonly timeMs: number;
  /** Same moment by the owner's monotonic clock, in milliseconds; nobody sets that clock. */
  readonly monotonicMs: number;
  /** Size of all rows that the range had committed up to the position, in bytes, since its owner loaded it. */
  readonly bytes: number;
}

/** Moments of one range, and what follows from them for its Last Sync Time. */
export class RangeSyncTime {
  readonly #momentsMax: number;
  /** Moments that wait for an acknowledgement, oldest first. */
  #moments: RangeMoment[] = [];
  #told: number | undefined;
  #passedMonotonicMs: number | undefined;
  #acknowledgedBytes = 0;

  /** `momentsMax`: bound of the kept moments; beyond it, every second one is forgotten. */
  constructor(momentsMax = 1_000) {
    assert(momentsMax >= 2, "at least two moments are kept");
    this.#momentsMax = momentsMax;
  }

  /**
   * Notes that every transaction that began before `timeMs` is committed at or below `position`, or came to nothing. If the clock is set back,
   * later transactions count as begun at the time that was noted last: a time once given out stays true.
   */
  noted({ position, timeMs, monotonicMs, bytes }: RangeMoment): void {
    const last = this.#moments.at(-1);
    assert(last === undefined || position >= last.position, "moments are in order");
    const moment = { position, timeMs: Math.max(timeMs, last?.timeMs ?? 0, (this.#told ?? -1) + 1), monotonicMs, bytes };
    if (last?.position === position) this.#moments.pop();
    this.#moments.push(moment);
    if (this.#moments.length > this.#momentsMax)
      this.#moments = this.#moments.filter((_, at) => at % 2 === 1 || at === this.#moments.length - 1);
  }

  /** Returns Last Sync Time when the secondary has acknowledged the log to a position; undefined: nothing is known yet. */
  at(acknowledged: number): number | undefined {
    let passed: RangeMoment | undefined;
    while (this.#moments[0] !== undefined && this.#moments[0].position <= acknowledged) passed = this.#moments.shift();
    if (passed === undefined) return this.#told;
    this.#told = passed.timeMs - 1;
    this.#passedMonotonicMs = passed.monotonicMs;
    this.#acknowledgedBytes = passed.bytes;
    return this.#told;
  }

  /**
   * Every transaction that began before this time is acknowledged, or came to nothing, as far as `at` was asked: by the owner's monotonic clock,
   * so that it holds also after the wall clock was set. Undefined: nothing is known yet.
   */
  get passedMonotonicMs(): number | undefined {
    return this.#passedMonotonicMs;
  }

  /** Returns the bound of the size of the rows that are not acknowledged, in bytes. `bytes`: size of all rows since the owner loaded the range. */
  pendingBytes(bytes: number): number {
    return bytes - this.#acknowledgedBytes;
  }
}

/**
 * Returns Last Sync Time of an account: the earliest of its ranges. Undefined if that of one range is unknown, or if there is none.
 */
export function accountSyncTime(ranges: Iterable<number | undefined>): number | undefined {
  let earliest: number | undefined;
  for (const range of ranges) {
    if (range === undefined) return undefined;
    earliest = earliest === undefined ? range : Math.min(earliest, range);
  }
  return earliest;
}

/** Returns a Last Sync Time that is not ahead of a clock: an earlier one states less, and so stays true. */
export const notAhead = (timeMs: number | undefined, nowMs: number): number | undefined =>
  timeMs === undefined ? undefined : Math.min(timeMs, nowMs);

/** Returns Last Sync Time as HTTP tells it, in whole seconds: rounded down, so that it does not overstate. */
export const wholeSeconds = (timeMs: number): number => Math.floor(timeMs / 1_000) * 1_000;
