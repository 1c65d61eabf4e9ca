/** Reads one checkpoint: its index and its data blocks as they are needed, through the caches. */
import { compareBytes, concatBytes, emptyBytes, FailureError, type Outcome, ok, present } from "@stamp/base";
import {
  Block,
  boundsOf,
  type CheckpointIndex,
  decodeBlock,
  decodeIndex,
  type Entry,
  holdsKey,
  intersect,
  type KeyBounds,
  type KeyHash,
  type KeyRange,
  type StoredCheckpoint,
  type StoredPlace,
} from "@stamp/lsm";
import { sleep, type World } from "@stamp/ports";
import { type ExtentReader, type Place, readWholeBlocks } from "@stamp/stream-client";
import type { CachedItem, Caches } from "../cache/caches.ts";
import type { StorageFigures } from "../storage-figures.ts";
import type { StorageTimes } from "../storage-times.ts";
import { type EntrySource, entrySourceOf, ForwardSource } from "./entry-source.ts";

const blockTimeoutMs = 10_000;
const keySamplesMax = 128;
/**
 * Bytes that a merge reads ahead of each checkpoint: one block at a time would wait for the network most of the time.
 */
const mergeAheadBytes = 256 * 1024;
/** Blocks of which the places are looked at in one step. */
const lookedAtInStep = 2_048;

export interface Storage {
  readonly world: World;
  readonly reader: ExtentReader;
  readonly caches: Caches;
  readonly figures: StorageFigures;
  readonly times: StorageTimes;
}

/** Key with the number of bytes of rows between the sample before and itself. */
export interface KeySample {
  readonly key: Uint8Array;
  readonly bytes: number;
}

interface SourceBlock {
  readonly block: Block;
  readonly cached: boolean;
}

/** The entries of one block that count, for merging. */
export interface MergedBlock {
  readonly entries: Iterable<Entry>;
  /** True if the block was in the row data cache. */
  readonly cached: boolean;
}

export class Checkpoint {
  readonly stored: StoredCheckpoint;
  /** Bytes of the blocks that may hold keys that count. */
  readonly liveBytes: number;
  /** Samples of the keys that count, at most 128, in order. */
  readonly keySamples: readonly KeySample[];
  /** Extents that hold the data blocks and the index. */
  readonly extentIds: ReadonlySet<number>;
  readonly #bounds: KeyBounds;
  readonly #storage: Storage;
  /** Smallest and largest key of the checkpoint. */
  readonly #minKey: Uint8Array;
  readonly #maxKey: Uint8Array;
  #opening: Promise<CheckpointIndex> | undefined;
  #held: CachedItem<CheckpointIndex> | undefined;
  /** Blocks that somebody waits for, by number. */
  readonly #fetching = new Map<number, Promise<Block>>();

  /** `own`: keys of the partition; other keys of the checkpoint do not count. */
  constructor(stored: StoredCheckpoint, index: CheckpointIndex, own: KeyBounds, storage: Storage) {
    this.stored = stored;
    this.#bounds = boundsOf(stored, own);
    this.#storage = storage;
    this.#minKey = Uint8Array.from(index.minKey);
    this.#maxKey = Uint8Array.from(index.maxKey);
    const [from, to] = this.#ownBlocks(index);
    this.liveBytes = index.bytesOf(from, to);
    this.keySamples = samplesOf(index, from, to);
    this.extentIds = new Set([...stored.indexPlaces.map(({ extentId }) => extentId), ...index.extentIds]);
  }

  static async open(stored: StoredCheckpoint, own: KeyBounds, storage: Storage): Promise<Outcome<Checkpoint>> {
    const place = stored.indexPlaces[0];
    const cached = place && storage.caches.indexes.get(place);
    const index = cached === undefined ? await readIndex(stored, storage) : ok(cached);
    if (!index.ok) return index;
    if (place !== undefined) storage.caches.indexes.put(place, index.value);
    return ok(new Checkpoint(stored, index.value, own, storage));
  }

  /** Brings the index into the cache, if it can be read. */
  async warm(): Promise<void> {
    await this.#index().catch(() => {});
  }

