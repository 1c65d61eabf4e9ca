/**
 * The record that a person has paused the policy of erasure coding: key `erasure-coding/pause` of the metadata store, a framed record of kind `P`,
 * version 1 (docs/formats/metadata.md). Absent: the policy runs. The key is outside of `sm/`: releases that know no policy skip it.
 */
import { type Checksum, frameRecord, fromUtf8, type Outcome, ok, refused, unframeRecord, utf8 } from "@stamp/base";

export interface CodingPause {
  /** Name and reason of the person; may be empty. */
  readonly note: string;
  /** Time at which the policy was paused, in milliseconds since 1970. */
  readonly wallMs: number;
}

export const codingPauseKey = "erasure-coding/pause";
const letter = 0x50;
const version = 1;

export function encodeCodingPause({ note, wallMs }: CodingPause, checksum: Checksum): Uint8Array {
  return frameRecord(letter, version, utf8(JSON.stringify({ note, wallMs })), checksum);
}

/** Decodes a pause. Refuses with `damaged` if the bytes are no such record, with `newerFormat` if they are of a later version. */
export function decodeCodingPause(bytes: Uint8Array, checksum: Checksum): Outcome<CodingPause> {
  const payload = unframeRecord("metadata", letter, version, bytes, checksum);
  if (!payload.ok) return payload;
  try {
    const { note, wallMs } = JSON.parse(fromUtf8(payload.value)) as Partial<CodingPause>;
    if (typeof note === "string" && typeof wallMs === "number" && Number.isSafeInteger(wallMs)) return ok({ note, wallMs });
  } catch {
    // Told below.
  }
  return refused("dataLoss", "damaged", `${codingPauseKey} has no note or no time`);
}
