/** Virtual time as one process sees it: its own start and rate, and a wall clock that can be made to jump. */
import type { Clock, Timer } from "@stamp/ports";
import type { Incarnation } from "../kernel/process.ts";

/** Wall time at virtual time 0: 2026-01-01. */
export const wallStartMs: number = 1_767_225_600_000;

export class SimClock implements Clock {
  readonly #incarnation: Incarnation;

  constructor(incarnation: Incarnation) {
    this.#incarnation = incarnation;
  }

  monotonicMs(): number {
    const { clockRate, clockStartUs } = this.#incarnation.process;
    return (clockStartUs + this.#incarnation.nowUs * clockRate) / 1000;
  }

  wallMs(): number {
    const { clockRate, wallOffsetMs } = this.#incarnation.process;
    return Math.floor(wallStartMs + wallOffsetMs + (this.#incarnation.nowUs * clockRate) / 1000);
  }

  after(delayMs: number, callback: () => void): Timer {
    // One microsecond more, so that rounding never makes a timer early.
    const delayUs = Math.ceil((Math.max(0, delayMs) * 1000) / this.#incarnation.process.clockRate) + 1;
    const event = this.#incarnation.schedule(delayUs, "timer", "", callback);
    return { cancel: () => this.#incarnation.cancel(event) };
  }
}
