/**
 * A seeded pseudo-random generator (xoshiro128**, seeded by splitmix32). One seed gives one sequence, on every machine. Not for
 * secrets: those come from the Random port.
 */
import { assert } from "./assert.ts";

export class Prng {
  readonly #state: Uint32Array;

  constructor(seed: number) {
    this.#state = new Uint32Array(4);
    let s = seed >>> 0;
    for (let i = 0; i < 4; i++) {
      s = (s + 0x9e3779b9) >>> 0;
      let z = s;
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      this.#state[i] = (z ^ (z >>> 16)) >>> 0;
    }
  }

  /** Returns a number, uniform in 0 .. 2^32-1. */
  uint32(): number {
    const s = this.#state;
    const s0 = s[0] as number;
    const s1 = s[1] as number;
    const s2 = s[2] as number;
    const s3 = s[3] as number;
    const times5 = Math.imul(s1, 5);
    const result = Math.imul((times5 << 7) | (times5 >>> 25), 9) >>> 0;
    const t = s1 << 9;
    const n2 = s2 ^ s0;
    const n3 = s3 ^ s1;
    s[1] = s1 ^ n2;
    s[0] = s0 ^ n3;
    s[2] = n2 ^ t;
    s[3] = (n3 << 11) | (n3 >>> 21);
    return result;
  }

  /** Returns a number, uniform in [0, 1). */
  float(): number {
    return (this.uint32() * 2 ** 21 + (this.uint32() >>> 11)) / 2 ** 53;
  }

  /** Returns an integer, uniform in 0 .. boundExclusive-1. */
  below(boundExclusive: number): number {
    assert(Number.isSafeInteger(boundExclusive) && boundExclusive > 0, "bound must be a positive safe integer");
    return Math.floor(this.float() * boundExclusive);
  }

  chance(probability: number): boolean {
    return this.float() < probability;
  }

  pick<T>(items: readonly T[]): T {
    assert(items.length > 0, "pick from nothing");
    return items[this.below(items.length)] as T;
  }

  /** Shuffles in place (Fisher-Yates) and returns the same array. */
  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const held = items[i] as T;
      items[i] = items[j] as T;
      items[j] = held;
    }
    return items;
  }

  bytes(length: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = this.uint32() & 0xff;
    return bytes;
  }

  /** Returns an independent generator, so that one actor's draws do not shift another's. */
  fork(): Prng {
    return new Prng(this.uint32());
  }
}
