/** Clock of this package; tests give a virtual one. */
export interface BalancerClock {
  /** Returns the time since a fixed moment, in milliseconds; steps of the wall clock do not move it. */
  monotonicMs(): number;
  /** Calls back once after the delay. Returns a function that cancels the call. */
  after(delayMs: number, call: () => void): () => void;
  /** Returns a number in [0, 1), for jitter. */
  random(): number;
}

export const systemClock: BalancerClock = {
  monotonicMs: () => performance.now(),
  after: (delayMs, call) => {
    const timer = setTimeout(call, delayMs);
    // A question that nobody waits for any more keeps no process alive.
    timer.unref();
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};

/** Error for an option out of its range, or an unknown node. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export function requireNumber(name: string, value: number, min: number, max: number): void {
  if (!(value >= min && value <= max)) throw new UsageError(`${name} is ${value}; give a number from ${min} to ${max}`);
}
