/**
 * One record of an extent node's journal.
 *
 *      0        4        8          12     13        16           24     32          40         48        56            64
 *      +--------+--------+----------+------+---------+------------+------+-----------+----------+---------+-------------+-----------+
 *      | crc32c | body   | body crc | type | 3 zeros | generation | lsn  | syncedLsn | extent   | offset  | owner epoch | committed |
 *      +--------+--------+----------+------+---------+------------+------+-----------+----------+---------+-------------+-----------+
 *      72: body (`body` bytes)
 *
 * Little-endian; numbers from byte 16 on are u64. crc32c covers bytes 4..72 and is seeded with the segment's salt, so that a record of
 * an earlier use of the segment, or one inside somebody's payload, is never taken for one of this use. The body has its own checksum:
 * for an append it is the one that the primary computed and that came with the bytes. syncedLsn: every record up to it was durable
 * when this one was written.
 */
import { assert, type ExtentId, extentId, type OwnerEpoch, ownerEpoch } from "@stamp/base";
import { type Decoded, decoding, FieldWriter, getU64, Malformed, putU64, Reader, viewOf } from "../format/binary.ts";
import type { Crc32c } from "../format/crc.ts";

export type JournalType = "create" | "append" | "fence" | "seal" | "delete" | "damaged" | "term" | "repair" | "pointer";

/** Code = index + 1; never reordered. */
const types: readonly JournalType[] = ["create", "append", "fence", "seal", "delete", "damaged", "term", "repair", "pointer"];

export const journalHeaderBytes = 72;
/** Largest body of a record, in bytes: the largest append with its frame headers. */
export const journalBodyBytesMax: number = 9 * 1024 * 1024;

export interface JournalRecord {
  readonly type: JournalType;
  /** Number of the extent; 0 in a `term` record. */
  readonly extentId: ExtentId;
  /** append: where the body goes. pointer: where the bytes are. seal, repair: the sealed length. term: the term. delete: the version. Else 0. */
  readonly offsetBytes: number;
  /** term: how often a person lowered the term (`takeLowerTerm`) before it was obeyed. */
  readonly ownerEpoch: OwnerEpoch;
  /** append, pointer: what the primary knew to be committed when it was made. */
  readonly committedBytes: number;
}

export interface JournalHeader extends JournalRecord {
  readonly generation: number;
  readonly lsn: number;
  readonly syncedLsn: number;
  readonly bodyBytes: number;
  readonly bodyChecksum: number;
}

export function encodeJournalHeader(crc32c: Crc32c, salt: number, header: JournalHeader): Uint8Array<ArrayBuffer> {
  assert(header.bodyBytes <= journalBodyBytesMax, "journal body length");
  const bytes = new Uint8Array(journalHeaderBytes);
  const view = viewOf(bytes);
  view.setUint32(4, header.bodyBytes, true);
  view.setUint32(8, header.bodyChecksum, true);
  view.setUint8(12, types.indexOf(header.type) + 1);
  putU64(view, 16, header.generation);
  putU64(view, 24, header.lsn);
  putU64(view, 32, header.syncedLsn);
  putU64(view, 40, header.extentId);
  putU64(view, 48, header.offsetBytes);
  putU64(view, 56, header.ownerEpoch);
  putU64(view, 64, header.committedBytes);
  view.setUint32(0, crc32c(bytes.subarray(4), salt), true);
  return bytes;
}

/** Returns the record header at the beginning of `bytes`, of this use of the segment. */
export function decodeJournalHeader(crc32c: Crc32c, salt: number, generation: number, bytes: Uint8Array): Decoded<JournalHeader> {
  return decoding(() => {
    if (bytes.length < journalHeaderBytes) throw new Malformed("journal record cut off");
    const view = viewOf(bytes);
    const type = types[view.getUint8(12) - 1];
    if (type === undefined) throw new Malformed("journal record type");
    if (crc32c(bytes.subarray(4, journalHeaderBytes), salt) !== view.getUint32(0, true)) throw new Malformed("journal record checksum");
    const found = getU64(view, 16);
    if (found !== generation) throw new Malformed("journal record of another generation");
    const bodyBytes = view.getUint32(4, true);
    if (bodyBytes > journalBodyBytesMax) throw new Malformed("journal body length");
    return {
      type,
      generation,
      lsn: getU64(view, 24),
      syncedLsn: getU64(view, 32),
      extentId: extentId(getU64(view, 40)),
      offsetBytes: getU64(view, 48),
      ownerEpoch: ownerEpoch(getU64(view, 56)),
      committedBytes: getU64(view, 64),
      bodyBytes,
      bodyChecksum: view.getUint32(8, true),
    };
  });
}

/** Body of a `seal` record. */
export interface SealBody {
  readonly version: number;
  /** crc32c of the whole sealed content. */
  readonly checksum: number;
}

export function encodeSealBody(seal: SealBody): Uint8Array<ArrayBuffer> {
  const writer = new FieldWriter();
  writer.u64(seal.version);
  writer.u32(seal.checksum);
  return writer.done();
}

export function decodeSealBody(bytes: Uint8Array): Decoded<SealBody> {
  return decoding(() => {
    const reader = new Reader(bytes);
    const seal = { version: reader.u64(), checksum: reader.u32() };
    reader.end();
    return seal;
  });
}

/** Body of `pointer`: an append whose bytes are in the extent's file, synced before this record was written. */
export interface PointerBody {
  readonly lengthBytes: number;
  /** crc32c of the frames, headers included. */
  readonly checksum: number;
}

export function encodePointerBody(pointer: PointerBody): Uint8Array<ArrayBuffer> {
  const writer = new FieldWriter();
  writer.u32(pointer.lengthBytes);
  writer.u32(pointer.checksum);
  return writer.done();
}

export function decodePointerBody(bytes: Uint8Array): Decoded<PointerBody> {
  return decoding(() => {
    const reader = new Reader(bytes);
    const pointer = { lengthBytes: reader.u32(), checksum: reader.u32() };
    reader.end();
    if (pointer.lengthBytes === 0 || pointer.lengthBytes > journalBodyBytesMax) throw new Malformed("length of a pointer");
    return pointer;
  });
}
