/**
 * The tables of a partition, newest first: the memory table that takes commits, those that are being written out, and
 * the checkpoints. A `TableView` is one moment's list; it stays readable while commits, checkpoints and merges go on.
 */
import { compareBytes } from "@stamp/base";
import type { Entry, MemoryTable } from "@stamp/lsm";
import { hashKey, Merger } from "@stamp/lsm";
import { type Clock, Turns } from "@stamp/ports";
import type { Checkpoint, MergedBlock } from "./checkpoint/checkpoint-reader.ts";
import { type EntrySource, sourceOfMemory } from "./checkpoint/entry-source.ts";
import type { Row, ScanRange } from "./scan-range.ts";
import { isMarkerKey } from "./shipping/marker.ts";
import type { StorageFigures } from "./storage-figures.ts";

export interface TableView {
  /** Memory tables, newest first. */
  readonly memory: readonly MemoryTable[];
  /** Checkpoints, newest first. */
  readonly checkpoints: readonly Checkpoint[];
}

/** Throws FailureError when storage can't be read. */
export async function getVersion(view: TableView, key: Uint8Array, snapshotSequence: number): Promise<Entry | undefined> {
  for (const table of view.memory) {
    const found = table.get(key, snapshotSequence);
    if (found !== undefined) return found;
  }
  if (view.checkpoints.length === 0) return undefined;
  const hash = hashKey(key);
  for (const checkpoint of view.checkpoints) {
    const looked = checkpoint.get(key, hash, snapshotSequence);
    const found = looked instanceof Promise ? await looked : looked;
    if (found !== undefined) return found;
  }
  return undefined;
}

export interface ScanWatch {
  /** Counts that get the scan's rows at its end, also if the scan is left early. */
  readonly figures?: StorageFigures;
  /** Called before each row; throws if the scan may not go on. */
  readonly check?: () => void;
  /** Says when a turn was long. Without a clock the scan never gives way. */
  readonly clock?: Clock;
}

/** Rows and tombstones between two looks at the clock. */
const rowsPerLook = 64;

/**
 * Rows in key order: per key the newest visible version, tombstones left out. A scan waits only where a block has to be fetched, and gives way
 * after a slice (Turns), work of the reader included: each wait more costs as much as the row itself. So `pull` gives what is there at once;
 * whoever iterates waits at each row.
 */
/** Number of keys of a memory table that are sampled for the spread of its rows. */
const memoryKeySamplesMax = 256;

/** Returns the keys that divide a memory table into parts of about one size, with the size of each part. */
export function memorySamples(table: MemoryTable): {
  readonly keySamples: readonly { readonly key: Uint8Array; readonly bytes: number }[];
} {
  const keys = table.keySamples(memoryKeySamplesMax);
  return { keySamples: keys.map((key) => ({ key, bytes: table.bytes / keys.length })) };
}

export class RowScan implements AsyncIterable<Row> {
  readonly #range: ScanRange;
  readonly #watch: ScanWatch;
  readonly #sources: readonly EntrySource[];
  readonly #merger: Merger;
  readonly #heads: (Entry | undefined)[] = [];
  readonly #turns: Turns | undefined;
  /** Sources that have to move on before the next row is known. */
  readonly #moving: number[];
  /** The next source that is compared with the reader's cursor; undefined: all were. */
  #behindCursor: number | undefined;
  #count = 0;
  #bytes = 0;
  #looked = 0;
  #ended = false;

