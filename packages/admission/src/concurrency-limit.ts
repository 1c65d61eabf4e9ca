/**
 * How many operations may be at work at once, from how long they take.
 *
 * As in CoDel, what counts is the shortest time of an interval: a burst leaves some operation quick, only a queue that stands makes every
 * one of them slow. While somebody else would suffer from it (`contended`), a limit at which even the quickest takes longer than the target
 * is lowered, and one at which it does not is raised; while nobody would, the limit goes back to its maximum: more at work is more
 * in one commit.
 *
 * Reads and writes are different by nature, and a slow disk is not a queue: each kind has its own shortest time, and the target is raised
 * to twice the best of the last half minute, but no more than fourfold: that best may itself be of a time when a queue stood.
 */
export interface LimitOptions {
  readonly limitMin: number;
  readonly limitMax: number;
  /** The time of the quickest operation above which a queue stands inside. */
  readonly targetMs: number;
}

export type Kind = "read" | "write";

const intervalMs = 100;
/** Fewer that ended say nothing, unless they are all of a second. */
const endedMin = 8;
const waitForEndedMs = 1_000;
const fall = 0.7;
const rise = 0.05;
const riseAlone = 0.25;
const baselineMs = 15_000;
const slowerThanBest = 2;
const targetsMax = 4;

class Shortest {
  /** Of this interval. */
  nowMs: number = Number.POSITIVE_INFINITY;
  /** Of this quarter of a minute and the one before. */
  #newerMs: number = Number.POSITIVE_INFINITY;
  #olderMs: number = Number.POSITIVE_INFINITY;

  see(tookMs: number): void {
    if (tookMs < this.nowMs) this.nowMs = tookMs;
  }

  /** Whether even the quickest of the interval took longer than it should. Starts the next one. */
  turn(targetMs: number): boolean {
    const best = Math.min(this.#newerMs, this.#olderMs);
    const allowedMs = Math.min(Math.max(targetMs, slowerThanBest * best), targetsMax * targetMs);
    const standing = Number.isFinite(this.nowMs) && this.nowMs > allowedMs;
    this.#newerMs = Math.min(this.#newerMs, this.nowMs);
    this.nowMs = Number.POSITIVE_INFINITY;
    return standing;
  }

  age(): void {
    this.#olderMs = this.#newerMs;
    this.#newerMs = Number.POSITIVE_INFINITY;
  }
}

export class ConcurrencyLimit {
  readonly #options: LimitOptions;
  readonly #shortest: Readonly<Record<Kind, Shortest>> = { read: new Shortest(), write: new Shortest() };
  #limit: number;
  #ended = 0;
  #startedMs = 0;
  #agedMs = 0;
  #standing = false;

  constructor(options: LimitOptions) {
    this.#options = options;
    this.#limit = options.limitMax;
  }

  get limit(): number {
    return Math.round(this.#limit);
  }

  /** Whether in the last interval even the quickest took longer than the target. */
  get standing(): boolean {
    return this.#standing;
  }

  ended(kind: Kind, tookMs: number): void {
    this.#ended++;
    this.#shortest[kind].see(tookMs);
  }

  /** Called often; does something once in an interval. */
  turn(nowMs: number, contended: boolean): void {
    const passedMs = nowMs - this.#startedMs;
    if (passedMs < intervalMs || (this.#ended < endedMin && passedMs < waitForEndedMs)) return;
    this.#startedMs = nowMs;
    this.#ended = 0;
    const { limitMin, limitMax, targetMs } = this.#options;
    const standing = [this.#shortest.read, this.#shortest.write].map((one) => one.turn(targetMs));
    this.#standing = standing.includes(true);
    if (nowMs - this.#agedMs >= baselineMs) {
      this.#agedMs = nowMs;
      for (const one of [this.#shortest.read, this.#shortest.write]) one.age();
    }
    if (contended && this.#standing) this.#limit = Math.max(limitMin, this.#limit * fall);
    else this.#limit = Math.min(limitMax, this.#limit + Math.max(1, this.#limit * (contended ? rise : riseAlone)));
  }
}
