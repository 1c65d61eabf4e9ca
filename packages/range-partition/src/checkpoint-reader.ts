/** Reads one checkpoint: its index at load, then data blocks as they are needed, through the cache. */
import { compareBytes, concatBytes, emptyBytes, FailureError, type Outcome, ok } from "@stamp/base";
import {
  type Block,
  type BlockReference,
  boundsOf,
  type CheckpointIndex,
  decodeBlock,
  decodeIndex,
  type Entry,
  holdsKey,
  intersect,
  type KeyBounds,
  type KeyRange,
  type StoredCheckpoint,
} from "@stamp/lsm";
import type { World } from "@stamp/ports";
import type { ExtentReader } from "@stamp/stream-client";
import type { BlockCache } from "./block-cache.ts";

const blockTimeoutMs = 10_000;

export interface Storage {
  readonly world: World;
  readonly reader: ExtentReader;
  readonly cache: BlockCache;
}

export class Checkpoint {
  readonly stored: StoredCheckpoint;
  readonly index: CheckpointIndex;
  /** Bytes of the blocks that may hold keys that count. */
  readonly liveBytes: number;
  readonly #bounds: KeyBounds;
  readonly #storage: Storage;

  /** `own`: the keys of the partition; what else the checkpoint holds does not count. */
  constructor(stored: StoredCheckpoint, index: CheckpointIndex, own: KeyBounds, storage: Storage) {
    this.stored = stored;
    this.index = index;
    this.#bounds = boundsOf(stored, own);
    this.#storage = storage;
    this.liveBytes = this.blocksInBounds.reduce((sum, { place }) => sum + place.lengthBytes, 0);
  }

  /** Those that may hold keys that count. */
  get blocksInBounds(): readonly BlockReference[] {
    const { low, high } = this.#bounds;
    const from = this.index.firstBlock(low);
    const to = high.length === 0 ? this.index.blocks.length : Math.min(this.index.firstBlock(high) + 1, this.index.blocks.length);
    return this.index.blocks.slice(from, Math.max(from, to));
  }

  static async open(stored: StoredCheckpoint, own: KeyBounds, storage: Storage): Promise<Outcome<Checkpoint>> {
    const pieces: Uint8Array[] = [];
    for (const place of stored.indexPlaces) {
      const piece = await storage.reader.read(place, { timeoutMs: blockTimeoutMs });
      if (!piece.ok) return piece;
      pieces.push(piece.value);
    }
    const index = decodeIndex(concatBytes(pieces), storage.world.digest.crc32c);
    return index.ok ? ok(new Checkpoint(stored, index.value, own, storage)) : index;
  }

  /** The newest version that the snapshot sees. Throws FailureError. */
  async get(key: Uint8Array, snapshotSequence: number): Promise<Entry | undefined> {
    if (this.stored.minSequence > snapshotSequence || !holdsKey(this.#bounds, key) || !this.index.mayHold(key)) return undefined;
    const at = this.index.firstBlock(key);
    if (at >= this.index.blocks.length) return undefined;
    return (await this.#block(at)).get(key, snapshotSequence);
  }

  /** Per key the newest version that the snapshot sees, in the range's direction. Throws FailureError. */
  async *iterate(asked: KeyRange, snapshotSequence: number): AsyncGenerator<Entry, void, void> {
    const range = this.#clipped(asked);
    if (range.reverse) {
      yield* this.#backwards(range, snapshotSequence);
      return;
    }
    let last: Uint8Array | undefined;
    let from = range.gte;
    for (let at = this.index.firstBlock(from); at < this.index.blocks.length; at = Math.max(at + 1, this.index.firstBlock(from))) {
      const block = await this.#block(at);
      for (const entry of block.from(from)) {
        from = range.cursor?.from ?? from;
        if (from !== undefined && compareBytes(entry.key, from) < 0) continue;
        if (range.lt !== undefined && compareBytes(entry.key, range.lt) >= 0) return;
        if (entry.sequence > snapshotSequence || (last !== undefined && compareBytes(entry.key, last) === 0)) continue;
        last = entry.key;
        yield entry;
      }
    }
  }

  /** Every version that counts, past the cache: for merging. */
  async *versions(): AsyncGenerator<Entry, void, void> {
    const { low, high } = this.#bounds;
    for (let at = this.index.firstBlock(low); at < this.index.blocks.length; at++) {
      for (const entry of (await this.#fetch(at)).from(low)) {
        if (high.length > 0 && compareBytes(entry.key, high) >= 0) return;
        yield entry;
      }
    }
  }

  #clipped({ gte = emptyBytes, lt = emptyBytes, ...rest }: KeyRange): KeyRange {
    const { low, high } = intersect({ low: gte, high: lt }, this.#bounds);
    return { ...rest, gte: low, ...(high.length === 0 ? {} : { lt: high }) };
  }

  async *#backwards(range: KeyRange, snapshotSequence: number): AsyncGenerator<Entry, void, void> {
    const from =
      range.lt === undefined ? this.index.blocks.length - 1 : Math.min(this.index.firstBlock(range.lt), this.index.blocks.length - 1);
    for (let at = from; at >= 0; at--) {
      // Versions of a key are in one block, newest first: walking back, the last one seen that is visible is the newest.
      let best: Entry | undefined;
      for (const entry of (await this.#block(at)).all().reverse()) {
        if (range.lt !== undefined && compareBytes(entry.key, range.lt) >= 0) continue;
        if (best !== undefined && compareBytes(best.key, entry.key) !== 0) {
          yield best;
          best = undefined;
        }
        if (range.gte !== undefined && compareBytes(entry.key, range.gte) < 0) return;
        if (entry.sequence <= snapshotSequence) best = entry;
      }
      if (best !== undefined) yield best;
    }
  }

  async #block(at: number): Promise<Block> {
    const place = this.index.blocks[at]?.place;
    const cached = place && this.#storage.cache.get(place.extentId, place.offsetBytes);
    if (cached !== undefined) return cached;
    const block = await this.#fetch(at);
    if (place !== undefined) this.#storage.cache.put(place.extentId, place.offsetBytes, block);
    return block;
  }

  async #fetch(at: number): Promise<Block> {
    const place = this.index.blocks[at]?.place;
    if (place === undefined) throw new RangeError(`no data block ${at}`);
    const bytes = await this.#storage.reader.read(place, { timeoutMs: blockTimeoutMs });
    if (!bytes.ok) throw new FailureError(bytes.failure);
    // Owned from here on: what was received may be a view of a much larger buffer.
    const block = decodeBlock(new Uint8Array(bytes.value), this.#storage.world.digest.crc32c);
    if (!block.ok) throw new FailureError(block.failure);
    return block.value;
  }
}
