/**
 * The index of a checkpoint: where its data blocks lie and what they end with, the bloom filter, and what the whole holds.
 *
 *   "SIDX" | format version u8 | entry count varint | min sequence varint | max sequence varint | data bytes varint
 *   | min key (sized) | block count varint | per block: last key (sized), extent id varint, offset varint, length varint
 *   | bloom filter (sized) | crc32c of all before u32
 */
import { ByteReader, ByteWriter, compareBytes, DecodeError, emptyBytes, newerFormat, type Outcome, ok } from "@stamp/base";
import { bloomMayHold, type KeyHash } from "./bloom.ts";
import { type Crc32c, damaged, withChecksum } from "./checkpoint-block.ts";

/** Where the stream layer put a block. */
export interface StoredPlace {
  readonly extentId: number;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

export interface BlockReference {
  readonly lastKey: Uint8Array;
  readonly place: StoredPlace;
}

export interface IndexContent {
  readonly entryCount: number;
  readonly minSequence: number;
  readonly maxSequence: number;
  readonly dataBytes: number;
  readonly minKey: Uint8Array;
  readonly blocks: readonly BlockReference[];
  readonly bloom: Uint8Array;
}

type IndexFacts = Omit<IndexContent, "blocks">;

const magic = [0x53, 0x49, 0x44, 0x58];
const formatVersion = 1;

/** One entry for each block, in order. */
interface BlockTable {
  /** Offsets of the blocks' references in the encoded table. */
  readonly at: Uint32Array;
  readonly lengths: Uint32Array;
  readonly extentIds: Set<number>;
}

/** Blocks that are written in one step. */
const stepBlocks = 2_048;

const tableOf = (blocks: number): BlockTable => ({
  at: new Uint32Array(blocks),
  lengths: new Uint32Array(blocks),
  extentIds: new Set<number>(),
});

export interface EncodedIndex {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The index, read from `bytes`. */
  readonly index: CheckpointIndex;
}

/** Encodes an index in steps of about a millisecond; the caller goes on when it has time. */
export function* encodeIndex(content: IndexContent, crc32c: Crc32c): Generator<void, EncodedIndex, void> {
  const writer = new ByteWriter(content.bloom.length + 64 * content.blocks.length + 128);
  for (const byte of magic) writer.byte(byte);
  writer.byte(formatVersion);
  writer.varint(content.entryCount);
  writer.varint(content.minSequence);
  writer.varint(content.maxSequence);
  writer.varint(content.dataBytes);
  writer.sized(content.minKey);
  writer.varint(content.blocks.length);
  const blocks = tableOf(content.blocks.length);
  for (const [at, { lastKey, place }] of content.blocks.entries()) {
    if (at % stepBlocks === stepBlocks - 1) yield;
    blocks.at[at] = writer.length;
    blocks.lengths[at] = place.lengthBytes;
    blocks.extentIds.add(place.extentId);
    writer.sized(lastKey);
    writer.varint(place.extentId);
    writer.varint(place.offsetBytes);
    writer.varint(place.lengthBytes);
  }
  writer.sized(content.bloom);
  const bytes = withChecksum(writer, crc32c);
  const bloom = bytes.subarray(writer.length - content.bloom.length, writer.length);
  return { bytes, index: new CheckpointIndex({ ...content, minKey: Uint8Array.from(content.minKey), bloom }, bytes, blocks) };
}

/** `bytes` belong to the index from then on: blocks are read from them when they are asked for, which is all that is kept in memory. */
export function decodeIndex(bytes: Uint8Array, crc32c: Crc32c): Outcome<CheckpointIndex> {
  if (bytes.length < 9) return damaged("a checkpoint index is too short");
  const end = bytes.length - 4;
  const stored = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(end, true);
  if (stored !== crc32c(bytes.subarray(0, end))) return damaged("the checksum of a checkpoint index does not match");
  const body = bytes.subarray(0, end);
  const reader = new ByteReader(body);
  try {
    for (const byte of magic) if (reader.byte() !== byte) return damaged("not a checkpoint index");
    const version = reader.byte();
    if (version > formatVersion) return newerFormat("a checkpoint index", { format: "checkpoint", version });
    if (version !== formatVersion) return damaged(`a checkpoint index of format version ${version}`);
    const entryCount = reader.varint();
    const minSequence = reader.varint();
    const maxSequence = reader.varint();
    const dataBytes = reader.varint();
    const minKey = reader.sized();
    const blockCount = reader.varint();
    if (blockCount > reader.left) return damaged("a checkpoint index with more blocks than bytes");
    const blocks = tableOf(blockCount);
    for (let i = 0; i < blockCount; i++) {
      blocks.at[i] = body.length - reader.left;
      reader.skip(reader.varint());
      blocks.extentIds.add(reader.varint());
      reader.varint();
      blocks.lengths[i] = reader.varint();
    }
    const bloom = reader.sized();
    if (reader.left !== 0) return damaged("bytes after a checkpoint index");
    return ok(new CheckpointIndex({ entryCount, minSequence, maxSequence, dataBytes, minKey, bloom }, bytes, blocks));
  } catch (error) {
    if (error instanceof DecodeError) return damaged(error.message);
    throw error;
  }
}

function readBlock(reader: ByteReader): BlockReference {
  const lastKey = reader.sized();
  return { lastKey, place: { extentId: reader.varint(), offsetBytes: reader.varint(), lengthBytes: reader.varint() } };
}

export class CheckpointIndex {
  readonly #content: IndexFacts;
  readonly #bytes: Uint8Array;
  readonly #blocks: BlockTable;

