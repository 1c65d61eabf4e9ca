/**
 * Clocks of queues. A queue never acts at an earlier time than it has acted at before (rule queueClockNeverBack), or a message could
 * be hidden, or alive, a second time. So when the wall clock was set back, or another server has an earlier one, the queue is ahead of it;
 * then its time goes at half speed until the wall clock has caught up: hidden messages still become visible, and the difference wears off.
 *
 * What is kept here is only since when a queue was seen ahead; whoever forgets it starts from the stored time again.
 */
export const queueClocksMax = 10_000;

interface Ahead {
  readonly clockMs: number;
  readonly monotonicMs: number;
}

export class QueueClocks {
  readonly #ahead = new Map<string, Ahead>();

  /** Returns the time at which the queue acts; `clockMs`: latest time at which it acted, as its rows say. */
  actingMs(name: string, now: { readonly wallMs: number; readonly monotonicMs: number }, clockMs: number): number {
    if (now.wallMs >= clockMs) {
      this.#ahead.delete(name);
      return now.wallMs;
    }
    const since = this.#ahead.get(name) ?? this.#remember(name, { clockMs, monotonicMs: now.monotonicMs });
    const slowMs = since.clockMs + Math.floor(Math.max(0, now.monotonicMs - since.monotonicMs) / 2);
    return Math.max(slowMs, clockMs, now.wallMs);
  }

  #remember(name: string, ahead: Ahead): Ahead {
    if (this.#ahead.size >= queueClocksMax) {
      const [oldest] = this.#ahead.keys();
      if (oldest !== undefined) this.#ahead.delete(oldest);
    }
    this.#ahead.set(name, ahead);
    return ahead;
  }
}
