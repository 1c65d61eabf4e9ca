/** The rate of repairs over the whole stamp: copies of replicas and fragments that are made anew share it. */
import type { Clock } from "@stamp/ports";

export class RepairPace {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  #notBeforeMs = 0;

  constructor(clock: Clock, bytesPerSecond: number) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Time until the next repair may begin, in milliseconds; 0: it may begin now. */
  get waitMs(): number {
    return Math.max(0, this.#notBeforeMs - this.#clock.monotonicMs());
  }

  /** A repair that reads so many bytes begins now. */
  spend(bytes: number): void {
    this.#notBeforeMs = Math.max(this.#clock.monotonicMs(), this.#notBeforeMs) + (bytes * 1_000) / this.#bytesPerSecond;
  }
}
