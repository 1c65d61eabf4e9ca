/** When each step of one succession (failure seen → next extent) was reached: for the log and for measurements. */
import type { Clock } from "@stamp/ports";

export type SealStep = "sealRecorded" | "lengthDecided" | "allocationRecorded" | "created" | "opened";

export class Steps {
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #reachedMs: Partial<Record<SealStep, number>> = {};

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  /** Notes the time of a step; only its first time counts. */
  reached(step: SealStep): void {
    this.#reachedMs[step] ??= Math.round((this.#clock.monotonicMs() - this.#startMs) * 10) / 10;
  }

  /** Milliseconds since the start; a step that was not needed is not there. */
  get ms(): Readonly<Partial<Record<SealStep, number>>> {
    return this.#reachedMs;
  }
}
