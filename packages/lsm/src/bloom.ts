/** A bloom filter of 10 bits a key: says "certainly not there" or "maybe" (about 1 in 100 wrongly). */
const bitsPerKey = 10;
const probes = 7;

/** Two independent 32-bit hashes of a key (FNV-1a with two offsets, mixed). */
export function hashKey(key: Uint8Array): { readonly h1: number; readonly h2: number } {
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

export class BloomBuilder {
  readonly #h1: number[] = [];
  readonly #h2: number[] = [];

  add(key: Uint8Array): void {
    const { h1, h2 } = hashKey(key);
    this.#h1.push(h1);
    this.#h2.push(h2);
  }

  finish(): Uint8Array<ArrayBuffer> {
    const bits = Math.max(64, Math.ceil((this.#h1.length * bitsPerKey) / 8) * 8);
    const filter = new Uint8Array(bits / 8);
    for (let i = 0; i < this.#h1.length; i++) {
      let at = this.#h1[i] as number;
      for (let probe = 0; probe < probes; probe++) {
        const bit = at % bits;
        filter[bit >>> 3] = (filter[bit >>> 3] as number) | (1 << (bit & 7));
        at = (at + (this.#h2[i] as number)) >>> 0;
      }
    }
    return filter;
  }
}

export function bloomMayHold(filter: Uint8Array, key: Uint8Array): boolean {
  const bits = filter.length * 8;
  const { h1, h2 } = hashKey(key);
  let at = h1;
  for (let probe = 0; probe < probes; probe++) {
    const bit = at % bits;
    if (((filter[bit >>> 3] as number) & (1 << (bit & 7))) === 0) return false;
    at = (at + h2) >>> 0;
  }
  return true;
}
