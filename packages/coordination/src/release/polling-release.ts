/**
 * Waits until a flag is set, by asking for it at intervals (article "Synchronizing multiple nodes", class PollingRelease). Simple, and right
 * for who starts late, too; it costs one storage operation per process and interval, and the mean wait is half of the interval.
 */
import { DeadlineError, requireNumber } from "../errors.ts";
import { isPermanent } from "../storage/classify.ts";
import { jitteredMs } from "../time/backoff.ts";
import { type Clock, sleep, systemClock, withTimeout } from "../time/clock.ts";
import type { GlobalFlag } from "./global-flag.ts";

export interface WaitOptions {
  /** Signal whose abort rejects the wait with its reason. */
  readonly signal?: AbortSignal;
  /** Longest wait, in milliseconds; then it rejects with a DeadlineError. Default: none. */
  readonly deadlineMs?: number;
}

export interface PollingOptions {
  /** Time between two looks at the flag, in milliseconds, moved by up to a tenth. Default 2,500, as in the article. */
  readonly intervalMs?: number;
  /** Longest time that one look may take, in milliseconds. Default 10,000. */
  readonly requestTimeoutMs?: number;
  /** Called with the error of a look that failed; another look follows. Must not throw. */
  readonly onError?: (error: unknown) => void;
  readonly clock?: Clock;
}

export class PollingRelease {
  readonly #flag: GlobalFlag;
  readonly #intervalMs: number;
  readonly #requestTimeoutMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #clock: Clock;

  constructor(flag: GlobalFlag, options: PollingOptions = {}) {
    const { intervalMs = 2_500, requestTimeoutMs = 10_000 } = options;
    requireNumber("intervalMs", intervalMs, 1, 86_400_000);
    requireNumber("requestTimeoutMs", requestTimeoutMs, 1, 3_600_000);
    this.#flag = flag;
    this.#intervalMs = intervalMs;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#onError = options.onError ?? (() => {});
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Resolves when the flag is set. A look that fails is repeated after the interval; rejects with the service's error only when it refuses
   * for good (bad name, no permission).
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    await withDeadline(this.#clock, this.#flag.name, options, async (signal) => {
      for (;;) {
        if (await this.look(signal)) return;
        await sleep(this.#clock, jitteredMs(this.#clock, this.#intervalMs, 0.1), signal);
      }
    });
  }

  /** Looks once: true if the flag is set. False also if the service did not answer. */
  async look(signal: AbortSignal): Promise<boolean> {
    try {
      return await withTimeout(this.#clock, this.#requestTimeoutMs, signal, (each) => this.#flag.isSet(each));
    } catch (error) {
      signal.throwIfAborted();
      if (isPermanent(error)) throw error;
      this.#onError(error);
      return false;
    }
  }
}

/** Runs a wait under its options. When it settles, the signal that `work` got is aborted, so that nothing of it goes on. */
export async function withDeadline(
  clock: Clock,
  what: string,
  options: WaitOptions,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  options.signal?.throwIfAborted();
  if (options.deadlineMs !== undefined) requireNumber("deadlineMs", options.deadlineMs, 0, Number.MAX_SAFE_INTEGER);
  const controller = new AbortController();
  const aborted = () => controller.abort(options.signal?.reason);
  options.signal?.addEventListener("abort", aborted, { once: true });
  const cancel =
    options.deadlineMs === undefined
      ? () => {}
      : clock.after(options.deadlineMs, () => controller.abort(new DeadlineError(`${what} was not set within ${options.deadlineMs} ms`)));
  try {
    await work(controller.signal);
  } finally {
    cancel();
    options.signal?.removeEventListener("abort", aborted);
    controller.abort();
  }
}
