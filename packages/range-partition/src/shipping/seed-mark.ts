/**
 * Seed marks: hidden rows of PartitionNames whose seeding has begun and not ended. A large PartitionName is seeded in pieces, and is
 * what never was until the last piece is there. Format: docs/formats/shipped-version.md.
 */
import { ByteReader, ByteWriter, DecodeError, type Outcome, ok, refused } from "@stamp/base";
import type { RowVersion } from "@stamp/geo";
import { markerKey, readVersion, writeVersion } from "./marker.ts";

/** Second byte from the end of a seed mark's key, where a marker has the end of a component. */
const seedByte = 0x03;

export interface SeedMark {
  /** Role epoch, and sequence of the snapshot that the pieces are of. */
  readonly version: RowVersion;
  /** Every row before this key is seeded. */
  readonly upTo: Uint8Array;
}

/** Returns the key of the seed mark of a PartitionName. No scan gives it: it ends as the keys of markers do. */
export function seedMarkKey(name: Uint8Array): Uint8Array {
  const begun = new Uint8Array(name.length + 1);
  begun.set(name);
  begun[name.length] = seedByte;
  return markerKey(begun);
}

export function encodeSeedMark({ version, upTo }: SeedMark): Uint8Array {
  const writer = new ByteWriter(32 + upTo.length);
  writeVersion(writer, version);
  writer.bytes(upTo);
  return writer.written.slice();
}

export function decodeSeedMark(bytes: Uint8Array): Outcome<SeedMark> {
  try {
    const reader = new ByteReader(bytes);
    const version = readVersion(reader);
    if (version === undefined) return refused("dataLoss", "damaged", `a seed mark of format version ${bytes[0]}`);
    return ok({ version, upTo: reader.bytes(reader.left).slice() });
  } catch (error) {
    if (error instanceof DecodeError) return refused("dataLoss", "damaged", error.message);
    throw error;
  }
}
