/**
 * Format of a fragment file: one of the fragments that a coded extent is cut into (docs/formats/fragment.md, docs/design/erasure-coding.md).
 *
 *      0        4         8         10      11         12           16             4096                content offset
 *      +--------+---------+---------+-------+----------+------------+--------------+-------------------+-----------+
 *      | "SFRG" | crc32c  | version | index | reserved | body bytes | body, zeros  | table of crc32c   | content   |
 *      +--------+---------+---------+-------+----------+------------+--------------+-------------------+-----------+
 *
 * Invariants:
 * - The checksum of the head covers the rest of its page. The head has the checksum of the table, and the table that of each chunk, so that a
 *   flipped byte anywhere in the file is found.
 * - A chunk's checksum covers the name of its fragment and its number: a chunk of another fragment, or of another place, does not pass for it.
 * - Content is a whole number of chunks. The last data fragments are filled with zeros.
 */
import { assert, type ExtentId, type ExtentVersion, extentId, extentVersion } from "@stamp/base";
import {
  checkVersion,
  type Decoded,
  decoding,
  decodingVersioned,
  FieldWriter,
  Malformed,
  putU64,
  Reader,
  type Versioned,
  viewOf,
} from "./binary.ts";
import { type Crc32c, combineCrc32c } from "./crc.ts";

export const fragmentChunkBytes = 65_536;
/** Length of the head in bytes: one page. */
export const fragmentHeadBytes = 4096;
/** Largest length of a fragment's content in bytes. */
export const fragmentBytesMax: number = 4 * 1024 * 1024 * 1024;
/** Largest number of fragments that an extent is cut into. */
export const fragmentsMax = 32;

const magic = 0x47524653;
/** Format version of heads with a creation number; a head has the lowest version that holds its fields. */
const formatVersion = 2;
const versionWithoutCreation = 1;
const fixedBytes = 16;
const pageBytes = 4096;
const chunkNameBytes = 24;

/** Name of a fragment. A node has at most one fragment of a version of an extent. */
export interface FragmentName {
  readonly extentId: ExtentId;
  /** Version of the extent's record that began the attempt which made this fragment. */
  readonly version: ExtentVersion;
  /** Place in the code: data fragments first, then local parities, then global parities. */
  readonly index: number;
}

/** Everything that is known about a fragment before its content is made. */
export interface FragmentSpec extends FragmentName {
  /** Name of the code in `packages/erasure`. */
  readonly profile: string;
  /** Length of the extent in bytes. */
  readonly sealedLengthBytes: number;
  /** Length of the content of each fragment of this extent in bytes, a multiple of 64 KiB. */
  readonly fragmentBytes: number;
  /** crc32c of the whole sealed content of the extent. */
  readonly contentChecksum: number;
  /** Creation number of the extent; undefined: it has none. */
  readonly creation?: number | undefined;
}

export interface FragmentHead extends FragmentSpec {
  readonly stampId: string;
  readonly diskId: string;
  /** crc32c of the table, the zeros that fill its last page included. */
  readonly tableChecksum: number;
}

/** Returns the length of each fragment of an extent that is cut into `dataFragments`, in bytes. */
export function fragmentBytesOf(sealedLengthBytes: number, dataFragments: number): number {
  assert(sealedLengthBytes > 0 && dataFragments > 0, "an extent with content is cut into fragments");
  return Math.ceil(sealedLengthBytes / dataFragments / fragmentChunkBytes) * fragmentChunkBytes;
}

/** Returns the length of the table of a fragment in bytes, a multiple of 4096. */
export const fragmentTableBytes = (fragmentBytes: number): number =>
  Math.ceil((4 * fragmentBytes) / fragmentChunkBytes / pageBytes) * pageBytes;

/** Returns the place of the content in the file in bytes. */
export const fragmentContentOffset = (fragmentBytes: number): number => fragmentHeadBytes + fragmentTableBytes(fragmentBytes);

/** True if these numbers can be those of a fragment. */
export function isFragmentSpec({ index, sealedLengthBytes, fragmentBytes }: FragmentSpec): boolean {
  return (
    index < fragmentsMax &&
    fragmentBytes > 0 &&
    fragmentBytes <= fragmentBytesMax &&
    fragmentBytes % fragmentChunkBytes === 0 &&
    sealedLengthBytes > 0
  );
}

/** Returns the page of the head, owned by the caller. */
export function encodeFragmentHead(crc32c: Crc32c, head: FragmentHead): Uint8Array<ArrayBuffer> {
  assert(isFragmentSpec(head), "a fragment's numbers");
  const body = new FieldWriter();
  body.text(head.stampId);
  body.text(head.diskId);
  body.text(head.profile);
  body.u64(head.extentId);
  body.u64(head.version);
  body.u64(head.sealedLengthBytes);
  body.u64(head.fragmentBytes);
  body.u32(head.contentChecksum);
  body.u32(head.tableChecksum);
  if (head.creation !== undefined) body.u64(head.creation);
  const bytes = body.done();
  assert(fixedBytes + bytes.length <= fragmentHeadBytes, "the head of a fragment fits its page");
  const page = new Uint8Array(fragmentHeadBytes);
  const view = viewOf(page);
  view.setUint32(0, magic, true);
  view.setUint16(8, head.creation === undefined ? versionWithoutCreation : formatVersion, true);
  view.setUint8(10, head.index);
  view.setUint32(12, bytes.length, true);
  page.set(bytes, fixedBytes);
  view.setUint32(4, crc32c(page.subarray(8)), true);
  return page;
}

