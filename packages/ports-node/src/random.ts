/** Real entropy, taken from the kernel in blocks. */
import { randomFillSync } from "node:crypto";
import type { Random } from "@stamp/ports";

const wordsPerBlock = 256;
/** Longest byte string that is taken from a block. */
const blockBytesMax = 64;

export class NodeRandom implements Random {
  readonly #words = new Uint32Array(wordsPerBlock);
  #next = wordsPerBlock;

  uint32(): number {
    if (this.#next === wordsPerBlock) {
      randomFillSync(this.#words);
      this.#next = 0;
    }
    const word = this.#words[this.#next] as number;
    this.#words[this.#next] = 0;
    this.#next += 1;
    return word;
  }

  float(): number {
    return (this.uint32() * 2 ** 21 + (this.uint32() >>> 11)) / 2 ** 53;
  }

  bytes(length: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(length);
    if (length > blockBytesMax) return randomFillSync(bytes);
    let word = 0;
    for (let at = 0; at < length; at++) {
      word = at % 4 === 0 ? this.uint32() : word >>> 8;
      bytes[at] = word;
    }
    return bytes;
  }
}
