/**
 * A snapshot of the whole metadata store in one file: what is kept on every extent node's disk, and what `stamp metadata backup` writes.
 * Format: docs/formats/metadata-snapshot.md.
 *
 *   "STMS" | version u8 = 1 | header (sized JSON) | count varint | count × ( key sized | value sized ) | crc32c of all before it u32 LE
 */
import { ByteReader, ByteWriter, type Checksum, DecodeError, fromUtf8, type Outcome, ok, refused, utf8 } from "@stamp/base";

export interface SnapshotHeader {
  readonly stampId: string;
  /** Number of the last transaction in it. */
  readonly version: number;
  readonly takenAtMs: number;
}

export interface MetadataSnapshot extends SnapshotHeader {
  /** As they are in the store, in key order. */
  readonly entries: readonly (readonly [key: Uint8Array, value: Uint8Array])[];
}

const magic = [0x53, 0x54, 0x4d, 0x53];
const formatVersion = 1;
/** Larger ones are refused: a store of this size wants another way. */
export const snapshotBytesMax: number = 256 * 1024 * 1024;

export function encodeSnapshot({ entries, stampId, version, takenAtMs }: MetadataSnapshot, checksum: Checksum): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter();
  for (const byte of magic) writer.byte(byte);
  writer.byte(formatVersion);
  writer.sized(utf8(JSON.stringify({ stampId, version, takenAtMs })));
  writer.varint(entries.length);
  for (const [key, value] of entries) {
    writer.sized(key);
    writer.sized(value);
  }
  const body = writer.finish();
  const out = new Uint8Array(body.length + 4);
  out.set(body);
  new DataView(out.buffer).setUint32(body.length, checksum(body), true);
  return out;
}

/** Keys and values are views of `bytes`. Refused with `damaged`. */
export function decodeSnapshot(bytes: Uint8Array, checksum: Checksum): Outcome<MetadataSnapshot> {
  const end = bytes.length - 4;
  if (end < magic.length + 1 || magic.some((byte, i) => bytes[i] !== byte)) return damaged("it does not begin as a metadata snapshot does");
  if (bytes[magic.length] !== formatVersion) return damaged(`format version ${bytes[magic.length]}; this software reads ${formatVersion}`);
  const body = bytes.subarray(0, end);
  if (new DataView(bytes.buffer, bytes.byteOffset, bytes.length).getUint32(end, true) !== checksum(body)) {
    return damaged("its checksum does not match");
  }
  try {
    const reader = new ByteReader(body.subarray(magic.length + 1));
    const header = JSON.parse(fromUtf8(reader.sized())) as SnapshotHeader;
    const entries: (readonly [Uint8Array, Uint8Array])[] = [];
    for (let count = reader.varint(); count > 0; count--) entries.push([reader.sized(), reader.sized()]);
    if (reader.left !== 0) return damaged("something is left over");
    return ok({ stampId: header.stampId, version: header.version, takenAtMs: header.takenAtMs, entries });
  } catch (error) {
    if (error instanceof DecodeError || error instanceof SyntaxError) return damaged(error.message);
    throw error;
  }
}

const damaged = (why: string): Outcome<never> => refused("dataLoss", "damaged", `metadata snapshot: ${why}`);
