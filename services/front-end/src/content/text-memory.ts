/**
 * Memory of long answers, used again and again. Without it each page of a listing or a query is a piece of memory that malloc takes from the kernel
 * and gives back a moment later, and V8 marks its whole heap whenever 64 MiB of such pieces have come.
 *
 *     take ──▶ a text is written into it ──▶ the answer is sent ──▶ give ──▶ the next take
 *
 * Invariants:
 *  - Memory is given back only by whoever knows that nobody looks at it any more. What nobody gives back is freed as any other.
 *  - Memory is given back at most once for each time it was taken.
 *  - Free memory is bounded by `freeBytesMax`.
 */
import { assert } from "@stamp/base";

/** Shortest text whose memory is used again, in bytes: shorter pieces are cheap to allocate. */
export const reusedTextBytesMin: number = 256 * 1024;
const reusedTextBytesMax = 8 * 1024 * 1024;
/** Sizes are rounded up to this, so that texts of nearly the same length use the same memory. */
const classBytes = 256 * 1024;

export class TextMemory {
  readonly #freeBytesMax: number;
  /** Keyed by size; the piece that was given back last is used first. */
  readonly #free = new Map<number, Uint8Array[]>();
  readonly #out = new WeakSet<Uint8Array>();
  #freeBytes = 0;

  constructor(freeBytesMax: number) {
    this.#freeBytesMax = freeBytesMax;
  }

  /** Memory that waits for its next use, in bytes. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** Returns at least this many bytes, with any content. */
  take(bytes: number): Uint8Array {
    if (bytes < reusedTextBytesMin || bytes > reusedTextBytesMax) return new Uint8Array(bytes);
    const size = Math.ceil(bytes / classBytes) * classBytes;
    const free = this.#free.get(size)?.pop();
    if (free !== undefined) this.#freeBytes -= size;
    const taken = free ?? new Uint8Array(size);
    this.#out.add(taken);
    return taken;
  }

  /** `taken`: array that `take` returned, as a whole. */
  give(taken: Uint8Array): void {
    const size = taken.length;
    if (size < reusedTextBytesMin || size > reusedTextBytesMax) return;
    assert(this.#out.delete(taken), "memory of a text is given back once");
    if (this.#freeBytes + size > this.#freeBytesMax) this.#forgetOthers(size);
    if (this.#freeBytes + size > this.#freeBytesMax) return;
    this.#freeBytes += size;
    const free = this.#free.get(size);
    if (free === undefined) this.#free.set(size, [taken]);
    else free.push(taken);
  }

  /** Lets go of memory of other sizes, so that sizes that are no longer used do not fill the place of those that are. */
  #forgetOthers(size: number): void {
    for (const [other, free] of this.#free) {
      if (other === size) continue;
      this.#freeBytes -= other * free.length;
      this.#free.delete(other);
    }
  }
}
