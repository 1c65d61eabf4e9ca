/**
 * Markers: hidden rows with the version up to which the rows of a PartitionName were shipped here. A marker's key is the
 * bytes with which the keys of the PartitionName begin, and one byte that no row has there. Format:
 * docs/formats/shipped-version.md.
 */
import { ByteReader, ByteWriter, DecodeError, type Outcome, ok, refused } from "@stamp/base";
import type { RowVersion } from "@stamp/geo";

/** Keys of rows end in 0x00, the end of a component; markers end in this byte. */
const markerByte = 0x04;
const markerVersion = 1;

/** True for the keys of markers. */
export const isMarkerKey = (key: Uint8Array): boolean => key.at(-1) === markerByte;

export function markerKey(name: Uint8Array): Uint8Array {
  const key = new Uint8Array(name.length + 1);
  key.set(name);
  key[name.length] = markerByte;
  return key;
}

export function encodeMarker({ epoch, number }: RowVersion): Uint8Array {
  const writer = new ByteWriter(24);
  writer.byte(markerVersion);
  writer.varint(epoch);
  writer.varint(number);
  return writer.written.slice();
}

export function decodeMarker(bytes: Uint8Array): Outcome<RowVersion> {
  try {
    const reader = new ByteReader(bytes);
    const version = reader.byte();
    if (version !== markerVersion) return refused("dataLoss", "damaged", `a shipped version of format version ${version}`);
    const decoded = { epoch: reader.varint(), number: reader.varint() };
    return reader.left === 0 ? ok(decoded) : refused("dataLoss", "damaged", "bytes after a shipped version");
  } catch (error) {
    if (error instanceof DecodeError) return refused("dataLoss", "damaged", error.message);
    throw error;
  }
}
