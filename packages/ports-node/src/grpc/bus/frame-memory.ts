/**
 * Memory of large frames, used again and again. Without it every frame of a MiB is a piece of memory that malloc takes from the kernel and gives
 * back a moment later: 256 page faults, and work for the garbage collector.
 *
 *     take ──▶ a connection reads a frame into it ──▶ a handler has views of it ──▶ give ──▶ the next take
 *
 * Invariants:
 *  - Memory is given back only by whoever knows that no view of it is left (`CallContext.giveBackPayload`, `AnswerMemory`). Memory that nobody gives back is
 *    freed by the garbage collector as any other, so to give nothing back is always right.
 *  - Memory is given back at most once for each time it was taken.
 *  - Free memory is bounded by `freeBytesMax`; beyond, what is given back is left to the garbage collector.
 */
import { assert } from "@stamp/base";

/** Returns a function that gives the frame back when it was called once for each of the messages in it. */
export function giveBackOf(frame: Buffer, messages: number, memory: FrameMemory): () => void {
  let left = messages;
  return () => {
    left -= 1;
    if (left === 0) memory.give(frame);
  };
}

/** Whoever gives back twice has counted wrong: another's bytes would be taken for free. */
export function once(give: () => void): () => void {
  let given = false;
  return () => {
    assert(!given, "a payload is given back once");
    given = true;
    give();
  };
}

/** Smaller frames are cheap to allocate, and hold calls whose bytes are kept. */
export const reusedFrameBytesMin: number = 256 * 1024;
/** Lengths are rounded up to this, so that frames of nearly the same length use the same memory. */
const classBytes = 128 * 1024;
const reusedFrameBytesMax = 8 * 1024 * 1024;

export class FrameMemory {
  readonly #freeBytesMax: number;
  /** By the length of the memory. */
  readonly #free = new Map<number, ArrayBuffer[]>();
  readonly #out = new WeakSet<ArrayBuffer>();
  #freeBytes = 0;

  constructor(freeBytesMax: number) {
    this.#freeBytesMax = freeBytesMax;
  }

  /** Memory that waits for its next use, in bytes. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** Returns a frame of this length, whose bytes may be anything. */
  take(lengthBytes: number): Buffer {
    if (this.#freeBytesMax === 0 || lengthBytes < reusedFrameBytesMin || lengthBytes > reusedFrameBytesMax)
      return Buffer.allocUnsafe(lengthBytes);
    const memoryBytes = Math.ceil(lengthBytes / classBytes) * classBytes;
    let memory = this.#free.get(memoryBytes)?.pop();
    if (memory === undefined) memory = Buffer.allocUnsafeSlow(memoryBytes).buffer;
    else this.#freeBytes -= memoryBytes;
    this.#out.add(memory);
    return Buffer.from(memory, 0, lengthBytes);
  }

  /** True if `frame` is worth giving back. */
  isReused(frame: Buffer): boolean {
    return this.#out.has(frame.buffer as ArrayBuffer);
  }

  /** The caller asserts that nobody has a view of the frame's memory any more. */
  give(frame: Buffer): void {
    const memory = frame.buffer as ArrayBuffer;
    assert(this.#out.delete(memory), "memory of a frame is given back once");
    const memoryBytes = memory.byteLength;
    if (this.#freeBytes + memoryBytes > this.#freeBytesMax && !this.#makeRoom(memoryBytes)) return;
    this.#freeBytes += memoryBytes;
    const free = this.#free.get(memoryBytes);
    if (free === undefined) this.#free.set(memoryBytes, [memory]);
    else free.push(memory);
  }

  /** Lets go of memory of other lengths, so that lengths that are no longer used do not fill the place of those that are. */
  #makeRoom(memoryBytes: number): boolean {
    for (const [otherBytes, memories] of this.#free) {
      while (otherBytes !== memoryBytes && memories.length > 0 && this.#freeBytes + memoryBytes > this.#freeBytesMax) {
        memories.pop();
        this.#freeBytes -= otherBytes;
      }
    }
    return this.#freeBytes + memoryBytes <= this.#freeBytesMax;
  }
}
