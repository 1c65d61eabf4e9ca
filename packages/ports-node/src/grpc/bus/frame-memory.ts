/**
 * Memory of large frames, used again and again (ReusedMemory of @stamp/base). A connection reads a frame into it, and whoever has views of the
 * frame gives it back: a handler the request's payload (`CallContext.giveBackPayload`), a caller the answer's (`Transport.giveBack`).
 */
import { ReusedMemory } from "@stamp/base";

/** Smaller frames are cheap to allocate, and hold calls whose bytes are kept. */
export const reusedFrameBytesMin: number = 256 * 1024;
const classBytes = 128 * 1024;
const reusedFrameBytesMax = 8 * 1024 * 1024;

export class FrameMemory {
  readonly #memory: ReusedMemory;

  constructor(freeBytesMax: number) {
    this.#memory = new ReusedMemory({
      freeBytesMax,
      pieceBytesMin: reusedFrameBytesMin,
      pieceBytesMax: reusedFrameBytesMax,
      classBytes,
      make: (bytes) => Buffer.allocUnsafeSlow(bytes).buffer,
    });
  }

  /** Memory that waits for its next use, in bytes. */
  get freeBytes(): number {
    return this.#memory.freeBytes;
  }

  /** Returns a frame of this length, whose bytes may be anything. */
  take(lengthBytes: number): Buffer {
    const taken = this.#memory.take(lengthBytes);
    return taken === undefined ? Buffer.allocUnsafe(lengthBytes) : Buffer.from(taken.buffer, 0, lengthBytes);
  }

  /** Lets go of the memory that was free ever since the last call. */
  trim(): void {
    this.#memory.trim();
  }

  /** True if `frame` is worth giving back. */
  isReused(frame: Buffer): boolean {
    return this.#memory.isOut(frame);
  }

  /** Gives memory back. The caller asserts that nobody has a view of the frame any more. */
  give(frame: Buffer): void {
    this.#memory.give(frame);
  }
}
