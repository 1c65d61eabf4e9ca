/** The clients of a door whom the server waits for, each with its pace (@stamp/base, pace.ts); those that are too slow are told to whoever waits. */
import { Pace } from "@stamp/base";

export interface PaceLimits {
  readonly leastBytesPerSecond: number;
  readonly leastRateWindowMs: number;
}

/** Time between two looks for slow clients, in milliseconds. */
const paceEveryMs = 1_000;
/**
 * Standing still for longer is allowed after many bytes went out at once, as a multiple of the window: what the system took counts as
 * taken, and it holds up to some MB for a connection, of which it asks for more only when a third is free.
 */
const sendCreditWindows = 5;

/** Watches clients that the server waits for, and ends those that are too slow. */
export class Paces {
  readonly #limits: PaceLimits;
  readonly #waiting = new Map<Pace, () => void>();
  /** Runs while the server waits for a client. */
  #timer: NodeJS.Timeout | undefined;

  constructor(limits: PaceLimits) {
    this.#limits = limits;
  }

  of(direction: "body" | "answer"): Pace {
    const { leastBytesPerSecond, leastRateWindowMs: windowMs } = this.#limits;
    return new Pace({ leastBytesPerSecond, windowMs, creditMaxMs: direction === "body" ? windowMs : sendCreditWindows * windowMs });
  }

  wait(pace: Pace, tooSlow: () => void): void {
    pace.wait(performance.now());
    this.#waiting.set(pace, tooSlow);
    this.#timer ??= setInterval(() => this.#check(), Math.min(paceEveryMs, this.#limits.leastRateWindowMs)).unref();
  }

  rest(pace: Pace, movedBytes: number): void {
    if (this.#waiting.delete(pace)) pace.rest(performance.now());
    pace.moved(movedBytes);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #check(): void {
    const nowMs = performance.now();
    for (const [pace, tooSlow] of this.#waiting) {
      if (!pace.isTooSlow(nowMs)) continue;
      this.#waiting.delete(pace);
      tooSlow();
    }
    if (this.#waiting.size === 0) this.stop();
  }
}
