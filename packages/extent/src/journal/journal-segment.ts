/**
 * A journal segment: a preallocated file that is used again and again. Each use has a higher generation and its own random salt.
 *
 *      0            4096             8192
 *      +------------+----------------+--------------------+-----+--------------------+-----
 *      | header     | the same again | batch of records   | gap | batch of records   | ...
 *      +------------+----------------+--------------------+-----+--------------------+-----
 *
 *      header:  "SJNL"  crc32c  version u32  salt u32  generation u64  first lsn u64  SM term u64  segment bytes u64  checkpoint lsn u64
 *               term lowerings u64  crc32c of bytes 8 to 63
 *
 * Every batch (one write, one fdatasync) begins at a multiple of 4 KiB: no page that holds durable records is ever written again, and
 * after a bad record the scan goes on at the next page. The header is there twice, since without it no record of the segment could be
 * told from an old one. Records up to the checkpoint LSN were in the extent files, synced, when this use began. The header also carries the highest SM term, so that the term survives the reuse of the segment that recorded it.
 */
import { checkVersion, decodingVersioned, getU64, Malformed, putU64, type Versioned, viewOf } from "../format/binary.ts";
import type { Crc32c } from "../format/crc.ts";
import { decodeJournalHeader, type JournalHeader, journalHeaderBytes } from "./journal-record.ts";

export const segmentMagic = 0x4c4e4a53;
/** 2: pointer records. 3: term lowerings. All are read, 3 is written. */
export const segmentFormatVersion = 3;
const segmentFormatsRead: readonly number[] = [1, 2, 3];
const lowersSince = 3;
export const journalPageBytes = 4096;
export const segmentRecordsOffset = 8192;
/** The part that all versions have. A release tells a later version by its checksum, which therefore covers no more. */
const commonLength = 56;
const headerLength = 68;
const secondChecksumAt = 64;

export interface SegmentHeader {
  readonly salt: number;
  readonly generation: number;
  readonly firstLsn: number;
  readonly smTerm: number;
  /** Number of times that a person lowered the term of this node (`takeLowerTerm`). */
  readonly termLowerings: number;
  readonly segmentBytes: number;
  readonly checkpointLsn: number;
}

export const pageAligned = (bytes: number): number => Math.ceil(bytes / journalPageBytes) * journalPageBytes;

/** Returns two pages with the header. */
export function encodeSegmentHeader(crc32c: Crc32c, header: SegmentHeader): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(segmentRecordsOffset);
  const view = viewOf(bytes);
  view.setUint32(0, segmentMagic, true);
  view.setUint32(8, segmentFormatVersion, true);
  view.setUint32(12, header.salt, true);
  putU64(view, 16, header.generation);
  putU64(view, 24, header.firstLsn);
  putU64(view, 32, header.smTerm);
  putU64(view, 40, header.segmentBytes);
  putU64(view, 48, header.checkpointLsn);
  view.setUint32(4, crc32c(bytes.subarray(8, commonLength)), true);
  putU64(view, commonLength, header.termLowerings);
  view.setUint32(secondChecksumAt, crc32c(bytes.subarray(8, secondChecksumAt)), true);
  bytes.set(bytes.subarray(0, headerLength), journalPageBytes);
  return bytes;
}

function decodeOne(crc32c: Crc32c, bytes: Uint8Array): Versioned<SegmentHeader> {
  return decodingVersioned(() => {
    if (bytes.length < headerLength) throw new Malformed("segment header cut off");
    const view = viewOf(bytes);
    if (view.getUint32(0, true) !== segmentMagic) throw new Malformed("not a journal segment");
    if (crc32c(bytes.subarray(8, commonLength)) !== view.getUint32(4, true)) throw new Malformed("segment header checksum");
    const version = view.getUint32(8, true);
    checkVersion("journal", version, segmentFormatsRead);
    const lowers = version >= lowersSince;
    if (lowers && crc32c(bytes.subarray(8, secondChecksumAt)) !== view.getUint32(secondChecksumAt, true)) {
      throw new Malformed("second segment header checksum");
    }
    return {
      salt: view.getUint32(12, true),
      generation: getU64(view, 16),
      firstLsn: getU64(view, 24),
      smTerm: getU64(view, 32),
      termLowerings: lowers ? getU64(view, commonLength) : 0,
      segmentBytes: getU64(view, 40),
      checkpointLsn: getU64(view, 48),
    };
  });
}

/**
 * `bytes` are the first two pages; either copy will do. A torn first write of a new use can leave one old and one new: the newer counts. `newer` if either
 * copy is intact and of a later version.
 */
export function decodeSegmentHeader(crc32c: Crc32c, bytes: Uint8Array): Versioned<SegmentHeader> {
  const first = decodeOne(crc32c, bytes);
  const second = decodeOne(crc32c, bytes.subarray(Math.min(journalPageBytes, bytes.length)));
  if (first.kind === "newer" || second.kind === "newer") return first.kind === "newer" ? first : second;
  if (first.kind !== "ok") return second.kind === "ok" ? second : first;
  return second.kind === "ok" && second.value.generation > first.value.generation ? second : first;
}

/** A record that the scan found, in the order of its place in the segment. */
export interface ScannedRecord {
  readonly header: JournalHeader;
  /** Where the body begins in the segment. */
  readonly bodyOffset: number;
  readonly bodyIntact: boolean;
}

/**
 * Yields every record of this generation in the segment (`bytes` is the whole file, borrowed). Where there is none, the scan goes on at the next
 * page: whether that is a gap, a torn tail or damage is decided by `judgeSegment`.
 */
export function scanSegment(crc32c: Crc32c, header: SegmentHeader, bytes: Uint8Array): ScannedRecord[] {
  const records: ScannedRecord[] = [];
  let at = segmentRecordsOffset;
  while (at + journalHeaderBytes <= bytes.length) {
    const decoded = decodeJournalHeader(crc32c, header.salt, header.generation, bytes.subarray(at, at + journalHeaderBytes));
    const bodyOffset = at + journalHeaderBytes;
    if (decoded.kind === "ok" && bodyOffset + decoded.value.bodyBytes <= bytes.length) {
      const body = bytes.subarray(bodyOffset, bodyOffset + decoded.value.bodyBytes);
      records.push({ header: decoded.value, bodyOffset, bodyIntact: crc32c(body) === decoded.value.bodyChecksum });
      at = bodyOffset + decoded.value.bodyBytes;
    } else {
      at = pageAligned(at + 1);
    }
  }
  return records;
}
