/**
 * One data block of a checkpoint: entries in order, keys sharing prefixes with the one before, whole again at restart points.
 *
 *   entry:    shared varint | unshared varint | kind u8 (0 put, 1 tombstone) | sequence varint | key bytes | [value length varint | value]
 *   block:    entries | restart offsets (u32 each) | restart count u32 | crc32c of all before u32
 *
 * Little-endian. A truncated or flipped byte is a failure `damaged`, never another value.
 */
import { ByteReader, ByteWriter, compareBytes, DecodeError, emptyBytes, type Outcome, ok, refused } from "@stamp/base";
import type { Entry } from "./entry.ts";

/** Function that computes CRC-32C as the Digest port does. */
export type Crc32c = (bytes: Uint8Array, seed?: number) => number;

const restartEvery = 16;
const trailerBytes = 8;
/** Initial capacity in bytes: most blocks end a little behind their target of 16 KiB. */
const capacityBytes = 18 * 1024;

export class BlockBuilder {
  readonly #writer = new ByteWriter(capacityBytes);
  #restarts: number[] = [];
  #sinceRestart = 0;
  #last: Uint8Array | undefined;
  #count = 0;

  get bytes(): number {
    return this.#writer.length;
  }
  get count(): number {
    return this.#count;
  }
  get lastKey(): Uint8Array | undefined {
    return this.#last;
  }

  add(entry: Entry): void {
    const { key, value } = entry;
    let shared = 0;
    if (this.#last === undefined || this.#sinceRestart >= restartEvery) {
      this.#restarts.push(this.#writer.length);
      this.#sinceRestart = 0;
    } else {
      const max = Math.min(this.#last.length, key.length);
      while (shared < max && this.#last[shared] === key[shared]) shared++;
    }
    this.#sinceRestart++;
    this.#count++;
    this.#writer.varint(shared);
    this.#writer.varint(key.length - shared);
    this.#writer.byte(value === undefined ? 1 : 0);
    this.#writer.varint(entry.sequence);
    this.#writer.bytes(key.subarray(shared));
    if (value !== undefined) this.#writer.sized(value);
    this.#last = key;
  }

  /** Returns the block, owned by the caller; the builder starts a new one. */
  finish(crc32c: Crc32c): Uint8Array<ArrayBuffer> {
    const block = this.#writer.finish(4 * this.#restarts.length + trailerBytes);
    const view = new DataView(block.buffer);
    let at = this.#writer.length;
    for (const restart of this.#restarts) {
      view.setUint32(at, restart, true);
      at += 4;
    }
    view.setUint32(at, this.#restarts.length, true);
    view.setUint32(at + 4, crc32c(block.subarray(0, at + 4)), true);
    this.#writer.clear();
    this.#restarts = [];
    this.#sinceRestart = 0;
    this.#last = undefined;
    this.#count = 0;
    return block;
  }
}

/** `bytes` are borrowed for as long as the block is used: values are views of them. */
export function decodeBlock(bytes: Uint8Array, crc32c: Crc32c): Outcome<Block> {
  if (bytes.length < trailerBytes + 4) return damaged("a checkpoint block is too short");
  const checksumAt = bytes.length - 4;
  if (u32At(bytes, checksumAt) !== crc32c(bytes.subarray(0, checksumAt))) {
    return damaged("the checksum of a checkpoint block does not match");
  }
  const restartCount = u32At(bytes, checksumAt - 4);
  const entriesEnd = checksumAt - 4 - 4 * restartCount;
  if (restartCount === 0 || entriesEnd < 0) return damaged("a checkpoint block without restart points");
  for (let at = entriesEnd; at < checksumAt - 4; at += 4) {
    if (u32At(bytes, at) >= entriesEnd) return damaged("a restart point beyond the entries");
  }
  return ok(new Block(bytes));
}

const u32At = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)) >>> 0;

export class Block {
  /** Bytes of the whole block. */
  readonly encoded: Uint8Array;
  readonly #entries: Uint8Array;
  readonly #restartCount: number;

