/**
 * Holds a lease while a task runs: acquires, renews, tells the task to stop in time, releases. The machine `LeaseTerm` decides when; this
 * file sends the requests.
 *
 * Invariants:
 * - A lease id is used for one candidacy. Its requests may be repeated without harm, so an acquisition whose answer was lost is found again.
 * - The task's signal is aborted before the lease could be given to somebody else, whatever the service answers or does not.
 * - When the call returns, the task has settled, and the lease is released or was proved to be gone; if the service does not answer, the
 *   lease ends by itself after its duration.
 * - A failing release hides neither the task's value nor its error.
 */
import { randomUUID } from "node:crypto";
import { LeaseLostError, requireInteger, requireNumber } from "../errors.ts";
import { isPermanent, provesLeaseLost } from "../storage/classify.ts";
import { backoffMs, jitteredMs } from "../time/backoff.ts";
import { type Clock, sleep, systemClock, withTimeout } from "../time/clock.ts";
import type { LeaseStore } from "./lease-store.ts";
import { LeaseTerm, type RenewalResult } from "./lease-term.ts";

export interface LeaseOptions {
  /** Duration of the lease, in seconds: 15 to 60, as the service takes them. Default 30. */
  readonly leaseSeconds?: number;
  /** Mean time between two attempts to acquire a lease that somebody else holds, in milliseconds. Default 3,000. */
  readonly acquireEveryMs?: number;
  /** Time before the end of the lease at which the task is told to stop, in milliseconds. Default: a tenth of the lease. */
  readonly marginMs?: number;
  /** Called with each error that is retried or that comes after the task's end. Must not throw. */
  readonly onError?: (error: unknown, during: "acquire" | "renew" | "release" | "claim" | "task") => void;
  readonly clock?: Clock;
}

/** Lease, as the task that runs under it sees it. */
export interface HeldLease {
  /** Id of the lease for the conditions of writes to the leased blob. */
  readonly leaseId: string;
  /** Aborted before the lease could be given to somebody else, or when the caller aborts. */
  readonly signal: AbortSignal;
  /** Returns the time for which the lease is certainly held, in milliseconds; 0 if it may have ended. Exact also after a pause of the process. */
  remainingMs(): number;
  /** Throws a LeaseLostError if the lease may have ended. Call it before each step that only a holder may take. */
  assertHeld(): void;
  /**
   * Stops renewing and aborts the signal with `reason`. The lease is released when the task settles, or ends by itself when it never does.
   * The call that holds the lease rejects with `reason`.
   */
  giveUp(reason: Error): void;
}

export type HoldResult<T> =
  | { readonly kind: "finished"; readonly value: T }
  /** The lease ended while the task ran, and the task stopped. */
  | { readonly kind: "lost"; readonly why: string };

interface Times {
  readonly durationMs: number;
  readonly marginMs: number;
  readonly renewEveryMs: number;
  /** Longest time that one request may take, in milliseconds. */
  readonly requestMs: number;
  readonly acquireEveryMs: number;
}

/** Default of `acquireEveryMs`. */
export const acquireEveryDefaultMs = 3_000;

/** Longest delay after a failed request to acquire, in milliseconds. */
const acquireBackoffMaxMs = 10_000;

export class LeaseHolder {
  readonly #store: LeaseStore;
  readonly #clock: Clock;
  readonly #seconds: number;
  readonly #times: Times;
  readonly #onError: NonNullable<LeaseOptions["onError"]>;

  constructor(store: LeaseStore, options: LeaseOptions = {}) {
    const { leaseSeconds = 30, acquireEveryMs = acquireEveryDefaultMs, marginMs = leaseSeconds * 100 } = options;
    requireInteger("leaseSeconds", leaseSeconds, 15, 60, ", which is what the service takes");
    requireNumber("acquireEveryMs", acquireEveryMs, 1, 3_600_000);
    requireNumber("marginMs", marginMs, 0, leaseSeconds * 500, ", half of the lease at most");
    this.#store = store;
    this.#clock = options.clock ?? systemClock;
    this.#seconds = leaseSeconds;
    this.#onError = options.onError ?? (() => {});
    const durationMs = leaseSeconds * 1000;
    this.#times = { durationMs, marginMs, renewEveryMs: durationMs / 3, requestMs: durationMs / 5, acquireEveryMs };
  }

  get clock(): Clock {
    return this.#clock;
  }

  /**
   * Waits for the lease and runs `task` under it. Rejects with the task's error, with the reason of `signal` when that is aborted while
   * waiting, or with the service's error when it refuses the acquisition for good.
   */
  async hold<T>(task: (lease: HeldLease) => Promise<T>, signal?: AbortSignal): Promise<HoldResult<T>> {
    const leaseId = randomUUID();
    const term = await this.#acquire(leaseId, signal);
    return await this.#run(leaseId, term, task, signal);
  }