  constructor(view: TableView, range: ScanRange, snapshotSequence: number, watch: ScanWatch = {}) {
    this.#range = range;
    this.#watch = watch;
    this.#sources = [
      ...view.memory.map((table) => sourceOfMemory(table.iterate(range, snapshotSequence))),
      ...view.checkpoints.map((checkpoint) => checkpoint.iterate(range, snapshotSequence)),
    ];
    this.#merger = new Merger(this.#sources.length, range.reverse ? { reverse: true } : {});
    this.#moving = this.#sources.map((_, at) => at);
    this.#turns = watch.clock && new Turns(watch.clock);
  }

  /** Returns the next row; undefined at the end. A promise if it has to wait. Throws, or rejects with, FailureError when storage can't be read. */
  pull(): Row | undefined | Promise<Row | undefined> {
    while (!this.#ended) {
      const waits = this.#move();
      if (waits !== undefined) return waits.then(() => this.pull());
      const entry = this.#merger.nextKey();
      if (entry === undefined) break;
      this.#moving.push(...this.#merger.advanced);
      this.#behindCursor = 0;
      const row = this.#see(entry);
      if (++this.#looked % rowsPerLook === 0 && this.#turns?.over)
        return this.#turns.next().then(() => (row === undefined ? this.pull() : this.#given(row)));
      if (row !== undefined) return this.#given(row);
    }
    this.close();
    return undefined;
  }

  /** Ends the scan and counts its rows. */
  close(): void {
    if (this.#ended && this.#count === 0) return;
    this.#ended = true;
    this.#watch.figures?.add("rowsScanned", this.#count);
    this.#watch.figures?.add("rowBytesScanned", this.#bytes);
    this.#count = 0;
    this.#bytes = 0;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Row, void, void> {
    try {
      for (;;) {
        const next = this.pull();
        const row = next instanceof Promise ? await next : next;
        if (row === undefined) return;
        yield row;
      }
    } finally {
      this.close();
    }
  }

  /** Returns undefined for a hidden row, and for a tombstone, which may end the scan. */
  #see({ key, value }: Entry): Row | undefined {
    if (value !== undefined) return isMarkerKey(key) && !this.#range.hidden ? undefined : [key, value];
    const { walk } = this.#range;
    if (walk !== undefined && ++walk.deleted > walk.deletedMax) {
      walk.stoppedAt = key;
      this.#ended = true;
    }
    return undefined;
  }

  #given(row: Row): Row {
    this.#watch.check?.();
    this.#count++;
    this.#bytes += row[0].length + row[1].length;
    return row;
  }

  /** Moves the sources on that gave the last row, then those that stand before the reader's cursor. A promise if one has to wait. */
  #move(): Promise<void> | undefined {
    for (let at = this.#moving.pop(); at !== undefined; at = this.#moving.pop()) {
      const waits = this.#advance(at);
      if (waits !== undefined) return waits;
    }
    const from = this.#range.cursor?.from;
    while (from !== undefined && this.#behindCursor !== undefined && this.#behindCursor < this.#heads.length) {
      const at = this.#behindCursor++;
      const head = this.#heads[at];
      const waits = head !== undefined && compareBytes(head.key, from) < 0 ? this.#advance(at) : undefined;
      if (waits !== undefined) return waits;
    }
    this.#behindCursor = undefined;
    return undefined;
  }

  #advance(at: number): Promise<void> | undefined {
    const next = (this.#sources[at] as EntrySource).next();
    if (next instanceof Promise) return next.then((head) => this.#stand(at, head));
    this.#stand(at, next);
    return undefined;
  }

  #stand(at: number, head: Entry | undefined): void {
    this.#heads[at] = head;
    this.#merger.set(at, head);
  }
}

/** Every version of several checkpoints, in order, for a merge. */
export class MergedVersions implements AsyncIterable<Entry> {
  readonly #checkpoints: readonly Checkpoint[];
  /** Whether the version that was given last lay in a cached block. */
  cached = false;

  constructor(checkpoints: readonly Checkpoint[]) {
    this.#checkpoints = checkpoints;
  }

  /** Yields all versions. Throws FailureError. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Entry, void, void> {
    const sources = this.#checkpoints.map((checkpoint) => new VersionSource(checkpoint));
    const merger = new Merger(sources.length);
    try {
      for (const [at, source] of sources.entries()) merger.set(at, source.nextInBlock() ?? (await source.nextBlock()));
      for (let next = merger.nextVersion(); next !== undefined; next = merger.nextVersion()) {
        const source = sources[next.advance] as VersionSource;
        this.cached = source.cached;
        yield next.entry;
        merger.set(next.advance, source.nextInBlock() ?? (await source.nextBlock()));
      }
    } finally {
      await Promise.all(sources.map((source) => source.close()));
    }
  }
}

/** The versions of one checkpoint: waits between two blocks only. */
class VersionSource {
  readonly #blocks: AsyncGenerator<MergedBlock, void, void>;
  #entries: Iterator<Entry> | undefined;
  /** True if the present block came from the cache. */
  cached = false;

  constructor(checkpoint: Checkpoint) {
    this.#blocks = checkpoint.versions();
  }

  nextInBlock(): Entry | undefined {
    const next = this.#entries?.next();
    return next === undefined || next.done ? undefined : next.value;
  }

  /** Returns the first entry of the next block that has entries; undefined if there is no such block. */
  async nextBlock(): Promise<Entry | undefined> {
    for (;;) {
      const block = await this.#blocks.next();
      if (block.done) return undefined;
      this.#entries = block.value.entries[Symbol.iterator]();
      this.cached = block.value.cached;
      const first = this.nextInBlock();
      if (first !== undefined) return first;
    }
  }

  async close(): Promise<void> {
    await this.#blocks.return();
  }
}
