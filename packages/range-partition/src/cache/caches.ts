/**
 * Parts of checkpoints in memory, for reads only: data blocks (row data cache) and indexes (index cache). Both are
 * bounded in bytes and shared by the partitions of a process. The index cache drops first the indexes that were not
 * asked for since its last look at them, in the order in which they came; a hit writes one bit.
 */
import { present } from "@stamp/base";
import type { CheckpointIndex, StoredPlace } from "@stamp/lsm";
import { BlockCache } from "./block-cache.ts";
import { FillQueue } from "./fill-queue.ts";

/** Estimate of the memory that an item takes besides its bytes. */
const overheadBytes = 256;
/** Recently used items that are passed over when one has to go. Bounds the search for the next item to drop. */
const sparedMax = 16;

/** One thing in the cache. Whoever keeps it sees when it is pushed out, and marks it when it is used. */
export interface CachedItem<T> {
  value: T | undefined;
  used: boolean;
}

export class ByteCache<T extends { readonly bytes: number }> {
  readonly #bytesMax: number;
  readonly #itemBytesMax: number;
  readonly #held = new Map<string, CachedItem<T>>();
  /** Stands before the oldest. */
  #order: MapIterator<[string, CachedItem<T>]> = this.#held.entries();
  #bytes = 0;

  /** Items larger than `itemBytesMax` are not kept. */
  constructor(bytesMax: number, itemBytesMax: number = bytesMax / 4) {
    this.#bytesMax = bytesMax;
    this.#itemBytesMax = itemBytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(place: StoredPlace): T | undefined {
    const held = this.hold(place);
    if (held !== undefined) held.used = true;
    return held?.value;
  }

  /** Returns an entry without marking it as used. */
  hold(place: StoredPlace): CachedItem<T> | undefined {
    return this.#held.get(nameOf(place));
  }

  put(place: StoredPlace, value: T): void {
    const name = nameOf(place);
    const bytes = value.bytes + overheadBytes;
    if (bytes > this.#itemBytesMax || this.#held.has(name)) return;
    this.#held.set(name, { value, used: false });
    this.#bytes += bytes;
    for (let spared = 0; this.#bytes > this.#bytesMax && this.#held.size > 1; ) {
      const [oldest, held] = this.#next();
      if (oldest === name || (held.used && spared < sparedMax)) {
        this.#held.delete(oldest);
        this.#held.set(oldest, held);
        if (oldest !== name) spared++;
        held.used = false;
      } else this.#remove(oldest, held);
    }
  }

  /** Returns the oldest, which leaves its place at once. A new walk would step over all that was deleted since the map was laid out last. */
  #next(): [string, CachedItem<T>] {
    const next = this.#order.next();
    if (!next.done) return next.value;
    this.#order = this.#held.entries();
    return present(this.#order.next().value, "the oldest of what is held");
  }

  #remove(name: string, held: CachedItem<T>): void {
    this.#held.delete(name);
    this.#bytes -= (held.value?.bytes ?? 0) + overheadBytes;
    held.value = undefined;
  }
}

export interface Caches {
  readonly blocks: BlockCache;
  readonly fills: FillQueue;
  /** Cache of indexes, by the place of an index's first piece. */
  readonly indexes: ByteCache<CheckpointIndex>;
}

export const makeCaches = (limits: { readonly rowCacheBytesMax: number; readonly indexCacheBytesMax: number }): Caches => ({
  blocks: new BlockCache(limits.rowCacheBytesMax),
  fills: new FillQueue(),
  // An index that is larger than the whole cache is kept until the next one comes: else every read would fetch it again.
  indexes: new ByteCache(limits.indexCacheBytesMax, Number.POSITIVE_INFINITY),
});

const nameOf = ({ extentId, offsetBytes }: StoredPlace): string => `${extentId}:${offsetBytes}`;