  /** `encoded`: bytes of a block that was decoded before; borrowed for as long as the block is used. */
  constructor(encoded: Uint8Array) {
    this.encoded = encoded;
    this.#restartCount = u32At(encoded, encoded.length - trailerBytes);
    this.#entries = encoded.subarray(0, encoded.length - trailerBytes - 4 * this.#restartCount);
  }

  /** Entries from the first at or after `gte`, in order, all versions. Throws DecodeError on a block that our own code wrote wrongly. */
  *from(gte?: Uint8Array): Generator<Entry, void, void> {
    const walk = this.walk(gte);
    for (let entry = walk.next(); entry !== undefined; entry = walk.next()) yield entry;
  }

  /** Returns such entries one after another, without a generator. */
  walk(gte?: Uint8Array): BlockWalk {
    return new BlockWalk(this.#entries, gte === undefined ? 0 : this.#restartBefore(gte), gte);
  }

  /** Returns all entries, for walking backwards. */
  all(): Entry[] {
    return [...this.from()];
  }

  /** Returns the newest version that the snapshot sees. */
  get(key: Uint8Array, snapshotSequence: number): Entry | undefined {
    const walk = this.walk(key);
    for (let entry = walk.next(); entry !== undefined && compareBytes(entry.key, key) === 0; entry = walk.next()) {
      if (entry.sequence <= snapshotSequence) return entry;
    }
    return undefined;
  }

  /** Returns where the last restart point lies whose key is below `key`, or the first. */
  #restartBefore(key: Uint8Array): number {
    let low = 0;
    let high = this.#restartCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (compareBytes(this.#keyAt(this.#restart(middle)), key) < 0) low = middle;
      else high = middle - 1;
    }
    return this.#restart(low);
  }

  #restart(number: number): number {
    return u32At(this.encoded, this.#entries.length + 4 * number);
  }

  /** Returns the key of a restart point, which is stored whole; a view. */
  #keyAt(at: number): Uint8Array {
    const reader = new ByteReader(this.#entries, at);
    if (reader.varint() !== 0) throw new DecodeError("a restart point that shares its key");
    const length = reader.varint();
    reader.byte();
    reader.varint();
    return reader.bytes(length);
  }
}

/** Entry after entry of one block. */
export class BlockWalk {
  readonly #reader: ByteReader;
  readonly #gte: Uint8Array | undefined;
  #key: Uint8Array = emptyBytes;

  constructor(entries: Uint8Array, at: number, gte: Uint8Array | undefined) {
    this.#reader = new ByteReader(entries, at);
    this.#gte = gte;
  }

  /** Returns undefined behind the last one. Throws DecodeError. */
  next(): Entry | undefined {
    const reader = this.#reader;
    while (reader.left > 0) {
      const shared = reader.varint();
      const unshared = reader.varint();
      const kind = reader.byte();
      const sequence = reader.varint();
      const last = this.#key;
      if (shared > last.length || kind > 1) throw new DecodeError("a malformed checkpoint entry");
      const key = new Uint8Array(shared + unshared);
      // Keys are short: a loop costs less than the views that `set` would need.
      for (let i = 0; i < shared; i++) key[i] = last[i] as number;
      key.set(reader.bytes(unshared), shared);
      this.#key = key;
      const value = kind === 1 ? undefined : reader.sized();
      if (this.#gte === undefined || compareBytes(key, this.#gte) >= 0) return { key, sequence, value };
    }
    return undefined;
  }
}

/** Returns the written bytes with their checksum behind them. */
export const withChecksum = (writer: ByteWriter, crc32c: Crc32c): Uint8Array<ArrayBuffer> =>
  checksummed(writer.finish(4), writer.length, crc32c);

/** Returns the bytes like `withChecksum`, without a copy. The writer is not used again. */
export const takenWithChecksum = (writer: ByteWriter, crc32c: Crc32c): Uint8Array<ArrayBuffer> =>
  checksummed(writer.take(4), writer.length, crc32c);

function checksummed(out: Uint8Array<ArrayBuffer>, length: number, crc32c: Crc32c): Uint8Array<ArrayBuffer> {
  new DataView(out.buffer, out.byteOffset).setUint32(length, crc32c(out.subarray(0, length)), true);
  return out;
}

export const damaged = (message: string): Outcome<never> => refused("dataLoss", "damaged", message);