/** `page` is the first 4096 bytes of the file. */
export function decodeFragmentHead(crc32c: Crc32c, page: Uint8Array): Versioned<FragmentHead> {
  return decodingVersioned(() => {
    if (page.length < fragmentHeadBytes) throw new Malformed("fragment head cut off");
    const view = viewOf(page);
    if (view.getUint32(0, true) !== magic) throw new Malformed("not a fragment head");
    if (crc32c(page.subarray(8, fragmentHeadBytes)) !== view.getUint32(4, true)) throw new Malformed("fragment head checksum");
    const version = view.getUint16(8, true);
    checkVersion("fragment", version, [versionWithoutCreation, formatVersion]);
    const length = view.getUint32(12, true);
    if (fixedBytes + length > fragmentHeadBytes) throw new Malformed("fragment head length");
    const reader = new Reader(page.subarray(fixedBytes, fixedBytes + length));
    const head: FragmentHead = {
      index: view.getUint8(10),
      stampId: reader.text(),
      diskId: reader.text(),
      profile: reader.text(),
      extentId: extentId(reader.u64()),
      version: extentVersion(reader.u64()),
      sealedLengthBytes: reader.u64(),
      fragmentBytes: reader.u64(),
      contentChecksum: reader.u32(),
      tableChecksum: reader.u32(),
      ...(version === versionWithoutCreation ? {} : { creation: reader.u64() }),
    };
    reader.end();
    if (!isFragmentSpec(head)) throw new Malformed("fragment numbers");
    return head;
  });
}

/** Returns the checksum of one chunk of a fragment, as the table has it. `bytes` (borrowed) are the whole chunk. */
export function fragmentChunkChecksum(crc32c: Crc32c, name: FragmentName, chunk: number, bytes: Uint8Array): number {
  assert(bytes.length === fragmentChunkBytes, "a whole chunk");
  return crc32c(bytes, crc32c(chunkName(name, chunk)));
}

/** Returns the bytes that a chunk's checksum covers before the chunk. */
function chunkName(name: FragmentName, chunk: number): Uint8Array {
  const bytes = new Uint8Array(chunkNameBytes);
  const view = viewOf(bytes);
  putU64(view, 0, name.extentId);
  putU64(view, 8, name.version);
  view.setUint32(16, name.index, true);
  view.setUint32(20, chunk, true);
  return bytes;
}

/** Returns the table, filled with zeros up to a multiple of 4096 bytes, and its checksum for the head. */
export function encodeFragmentTable(crc32c: Crc32c, checksums: Uint32Array): { readonly bytes: Uint8Array; readonly checksum: number } {
  const bytes = new Uint8Array(fragmentTableBytes(checksums.length * fragmentChunkBytes));
  const view = viewOf(bytes);
  checksums.forEach((checksum, chunk) => {
    view.setUint32(4 * chunk, checksum, true);
  });
  return { bytes, checksum: crc32c(bytes) };
}

/** Returns the checksum of each chunk. `bytes` (borrowed) are the file from byte 4096 up to its content. */
export function decodeFragmentTable(
  crc32c: Crc32c,
  head: Pick<FragmentHead, "fragmentBytes" | "tableChecksum">,
  bytes: Uint8Array,
): Decoded<Uint32Array> {
  return decoding(() => {
    if (bytes.length !== fragmentTableBytes(head.fragmentBytes)) throw new Malformed("fragment table cut off");
    if (crc32c(bytes) !== head.tableChecksum) throw new Malformed("fragment table checksum");
    const view = viewOf(bytes);
    return Uint32Array.from({ length: head.fragmentBytes / fragmentChunkBytes }, (_, chunk) => view.getUint32(4 * chunk, true));
  });
}

/** Returns the crc32c of a fragment's whole content. It follows from the checksums of its chunks: no content is read. */
export function fragmentContentChecksum(crc32c: Crc32c, name: FragmentName, table: Uint32Array): number {
  let checksum = 0;
  for (const [chunk, named] of table.entries()) {
    const ofContent = (combineCrc32c(crc32c(chunkName(name, chunk)), 0, fragmentChunkBytes) ^ named) >>> 0;
    checksum = combineCrc32c(checksum, ofContent, fragmentChunkBytes);
  }
  return checksum;
}

/** True if data fragments with these checksums, by index, hold the content of the extent and zeros behind it. */
export function isContentOf(
  crc32c: Crc32c,
  extent: Pick<FragmentSpec, "sealedLengthBytes" | "fragmentBytes" | "contentChecksum">,
  dataChecksums: readonly number[],
): boolean {
  const { sealedLengthBytes, fragmentBytes, contentChecksum } = extent;
  const zeros = new Uint8Array(fragmentBytes * dataChecksums.length - sealedLengthBytes);
  const joined = dataChecksums.reduce((sum, next) => combineCrc32c(sum, next, fragmentBytes), 0);
  return joined === combineCrc32c(contentChecksum, crc32c(zeros), zeros.length);
}

/**
 * Returns the number of the first bad chunk, or undefined if all are what the table says. `bytes` (borrowed) are whole chunks from number
 * `firstChunk` on.
 */
export function badFragmentChunk(
  crc32c: Crc32c,
  name: FragmentName,
  table: Uint32Array,
  firstChunk: number,
  bytes: Uint8Array,
): number | undefined {
  for (let at = 0; at < bytes.length; at += fragmentChunkBytes) {
    const chunk = firstChunk + at / fragmentChunkBytes;
    const part = bytes.subarray(at, at + fragmentChunkBytes);
    if (part.length < fragmentChunkBytes || fragmentChunkChecksum(crc32c, name, chunk, part) !== table[chunk]) return chunk;
  }
  return undefined;
}
