/** Randomness of one incarnation, from the seed. */
import type { Prng } from "@stamp/base";
import type { Random } from "@stamp/ports";

export class SimRandom implements Random {
  readonly #prng: Prng;

  constructor(prng: Prng) {
    this.#prng = prng;
  }

  uint32(): number {
    return this.#prng.uint32();
  }

  float(): number {
    return this.#prng.float();
  }

  bytes(length: number): Uint8Array<ArrayBuffer> {
    return this.#prng.bytes(length);
  }
}
