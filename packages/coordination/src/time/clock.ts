/**
 * Time as the classes of this package see it: a monotonic clock and timers. Tests give a virtual clock; everybody else the system's.
 *
 * Invariants:
 * - `monotonicMs` never goes back and is not moved by steps of the wall clock.
 * - It goes on while the machine is suspended, because a lease at the storage service goes on, too.
 */
import { uptime } from "node:os";

export interface Clock {
  /** Returns the time since a fixed moment of the past, in milliseconds. */
  monotonicMs(): number;
  /** Calls back once after the delay. Returns a function that cancels the call. */
  after(delayMs: number, call: () => void): () => void;
  /** Returns a number in [0, 1), for jitter. */
  random(): number;
}

/** Longest delay that a timer of Node.js takes, in milliseconds. */
const timerMaxMs = 2 ** 31 - 1;

const startedUptimeMs = uptime() * 1000;
const startedMs = performance.now();

/** The clock of this process. Time of suspension counts where the operating system tells it in its uptime (Linux does). */
export const systemClock: Clock = {
  // `performance.now` stops while a Linux machine is suspended, the uptime does not: the later of both is right.
  monotonicMs: () => Math.max(performance.now() - startedMs, uptime() * 1000 - startedUptimeMs),
  after: (delayMs, call) => {
    let timer: NodeJS.Timeout;
    // A longer delay takes several timers: a deadline must not come early.
    const wait = (leftMs: number): void => {
      const stepMs = Math.min(Math.max(0, leftMs), timerMaxMs);
      timer = setTimeout(() => (leftMs > stepMs ? wait(leftMs - stepMs) : call()), stepMs);
    };
    wait(delayMs);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** Waits. Rejects with the reason of `signal` as soon as that is aborted. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const aborted = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    });
    signal?.addEventListener("abort", aborted, { once: true });
  });
}

/** The error with which `withTimeout` gives up. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/**
 * Runs `work` with a signal that is aborted after `timeoutMs` or with `signal`, and settles then even if `work` does not listen: rejects
 * with a TimeoutError or with the reason of `signal`.
 */
export async function withTimeout<T>(
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  let stop: (() => void) | undefined;
  const given = new Promise<never>((_, reject) => {
    const give = (reason: unknown) => {
      controller.abort(reason);
      reject(reason);
    };
    const cancel = clock.after(timeoutMs, () => give(new TimeoutError(`no answer within ${timeoutMs} ms`)));
    const aborted = () => give(signal?.reason);
    signal?.addEventListener("abort", aborted, { once: true });
    stop = () => {
      cancel();
      signal?.removeEventListener("abort", aborted);
    };
  });
  try {
    return await Promise.race([work(controller.signal), given]);
  } finally {
    stop?.();
  }
}

/** Settles as `work` does, or rejects with the reason of `signal`, whichever comes first. `work` itself goes on. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work;
  const { promise, reject } = Promise.withResolvers<never>();
  const aborted = () => reject(signal.reason);
  if (signal.aborted) aborted();
  signal.addEventListener("abort", aborted, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", aborted);
  }
}
