/**
 * Bounds how much begins at once: thousands of calls that wait for the same node would all begin in the turn in which it is heard of again.
 * Who comes within the bound goes on at once, without a timer.
 */
import type { Clock } from "@stamp/ports";

/** Number of calls that begin in one slice: about 5 ms of work. */
const startsPerSlice = 256;
const sliceMs = 10;

export class StartPace {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #sliceStartMs = Number.NEGATIVE_INFINITY;
  #started = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns undefined if the caller may go on at once; else a promise of the caller's turn, in the order of the calls. */
  enter(): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#mayStart()) return undefined;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) this.#later();
    });
  }

  #mayStart(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#sliceStartMs >= sliceMs) {
      this.#sliceStartMs = nowMs;
      this.#started = 0;
    }
    if (this.#started >= startsPerSlice) return false;
    this.#started += 1;
    return true;
  }

  #later(): void {
    const restMs = this.#sliceStartMs + sliceMs - this.#clock.monotonicMs();
    this.#clock.after(Math.max(0, restMs), () => {
      let go = 0;
      while (go < this.#waiting.length && this.#mayStart()) go += 1;
      for (const start of this.#waiting.splice(0, go)) start();
      if (this.#waiting.length > 0) this.#later();
    });
  }
}
