/**
 * Turns of the event loop for long loops: work that takes longer than a slice lets everybody else go first, and goes on afterwards. What the
 * loop looks at may change meanwhile.
 *
 *     const turns = new Turns(clock);
 *     for (const item of items) {
 *       if (turns.over) await turns.next();
 *       …
 *     }
 */
import type { Clock } from "./clock.ts";

/** Longest time for which a loop keeps the event loop, in milliseconds: a fifth of what a request may take of it. */
export const turnSliceMs = 10;

export class Turns {
  readonly #clock: Clock;
  #endMs: number;

  /** The first slice begins now. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#endMs = clock.monotonicMs() + turnSliceMs;
  }

  get over(): boolean {
    return this.#clock.monotonicMs() >= this.#endMs;
  }

  /** Resolves in a later turn, in which the next slice begins. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(0, () => {
        this.#endMs = this.#clock.monotonicMs() + turnSliceMs;
        resolve();
      });
    });
  }
}
