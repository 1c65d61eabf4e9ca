/**
 * Rounds: moments at which periodic work of all processes of a machine runs. A process that nobody uses wakes for its own work, for questions
 * of others and for answers. In one round these come together: several messages wake their receiver once, and several timers their process.
 *
 * Moments are multiples of the step by the machine's monotonic clock, which its processes share. Machines have nothing in common: each one's clock
 * counts from its own start.
 *
 * Invariant: work is never later than it would be without rounds, only earlier.
 */

/** Time between rounds, in milliseconds, the longest one first. */
const stepsMs = [1_000, 500, 250];
/** A delay that is shorter than a step by this share, since it counts from the sending of a question, still has that step. */
const shorterShare = 0.9;

/** Machine's monotonic time when `performance.now()` was 0, in milliseconds. */
const originMs: number = Number(process.hrtime.bigint() / 1_000n) / 1_000 - performance.now();

/** Returns the time until the last round within `delayMs`, in milliseconds; `delayMs` if there is none. */
export function untilRoundMs(delayMs: number, nowMs: number = originMs + performance.now()): number {
  const stepMs = stepsMs.find((step) => step * shorterShare <= delayMs);
  if (stepMs === undefined) return delayMs;
  const overMs = (nowMs + delayMs) % stepMs;
  return overMs < delayMs ? delayMs - overMs : delayMs;
}

/** Returns the time until the next multiple of `everyMs`, in milliseconds: more than 0, at most `everyMs`. */
export const untilMultipleMs = (everyMs: number, nowMs: number = originMs + performance.now()): number => everyMs - (nowMs % everyMs);