  /**
   * Returns the newest version that the snapshot sees; `hash` is that of the key. At once when nothing has to be read: of the checkpoints that a
   * read meets nearly all say so by their filter. Throws, or rejects with, FailureError.
   */
  get(key: Uint8Array, hash: KeyHash, snapshotSequence: number): Entry | undefined | Promise<Entry | undefined> {
    if (this.stored.minSequence > snapshotSequence || !holdsKey(this.#bounds, key)) return undefined;
    if (compareBytes(key, this.#minKey) < 0 || compareBytes(key, this.#maxKey) > 0) return undefined;
    this.#storage.figures.add("checkpointsMet");
    const index = this.#heldIndex();
    if (index !== undefined) return this.#getBy(index, key, hash, snapshotSequence);
    return this.#readIndex().then((read) => this.#getBy(read, key, hash, snapshotSequence));
  }

  #getBy(index: CheckpointIndex, key: Uint8Array, hash: KeyHash, snapshotSequence: number): Entry | undefined | Promise<Entry | undefined> {
    if (!index.mayHold(hash)) {
      this.#storage.figures.add("bloomAbsent");
      return undefined;
    }
    const at = index.firstBlock(key);
    const cached = this.#storage.caches.blocks.get(index.block(at).place);
    this.#count(cached);
    if (cached === undefined) return this.#fetched(index, at).then((read) => this.#getIn(read, key, snapshotSequence));
    const found = this.#getIn(new Block(cached), key, snapshotSequence);
    return found?.value === undefined ? found : { ...found, value: found.value.slice() };
  }

  #getIn(block: Block, key: Uint8Array, snapshotSequence: number): Entry | undefined {
    const found = block.get(key, snapshotSequence);
    if (found === undefined && block.get(key, Number.MAX_SAFE_INTEGER) === undefined) this.#storage.figures.add("bloomFalsePositives");
    return found;
  }

  /** Yields, for each key, the newest version that the snapshot sees, in the range's direction. */
  iterate(asked: KeyRange, snapshotSequence: number): EntrySource {
    const range = this.#clipped(asked);
    if (range.reverse) return entrySourceOf(this.#backwards(range, snapshotSequence));
    return new ForwardSource(
      { index: () => this.#heldIndex() ?? this.#index(), block: (index, at) => this.#block(index, at, range.background) },
      range,
      snapshotSequence,
    );
  }

  /** Yields every version that counts, block by block, read ahead and not kept: for merging. */
  async *versions(): AsyncGenerator<MergedBlock, void, void> {
    const index = await this.#index();
    const { low, high } = this.#bounds;
    const [from, to] = this.#ownBlocks(index);
    for await (const { block, cached } of this.#blocks(index, from, to)) yield { entries: within(block.from(low), high), cached };
  }

  /** Yields blocks in order. The next ones are asked for while the earlier ones are worked on. */
  async *#blocks(index: CheckpointIndex, from: number, to: number): AsyncGenerator<SourceBlock, void, void> {
    let at = from;
    const some = (): Promise<Outcome<readonly SourceBlock[]>> | undefined => {
      const places: Place[] = [];
      for (let bytes = 0; at < to && bytes < mergeAheadBytes; at++) {
        const { place } = index.block(at);
        places.push(place);
        bytes += place.lengthBytes;
      }
      return places.length === 0 ? undefined : this.#someBlocks(places);
    };
    for (let ahead = some(); ahead !== undefined; ) {
      const blocks = await ahead;
      if (!blocks.ok) throw new FailureError(blocks.failure);
      ahead = some();
      yield* blocks.value;
    }
  }

  /** Reads blocks that are not in the cache, neighbours in one call. */
  async #someBlocks(places: readonly Place[]): Promise<Outcome<readonly SourceBlock[]>> {
    const { caches, reader } = this.#storage;
    const blocks = places.map((place): SourceBlock | undefined => {
      const bytes = caches.blocks.peek(place);
      return bytes && { block: new Block(bytes.slice()), cached: true };
    });
    const absent = places.filter((_, at) => blocks[at] === undefined);
    let at = 0;
    try {
      for await (const bytes of readWholeBlocks(reader, absent, { timeoutMs: blockTimeoutMs, windowBytes: mergeAheadBytes })) {
        while (blocks[at] !== undefined) at++;
        blocks[at] = { block: this.#decoded(bytes), cached: false };
      }
    } catch (error) {
      if (error instanceof FailureError) return { ok: false, failure: error.failure };
      throw error;
    }
    return ok(blocks.map((block) => present(block, "a block of a merge")));
  }

  /**
   * Reads some of its blocks, from this one on, into the row data cache while that has room: those that count and are not there. Gives the
   * first that it did not look at; undefined at the end, without room, or when they can't be read.
   */
  async fill(fromBlock: number): Promise<number | undefined> {
    const { blocks } = this.#storage.caches;
    const index = blocks.hasRoomFor(mergeAheadBytes) ? await this.#index().catch(() => undefined) : undefined;
    if (index === undefined) return undefined;
    const [from, to] = this.#ownBlocks(index);
    const places: Place[] = [];
    let at = Math.max(from, fromBlock);
    const end = Math.min(to, at + lookedAtInStep);
    for (let bytes = 0; at < end && bytes < mergeAheadBytes; at++) {
      const { place } = index.block(at);
      if (blocks.peek(place) !== undefined) continue;
      places.push(place);
      bytes += place.lengthBytes;
    }
    const read = await this.#someBlocks(places);
    if (!read.ok) return undefined;
    for (const [i, { block }] of read.value.entries()) {
      if (blocks.hasRoomFor(block.encoded.length)) blocks.put(present(places[i], "the place of a block"), block.encoded);
    }
    return at < to ? at : undefined;
  }

  /** Drops the cached index and blocks: the checkpoint was merged into another, or is served elsewhere. */
  async forget(): Promise<void> {
    const index = this.#heldIndex();
    if (index === undefined) return;
    const [from, to] = this.#ownBlocks(index);
    await forgetBlocks(this.#storage, placesOf(index, from, to));
  }

  /** Returns [from, to) of the blocks that may hold keys of the partition. */
  #ownBlocks(index: CheckpointIndex): readonly [from: number, to: number] {
    const { low, high } = this.#bounds;
    const to = high.length === 0 ? index.blockCount : Math.min(index.firstBlock(high) + 1, index.blockCount);
    return [index.firstBlock(low), to];
  }

  #clipped({ gte = emptyBytes, lt = emptyBytes, ...rest }: KeyRange): KeyRange {
    const { low, high } = intersect({ low: gte, high: lt }, this.#bounds);
    return { ...rest, gte: low, ...(high.length === 0 ? {} : { lt: high }) };
  }

  async *#backwards(range: KeyRange, snapshotSequence: number): AsyncGenerator<Entry, void, void> {
    const index = await this.#index();
    const from = Math.min(range.lt === undefined ? index.blockCount : index.firstBlock(range.lt), index.blockCount - 1);
    for (let at = from; at >= 0; at--) {
      // Versions of a key are in one block, newest first: walking back, the last one seen that is visible is the newest.
      let best: Entry | undefined;
      for (const entry of (await this.#block(index, at)).all().reverse()) {
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

  /** Returns the cached index; undefined if it has to be read again. */
  #heldIndex(): CheckpointIndex | undefined {
    const place = this.stored.indexPlaces[0];
    if (this.#held?.value === undefined) this.#held = place && this.#storage.caches.indexes.hold(place);
    const held = this.#held;
    if (held?.value === undefined) return undefined;
    held.used = true;
    this.#storage.figures.add("indexCacheHits");
    return held.value;
  }

  /** Returns the index, from the cache or by a read. */
  async #index(): Promise<CheckpointIndex> {
    return this.#heldIndex() ?? this.#readIndex();
  }

  #readIndex(): Promise<CheckpointIndex> {
    this.#storage.figures.add("indexCacheMisses");
    this.#opening ??= this.#reopen().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #reopen(): Promise<CheckpointIndex> {
    const index = await readIndex(this.stored, this.#storage);
    if (!index.ok) throw new FailureError(index.failure);
    const place = this.stored.indexPlaces[0];
    if (place !== undefined) this.#storage.caches.indexes.put(place, index.value);
    return index.value;
  }

  /** Returns a block; if it is in the cache, without a wait. */
  #block(index: CheckpointIndex, at: number, background = false): Block | Promise<Block> {
    const cached = this.#storage.caches.blocks.get(index.block(at).place);
    if (!background) this.#count(cached);
    return cached === undefined ? this.#fetched(index, at, background) : new Block(cached.slice());
  }

  #count(cached: Uint8Array | undefined): void {
    this.#storage.figures.add(cached === undefined ? "rowCacheMisses" : "rowCacheHits");
  }

  /** Fetches a block; callers at the same time share one read. */
  #fetched(index: CheckpointIndex, at: number, background = false): Promise<Block> {
    const { place } = index.block(at);
    let fetched = this.#fetching.get(at);
    if (fetched === undefined) {
      fetched = this.#fetch(place).finally(() => this.#fetching.delete(at));
      this.#fetching.set(at, fetched);
    }
    if (background) return fetched;
    return fetched.then((block) => {
      this.#storage.caches.blocks.put(place, block.encoded);
      return block;
    });
  }

  async #fetch(place: Place): Promise<Block> {
    const { reader, times, world } = this.#storage;
    const sinceMs = world.clock.monotonicMs();
    const bytes = await reader.read(place, { timeoutMs: blockTimeoutMs });
    times.blockRead.since(sinceMs);
    if (!bytes.ok) throw new FailureError(bytes.failure);
    return this.#decoded(bytes.value);
  }

  #decoded(bytes: Uint8Array): Block {
    const block = decodeBlock(bytes, this.#storage.world.digest.crc32c);
    if (!block.ok) throw new FailureError(block.failure);
    return block.value;
  }
}

/** Forgets cached blocks that nobody reads again. */
export async function forgetBlocks({ caches, world }: Pick<Storage, "caches" | "world">, places: Iterable<StoredPlace>): Promise<void> {
  let looked = 0;
  for (const place of places) {
    caches.blocks.forget(place);
    if (++looked % lookedAtInStep === 0) await sleep(world.clock, 0);
  }
}

function* placesOf(index: CheckpointIndex, from: number, to: number): Generator<StoredPlace, void, void> {
  for (let at = from; at < to; at++) yield index.block(at).place;
}

function samplesOf(index: CheckpointIndex, from: number, to: number): KeySample[] {
  const samples: KeySample[] = [];
  const every = Math.ceil(Math.max(to - from, 1) / keySamplesMax);
  for (let at = from; at + every <= to; at += every) {
    samples.push({ key: Uint8Array.from(index.block(at + every - 1).lastKey), bytes: index.bytesOf(at, at + every) });
  }
  return samples;
}

function* within(entries: Iterable<Entry>, high: Uint8Array): Generator<Entry, void, void> {
  for (const entry of entries) {
    if (high.length > 0 && compareBytes(entry.key, high) >= 0) return;
    yield entry;
  }
}

async function readIndex(stored: StoredCheckpoint, { reader, times, world }: Storage): Promise<Outcome<CheckpointIndex>> {
  const pieces: Uint8Array[] = [];
  for (const place of stored.indexPlaces) {
    const sinceMs = world.clock.monotonicMs();
    const piece = await reader.read(place, { timeoutMs: blockTimeoutMs });
    times.blockRead.since(sinceMs);
    if (!piece.ok) return piece;
    pieces.push(piece.value);
  }
  return decodeIndex(concatBytes(pieces), world.digest.crc32c);
}

/**
 * Returns keys that divide what is sampled into parts of about one size, in order; one that stands for more of it is there more often. None when
 * nothing is there.
 */
export function evenKeySamples(sampled: readonly Pick<Checkpoint, "keySamples">[], isWanted: (key: Uint8Array) => boolean): Uint8Array[] {
  const all = sampled.flatMap(({ keySamples }) => keySamples).filter(({ key }) => isWanted(key));
  all.sort((a, b) => compareBytes(a.key, b.key));
  const everyBytes = all.reduce((sum, sample) => sum + sample.bytes, 0) / keySamplesMax;
  const samples: Uint8Array[] = [];
  let bytes = 0;
  for (const sample of all) {
    bytes += sample.bytes;
    while (samples.length < keySamplesMax && bytes >= everyBytes * (samples.length + 1)) samples.push(sample.key);
  }
  return samples;
}
