/**
 * Finds the names that ask most, by sample and hold: one request of `sampleEvery` is looked at, and its name is counted
 * from then on until the interval ends. So the counters stay few, whatever number of names there is, and those of the
 * heavy ones are nearly exact.
 */
import type { Prng } from "@stamp/base";

export interface HeavyName {
  readonly name: string;
  /** Share of the requests of the interval. */
  readonly share: number;
}

const sampleEvery = 4;
const heldMax = 512;

export class SampleAndHold {
  readonly #prng: Pick<Prng, "chance">;
  readonly #held = new Map<string, number>();
  #seen = 0;

  constructor(prng: Pick<Prng, "chance">) {
    this.#prng = prng;
  }

  /** Requests since the interval began. */
  get seen(): number {
    return this.#seen;
  }

  see(...names: readonly string[]): void {
    this.#seen++;
    const sampled = this.#prng.chance(1 / sampleEvery);
    for (const name of names) {
      const count = this.#held.get(name);
      // Before it was held, one request was seen for every `sampleEvery` that came.
      if (count !== undefined) this.#held.set(name, count + 1);
      else if (sampled && this.#held.size < heldMax) this.#held.set(name, sampleEvery);
    }
  }

  /** Ends the interval: those of at least this share of it, the heaviest first. */
  turn(shareMin: number): readonly HeavyName[] {
    const heavy = [...this.#held]
      .map(([name, count]) => ({ name, share: Math.min(1, count / Math.max(1, this.#seen)) }))
      .filter(({ share }) => share >= shareMin)
      .sort((a, b) => b.share - a.share);
    this.#held.clear();
    this.#seen = 0;
    return heavy;
  }
}
