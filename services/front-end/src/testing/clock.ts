/** A clock for tests of the front-end. */
import type { Clock } from "@stamp/ports";

export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Time that passes when it is told to. */
export class CountedClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly callback: () => void }>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }
  suspendedMs(): number {
    return 0;
  }

  after(delayMs: number, callback: () => void) {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const [first] = [...this.#timers].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
      if (!first) break;
      this.#timers.delete(first);
      this.#nowMs = first.atMs;
      first.callback();
      await settled();
    }
    this.#nowMs = endMs;
  }
}
