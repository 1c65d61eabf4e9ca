/** Tells in the log of what took long, and where its time went: a few lines a second at most, so that an overloaded process is not busy with it. */
import type { LogFields } from "./logger.ts";
import type { World } from "./world.ts";

/** Least time of an operation that is logged, in milliseconds; long enough that a healthy cluster logs nothing. */
export const slowMs = 1_000;
const linesMax = 5;
const windowMs = 1_000;

export class SlowLog {
  readonly #world: Pick<World, "clock" | "logger">;
  #windowEndsMs = 0;
  #lines = 0;
  /** Slow operations that were not logged because the rate limit was reached. */
  #suppressed = 0;

  constructor(world: Pick<World, "clock" | "logger">) {
    this.#world = world;
  }

  /** Logs an operation that took `slowMs` or more since `sinceMs`. Only then is `facts` called. */
  ended(message: string, sinceMs: number, facts: () => LogFields): void {
    const nowMs = this.#world.clock.monotonicMs();
    const tookMs = nowMs - sinceMs;
    if (tookMs < slowMs) return;
    if (nowMs >= this.#windowEndsMs) {
      this.#windowEndsMs = nowMs + windowMs;
      this.#lines = 0;
    }
    if (this.#lines >= linesMax) {
      this.#suppressed++;
      return;
    }
    this.#lines++;
    const suppressed = this.#suppressed === 0 ? {} : { notLogged: this.#suppressed };
    this.#suppressed = 0;
    this.#world.logger.info(message, { tookMs: Math.round(tookMs), ...facts(), ...suppressed });
  }
}
