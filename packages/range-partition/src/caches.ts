/**
 * What of checkpoints is in memory, for reads only: data blocks (row data cache) and indexes (index cache). Both are bounded in bytes and
 * shared by the partitions of a process; the least recently used goes first.
 */
import type { Block, CheckpointIndex, StoredPlace } from "@stamp/lsm";

/** Beside its bytes, about. */
const overheadBytes = 256;

export class ByteCache<T extends { readonly bytes: number }> {
  readonly #bytesMax: number;
  readonly #itemBytesMax: number;
  readonly #held = new Map<string, T>();
  #bytes = 0;

  /** What is larger than `itemBytesMax` alone is not kept. */
  constructor(bytesMax: number, itemBytesMax: number = bytesMax / 4) {
    this.#bytesMax = bytesMax;
    this.#itemBytesMax = itemBytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(place: StoredPlace): T | undefined {
    const name = nameOf(place);
    const held = this.#held.get(name);
    if (held !== undefined) {
      this.#held.delete(name);
      this.#held.set(name, held);
    }
    return held;
  }

  put(place: StoredPlace, value: T): void {
    const name = nameOf(place);
    const bytes = value.bytes + overheadBytes;
    if (bytes > this.#itemBytesMax || this.#held.has(name)) return;
    this.#held.set(name, value);
    this.#bytes += bytes;
    for (const [oldest, old] of this.#held) {
      if (this.#bytes <= this.#bytesMax || old === value) break;
      this.#held.delete(oldest);
      this.#bytes -= old.bytes + overheadBytes;
    }
  }
}

export interface Caches {
  readonly blocks: ByteCache<Block>;
  /** By the place of the index's first piece. */
  readonly indexes: ByteCache<CheckpointIndex>;
}

export const makeCaches = (limits: { readonly rowCacheBytesMax: number; readonly indexCacheBytesMax: number }): Caches => ({
  blocks: new ByteCache(limits.rowCacheBytesMax),
  // One that is larger than the whole cache is kept until the next one comes: without it every read would fetch it again.
  indexes: new ByteCache(limits.indexCacheBytesMax, Number.POSITIVE_INFINITY),
});

const nameOf = ({ extentId, offsetBytes }: StoredPlace): string => `${extentId}:${offsetBytes}`;
