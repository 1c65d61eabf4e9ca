/**
 * The holder's own idea of how long its lease lasts. It ends a margin before the lock service could call it ended: the term counts from
 * when the request was SENT, and less the margin for clocks that run at different speeds. Once it ended it never holds again under the
 * same epoch, even when a late answer says that it was renewed.
 *
 * The monotonic clock of a suspended machine stands still: what it was suspended since the request was sent counts as passed. A step of the
 * wall clock means nothing here.
 */
import type { LeaseEpoch, Rules } from "@stamp/base";
import { assert } from "@stamp/base";

/** State of a request, taken immediately before it is sent. */
export interface LeaseAttempt {
  readonly sentMonotonicMs: number;
  readonly sentSuspendedMs: number;
}

export class LeaseHolder {
  readonly #marginMs: number;
  readonly #rules: Rules;
  #epoch: LeaseEpoch | undefined;
  #deadlineMs = 0;
  /** How long the machine had been suspended when the request was sent. */
  #suspendedMs = 0;

  constructor(marginMs: number, rules: Rules) {
    assert(marginMs >= 0, "a margin is not negative");
    this.#marginMs = marginMs;
    this.#rules = rules;
  }

  /** Epoch that the holder has, or believed to have until `holds` was false; undefined after `end`. */
  get epoch(): LeaseEpoch | undefined {
    return this.#epoch;
  }

  /** Monotonic time from which on the lease counts as lost, in milliseconds, without suspends of the machine. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  granted(attempt: LeaseAttempt, epoch: LeaseEpoch, termMs: number, nowMonotonicMs: number): void {
    assert(this.#epoch === undefined, "a lease is taken only after the old one was given up");
    assert(termMs > this.#marginMs, "a term is longer than the margin");
    this.#epoch = epoch;
    this.#count(attempt, termMs, nowMonotonicMs);
  }

  /** Takes the answer to a renewal of `epoch`. Ignored when that is not held any more. */
  renewed(attempt: LeaseAttempt, epoch: LeaseEpoch, termMs: number, nowMonotonicMs: number, nowSuspendedMs: number): void {
    if (this.#epoch !== epoch || !this.holds(nowMonotonicMs, nowSuspendedMs)) return;
    const startMs = this.#startMs(attempt, nowMonotonicMs);
    if (startMs + termMs - this.#marginMs > this.#deadlineMs) this.#count(attempt, termMs, nowMonotonicMs);
  }

  end(): void {
    this.#epoch = undefined;
    this.#deadlineMs = 0;
  }

  holds(nowMonotonicMs: number, nowSuspendedMs: number): boolean {
    if (this.#epoch === undefined) return false;
    if (nowMonotonicMs + this.#sleptMs(nowSuspendedMs) < this.#deadlineMs) return true;
    this.#deadlineMs = Number.NEGATIVE_INFINITY;
    return false;
  }

  #count(attempt: LeaseAttempt, termMs: number, nowMonotonicMs: number): void {
    this.#deadlineMs = this.#startMs(attempt, nowMonotonicMs) + termMs - this.#marginMs;
    this.#suspendedMs = attempt.sentSuspendedMs;
  }

  /** Returns the time that the machine slept. Never negative: a step back of the wall clock must not prolong the lease. */
  #sleptMs(nowSuspendedMs: number): number {
    return this.#rules.on("leaseCountsSuspends") ? Math.max(0, nowSuspendedMs - this.#suspendedMs) : 0;
  }

  #startMs(attempt: LeaseAttempt, nowMonotonicMs: number): number {
    return this.#rules.on("leaseCountsFromSending") ? attempt.sentMonotonicMs : nowMonotonicMs;
  }
}
