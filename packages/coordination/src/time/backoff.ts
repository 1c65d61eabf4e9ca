/**
 * Delays between attempts. Full jitter: each delay is drawn evenly between nothing and a bound that doubles with each attempt, so that
 * many processes that failed together do not come back together.
 */
import type { Clock } from "./clock.ts";

export interface BackoffOptions {
  /** Bound of the first delay, in milliseconds. */
  readonly firstMs: number;
  /** Bound that no delay exceeds, in milliseconds. */
  readonly maxMs: number;
}

/** Returns the delay before attempt `attempt + 1`, in milliseconds; `attempt` counts from 0. */
export function backoffMs(clock: Clock, options: BackoffOptions, attempt: number): number {
  return clock.random() * Math.min(options.maxMs, options.firstMs * 2 ** Math.min(attempt, 30));
}

/** Returns `valueMs` moved by up to `share` of itself in either direction. */
export function jitteredMs(clock: Clock, valueMs: number, share: number): number {
  return valueMs * (1 + share * (2 * clock.random() - 1));
}
