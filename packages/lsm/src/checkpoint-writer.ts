/**
 * Writes a checkpoint from entries in order. The caller stores each data block as one block of the row data stream and, when it knows
 * all their places, stores the index. Versions of one key are kept in one data block, so that a point read meets one block.
 */
import { assert, compareBytes } from "@stamp/base";
import { BloomBuilder } from "./bloom.ts";
import { BlockBuilder, type Crc32c } from "./checkpoint-block.ts";
import { type BlockReference, type EncodedIndex, encodeIndex, type StoredPlace } from "./checkpoint-index.ts";
import { compareEntries, type Entry } from "./entry.ts";

const blockTargetBytes = 16 * 1024;

/** Runs all steps at once. */
export function withoutPause<T>(steps: Generator<void, T, void>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

export class CheckpointWriter {
  readonly #crc32c: Crc32c;
  readonly #blockBytes: number;
  readonly #bloom = new BloomBuilder();
  readonly #block = new BlockBuilder();
  readonly #lastKeys: Uint8Array[] = [];
  #last: Entry | undefined;
  #minKey: Uint8Array | undefined;
  #entryCount = 0;
  #minSequence = Number.MAX_SAFE_INTEGER;
  #maxSequence = 0;
  #dataBytes = 0;

  constructor(crc32c: Crc32c, blockBytes: number = blockTargetBytes) {
    this.#crc32c = crc32c;
    this.#blockBytes = blockBytes;
  }

  get entryCount(): number {
    return this.#entryCount;
  }

  /** Entries come in order. Gives a finished data block when there is one. */
  add(entry: Entry): Uint8Array<ArrayBuffer> | undefined {
    assert(this.#last === undefined || compareEntries(this.#last, entry) < 0, "checkpoint entries come in order");
    const sameKey = this.#last !== undefined && compareBytes(this.#last.key, entry.key) === 0;
    let finished: Uint8Array<ArrayBuffer> | undefined;
    if (!sameKey) {
      if (this.#block.bytes >= this.#blockBytes) finished = this.#finishBlock();
      this.#bloom.add(entry.key);
    }
    this.#block.add(entry);
    this.#last = entry;
    this.#minKey ??= entry.key;
    this.#entryCount++;
    this.#minSequence = Math.min(this.#minSequence, entry.sequence);
    this.#maxSequence = Math.max(this.#maxSequence, entry.sequence);
    return finished;
  }

  /** Returns the last data block, if there is one that was not given yet. */
  lastBlock(): Uint8Array<ArrayBuffer> | undefined {
    return this.#block.count === 0 ? undefined : this.#finishBlock();
  }

  /**
   * `places` of all data blocks, in the order in which they were given. Of a million rows it takes a tenth of a second: to be gone on with
   * when there is time for another step of about a millisecond.
   */
  *index(places: readonly StoredPlace[]): Generator<void, EncodedIndex, void> {
    assert(places.length === this.#lastKeys.length && this.#block.count === 0, "a place for every data block");
    const blocks: BlockReference[] = this.#lastKeys.map((lastKey, i) => ({ lastKey, place: places[i] as StoredPlace }));
    const bloom = yield* this.#bloom.finish();
    return yield* encodeIndex(
      {
        entryCount: this.#entryCount,
        minSequence: this.#entryCount === 0 ? 0 : this.#minSequence,
        maxSequence: this.#maxSequence,
        dataBytes: this.#dataBytes,
        minKey: this.#minKey ?? new Uint8Array(0),
        blocks,
        bloom,
      },
      this.#crc32c,
    );
  }

  #finishBlock(): Uint8Array<ArrayBuffer> {
    assert(this.#block.lastKey !== undefined, "an empty block is never finished");
    this.#lastKeys.push(this.#block.lastKey);
    const bytes = this.#block.finish(this.#crc32c);
    this.#dataBytes += bytes.length;
    return bytes;
  }
}
