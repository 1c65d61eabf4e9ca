/**
 * The generation of the journal segment that was begun last, kept apart from the journal, on the disk of the extents: a newest segment that is
 * lost leaves no trace in the older ones, and without it what was acknowledged would silently be missing.
 *
 *      0        4        8             16
 *      +--------+--------+-------------+
 *      | "SJBG" | crc32c | generation  |      one page for each of two slots, generation mod 2; little-endian; crc32c of bytes 8–15
 *      +--------+--------+-------------+
 *
 * Written in place, so that it needs no room on a full disk; a torn write leaves the slot of the generation before.
 */
import { getU64, putU64, viewOf } from "../format/binary.ts";
import type { Crc32c } from "../format/crc.ts";
import { journalPageBytes } from "./journal-segment.ts";

const magic = 0x47424a53;
const length = 16;
export const journalBegunBytes: number = 2 * journalPageBytes;

export const journalBegunOffset = (generation: number): number => (generation % 2) * journalPageBytes;

/** Encodes the page that is written at `journalBegunOffset`. */
export function encodeJournalBegun(crc32c: Crc32c, generation: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  const view = viewOf(bytes);
  view.setUint32(0, magic, true);
  putU64(view, 8, generation);
  view.setUint32(4, crc32c(bytes.subarray(8)), true);
  return bytes;
}

/** Returns the higher of both slots; 0 when none is valid. `bytes` are the whole file. */
export function decodeJournalBegun(crc32c: Crc32c, bytes: Uint8Array): number {
  return Math.max(decodeSlot(crc32c, bytes), decodeSlot(crc32c, bytes.subarray(Math.min(journalPageBytes, bytes.length))));
}

function decodeSlot(crc32c: Crc32c, bytes: Uint8Array): number {
  if (bytes.length < length) return 0;
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== magic || crc32c(bytes.subarray(8, length)) !== view.getUint32(4, true)) return 0;
  return view.getUint32(12, true) > 0x1fffff ? 0 : getU64(view, 8);
}
