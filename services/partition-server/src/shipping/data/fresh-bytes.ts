/**
 * Keeps bytes of blobs that this server has just appended for accounts with a copy, so that the sender of a copy that keeps up need not read them
 * back from an extent node: each read costs the node a read and a check, and both processes the way of a MiB.
 *
 *     WriteData ──► appended to an extent ──► keep ──► find, by the sender ──► written at the other stamp ──► forget
 *
 * Invariants:
 * - It saves work, and decides nothing. Bytes at a place of an extent never change, so what is kept is what a read would give.
 * - What is kept is bounded: the oldest bytes go first, and are read from their extent.
 */
import type { Place } from "@stamp/objects";

type At = Pick<Place, "extentId" | "offsetBytes">;

export class FreshBytes {
  readonly #bytesMax: number;
  /** By extent and offset; oldest first. */
  readonly #kept = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Size of what is kept, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The caller never changes `bytes` afterwards. */
  keep(at: At, bytes: Uint8Array): void {
    if (bytes.length > this.#bytesMax) return;
    this.forget(at);
    // The bytes may lie in a much larger frame with those of others, which would stay with them.
    const own = bytes.buffer.byteLength > 2 * bytes.length ? bytes.slice() : bytes;
    this.#kept.set(idOf(at), own);
    this.#bytes += own.length;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#kept.delete(oldest);
      this.#bytes -= length;
    }
  }

  /** The bytes of a place that begins where bytes were appended. Undefined: they have to be read. */
  find({ lengthBytes, ...at }: Pick<Place, "extentId" | "offsetBytes" | "lengthBytes">): Uint8Array | undefined {
    const kept = this.#kept.get(idOf(at));
    return kept === undefined || kept.length < lengthBytes ? undefined : kept.subarray(0, lengthBytes);
  }

  /** Nothing is sent any more. */
  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }

  /** They are at the other stamp. */
  forget(at: At): void {
    const id = idOf(at);
    this.#bytes -= this.#kept.get(id)?.length ?? 0;
    this.#kept.delete(id);
  }
}

const idOf = ({ extentId, offsetBytes }: At): string => `${extentId} ${offsetBytes}`;
