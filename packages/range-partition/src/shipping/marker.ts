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
/** With the lineage of the log. Written only for a log that has one: the other stamp ships it at feature level 4 (`neededLevels.lineages`). */
const versionWithLineage = 2;

/** True if the key is that of a marker. */
export const isMarkerKey = (key: Uint8Array): boolean => key.at(-1) === markerByte;

export function markerKey(name: Uint8Array): Uint8Array {
  const key = new Uint8Array(name.length + 1);
  key.set(name);
  key[name.length] = markerByte;
  return key;
}

export function encodeMarker(version: RowVersion): Uint8Array {
  const writer = new ByteWriter(32);
  writeVersion(writer, version);
  return writer.written.slice();
}

/** Writes the format version, role epoch, lineage if there is one, and sequence. */
export function writeVersion(writer: ByteWriter, { epoch, lineage = 0, number }: RowVersion): void {
  writer.byte(lineage === 0 ? markerVersion : versionWithLineage);
  writer.varint(epoch);
  if (lineage !== 0) writer.varint(lineage);
  writer.varint(number);
}

/** Returns undefined for a format version that is not known. */
export function readVersion(reader: ByteReader): RowVersion | undefined {
  const format = reader.byte();
  if (format === markerVersion) return { epoch: reader.varint(), number: reader.varint() };
  return format === versionWithLineage ? { epoch: reader.varint(), lineage: reader.varint(), number: reader.varint() } : undefined;
}

/** Returns a version for the details of a refusal. */
export const versionToDetails = ({ epoch, lineage = 0, number }: RowVersion): Record<string, string> => ({
  heldEpoch: String(epoch),
  heldLineage: String(lineage),
  heldSequence: String(number),
});

/** Returns undefined if the details have no version. */
export function versionFromDetails(details: Readonly<Record<string, string>> = {}): RowVersion | undefined {
  const { heldEpoch, heldLineage, heldSequence } = details;
  const [epoch, lineage, number] = [heldEpoch, heldLineage, heldSequence].map(Number);
  if (epoch === undefined || lineage === undefined || number === undefined) return undefined;
  return [epoch, lineage, number].every((one) => Number.isSafeInteger(one) && one >= 0) ? { epoch, lineage, number } : undefined;
}

export function decodeMarker(bytes: Uint8Array): Outcome<RowVersion> {
  try {
    const reader = new ByteReader(bytes);
    const decoded = readVersion(reader);
    if (decoded === undefined) return refused("dataLoss", "damaged", `a shipped version of format version ${bytes[0]}`);
    return reader.left === 0 ? ok(decoded) : refused("dataLoss", "damaged", "bytes after a shipped version");
  } catch (error) {
    if (error instanceof DecodeError) return refused("dataLoss", "damaged", error.message);
    throw error;
  }
}
