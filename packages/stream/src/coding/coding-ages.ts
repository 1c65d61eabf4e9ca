/**
 * The record of which extents were seen sealed, and when: key `erasure-coding/ages` of the metadata store, a framed record of kind `A`, version 1
 * (docs/formats/metadata.md). Absent: nothing was seen. The key is outside of `sm/`: releases that know no policy skip it.
 */
import { type Checksum, frameRecord, fromUtf8, type Outcome, ok, refused, unframeRecord, utf8 } from "@stamp/base";

/** Result of a look over all extents: the numbers of those that were not sealed. */
export interface SavedLook {
  /** Time of the look, in milliseconds since 1970. */
  readonly wallMs: number;
  /** Highest number of an extent that existed. */
  readonly lastId: number;
  /** Numbers of the extents that were not sealed, or whose age began anew since. */
  readonly young: readonly number[];
}

export const codingAgesKey = "erasure-coding/ages";
const letter = 0x41;
const version = 1;
/** Numbers of young extents in a record, over all looks: about 160 KiB. Looks beyond are not saved. */
const youngMax = 20_000;

/** Encodes looks, oldest first. */
export function encodeCodingAges(looks: readonly SavedLook[], checksum: Checksum): Uint8Array {
  const saved: SavedLook[] = [];
  let left = youngMax;
  for (const { wallMs, lastId, young } of looks) {
    left -= young.length;
    if (left < 0) break;
    saved.push({ wallMs, lastId, young });
  }
  return frameRecord(letter, version, utf8(JSON.stringify({ looks: saved })), checksum);
}

/** Decodes ages. Refuses with `damaged` if the bytes are no such record, with `newerFormat` if they are of a later version. */
export function decodeCodingAges(bytes: Uint8Array, checksum: Checksum): Outcome<readonly SavedLook[]> {
  const payload = unframeRecord("metadata", letter, version, bytes, checksum);
  if (!payload.ok) return payload;
  try {
    const { looks } = JSON.parse(fromUtf8(payload.value)) as { readonly looks?: readonly Partial<SavedLook>[] };
    if (Array.isArray(looks) && looks.every(isLook)) return ok(looks);
  } catch {
    // Told below.
  }
  return refused("dataLoss", "damaged", `${codingAgesKey} holds no looks`);
}

const isNatural = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

const isLook = (look: Partial<SavedLook> | null): look is SavedLook =>
  isNatural(look?.wallMs) && isNatural(look.lastId) && Array.isArray(look.young) && look.young.every(isNatural);
