/**
 * A snapshot of the whole metadata store in one file: what extent nodes keep, and what `stamp metadata backup` writes. It is written and read
 * in chunks, so neither side holds it in memory. Format: docs/formats/metadata-snapshot.md.
 *
 *   "STMS" | version u8 = 2 | chunk: header (JSON) | chunks of entries ( key sized | value sized )* | empty chunk | count u64 LE | crc32c u32 LE
 *   chunk: length u32 LE | content | crc32c u32 LE of the content, seeded with the checksum of the chunk before
 *
 * Version 1, still read, is one piece: header (sized JSON) | count varint | entries | crc32c of all before it u32 LE.
 */
import {
  ByteReader,
  ByteWriter,
  concatBytes,
  DecodeError,
  FailureError,
  fromUtf8,
  newerFormat,
  type Outcome,
  ok,
  refused,
  utf8,
} from "@stamp/base";

export interface SnapshotHeader {
  readonly stampId: string;
  /** Number of the last transaction in it. */
  readonly version: number;
  readonly takenAtMs: number;
  /** Lineage of the store, in hexadecimal: a restore gives another one. Empty in snapshots of version 1. */
  readonly lineage: string;
}

export type SnapshotEntry = readonly [key: Uint8Array, value: Uint8Array];

export interface OpenedSnapshot extends SnapshotHeader {
  /**
   * Yields the entries as they are in the store, in key order; owned. The last step throws FailureError `damaged` if the snapshot is damaged.
   */
  entries(): AsyncIterable<SnapshotEntry>;
}

/** A file, as the Disk port has it. */
export interface SnapshotSource {
  sizeBytes(): Promise<number>;
  read(offsetBytes: number, lengthBytes: number): Promise<Uint8Array>;
}

/** crc32c of what follows what `seed` is the checksum of. */
export type SeededChecksum = (bytes: Uint8Array, seed?: number) => number;

const magic = [0x53, 0x54, 0x4d, 0x53];
const formatVersion = 2;
const prefixBytes = magic.length + 1;
/** Size at which a chunk is closed; a single entry is never larger than a transaction may be. */
const chunkBytes = 256 * 1024;
const chunkBytesMax = 8 * 1024 * 1024;
const endBytes = 12;

/** Makes the file piece by piece: `begin`, `add` for each entry, `end`. */
export class SnapshotWriter {
  readonly #header: SnapshotHeader;
  readonly #checksum: SeededChecksum;
  #last = 0;
  #count = 0;
  #chunk = new ByteWriter(chunkBytes + 4_096);

  constructor(header: SnapshotHeader, checksum: SeededChecksum) {
    this.#header = header;
    this.#checksum = checksum;
  }

