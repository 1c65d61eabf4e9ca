/**
 * The head of an extent file: two slots of one page each, written alternately, so that a torn write leaves the other one whole. The
 * content (block frames) begins at byte 8192.
 *
 *      0        4         8         10     11         12           16            24
 *      +--------+---------+---------+------+----------+------------+-------------+------------------------------+
 *      | "SEXT" | crc32c  | version | kind | reserved | body bytes | generation  | stamp id, disk id, replica   |
 *      +--------+---------+---------+------+----------+------------+-------------+------------------------------+
 *
 * crc32c covers everything from byte 8 to the end of the body. The valid slot with the higher generation counts. Kind 1: replicated.
 */
import { assert } from "@stamp/base";
import { type ReplicaMeta, readMeta, writeMeta } from "../replica/replica-meta.ts";
import { checkVersion, decodingVersioned, FieldWriter, getU64, Malformed, putU64, Reader, type Versioned, viewOf } from "./binary.ts";
import type { Crc32c } from "./crc.ts";

export const extentMagic = 0x54584553;
export const extentFormatVersion = 2;
/** Format version of headers without a creation number; a header has the lowest version that holds its fields. */
const versionWithoutCreation = 1;
const versionsRead: readonly number[] = [versionWithoutCreation, extentFormatVersion];
export const extentSlotBytes = 4096;
export const extentContentOffset = 8192;
const kindReplicated = 1;
const fixedBytes = 24;

export interface ExtentHeader {
  /** Raised with every write of the header. */
  readonly generation: number;
  readonly stampId: string;
  readonly diskId: string;
  readonly meta: ReplicaMeta;
}

/** Returns where the slot of this generation lies in the file. */
export const extentSlotOffset = (generation: number): number => (generation % 2) * extentSlotBytes;

/** Returns one page with the header. */
export function encodeExtentHeader(crc32c: Crc32c, header: ExtentHeader): Uint8Array<ArrayBuffer> {
  const body = new FieldWriter();
  body.text(header.stampId);
  body.text(header.diskId);
  writeMeta(body, header.meta);
  const bytes = body.done();
  assert(fixedBytes + bytes.length <= extentSlotBytes, "extent header fits its page");
  const page = new Uint8Array(extentSlotBytes);
  const view = viewOf(page);
  view.setUint32(0, extentMagic, true);
  view.setUint16(8, header.meta.creation === undefined ? versionWithoutCreation : extentFormatVersion, true);
  view.setUint8(10, kindReplicated);
  view.setUint32(12, bytes.length, true);
  putU64(view, 16, header.generation);
  page.set(bytes, fixedBytes);
  view.setUint32(4, crc32c(page.subarray(8, fixedBytes + bytes.length)), true);
  return page;
}

export function decodeExtentSlot(crc32c: Crc32c, page: Uint8Array): Versioned<ExtentHeader> {
  return decodingVersioned(() => {
    if (page.length < extentSlotBytes) throw new Malformed("extent header cut off");
    const view = viewOf(page);
    if (view.getUint32(0, true) !== extentMagic) throw new Malformed("not an extent header");
    const length = view.getUint32(12, true);
    if (fixedBytes + length > extentSlotBytes) throw new Malformed("extent header length");
    if (crc32c(page.subarray(8, fixedBytes + length)) !== view.getUint32(4, true)) throw new Malformed("extent header checksum");
    checkVersion("extent", view.getUint16(8, true), versionsRead);
    if (view.getUint8(10) !== kindReplicated) throw new Malformed("extent kind");
    const reader = new Reader(page.subarray(fixedBytes, fixedBytes + length));
    const header = { generation: getU64(view, 16), stampId: reader.text(), diskId: reader.text(), meta: readMeta(reader) };
    reader.end();
    return header;
  });
}

/** Returns the newest valid of the two slots; `newer` if either is of a later version. `bytes` are the first 8 KiB of the file. */
export function decodeExtentHeader(crc32c: Crc32c, bytes: Uint8Array): Versioned<ExtentHeader> {
  const slots = [0, 1].map((i) => decodeExtentSlot(crc32c, bytes.subarray(i * extentSlotBytes, (i + 1) * extentSlotBytes)));
  const later = slots.find((slot) => slot.kind === "newer");
  if (later !== undefined) return later;
  let newest = slots[0] as Versioned<ExtentHeader>;
  const second = slots[1] as Versioned<ExtentHeader>;
  if (second.kind === "ok" && (newest.kind !== "ok" || second.value.generation > newest.value.generation)) newest = second;
  return newest;
}