  constructor({ entryCount, minSequence, maxSequence, dataBytes, minKey, bloom }: IndexFacts, bytes: Uint8Array, blocks: BlockTable) {
    this.#content = { entryCount, minSequence, maxSequence, dataBytes, minKey, bloom };
    this.#bytes = bytes;
    this.#blocks = blocks;
  }

  /** Memory that the index takes, in bytes, approximately. */
  get bytes(): number {
    return this.#bytes.length + this.#blocks.at.byteLength + this.#blocks.lengths.byteLength;
  }
  get entryCount(): number {
    return this.#content.entryCount;
  }
  get minSequence(): number {
    return this.#content.minSequence;
  }
  get maxSequence(): number {
    return this.#content.maxSequence;
  }
  get dataBytes(): number {
    return this.#content.dataBytes;
  }
  get blockCount(): number {
    return this.#blocks.at.length;
  }
  get minKey(): Uint8Array {
    return this.#content.minKey;
  }
  get maxKey(): Uint8Array {
    return this.blockCount === 0 ? emptyBytes : this.#lastKey(this.blockCount - 1);
  }

  /** Returns the `at`-th data block; its key is a view. */
  block(at: number): BlockReference {
    return readBlock(this.#readerAt(at));
  }

  /** Extents that hold the data blocks. */
  get extentIds(): ReadonlySet<number> {
    return this.#blocks.extentIds;
  }

  /** Returns the stored size of the data blocks from one up to another, in bytes. */
  bytesOf(from: number, to: number): number {
    let bytes = 0;
    for (let at = from; at < to; at++) bytes += this.#blocks.lengths[at] as number;
    return bytes;
  }

  /** True if the key lies between the first and the last one. */
  spans(key: Uint8Array): boolean {
    return this.blockCount > 0 && compareBytes(key, this.minKey) >= 0 && compareBytes(key, this.maxKey) <= 0;
  }

  /** True if the bloom filter admits a key in the index's range. */
  mayHold(hash: KeyHash): boolean {
    return bloomMayHold(this.#content.bloom, hash);
  }

  /** Returns the first block that may hold keys at or after this one; `blockCount` when none does. */
  firstBlock(gte?: Uint8Array): number {
    if (gte === undefined) return 0;
    let low = 0;
    let high = this.blockCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compareLastKey(middle, gte) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #lastKey(at: number): Uint8Array {
    return this.#readerAt(at).sized();
  }

  /**
   * Compares a block's last key with this one, like `compareBytes`, without a copy: a search looks at one block for
   * every bit of the number of blocks.
   */
  #compareLastKey(block: number, key: Uint8Array): number {
    const bytes = this.#bytes;
    let at = this.#blocks.at[block] as number;
    let length = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] as number;
      length += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
    }
    const shared = Math.min(length, key.length);
    for (let i = 0; i < shared; i++) {
      const difference = (bytes[at + i] as number) - (key[i] as number);
      if (difference !== 0) return difference;
    }
    return length - key.length;
  }

  #readerAt(at: number): ByteReader {
    const offset = this.#blocks.at[at];
    if (offset === undefined) throw new RangeError(`no data block ${at}`);
    return new ByteReader(this.#bytes, offset);
  }
}
