/**
 * Extents whose repair failed lately, and how long each rests. A repair may fail each time at the same place. It would take the rate and the places
 * of other repairs again and again.
 *
 * Invariants:
 * - A rest is twice as long each time. It begins at 5 s and ends at 5 minutes, so that an extent whose sources are back is soon tried again.
 * - A repair that needs good chunks of damaged fragments rests 1 minute to 1 hour: chunks do not get better.
 */
import type { ExtentId } from "@stamp/base";
import type { Clock } from "@stamp/ports";

const certain = { minMs: 5_000, maxMs: 300_000 };
const uncertain = { minMs: 60_000, maxMs: 3_600_000 };
const extentsMax = 10_000;

interface Rest {
  readonly isUncertain: boolean;
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

  /** Notes a failed repair; `isUncertain`: it needs good chunks of damaged fragments. */
  failed(id: ExtentId, why: string, isUncertain: boolean): void {
    const { minMs, maxMs } = isUncertain ? uncertain : certain;
    const last = this.#rests.get(id);
    const restMs = Math.min(maxMs, Math.max(minMs, last?.isUncertain === isUncertain ? last.restMs * 2 : 0));
    this.#rests.delete(id);
    this.#rests.set(id, { isUncertain, restMs, untilMs: this.#clock.monotonicMs() + restMs, why });
    if (this.#rests.size > extentsMax) this.forget(this.#rests.keys().next().value as ExtentId);
  }

  forget(id: ExtentId): void {
    this.#rests.delete(id);
  }

  /** True if the extent's last repair failed, also after its rest. */
  hasFailed(id: ExtentId): boolean {
    return this.#rests.has(id);
  }

  /**
   * Returns why the extent rests, and how much longer; undefined: it does not. `isUncertain`: the repair that could begin now needs good chunks of
   * damaged fragments. One that needs none does not wait for the rest of one that did.
   */
  why(id: ExtentId, isUncertain: boolean): string | undefined {
    const rest = this.#rests.get(id);
    if (rest === undefined || (rest.isUncertain && !isUncertain)) return undefined;
    const leftMs = rest.untilMs - this.#clock.monotonicMs();
    return leftMs <= 0 ? undefined : `${rest.why}; it is tried again in ${Math.ceil(leftMs / 1_000)} s`;
  }
}
