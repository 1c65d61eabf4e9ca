/**
 * The record of what was taken back after the last restore: key `taken-back` of the metadata store, a framed record of kind `B`, version 1
 * (docs/formats/metadata.md). The key is outside of `sm/`: releases that know it not skip it, and serve the restored lists as they are.
 */
import { type Checksum, frameRecord, fromUtf8, type Outcome, ok, refused, unframeRecord, utf8 } from "@stamp/base";

export interface LostExtent {
  readonly stream: string;
  readonly id: number;
  /** Length of the extent's longest replica in bytes; undefined: no node has one. */
  readonly bytes?: number;
  readonly why: string;
}

export interface TakenBackRecord {
  /** Lineage of the store that the record is of: it says nothing about a later restore but `floor`. */
  readonly lineage: number;
  /** Extents below that are unknown now never come back. */
  readonly floor: number;
  readonly wallMs: number;
  /** Number of extents that were taken back. */
  readonly extents: number;
  /** Number of extents that did not come back. */
  readonly lostCount: number;
  /** Lost extents, the first `lostMax` at most. */
  readonly lost: readonly LostExtent[];
  /** Number of extents that a taken one was made behind, and that no node that was heard has. Absent: not counted. */
  readonly missingCount?: number;
  /** Names of nodes that were not heard. */
  readonly absent: readonly string[];
}

export const takenBackKey = "taken-back";
export const lostMax = 1_000;
const letter = 0x42;
const version = 1;

export const encodeTakenBack = (record: TakenBackRecord, checksum: Checksum): Uint8Array =>
  frameRecord(letter, version, utf8(JSON.stringify(record)), checksum);

/** Decodes the record. Refuses with `damaged` if the bytes are none, with `newerFormat` if they are of a later version. */
export function decodeTakenBack(bytes: Uint8Array, checksum: Checksum): Outcome<TakenBackRecord> {
  const payload = unframeRecord("metadata", letter, version, bytes, checksum);
  if (!payload.ok) return payload;
  try {
    const record = JSON.parse(fromUtf8(payload.value)) as Partial<TakenBackRecord>;
    const { lineage, floor, wallMs, extents, lostCount, lost, missingCount = 0, absent } = record;
    if (
      [lineage, floor, wallMs, extents, lostCount, missingCount].every(isCount) &&
      Array.isArray(lost) &&
      Array.isArray(absent) &&
      lost.every(isLost)
    )
      return ok(record as TakenBackRecord);
  } catch {
    // Told below.
  }
  return refused("dataLoss", "damaged", `the record ${takenBackKey} lacks a field`);
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function isLost(value: unknown): value is LostExtent {
  const { stream, id, bytes, why } = (value ?? {}) as Partial<LostExtent>;
  return typeof stream === "string" && isCount(id) && (bytes === undefined || isCount(bytes)) && typeof why === "string";
}
