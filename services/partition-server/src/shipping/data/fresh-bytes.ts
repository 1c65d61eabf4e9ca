/**
 * Keeps bytes of blobs that this server has just appended for accounts with a copy, so that the sender of a copy that keeps up need not read them
 * back from an extent node: each read costs the node a read and a check, and both processes the way of a MiB.
 *
 *     WriteData ──► appended to an extent ──► keep ──► find, by the sender ──► written at the other stamp ──► forget
 *
 * Invariants:
 * - It saves work, and decides nothing. Bytes at a place of an extent never change, so what is kept is what a read would give.
 * - What is kept is bounded, with the frames in which bytes lie and with the entries themselves: the oldest bytes go first, and are read from their
 *   extent.
 */
import type { Place } from "@stamp/objects";

type At = Pick<Place, "extentId" | "offsetBytes">;

/** Memory of an entry beside its bytes: key, views, and its place in the map. About 500 bytes in Node 26. */
const entryBytes = 512;
/** Fewer bytes are read back: that costs little, and an entry of each small append would cost more than its bytes. */
const keptFrom = 16 * 1024;

export class FreshBytes {
  readonly #bytesMax: number;
  /** Keyed by extent and offset; oldest first. */
  readonly #kept = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Memory of what is kept, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps bytes; true: it keeps `bytes` itself, which the caller must not change. */
  keep(at: At, bytes: Uint8Array): boolean {
    this.forget(at);
    if (bytes.length < keptFrom) return false;
    // The bytes may lie in a much larger frame with those of others, which would stay with them.
    const own = bytes.buffer.byteLength > 2 * bytes.length ? bytes.slice() : bytes;
    if (memoryOf(own) > this.#bytesMax) return false;
    this.#kept.set(idOf(at), own);
    this.#bytes += memoryOf(own);
    for (const [oldest, kept] of this.#kept) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#kept.delete(oldest);
      this.#bytes -= memoryOf(kept);
    }
    return own === bytes;
  }

  /** Returns the bytes of a place that begins where bytes were appended. Undefined: they have to be read. */
  find({ lengthBytes, ...at }: Pick<Place, "extentId" | "offsetBytes" | "lengthBytes">): Uint8Array | undefined {
    const kept = this.#kept.get(idOf(at));
    return kept === undefined || kept.length < lengthBytes ? undefined : kept.subarray(0, lengthBytes);
  }

  /** Forgets all bytes: nothing is sent any more. */
  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }

  /** Forgets bytes, because they are at the other stamp. */
  forget(at: At): void {
    const id = idOf(at);
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.delete(id);
    this.#bytes -= memoryOf(kept);
  }
}

/** Returns the memory of an entry, in bytes. Two entries of one frame count it twice. */
const memoryOf = ({ buffer }: Uint8Array): number => buffer.byteLength + entryBytes;

const idOf = ({ extentId, offsetBytes }: At): string => `${extentId} ${offsetBytes}`;
