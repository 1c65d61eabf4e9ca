/**
 * Texts that many rows share, such as content types and names of properties: a text that was decoded a moment ago is found by its bytes, which costs
 * a tenth of decoding it. Bounded: a few hundred short texts, each in one place.
 */
import { fromUtf8 } from "@stamp/base";

/** Number of slots; a power of two. */
const places = 256;
const longestBytes = 40;

export class RepeatedTexts {
  readonly #bytes: (Uint8Array | undefined)[] = new Array<Uint8Array | undefined>(places).fill(undefined);
  readonly #texts: string[] = new Array<string>(places).fill("");

  /** Returns the text of bytes from `start` to `end`. Throws TypeError on malformed UTF-8. */
  get(bytes: Uint8Array, start: number, end: number): string {
    const length = end - start;
    if (length > longestBytes) return fromUtf8(bytes.subarray(start, end));
    let hash = length;
    for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] as number)) | 0;
    const place = (hash ^ (hash >>> 11)) & (places - 1);
    const held = this.#bytes[place];
    if (held !== undefined && held.length === length && isSame(held, bytes, start)) return this.#texts[place] as string;
    // A copy, whatever kind of array it is: the row is not kept in memory for it.
    const copy = new Uint8Array(bytes.subarray(start, end));
    const text = fromUtf8(copy);
    this.#bytes[place] = copy;
    this.#texts[place] = text;
    return text;
  }
}

function isSame(held: Uint8Array, bytes: Uint8Array, start: number): boolean {
  for (let at = 0; at < held.length; at++) if (held[at] !== bytes[start + at]) return false;
  return true;
}