  begin(): Uint8Array {
    const { stampId, version, takenAtMs, lineage } = this.#header;
    const header = utf8(JSON.stringify({ stampId, version, takenAtMs, lineage }));
    return concatBytes([new Uint8Array([...magic, formatVersion]), this.#framed(header)]);
  }

  /** Returns owned bytes to be written, when there are enough; borrows both. */
  add([key, value]: SnapshotEntry): Uint8Array | undefined {
    this.#chunk.sized(key);
    this.#chunk.sized(value);
    this.#count += 1;
    return this.#chunk.length >= chunkBytes ? this.#takeChunk() : undefined;
  }

  end(): Uint8Array {
    const rest = this.#chunk.length > 0 ? this.#takeChunk() : new Uint8Array(0);
    const end = new Uint8Array(4 + endBytes);
    const view = new DataView(end.buffer);
    view.setBigUint64(4, BigInt(this.#count), true);
    view.setUint32(12, this.#checksum(end.subarray(4, 12), this.#last), true);
    return concatBytes([rest, end]);
  }

  #takeChunk(): Uint8Array {
    const framed = this.#framed(this.#chunk.written);
    this.#chunk.clear();
    return framed;
  }

  #framed(content: Uint8Array): Uint8Array {
    const framed = new Uint8Array(content.length + 8);
    const view = new DataView(framed.buffer);
    this.#last = this.#checksum(content, this.#last) >>> 0;
    view.setUint32(0, content.length, true);
    framed.set(content, 4);
    view.setUint32(4 + content.length, this.#last, true);
    return framed;
  }
}

/** Reads the header. Refused with `damaged`, or `newerFormat` if a newer release wrote it. */
export async function openSnapshot(source: SnapshotSource, checksum: SeededChecksum): Promise<Outcome<OpenedSnapshot>> {
  try {
    const start = await source.read(0, prefixBytes);
    if (start.length < prefixBytes || magic.some((byte, i) => start[i] !== byte))
      return damaged("it does not begin as a metadata snapshot does");
    if (start[magic.length] === 1) return await openVersion1(source, checksum);
    const version = start[magic.length] ?? 0;
    if (version > formatVersion) return newerFormat("a metadata snapshot", { format: "metadata-snapshot", version });
    if (version !== formatVersion) return damaged(`format version ${version}`);
    const first = await chunkAt(source, prefixBytes, 0, checksum);
    const header = headerOf(first.content);
    return ok({ ...header, entries: () => entriesOf(source, prefixBytes + first.content.length + 8, first.checksum, checksum) });
  } catch (error) {
    return asDamage(error);
  }
}

/** Reads all of it. Refused with `damaged`. Gives the number of entries. */
export async function verifySnapshot(
  source: SnapshotSource,
  checksum: SeededChecksum,
): Promise<Outcome<SnapshotHeader & { readonly count: number }>> {
  const opened = await openSnapshot(source, checksum);
  if (!opened.ok) return opened;
  const { entries, ...header } = opened.value;
  try {
    let count = 0;
    for await (const _ of entries()) count += 1;
    return ok({ ...header, count });
  } catch (error) {
    return asDamage(error);
  }
}

export const inMemory = (bytes: Uint8Array): SnapshotSource => ({
  sizeBytes: async () => bytes.length,
  read: async (offset, length) => bytes.subarray(offset, offset + length),
});

async function* entriesOf(source: SnapshotSource, fromBytes: number, seed: number, checksum: SeededChecksum): AsyncIterable<SnapshotEntry> {
  let [at, last, count] = [fromBytes, seed, 0];
  try {
    for (;;) {
      const chunk = await chunkAt(source, at, last, checksum);
      if (chunk.content.length === 0) break;
      const reader = new ByteReader(chunk.content);
      while (reader.left > 0) {
        count += 1;
        yield [reader.sized(), reader.sized()];
      }
      at += chunk.content.length + 8;
      last = chunk.checksum;
    }
    const end = await source.read(at + 4, endBytes + 1);
    const view = new DataView(end.buffer, end.byteOffset, end.length);
    if (end.length !== endBytes) throw new DecodeError(end.length < endBytes ? "its end is missing" : "something is left over");
    if (view.getUint32(8, true) !== checksum(end.subarray(0, 8), last) >>> 0)
      throw new DecodeError("the checksum of its end does not match");
    if (view.getBigUint64(0, true) !== BigInt(count)) throw new DecodeError(`${count} entries are not as many as its end says`);
  } catch (error) {
    throw error instanceof DecodeError ? new FailureError(damaged(error.message).failure) : error;
  }
}

/** Reads a chunk of a snapshot; an empty one has no checksum. */
async function chunkAt(source: SnapshotSource, at: number, seed: number, checksum: SeededChecksum) {
  const head = await source.read(at, 4);
  if (head.length < 4) throw new DecodeError("it ends too early");
  const length = new DataView(head.buffer, head.byteOffset, 4).getUint32(0, true);
  if (length > chunkBytesMax) throw new DecodeError(`a chunk of ${length} bytes`);
  if (length === 0) return { content: new Uint8Array(0), checksum: seed };
  const bytes = await source.read(at + 4, length + 4);
  if (bytes.length < length + 4) throw new DecodeError("it ends within a chunk");
  const content = bytes.subarray(0, length);
  const stored = new DataView(bytes.buffer, bytes.byteOffset + length, 4).getUint32(0, true);
  if (stored !== checksum(content, seed) >>> 0) throw new DecodeError("the checksum of a chunk does not match");
  return { content, checksum: stored };
}

function headerOf(json: Uint8Array): SnapshotHeader {
  const { stampId, version, takenAtMs, lineage = "" } = JSON.parse(fromUtf8(json)) as Partial<SnapshotHeader>;
  if (typeof stampId !== "string" || typeof version !== "number" || typeof takenAtMs !== "number")
    throw new DecodeError("its header is incomplete");
  return { stampId, version, takenAtMs, lineage };
}

/** Opens a snapshot of version 1, which has at most 256 MiB. */
async function openVersion1(source: SnapshotSource, checksum: SeededChecksum): Promise<Outcome<OpenedSnapshot>> {
  const bytes = await source.read(0, await source.sizeBytes());
  const end = bytes.length - 4;
  if (end < prefixBytes) return damaged("it ends too early");
  const body = bytes.subarray(0, end);
  if (new DataView(bytes.buffer, bytes.byteOffset, bytes.length).getUint32(end, true) !== checksum(body) >>> 0) {
    return damaged("its checksum does not match");
  }
  const reader = new ByteReader(body.subarray(prefixBytes));
  const header = headerOf(reader.sized());
  const entries: SnapshotEntry[] = [];
  for (let count = reader.varint(); count > 0; count--) entries.push([reader.sized(), reader.sized()]);
  if (reader.left !== 0) return damaged("something is left over");
  return ok({
    ...header,
    entries: async function* () {
      yield* entries;
    },
  });
}

function asDamage(error: unknown): Outcome<never> {
  if (error instanceof FailureError) return { ok: false, failure: error.failure };
  if (error instanceof DecodeError || error instanceof SyntaxError || error instanceof TypeError) return damaged(error.message);
  throw error;
}

const damaged = (why: string): ReturnType<typeof refused> => refused("dataLoss", "damaged", `metadata snapshot: ${why}`);
