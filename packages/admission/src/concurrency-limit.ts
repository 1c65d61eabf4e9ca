/**
 * How many operations may be at work at once, from how long they take.
 *
 * While somebody else would suffer from it (`contended`), a limit at which they take too long is lowered, and one at which they do not is
 * raised; while nobody would, the limit goes back to its maximum: more at work is more in one commit. What is too long:
 *
 *  - `quickest`, of operations that wait for disks and other processes. As in CoDel: a burst leaves some operation quick, only a queue that
 *    stands makes every one of them slow, so what counts is the shortest time of an interval. Reads and writes are different by nature, and
 *    a slow disk is not a queue: each kind has its own, and its target is raised to twice the time that is taken when hardly anything is at
 *    work, but no more than fourfold. That time is not found by waiting for a good moment, where one who floods leaves none: every quarter of
 *    a minute the limit is at its least for two intervals or more, one in which what is at work ends, and one that is measured.
 *  - `mean`, of turns of an event loop, which keep everybody waiting who comes meanwhile: what one waits for on average.
 */
export interface LimitOptions {
  readonly limitMin: number;
  readonly limitMax: number;
  readonly targetMs: number;
  /** Time that is compared with the target. */
  readonly compared: "quickest" | "mean";
}

export type AccessKind = "read" | "write";

const intervalMs = 100;
/** Number of operations that must have ended in an interval to judge it, unless a whole second has passed. */
const endedMin = 8;
const waitForEndedMs = 1_000;
const fall = 0.7;
const rise = 0.05;
const riseAlone = 0.25;
const probeEveryMs = 15_000;
const slowerThanProbed = 2;
const targetsMax = 4;

/** Times of the operations of this interval. */
class Times {
  #count = 0;
  #sumMs = 0;
  #quickestMs: number = Number.POSITIVE_INFINITY;
  /** The quickest of the last interval in which hardly anything was at work. */
  #probedMs = 0;

  see(tookMs: number): void {
    this.#count++;
    this.#sumMs += tookMs;
    if (tookMs < this.#quickestMs) this.#quickestMs = tookMs;
  }

  tooLong({ targetMs, compared }: LimitOptions): boolean {
    if (this.#count === 0) return false;
    if (compared === "mean") return this.#sumMs / this.#count > targetMs;
    return this.#quickestMs > Math.min(Math.max(targetMs, slowerThanProbed * this.#probedMs), targetsMax * targetMs);
  }

  probed(): void {
    if (this.#count > 0) this.#probedMs = this.#quickestMs;
  }

  next(): void {
    this.#count = 0;
    this.#sumMs = 0;
    this.#quickestMs = Number.POSITIVE_INFINITY;
  }
}

export class ConcurrencyLimit {
  readonly #options: LimitOptions;
  readonly #times: Readonly<Record<AccessKind, Times>> = { read: new Times(), write: new Times() };
  #limit: number;
  #ended = 0;
  #startedMs = 0;
  #probedMs: number = Number.NEGATIVE_INFINITY;
  #phase: "following" | "emptying" | "probing" = "following";
  #standing = false;

  constructor(options: LimitOptions) {
    this.#options = options;
    this.#limit = options.limitMax;
  }

  get limit(): number {
    return this.#phase === "following" ? Math.round(this.#limit) : this.#options.limitMin;
  }

  /** True if operations took too long in the last interval, so that there is a queue inside. */
  get standing(): boolean {
    return this.#standing;
  }

  ended(kind: AccessKind, tookMs: number): void {
    this.#ended++;
    this.#times[kind].see(tookMs);
  }

  /** Takes a turn if an interval has passed since the last one; called often. `atWork`: number of operations at work. */
  turn(nowMs: number, contended: boolean, atWork: number): void {
    const passedMs = nowMs - this.#startedMs;
    if (passedMs < intervalMs || (this.#ended < endedMin && passedMs < waitForEndedMs)) return;
    this.#startedMs = nowMs;
    this.#ended = 0;
    const times = [this.#times.read, this.#times.write];
    this.#standing = times.some((one) => one.tooLong(this.#options));
    if (this.#phase === "probing") for (const one of times) one.probed();
    for (const one of times) one.next();
    if (this.#phase === "following") this.#follow(contended);
    this.#phase = this.#nextPhase(nowMs, contended, passedMs, atWork);
  }

  #follow(contended: boolean): void {
    const { limitMin, limitMax } = this.#options;
    if (contended && this.#standing) this.#limit = Math.max(limitMin, this.#limit * fall);
    else this.#limit = Math.min(limitMax, this.#limit + Math.max(1, this.#limit * (contended ? rise : riseAlone)));
  }

  #nextPhase(nowMs: number, contended: boolean, passedMs: number, atWork: number): "following" | "emptying" | "probing" {
    if (this.#phase === "probing") return "following";
    if (this.#phase === "emptying") {
      // Accounts that have nothing at work start beside the limit, up to twice of it.
      return atWork <= 2 * this.#options.limitMin || passedMs >= waitForEndedMs ? "probing" : "emptying";
    }
    if (!contended || this.#options.compared === "mean" || nowMs - this.#probedMs < probeEveryMs) return "following";
    this.#probedMs = nowMs;
    return "emptying";
  }
}
