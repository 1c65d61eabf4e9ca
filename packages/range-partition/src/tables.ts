/**
 * What a partition holds, newest first: the memory table that takes commits, those that are being written out, and the checkpoints. A
 * `TableView` is one moment's list; it stays readable while commits, checkpoints and merges go on.
 */
import { compareBytes } from "@stamp/base";
import type { Entry, MemoryTable } from "@stamp/lsm";
import { hashKey, Merger } from "@stamp/lsm";
import type { Checkpoint } from "./checkpoint-reader.ts";
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
    const found = await checkpoint.get(key, hash, snapshotSequence);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Per key the newest visible version, tombstones left out. Throws FailureError. */
export async function* scanVersions(view: TableView, range: ScanRange, snapshotSequence: number): AsyncGenerator<Entry, void, void> {
  const sources: (Iterator<Entry, void> | AsyncIterator<Entry, void>)[] = [
    ...view.memory.map((table) => table.iterate(range, snapshotSequence)),
    ...view.checkpoints.map((checkpoint) => checkpoint.iterate(range, snapshotSequence)),
  ];
  const merger = new Merger(sources.length, range.reverse ? { reverse: true } : {});
  const heads: (Entry | undefined)[] = [];
  const advance = async (source: number): Promise<void> => {
    const next = await (sources[source] as Iterator<Entry, void>).next();
    heads[source] = next.done ? undefined : next.value;
    merger.set(source, heads[source]);
  };
  for (let source = 0; source < sources.length; source++) await advance(source);
  for (let next = merger.nextKey(); next !== undefined; next = merger.nextKey()) {
    if (next.entry.value !== undefined) yield next.entry;
    else if (range.walk !== undefined && ++range.walk.deleted > range.walk.deletedMax) {
      range.walk.stoppedAt = next.entry.key;
      return;
    }
    for (const source of next.advance) await advance(source);
    await skip(range, heads, advance);
  }
}

/** Sources that stand before the cursor go on to it. */
async function skip(
  { cursor }: ScanRange,
  heads: readonly (Entry | undefined)[],
  advance: (source: number) => Promise<void>,
): Promise<void> {
  if (cursor?.from === undefined) return;
  for (const [source, head] of heads.entries()) {
    if (head !== undefined && compareBytes(head.key, cursor.from) < 0) await advance(source);
  }
}

export async function* rowsOf(versions: AsyncIterable<Entry>): AsyncGenerator<Row, void, void> {
  for await (const { key, value } of versions) yield [key, value as Uint8Array];
}

/** The same rows; in the end, also of a scan that was left, their number is added. */
export async function* countedRows(rows: AsyncIterable<Row>, figures: StorageFigures): AsyncGenerator<Row, void, void> {
  let [count, bytes] = [0, 0];
  try {
    for await (const row of rows) {
      count++;
      bytes += row[0].length + row[1].length;
      yield row;
    }
  } finally {
    figures.add("rowsScanned", count);
    figures.add("rowBytesScanned", bytes);
  }
}

/** Every version of several checkpoints, in order, for merging them. Throws FailureError. */
export async function* mergedVersions(checkpoints: readonly Checkpoint[]): AsyncGenerator<Entry, void, void> {
  const sources = checkpoints.map((checkpoint) => new VersionSource(checkpoint));
  const merger = new Merger(sources.length);
  try {
    for (const [at, source] of sources.entries()) merger.set(at, source.nextInBlock() ?? (await source.nextBlock()));
    for (let next = merger.nextVersion(); next !== undefined; next = merger.nextVersion()) {
      yield next.entry;
      const source = sources[next.advance] as VersionSource;
      merger.set(next.advance, source.nextInBlock() ?? (await source.nextBlock()));
    }
  } finally {
    await Promise.all(sources.map((source) => source.close()));
  }
}

/** The versions of one checkpoint: waits between two blocks only. */
class VersionSource {
  readonly #blocks: AsyncGenerator<Iterable<Entry>, void, void>;
  #entries: Iterator<Entry> | undefined;

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
      this.#entries = block.value[Symbol.iterator]();
      const first = this.nextInBlock();
      if (first !== undefined) return first;
    }
  }

  async close(): Promise<void> {
    await this.#blocks.return();
  }
}
