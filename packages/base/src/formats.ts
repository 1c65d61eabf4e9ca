/**
 * Formats on disk, and the version of each that this release writes. It reads all versions up to it.
 *
 * Bytes that are intact and of a higher version were written by a newer release. They are refused with `newerFormat`, never taken for damaged
 * or absent: damage is repaired, rebuilt or overwritten. The table for people is docs/formats/versions.md.
 */
import { type Failed, refused } from "./failure.ts";

/** Version of this software, as in package.json. */
export const release = "0.2.0";

export const formatVersions = {
  /** Marker of a folder (packages/ports/src/stores/format-marker.ts). */
  formats: 1,
  /** Level of the stamp: the record of the stream manager, and the marker of each folder (feature-level.ts). */
  "feature-level": 4,
  "identity-store": 1,
  "node-identity": 1,
  starts: 1,
  journal: 3,
  "journal-begun": 1,
  extent: 2,
  "extent-table": 1,
  fragment: 2,
  "scrub-state": 1,
  "metadata-snapshot": 2,
  "lock-service": 2,
  "store-proof": 1,
  lease: 1,
  consensus: 1,
  metadata: 5,
  location: 1,
  "partition-metadata": 4,
  "commit-log": 1,
  checkpoint: 1,
  row: 6,
  key: 1,
  "service-properties": 3,
  "partition-map": 1,
  "stamp-folder": 1,
  "cluster-record": 3,
} as const;

export type FormatName = keyof typeof formatVersions;

export interface NewerFormat {
  readonly format: FormatName;
  /** Version that the data have. */
  readonly version: number;
}

/** `where`: file, key or record. `writer`: release that wrote it, undefined if nothing says so. */
export function newerFormat(where: string, { format, version }: NewerFormat, writer?: string): Failed {
  return newer(
    `${where} is intact and has version ${version} of the format "${format}"`,
    `up to version ${formatVersions[format]}`,
    writer,
  );
}

/** Returns the failure for a marker that names a format which this release does not have. */
export const unknownFormat = (where: string, format: string, writer?: string): Failed =>
  newer(`${where} names the format "${format}"`, "no such format", writer);

function newer(found: string, known: string, writer: string | undefined): Failed {
  const by = writer === undefined ? "a newer release wrote it" : `release ${writer} wrote it`;
  return refused(
    "failedPrecondition",
    "newerFormat",
    `${found}: ${by}; this release (${release}) reads ${known}. Nothing was changed. Start the release that wrote it, or a later one (docs/formats/versions.md)`,
    { release: writer ?? "" },
  );
}
