/**
 * Whether this front-end takes calls (`stamp.v1.Availability`), for clients that choose among several (@stamp/endpoints): it serves, it is
 * not disabled, and it has room. Above 90% of its places it says no, and yes again below 70%, so that it does not say both in turns.
 */
import { type Outcome, ok } from "@stamp/base";
import type { Clock, Handlers } from "@stamp/ports";
import type { AvailabilityControl, Availability as AvailabilityService } from "@stamp/wire";

export interface AvailabilityParts {
  readonly clock: Clock;
  /** Processes or steps that the front-end waits for; empty: none. */
  readonly waitingFor: () => readonly string[];
  readonly requests: () => number;
  readonly requestsMax: number;
}

const fullAbove = 0.9;
const roomBelow = 0.7;

export class Availability {
  readonly #parts: AvailabilityParts;
  #full = false;
  #disabledUntilMs = Number.NEGATIVE_INFINITY;

  constructor(parts: AvailabilityParts) {
    this.#parts = parts;
  }

  /** Returns why this front-end takes no calls; empty if it takes them. */
  reason(): string {
    const { clock, waitingFor, requests, requestsMax } = this.#parts;
    const leftMs = this.#disabledUntilMs - clock.monotonicMs();
    if (leftMs > 0) return `disabled for ${Math.ceil(leftMs / 1000)} s more`;
    const [waiting] = waitingFor();
    if (waiting !== undefined) return `it waits for ${waiting}`;
    this.#full = requests() > requestsMax * (this.#full ? roomBelow : fullAbove);
    return this.#full ? `${requests()} of ${requestsMax} requests are in progress` : "";
  }

  disable(forMs: number): void {
    this.#disabledUntilMs = this.#parts.clock.monotonicMs() + forMs;
  }
}

export const availabilityHandlers = (availability: Availability): Handlers<typeof AvailabilityService> => ({
  isAvailable: async () => {
    const reason = availability.reason();
    return ok({ available: reason === "", reason });
  },
});

export const availabilityControlHandlers = (availability: Availability): Handlers<typeof AvailabilityControl> => ({
  disableNode: async ({ forMs }): Promise<Outcome<object>> => {
    availability.disable(forMs);
    return ok({});
  },
});
