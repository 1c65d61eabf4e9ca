/** Virtual time as one process sees it: its own start and rate, a wall clock that can be made to jump, and suspends. */
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
    const { clockRate, clockStartUs, suspendedUs } = this.#incarnation.process;
    const nowUs = this.#incarnation.suspendedSinceUs ?? this.#incarnation.nowUs;
    return (clockStartUs + (nowUs - suspendedUs) * clockRate) / 1000;
  }

  wallMs(): number {
    const { clockRate, wallOffsetMs } = this.#incarnation.process;
    return Math.floor(wallStartMs + wallOffsetMs + (this.#incarnation.nowUs * clockRate) / 1000);
  }

  suspendedMs(): number {
    const { clockRate, suspendedUs } = this.#incarnation.process;
    return (suspendedUs * clockRate) / 1000;
  }

  after(delayMs: number, callback: () => void): Timer {
    // One microsecond more, so that rounding never makes a timer early.
    const delayUs = Math.ceil((Math.max(0, delayMs) * 1000) / this.#incarnation.process.clockRate) + 1;
    const { process } = this.#incarnation;
    let suspendedUs = process.suspendedUs;
    // A timer waits in monotonic time: while the machine is suspended it does not come closer.
    const fire = (): void => {
      const leftUs = process.suspendedUs - suspendedUs;
      suspendedUs = process.suspendedUs;
      if (leftUs > 0) event = this.#incarnation.schedule(leftUs, "timer", "", fire);
      else callback();
    };
    let event = this.#incarnation.schedule(delayUs, "timer", "", fire);
    return { cancel: () => this.#incarnation.cancel(event) };
  }
}
