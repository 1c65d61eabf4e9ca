/**
 * Finds texts that stand in JSON as they are: bytes of ASCII without quotes, backslashes and control characters. Four bytes are looked at in
 * one step.
 */
const high = 0x80808080 | 0;

export class PlainBytes {
  /** The whole memory in which the bytes lie, by byte and by word of four. */
  readonly #memory: Uint8Array;
  readonly #words: Int32Array;
  readonly #offset: number;

  constructor({ buffer, byteOffset }: Uint8Array) {
    this.#memory = new Uint8Array(buffer);
    this.#words = new Int32Array(buffer, 0, buffer.byteLength >>> 2);
    this.#offset = byteOffset;
  }

  /** True if the bytes from `start` to `end` are plain. */
  has(start: number, end: number): boolean {
    const memory = this.#memory;
    let at = start + this.#offset;
    const stop = end + this.#offset;
    const firstWord = Math.min((at + 3) & ~3, stop);
    // The high bit of a byte is set if the byte is above 0x7f, below 0x20, a quote or a backslash. A
    // subtraction borrows from a byte only if the byte below it is marked already, so a borrow marks no word that would have been plain.
    let marks = 0;
    for (; at < firstWord; at++) marks |= marksOf(memory[at] as number);
    const words = this.#words;
    const lastWord = stop >> 2;
    let word = at >> 2;
    for (; word < lastWord; word++) {
      const four = words[word] as number;
      marks |= four | (four - 0x20202020) | ((four ^ 0x22222222) - 0x01010101) | ((four ^ 0x5c5c5c5c) - 0x01010101);
    }
    for (at = Math.max(at, word << 2); at < stop; at++) marks |= marksOf(memory[at] as number);
    return (marks & high) === 0;
  }
}

/** Returns 0x80 if the byte must be escaped in JSON or is not ASCII, else 0. */
const marksOf = (byte: number): number => (byte | (byte - 0x20) | ((byte ^ 0x22) - 1) | ((byte ^ 0x5c) - 1)) & 0x80;
