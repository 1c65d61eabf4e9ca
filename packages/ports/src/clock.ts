/**
 * Time. Leases and deadlines use monotonic time only; wall time is for what users see (Last-Modified, lease expiry shown, TTL).
 */
export interface Timer {
  /** Idempotent; after it the callback never runs. */
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
}

/** Resolves after `delayMs`, or at once when `signal` is or becomes aborted; the result says which. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<"elapsed" | "aborted"> {
  if (signal?.aborted) return Promise.resolve("aborted");
  return new Promise((resolve) => {
    const onAbort = (): void => {
      timer.cancel();
      resolve("aborted");
    };
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve("elapsed");
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * The promise's value, or `undefined` when `timeoutMs` passes first. The work is not cancelled: pass a signal of your own for that.
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
