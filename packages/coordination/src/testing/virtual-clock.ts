/** Virtual time for the tests of this package: a clock that moves when a test says so, and processes on it that can be paused. */
import type { Clock } from "../time/clock.ts";

interface Timer {
  readonly dueMs: number;
  readonly call: () => void;
}

export class VirtualClock implements Clock {
  #nowMs = 0;
  #timers = new Set<Timer>();
  #state: number;

  constructor(seed = 1) {
    this.#state = seed * 2654435761 + 1;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, call: () => void): () => void {
    // Whole milliseconds: a remainder too small to move the clock would be waited for for ever.
    const timer = { dueMs: this.#nowMs + Math.max(0, Math.ceil(delayMs)), call };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Numbers of a linear congruential generator: the same seed gives the same run. */
  random(): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return this.#state / 2 ** 32;
  }

  /** Lets promises settle, and calls timers in order of time, until `ms` have passed. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      await settle();
      let first: Timer | undefined;
      for (const timer of this.#timers) if (first === undefined || timer.dueMs < first.dueMs) first = timer;
      if (first === undefined || first.dueMs > untilMs) break;
      this.#timers.delete(first);
      this.#nowMs = Math.max(this.#nowMs, first.dueMs);
      first.call();
    }
    this.#nowMs = untilMs;
    await settle();
  }

  /** Advances until the promise settles, by `stepMs` at a time; fails after `maxMs`. */
  async until<T>(promise: Promise<T>, maxMs = 3_600_000, stepMs = 100): Promise<T> {
    let settled = false;
    promise.then(
      () => {
        settled = true;
      },
      () => {
        settled = true;
      },
    );
    for (let passedMs = 0; ; passedMs += stepMs) {
      await settle();
      if (settled) return await promise;
      if (passedMs > maxMs) throw new Error(`not settled after ${maxMs} ms of virtual time`);
      await this.advance(stepMs);
    }
  }

  /** Clock of one process on this time. While it is paused its timers are late; time goes on. */
  process(): ProcessClock {
    return new ProcessClock(this);
  }
}

export class ProcessClock implements Clock {
  readonly #world: VirtualClock;
  #paused = false;
  readonly #late: (() => void)[] = [];

  constructor(world: VirtualClock) {
    this.#world = world;
  }

  monotonicMs(): number {
    return this.#world.monotonicMs();
  }

  random(): number {
    return this.#world.random();
  }

  get paused(): boolean {
    return this.#paused;
  }

  after(delayMs: number, call: () => void): () => void {
    let cancelled = false;
    const run = () => {
      if (cancelled) return;
      if (this.#paused) this.#late.push(run);
      else call();
    };
    const cancel = this.#world.after(delayMs, run);
    return () => {
      cancelled = true;
      cancel();
    };
  }

  /** Gives `work` back when this process runs again: an answer that arrives during a pause is seen after it. */
  async seen<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      if (this.#paused) await new Promise<void>((resolve) => this.#late.push(resolve));
    }
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    for (const run of this.#late.splice(0)) run();
  }
}

/** Lets everything that waits for promises only go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
}
