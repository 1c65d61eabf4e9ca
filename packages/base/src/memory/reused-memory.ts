/**
 * Memory of large pieces of bytes, used again and again. Without it each piece is memory that malloc takes from the kernel and gives back a
 * moment later: a page fault for every 4 KiB, and V8 marks its whole heap whenever 64 MiB of such pieces have come.
 *
 *     take ──▶ somebody fills it, others have views of it ──▶ give ──▶ the next take
 *
 * Invariants:
 *  - Memory is given back only by whoever knows that nobody will look at a view of it. Memory that nobody gives back is freed by the garbage
 *    collector as any other, so to give nothing back is always right.
 *  - Memory is given back at most once for each time it was taken.
 *  - Free memory is bounded by `freeBytesMax`; beyond, what is given back goes to the system at once. So does what nobody took between two
 *    calls of `trim`.
 */
import { assert } from "../assert.ts";

export interface ReusedMemoryOptions {
  /** Memory that is kept for the next pieces, in bytes; 0: none. */
  readonly freeBytesMax: number;
  /** Pieces that are shorter or longer are ordinary memory, in bytes. */
  readonly pieceBytesMin: number;
  readonly pieceBytesMax: number;
  /** Lengths are rounded up to this, so that pieces of nearly the same length use the same memory. */
  readonly classBytes: number;
  /** Makes memory of this length, whose bytes may be anything. Default: zeros. */
  readonly make?: (bytes: number) => ArrayBuffer;
}

export class ReusedMemory {
  readonly #options: ReusedMemoryOptions;
  /** Free memory by length in bytes. The piece that was given back last is used first. */
  readonly #free = new Map<number, ArrayBuffer[]>();
  readonly #out = new WeakSet<ArrayBufferLike>();
  #freeBytes = 0;
  /** The fewest free bytes since the last call of `trim`. */
  #leastFreeBytes = 0;

  constructor(options: ReusedMemoryOptions) {
    this.#options = options;
  }

  /** Memory that waits for its next use, in bytes. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** Returns a piece of this length, whose bytes may be anything; undefined if such a piece is not used again. */
  take(lengthBytes: number): Uint8Array<ArrayBuffer> | undefined {
    const { freeBytesMax, pieceBytesMin, pieceBytesMax, classBytes, make } = this.#options;
    if (freeBytesMax === 0 || lengthBytes < pieceBytesMin || lengthBytes > pieceBytesMax) return undefined;
    const memoryBytes = Math.ceil(lengthBytes / classBytes) * classBytes;
    let memory = this.#free.get(memoryBytes)?.pop();
    if (memory === undefined) memory = make?.(memoryBytes) ?? new ArrayBuffer(memoryBytes);
    else this.#freeBytes -= memoryBytes;
    this.#leastFreeBytes = Math.min(this.#leastFreeBytes, this.#freeBytes);
    this.#out.add(memory);
    return new Uint8Array(memory, 0, lengthBytes);
  }

  /** True if the bytes lie in memory that was taken here and not given back. */
  isOut(bytes: Uint8Array): boolean {
    return this.#out.has(bytes.buffer);
  }

  /** `bytes`: any view of the memory. The caller asserts that nobody looks at a view of it any more. */
  give(bytes: Uint8Array): void {
    const memory = bytes.buffer as ArrayBuffer;
    assert(this.#out.delete(memory), "memory is given back once");
    const memoryBytes = memory.byteLength;
    if (this.#freeBytes + memoryBytes > this.#options.freeBytesMax && !this.#makeRoom(memoryBytes)) {
      release(memory);
      return;
    }
    this.#freeBytes += memoryBytes;
    const free = this.#free.get(memoryBytes);
    if (free === undefined) this.#free.set(memoryBytes, [memory]);
    else free.push(memory);
  }

  /** Lets go of the memory that was free ever since the last call. To be called from time to time. */
  trim(): void {
    const leftBytes = this.#freeBytes - this.#leastFreeBytes;
    for (const [memoryBytes, memories] of this.#free) {
      // Memory at the beginning has not been used for longest.
      const count = Math.min(memories.length, Math.ceil((this.#freeBytes - leftBytes) / memoryBytes));
      for (const memory of memories.splice(0, Math.max(0, count))) release(memory);
      this.#freeBytes -= Math.max(0, count) * memoryBytes;
    }
    this.#leastFreeBytes = this.#freeBytes;
  }

  /** Lets go of memory of other lengths, so that lengths that are no longer used do not fill the place of those that are. */
  #makeRoom(memoryBytes: number): boolean {
    const { freeBytesMax } = this.#options;
    for (const [otherBytes, memories] of this.#free) {
      while (otherBytes !== memoryBytes && memories.length > 0 && this.#freeBytes + memoryBytes > freeBytesMax) {
        release(memories.pop());
        this.#freeBytes -= otherBytes;
      }
    }
    this.#leastFreeBytes = Math.min(this.#leastFreeBytes, this.#freeBytes);
    return this.#freeBytes + memoryBytes <= freeBytesMax;
  }
}

/** Gives the memory to the system. The garbage collector would do so only when it marks the whole heap, which a process at rest does not. */
function release(memory: ArrayBuffer | undefined): void {
  memory?.transfer(0);
}