  async #acquire(leaseId: string, signal: AbortSignal | undefined): Promise<LeaseTerm> {
    const { durationMs, marginMs, renewEveryMs, requestMs, acquireEveryMs } = this.#times;
    /** True while a request that got no answer may have acquired the lease. */
    let mayHold = false;
    try {
      for (let failures = 0; ; ) {
        signal?.throwIfAborted();
        const sentMs = this.#clock.monotonicMs();
        let delayMs = jitteredMs(this.#clock, acquireEveryMs, 0.3);
        mayHold = true;
        try {
          // Without the caller's signal: a request that is cancelled half-way could acquire the lease after its release.
          const acquired = await withTimeout(this.#clock, requestMs, undefined, (each) =>
            this.#store.acquire(leaseId, this.#seconds, each),
          );
          mayHold = acquired;
          failures = 0;
          if (acquired) {
            signal?.throwIfAborted();
            const options = { durationMs, marginMs, renewEveryMs, retryEveryMs: Math.min(1_000, durationMs / 20) };
            return new LeaseTerm(options, sentMs);
          }
        } catch (error) {
          if (signal?.aborted) throw error;
          if (isPermanent(error)) {
            mayHold = false;
            throw error;
          }
          this.#onError(error, "acquire");
          delayMs = backoffMs(this.#clock, { firstMs: acquireEveryMs, maxMs: acquireBackoffMaxMs }, failures++);
        }
        await sleep(this.#clock, delayMs, signal);
      }
    } catch (error) {
      if (mayHold) await this.#release(leaseId);
      throw signal?.aborted ? signal.reason : error;
    }
  }

  async #run<T>(
    leaseId: string,
    term: LeaseTerm,
    task: (lease: HeldLease) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<HoldResult<T>> {
    const clock = this.#clock;
    const controller = new AbortController();
    const stopped = () => controller.abort(signal?.reason);
    signal?.addEventListener("abort", stopped, { once: true });
    let lost: string | undefined;
    let gaveUp: Error | undefined;
    const lease: HeldLease = {
      leaseId,
      signal: controller.signal,
      remainingMs: () => (lost === undefined ? Math.max(0, term.endsMs - clock.monotonicMs()) : 0),
      assertHeld: () => {
        if (lease.remainingMs() === 0) throw new LeaseLostError(this.#lostMessage(lost ?? "no renewal succeeded in time"));
      },
      giveUp: (reason) => {
        gaveUp ??= reason;
        lost ??= reason.message;
        term.end(reason.message);
        controller.abort(reason);
      },
    };
    // Aborted with the caller's signal between the acquisition and here: the task is not begun.
    const running = signal?.aborted ? Promise.reject(signal.reason) : Promise.resolve().then(() => task(lease));
    const settled = running.then(
      (value) => ({ kind: "value", value }) as const,
      (error: unknown) => ({ kind: "error", error }) as const,
    );
    const ending = new AbortController();
    const keeping = this.#keep(leaseId, term, ending.signal, (why) => {
      lost ??= why;
      controller.abort(new LeaseLostError(this.#lostMessage(why)));
    });
    const outcome = await settled;
    ending.abort();
    const provedLost = await keeping;
    signal?.removeEventListener("abort", stopped);
    if (!provedLost) await this.#release(leaseId);
    if (gaveUp !== undefined) throw gaveUp;
    if (outcome.kind === "error") {
      if (lost !== undefined && isAbort(outcome.error, controller.signal)) return { kind: "lost", why: lost };
      // The task asked before the timer of the term's end came.
      if (outcome.error instanceof LeaseLostError && lease.remainingMs() === 0) return { kind: "lost", why: outcome.error.message };
      throw outcome.error;
    }
    return lost === undefined ? { kind: "finished", value: outcome.value } : { kind: "lost", why: lost };
  }

  /** Renews until `ending` is aborted or the term ends. Returns true if the service proved that the lease is gone. */
  async #keep(leaseId: string, term: LeaseTerm, ending: AbortSignal, onEnd: (why: string) => void): Promise<boolean> {
    let provedLost = false;
    while (!ending.aborted) {
      const nowMs = this.#clock.monotonicMs();
      const step = term.next(nowMs);
      if (step.kind === "ended") {
        onEnd(step.why);
        break;
      }
      if (step.kind === "wait") {
        await sleep(this.#clock, step.untilMs - nowMs, ending).catch(() => {});
        continue;
      }
      const result = await this.#renew(leaseId, Math.min(this.#times.requestMs, step.untilMs - nowMs), ending);
      provedLost ||= result.kind === "lost";
      term.answered(nowMs, result, this.#clock.monotonicMs());
    }
    return provedLost;
  }

  async #renew(leaseId: string, timeoutMs: number, ending: AbortSignal): Promise<RenewalResult> {
    try {
      await withTimeout(this.#clock, timeoutMs, ending, (each) => this.#store.renew(leaseId, each));
      return { kind: "renewed" };
    } catch (error) {
      if (ending.aborted) return { kind: "failed" };
      this.#onError(error, "renew");
      if (!provesLeaseLost(error)) return { kind: "failed" };
      return { kind: "lost", why: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Releases the lease if the service answers within a fifth of the lease; otherwise the lease ends by itself. A lease that is gone already is as good as released. */
  async #release(leaseId: string): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + this.#times.requestMs;
    for (let attempt = 0; attempt < releaseAttemptsMax; attempt++) {
      const leftMs = untilMs - this.#clock.monotonicMs();
      if (leftMs <= 0) return;
      try {
        await withTimeout(this.#clock, leftMs, undefined, (each) => this.#store.release(leaseId, each));
        return;
      } catch (error) {
        if (provesLeaseLost(error)) return;
        this.#onError(error, "release");
        if (isPermanent(error)) return;
        await sleep(this.#clock, backoffMs(this.#clock, { firstMs: 200, maxMs: 2_000 }, attempt));
      }
    }
  }

  #lostMessage(why: string): string {
    return `the lease of ${this.#store.name} is lost: ${why}`;
  }
}

/** Attempts of a release. After them the lease ends by itself. */
const releaseAttemptsMax = 3;

/** True if a task failed because its signal was aborted: with the reason, or with an error that names the abort. */
function isAbort(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false;
  return error === signal.reason || (error instanceof Error && (error.name === "AbortError" || error.cause === signal.reason));
}
