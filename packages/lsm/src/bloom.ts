/**
 * A bloom filter of 16 bits a key: says "certainly not there" or "maybe" (about 1 in 1,500 wrongly; of 10 bits a key, as older checkpoints
 * have them, 1 in 120). A row that is inserted is looked for in every checkpoint: each wrong answer reads a block.
 */
const bitsPerKey = 16;
const probes = 7;
const stepKeys = 8_192;

/** Two independent 32-bit hashes of a key. */
export interface KeyHash {
  readonly h1: number;
  readonly h2: number;
}

/** Returns two FNV-1a hashes with different offsets, mixed. */
export function hashKey(key: Uint8Array): KeyHash {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (const byte of key) {
    a = Math.imul(a ^ byte, 0x01000193);
    b = Math.imul(b ^ byte, 0x5bd1e995);
    b ^= b >>> 15;
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b);
  b = Math.imul(b ^ (b >>> 13), 0xc2b2ae35);
  return { h1: (a ^ (a >>> 13)) >>> 0, h2: ((b ^ (b >>> 16)) | 1) >>> 0 };
}

/** Builder of a bloom filter; takes 8 bytes of memory for each key until it is finished. */
export class BloomBuilder {
  #hashes = new Uint32Array(2_048);
  #count = 0;

  add(key: Uint8Array): void {
    const { h1, h2 } = hashKey(key);
    if (2 * this.#count === this.#hashes.length) {
      const larger = new Uint32Array(2 * this.#hashes.length);
      larger.set(this.#hashes);
      this.#hashes = larger;
    }
    this.#hashes[2 * this.#count] = h1;
    this.#hashes[2 * this.#count + 1] = h2;
    this.#count++;
  }

  /** Returns the filter; to be gone on with when there is time for another step of about a millisecond. */
  *finish(): Generator<void, Uint8Array<ArrayBuffer>, void> {
    const bits = Math.max(64, Math.ceil((this.#count * bitsPerKey) / 8) * 8);
    const filter = new Uint8Array(bits / 8);
    for (let i = 0; i < this.#count; i++) {
      if (i % stepKeys === stepKeys - 1) yield;
      let at = this.#hashes[2 * i] as number;
      const step = this.#hashes[2 * i + 1] as number;
      for (let probe = 0; probe < probes; probe++) {
        const bit = at % bits;
        filter[bit >>> 3] = (filter[bit >>> 3] as number) | (1 << (bit & 7));
        at = (at + step) >>> 0;
      }
    }
    return filter;
  }
}

export function bloomMayHold(filter: Uint8Array, { h1, h2 }: KeyHash): boolean {
  const bits = filter.length * 8;
  let at = h1;
  for (let probe = 0; probe < probes; probe++) {
    const bit = at % bits;
    if (((filter[bit >>> 3] as number) & (1 << (bit & 7))) === 0) return false;
    at = (at + h2) >>> 0;
  }
  return true;
}
