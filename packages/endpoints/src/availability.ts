/**
 * The node's side: whether it takes calls. Each criterion has two thresholds, so that a node that is at its limit does not say yes and no in
 * turns: it becomes unavailable above `unavailableAbove`, and available again when it is below `availableBelow`.
 */
import { type BalancerClock, requireNumber, systemClock, UsageError } from "./time.ts";

export interface Criterion {
  /** Name, for the reason that is given. */
  readonly name: string;
  /** Unit of the value, for the reason that is given. */
  readonly unit: string;
  /** Measures now. A probe that throws or gives no number makes the node unavailable. */
  readonly measure: () => number;
  readonly unavailableAbove: number;
  readonly availableBelow: number;
}

export interface AvailabilityAnswer {
  readonly available: boolean;
  /** Reason why the node is not available; empty: it is. */
  readonly reason: string;
}

export interface AvailabilityOptions {
  readonly criteria?: readonly Criterion[];
  /** Time for which a measurement is good, in milliseconds. Default 250. */
  readonly measureEveryMs?: number;
  readonly clock?: BalancerClock;
}

export class Availability {
  readonly #criteria: readonly Criterion[];
  readonly #measureEveryMs: number;
  readonly #clock: BalancerClock;
  /** Criteria above their threshold, with the measured values. */
  readonly #exceeded = new Map<Criterion, string>();
  #measuredMs = Number.NEGATIVE_INFINITY;
  #disabledUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: AvailabilityOptions = {}) {
    const { criteria = [], measureEveryMs = 250 } = options;
    requireNumber("measureEveryMs", measureEveryMs, 0, 3_600_000);
    for (const { name, unavailableAbove, availableBelow } of criteria) {
      if (!(availableBelow <= unavailableAbove)) {
        throw new UsageError(
          `criterion ${name}: availableBelow (${availableBelow}) must not be above unavailableAbove (${unavailableAbove})`,
        );
      }
    }
    this.#criteria = criteria;
    this.#measureEveryMs = measureEveryMs;
    this.#clock = options.clock ?? systemClock;
  }

  answer(): AvailabilityAnswer {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#disabledUntilMs) {
      return { available: false, reason: `disabled for ${Math.ceil((this.#disabledUntilMs - nowMs) / 1000)} s more` };
    }
    if (nowMs - this.#measuredMs >= this.#measureEveryMs) this.#measure(nowMs);
    const reason = [...this.#exceeded.values()].join("; ");
    return { available: reason === "", reason };
  }

  /** Makes the node say no for a time. */
  disable(forMs: number): void {
    requireNumber("forMs", forMs, 0, Number.MAX_SAFE_INTEGER);
    this.#disabledUntilMs = this.#clock.monotonicMs() + forMs;
  }

  enable(): void {
    this.#disabledUntilMs = Number.NEGATIVE_INFINITY;
  }

  #measure(nowMs: number): void {
    this.#measuredMs = nowMs;
    for (const criterion of this.#criteria) {
      const { name, unit, unavailableAbove, availableBelow } = criterion;
      let value: number;
      try {
        value = criterion.measure();
      } catch (error) {
        this.#exceeded.set(criterion, `${name} can't be measured: ${error instanceof Error ? error.message : error}`);
        continue;
      }
      const limit = this.#exceeded.has(criterion) ? availableBelow : unavailableAbove;
      if (value <= limit) this.#exceeded.delete(criterion);
      else this.#exceeded.set(criterion, `${name} is ${Math.round(value * 100) / 100} ${unit} (limit ${limit})`);
    }
  }
}
