/** Several byte slices seen as one sequence, without joining them. The slices are borrowed. */
import { concatBytes, totalLength } from "@stamp/base";

export class Slices {
  readonly parts: readonly Uint8Array[];
  readonly lengthBytes: number;
  /** Position of the last read, from which reads forward go on. */
  #part = 0;
  #partBegin = 0;

  constructor(parts: readonly Uint8Array[]) {
    this.parts = parts;
    this.lengthBytes = totalLength(parts);
  }

  /** Returns a view where the range lies in one slice, else a copy; shorter only at the end. */
  read(offsetBytes: number, lengthBytes: number): Uint8Array {
    const end = Math.min(offsetBytes + lengthBytes, this.lengthBytes);
    if (offsetBytes < this.#partBegin) {
      this.#part = 0;
      this.#partBegin = 0;
    }
    let begin = this.#partBegin;
    const pieces: Uint8Array[] = [];
    for (let i = this.#part; i < this.parts.length && begin < end; i++) {
      const part = this.parts[i] as Uint8Array;
      if (offsetBytes < begin + part.length) {
        if (pieces.length === 0) {
          this.#part = i;
          this.#partBegin = begin;
        }
        const from = Math.max(0, offsetBytes - begin);
        const to = Math.min(part.length, end - begin);
        if (to > from) pieces.push(part.subarray(from, to));
      }
      begin += part.length;
    }
    return pieces.length === 1 ? (pieces[0] as Uint8Array) : concatBytes(pieces);
  }
}
