/**
 * Extents whose repair failed lately. A repair that needs the good chunks of damaged fragments may fail each time at the same place: it rests for a
 * minute, then twice as long each time, up to an hour, so that it does not read the fragments again and again.
 */
import type { ExtentId } from "@stamp/base";
import type { Clock } from "@stamp/ports";

const restMinMs = 60_000;
const restMaxMs = 3_600_000;
const extentsMax = 10_000;

interface Rest {
  readonly restMs: number;
  readonly untilMs: number;
  readonly why: string;
}

export class RepairRests {
  readonly #clock: Clock;
  readonly #rests = new Map<ExtentId, Rest>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  failed(id: ExtentId, why: string): void {
    const restMs = Math.min(restMaxMs, (this.#rests.get(id)?.restMs ?? restMinMs / 2) * 2);
    this.#rests.delete(id);
    this.#rests.set(id, { restMs, untilMs: this.#clock.monotonicMs() + restMs, why });
    if (this.#rests.size > extentsMax) this.forget(this.#rests.keys().next().value as ExtentId);
  }

  forget(id: ExtentId): void {
    this.#rests.delete(id);
  }

  /** Returns why the extent rests, and how much longer; undefined: it does not. */
  why(id: ExtentId): string | undefined {
    const rest = this.#rests.get(id);
    const leftMs = (rest?.untilMs ?? 0) - this.#clock.monotonicMs();
    return rest === undefined || leftMs <= 0 ? undefined : `${rest.why}; it is tried again in ${Math.ceil(leftMs / 1_000)} s`;
  }
}
