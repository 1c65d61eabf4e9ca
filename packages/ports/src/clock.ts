/**
 * Time. Leases and deadlines use monotonic time only; wall time is for what users see (Last-Modified, lease expiry shown, TTL).
 */
import { jittered, type Random } from "./random.ts";

export interface Timer {
  /** Cancels the timer; the callback never runs afterwards. Idempotent. */
  cancel(): void;
}

export interface Clock {
  /** Milliseconds (with fraction) since an arbitrary start; never goes back, does not follow changes of the wall clock. */
  monotonicMs(): number;
  /** Milliseconds since 1970-01-01 UTC; may jump in either direction. */
  wallMs(): number;
  /**
   * Milliseconds (with fraction) that this machine was suspended in all, from an arbitrary start: monotonic time stands still meanwhile.
   * Only differences say something. Exact to about 20 ms. Cheap enough to ask before every answer.
   */
  suspendedMs(): number;
  /** Runs `callback` once, `delayMs` or later from now. Never synchronously. Does not keep the process alive. */
  after(delayMs: number, callback: () => void): Timer;
  /**
   * Returns when the last round within `delayMs` is, in milliseconds from now: a moment at which periodic work of this machine runs. Returns `delayMs`
   * if it is too short to have one. Undefined: the clock knows no rounds.
   */
  untilRoundMs?(delayMs: number): number;
}

/** Runs `callback` once, in the last round within `delayMs`: for periodic work, which may be early. */
export const atMost = (clock: Clock, delayMs: number, callback: () => void): Timer =>
  clock.after(clock.untilRoundMs?.(delayMs) ?? delayMs, callback);

/** Resolves after `delayMs`, or at once when `signal` is or becomes aborted; the result says which. */
export const sleep = (clock: Clock, delayMs: number, signal?: AbortSignal): Promise<"elapsed" | "aborted"> =>
  wait((callback) => clock.after(delayMs, callback), signal);

/** Waits between two turns of periodic work: as `sleep`, but `delayMs` at most. */
export const pause = (clock: Clock, delayMs: number, signal?: AbortSignal): Promise<"elapsed" | "aborted"> =>
  wait((callback) => atMost(clock, delayMs, callback), signal);

/**
 * Waits about `delayMs` between two turns of periodic work. A clock that knows rounds spreads nothing: machines have different ones. With another clock
 * the wait is `delayMs` ± a quarter.
 */
export const jitteredPause = (
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  delayMs: number,
  signal?: AbortSignal,
): Promise<"elapsed" | "aborted"> =>
  clock.untilRoundMs === undefined ? sleep(clock, jittered(random, delayMs), signal) : pause(clock, delayMs, signal);

function wait(arm: (callback: () => void) => Timer, signal?: AbortSignal): Promise<"elapsed" | "aborted"> {
  if (signal?.aborted) return Promise.resolve("aborted");
  return new Promise((resolve) => {
    const onAbort = (): void => {
      timer.cancel();
      resolve("aborted");
    };
    const timer = arm(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve("elapsed");
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * Returns the promise's value, or `undefined` when `timeoutMs` passes first. The work is not cancelled: pass a signal of your own for that.
 */
export function within<T>(clock: Clock, timeoutMs: number, work: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () => resolve(undefined));
    work.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}
