/**
 * Where a scan takes its entries from, one after another. What is in memory is given at once: a scan waits for the next block of a
 * checkpoint, not for each row of every source.
 */
import { compareBytes, emptyBytes } from "@stamp/base";
import type { Block, BlockWalk, CheckpointIndex, Entry, KeyRange } from "@stamp/lsm";

export interface EntrySource {
  /** Returns undefined at the end. A promise when storage has to be read; throws, or rejects with, FailureError. */
  next(): Entry | undefined | Promise<Entry | undefined>;
}

export const entrySourceOf = (entries: AsyncIterator<Entry, void>): EntrySource => ({
  next: () => entries.next().then((step) => (step.done ? undefined : step.value)),
});

export const sourceOfMemory = (entries: Iterator<Entry, void>): EntrySource => ({
  next: () => {
    const step = entries.next();
    return step.done ? undefined : step.value;
  },
});

/** Parts of a checkpoint; cached ones come at once. */
export interface CheckpointParts {
  readonly index: () => CheckpointIndex | Promise<CheckpointIndex>;
  readonly block: (index: CheckpointIndex, at: number) => Block | Promise<Block>;
}

/** A checkpoint in key order: of each key the newest version that the snapshot sees. */
export class ForwardSource implements EntrySource {
  readonly #parts: CheckpointParts;
  readonly #range: KeyRange;
  readonly #snapshotSequence: number;
  #from: Uint8Array;
  #index: CheckpointIndex | undefined;
  /** Position of the next block. */
  #at = 0;
  #walk: BlockWalk | undefined;
  #last: Uint8Array | undefined;
  #ended = false;

  constructor(parts: CheckpointParts, range: KeyRange, snapshotSequence: number) {
    this.#parts = parts;
    this.#range = range;
    this.#snapshotSequence = snapshotSequence;
    this.#from = range.gte ?? emptyBytes;
  }

  next(): Entry | undefined | Promise<Entry | undefined> {
    while (!this.#ended) {
      const entry = this.#inBlock();
      if (entry !== undefined) return entry;
      if (this.#ended) break;
      const moved = this.#nextBlock();
      if (moved !== undefined) return moved.then(() => this.next());
    }
    return undefined;
  }

  #inBlock(): Entry | undefined {
    const { cursor, lt } = this.#range;
    for (let entry = this.#walk?.next(); entry !== undefined; entry = this.#walk?.next()) {
      this.#from = cursor?.from ?? this.#from;
      if (compareBytes(entry.key, this.#from) < 0) continue;
      if (lt !== undefined && compareBytes(entry.key, lt) >= 0) {
        this.#ended = true;
        return undefined;
      }
      if (entry.sequence > this.#snapshotSequence || (this.#last !== undefined && compareBytes(entry.key, this.#last) === 0)) continue;
      this.#last = entry.key;
      return entry;
    }
    this.#walk = undefined;
    return undefined;
  }

  /** Moves to the next block that may hold the wanted keys, or ends. Returns a promise if the block has to be read. */
  #nextBlock(): Promise<void> | undefined {
    const index = this.#index ?? this.#parts.index();
    if (index instanceof Promise) {
      return index.then((opened) => {
        this.#index = opened;
      });
    }
    this.#index = index;
    const at = Math.max(this.#at, index.firstBlock(this.#from));
    if (at >= index.blockCount) {
      this.#ended = true;
      return undefined;
    }
    const block = this.#parts.block(index, at);
    const enter = (entered: Block): void => {
      this.#walk = entered.walk(this.#from);
      this.#at = at + 1;
    };
    if (block instanceof Promise) return block.then(enter);
    enter(block);
    return undefined;
  }
}
