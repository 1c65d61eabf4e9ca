/**
 * The tables of a partition, newest first: the memory table that takes commits, those that are being written out, and
 * the checkpoints. A `TableView` is one moment's list; it stays readable while commits, checkpoints and merges go on.
 */
import { compareBytes } from "@stamp/base";
import type { Entry, MemoryTable } from "@stamp/lsm";
import { hashKey, Merger } from "@stamp/lsm";
import { type Clock, Turns } from "@stamp/ports";
import type { Checkpoint, MergedBlock } from "./checkpoint-reader.ts";
import { type EntrySource, sourceOfMemory } from "./entry-source.ts";
import type { StorageFigures } from "./storage-figures.ts";
import type { Row, ScanRange } from "./types.ts";

export interface TableView {
  /** Newest first. */
  readonly memory: readonly MemoryTable[];
  /** Newest first. */
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
  /** In the end, also of a scan that was left, its rows are counted. */
  readonly figures?: StorageFigures;
  /** Asked before each row; throws when it may not go on. */
  readonly check?: () => void;
  /** Says when a turn was long. Without a clock the scan never gives way. */
  readonly clock?: Clock;
}

/** Rows and tombstones between two looks at the clock. */
const rowsPerLook = 64;

/**
 * Rows in key order: per key the newest visible version, tombstones left out. One generator, that waits only where a block has to be
 * fetched, and gives way after a slice (Turns), work of the reader included: each more, and each wait, costs as much as the row itself. Throws
 * FailureError when storage can't be read.
 */
export async function* scanRows(
  view: TableView,
  range: ScanRange,
  snapshotSequence: number,
  { figures, check, clock }: ScanWatch = {},
): AsyncGenerator<Row, void, void> {
  const sources: EntrySource[] = [
    ...view.memory.map((table) => sourceOfMemory(table.iterate(range, snapshotSequence))),
    ...view.checkpoints.map((checkpoint) => checkpoint.iterate(range, snapshotSequence)),
  ];
  const merger = new Merger(sources.length, range.reverse ? { reverse: true } : {});
  const heads: (Entry | undefined)[] = [];
  const advance = (at: number): Promise<void> | undefined => {
    const next = (sources[at] as EntrySource).next();
    if (next instanceof Promise) return next.then((head) => stand(at, head));
    stand(at, next);
    return undefined;
  };
  const stand = (at: number, head: Entry | undefined): void => {
    heads[at] = head;
    merger.set(at, head);
  };
  const turns = clock && new Turns(clock);
  let [count, bytes, looked] = [0, 0, 0];
  try {
    for (let at = 0; at < sources.length; at++) {
      const waits = advance(at);
      if (waits !== undefined) await waits;
    }
    for (let next = merger.nextKey(); next !== undefined; next = merger.nextKey()) {
      const { key, value } = next.entry;
      if (turns !== undefined && ++looked % rowsPerLook === 0 && turns.over) await turns.next();
      if (value !== undefined) {
        check?.();
        count++;
        bytes += key.length + value.length;
        yield [key, value];
      } else if (range.walk !== undefined && ++range.walk.deleted > range.walk.deletedMax) {
        range.walk.stoppedAt = key;
        return;
      }
      for (const at of next.advance) {
        const waits = advance(at);
        if (waits !== undefined) await waits;
      }
      // Sources that stand before the cursor go on to it.
      const from = range.cursor?.from;
      for (let at = 0; from !== undefined && at < heads.length; at++) {
        const head = heads[at];
        const waits = head !== undefined && compareBytes(head.key, from) < 0 ? advance(at) : undefined;
        if (waits !== undefined) await waits;
      }
    }
  } finally {
    figures?.add("rowsScanned", count);
    figures?.add("rowBytesScanned", bytes);
  }
}

/** Every version of several checkpoints, in order, for merging them. */
export class MergedVersions implements AsyncIterable<Entry> {
  readonly #checkpoints: readonly Checkpoint[];
  /** Whether the version that was given last lay in a cached block. */
  cached = false;

  constructor(checkpoints: readonly Checkpoint[]) {
    this.#checkpoints = checkpoints;
  }

  /** Throws FailureError. */
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

  /** The first of the next block that has any; undefined: this was the last block. */
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
