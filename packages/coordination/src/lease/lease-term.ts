/**
 * One term of a lease, as a machine without clock or I/O: when to renew, and when the holder must have stopped.
 *
 *   renewal sent (s)                renew        end of safety      s + duration: the service may give
 *   |-------------------------------|------------|-- margin --------|  the lease to somebody else
 *   held                            try, try …   ended
 *
 * Invariants:
 * - The service counts the duration from when it receives a request, which is not before the request was sent. So the term ends at
 *   `duration - margin` after the last successful request was *sent*, whenever its answer came.
 * - An answer that proves the loss ends the term at once. Any other failure ends nothing: the lease is still held until the term ends.
 * - A term that has ended stays ended, whatever answers come later.
 */

export interface LeaseTermOptions {
  /** Duration that the service was asked for, in milliseconds. */
  readonly durationMs: number;
  /** Time before the end of the lease at which the holder stops, in milliseconds. */
  readonly marginMs: number;
  /** Time between a successful request and the next renewal, in milliseconds. */
  readonly renewEveryMs: number;
  /** Time between a failed renewal and the next attempt, in milliseconds. */
  readonly retryEveryMs: number;
}

export type RenewalResult =
  | { readonly kind: "renewed" }
  /** No answer, or one that says nothing of the lease. */
  | { readonly kind: "failed" }
  /** The answer proves that the lease is gone. */
  | { readonly kind: "lost"; readonly why: string };

export type LeaseStep =
  | { readonly kind: "wait"; readonly untilMs: number }
  /** Send a renewal now; it is of no use after `untilMs`. */
  | { readonly kind: "renew"; readonly untilMs: number }
  | { readonly kind: "ended"; readonly why: string };

export class LeaseTerm {
  readonly #options: LeaseTermOptions;
  #endsMs: number;
  #renewAtMs: number;
  #renewing = false;
  #ended: string | undefined;

  /** `sentMs`: time at which the request that acquired the lease was sent. */
  constructor(options: LeaseTermOptions, sentMs: number) {
    this.#options = options;
    this.#endsMs = sentMs + options.durationMs - options.marginMs;
    this.#renewAtMs = sentMs + options.renewEveryMs;
  }

  /** Moment at which the holder must have stopped, if no renewal succeeds. */
  get endsMs(): number {
    return this.#endsMs;
  }

  /** Returns what to do now. A `renew` is given once; the next one follows `answered`. */
  next(nowMs: number): LeaseStep {
    if (this.#ended === undefined && nowMs >= this.#endsMs) {
      this.#ended = "no renewal of the lease succeeded in time";
    }
    if (this.#ended !== undefined) return { kind: "ended", why: this.#ended };
    if (this.#renewing) return { kind: "wait", untilMs: this.#endsMs };
    if (nowMs < this.#renewAtMs) return { kind: "wait", untilMs: Math.min(this.#renewAtMs, this.#endsMs) };
    this.#renewing = true;
    return { kind: "renew", untilMs: this.#endsMs };
  }

  /** Takes the result of the renewal that was sent at `sentMs`. */
  answered(sentMs: number, result: RenewalResult, nowMs: number): void {
    this.#renewing = false;
    if (this.#ended !== undefined) return;
    switch (result.kind) {
      case "renewed":
        // An answer that came after the end is too late: between the two the holder was told to stop.
        if (nowMs >= this.#endsMs) return;
        this.#endsMs = Math.max(this.#endsMs, sentMs + this.#options.durationMs - this.#options.marginMs);
        this.#renewAtMs = sentMs + this.#options.renewEveryMs;
        return;
      case "failed":
        this.#renewAtMs = nowMs + this.#options.retryEveryMs;
        return;
      case "lost":
        this.#ended = result.why;
        return;
    }
  }

  /** Ends the term by the holder's own will: no renewal follows. */
  end(why: string): void {
    this.#ended ??= why;
  }
}
