/**
 * The record of the stamp's feature level: key `feature-level` of the metadata store, a framed record of kind `F`, version 1
 * (docs/formats/metadata.md). The leading stream manager writes it under its lease. Absent: level 0. The key is outside of `sm/`, so releases before
 * feature levels skip it.
 */
import {
  type Checksum,
  featureLevel,
  frameRecord,
  fromUtf8,
  newerFormat,
  type Outcome,
  ok,
  refused,
  unframeRecord,
  utf8,
} from "@stamp/base";

export interface LevelRecord {
  readonly level: number;
  /** Time at which it was recorded, in milliseconds since 1970. */
  readonly wallMs: number;
  /** Release of the stream manager that recorded it. */
  readonly release: string;
}

export const levelKey = "feature-level";
const letter = 0x46;
const version = 1;

export function encodeLevel({ level, wallMs, release }: LevelRecord, checksum: Checksum): Uint8Array {
  return frameRecord(letter, version, utf8(JSON.stringify({ level, wallMs, release })), checksum);
}

/**
 * Refused with `damaged` if the bytes are no record of a level, with `newerFormat` if the level is above the one that this release knows, or the
 * record is of a later version.
 */
export function decodeLevel(bytes: Uint8Array, checksum: Checksum): Outcome<LevelRecord> {
  const payload = unframeRecord("metadata", letter, version, bytes, checksum);
  if (!payload.ok) return payload;
  try {
    const { level, wallMs, release } = JSON.parse(fromUtf8(payload.value)) as Partial<LevelRecord>;
    if (isCount(level) && isCount(wallMs) && typeof release === "string") {
      if (level > featureLevel) return newerFormat("the stamp", { format: "feature-level", version: level }, release);
      return ok({ level, wallMs, release });
    }
  } catch {
    // Told below.
  }
  return refused("dataLoss", "damaged", `the record ${levelKey} has no level, no time or no release`);
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
