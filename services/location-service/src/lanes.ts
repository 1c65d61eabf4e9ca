/**
 * Bounds how much is asked of each stamp at once. Each stamp has a lane of its own, so that one that does not answer delays nobody but itself.
 */

interface Lane {
  running: number;
  readonly waiting: (() => void)[];
}

export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #atOnce: number;

  /** `atOnce`: bound of the work that runs at once in a lane. */
  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Runs `work` when the lane has a place, in the order of the calls. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const lane = this.#lanes.get(name) ?? { running: 0, waiting: [] };
    this.#lanes.set(name, lane);
    if (lane.running < this.#atOnce) lane.running += 1;
    // Work that ends gives its place to the first work that waits.
    else await new Promise<void>((resolve) => lane.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = lane.waiting.shift();
      if (next !== undefined) next();
      else lane.running -= 1;
      if (lane.running === 0) this.#lanes.delete(name);
    }
  }
}
