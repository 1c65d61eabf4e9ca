/**
 * Looks for what a newer release wrote on a node's disk, before the node touches it. A journal segment or an extent header of a later version
 * must not pass for a lost one: lost segments damage replicas, and their files are written again.
 */
import { type FormatName, newerFormat, type Outcome, ok } from "@stamp/base";
import {
  decodeExtentHeader,
  decodeFragmentHead,
  decodeNodeIdentity,
  decodeScrubState,
  decodeSegmentHeader,
  extentContentOffset,
  fragmentHeadBytes,
  segmentRecordsOffset,
  type Versioned,
} from "@stamp/extent";
import { type Disk, refuseNewer, type World } from "@stamp/ports";
import { identityFile, journalIdentityFile } from "../disk/node-disk.ts";
import { fragmentPaths } from "../fragments/fragment-paths.ts";
import { journalFolder } from "../journal/segment-pool.ts";
import { scrubFile } from "../repair/scrubber.ts";
import { extentFileNames } from "./rebuild-table.ts";

/** Formats of every node. `fragment` is named when the first fragment is made, so that a node without one can still go back. */
export const extentNodeFormats: readonly FormatName[] = [
  "node-identity",
  "starts",
  "journal",
  "journal-begun",
  "extent",
  "extent-table",
  "scrub-state",
  "metadata-snapshot",
];

/** Reads only. Heads of extents and fragments, of which there may be very many, are read if no marker vouches for the folder. */
export function refuseNewerDisk(world: World, journalDisk: Disk): Promise<Outcome<void>> {
  const { crc32c } = world.digest;
  const look = async (disk: Disk, path: string, lengthBytes: number, decode: (bytes: Uint8Array) => Versioned<unknown>) => {
    if (!(await disk.exists(path))) return ok();
    const file = await disk.open(path);
    try {
      const decoded = decode(await file.read(0, lengthBytes));
      return decoded.kind === "newer" ? newerFormat(path, decoded) : ok();
    } finally {
      await file.close();
    }
  };
  return refuseNewer(world, async (marked) => {
    const wholeBytesMax = 1 << 20;
    const small = [
      await look(world.disk, identityFile, wholeBytesMax, (bytes) => decodeNodeIdentity(crc32c, bytes)),
      await look(journalDisk, journalIdentityFile, wholeBytesMax, (bytes) => decodeNodeIdentity(crc32c, bytes)),
      await look(world.disk, scrubFile, wholeBytesMax, decodeScrubState),
    ];
    const refusal = small.find((outcome) => !outcome.ok);
    if (refusal !== undefined) return refusal;
    for (const name of await journalDisk.list(journalFolder)) {
      if (!name.endsWith(".segment")) continue;
      const outcome = await look(journalDisk, `${journalFolder}/${name}`, segmentRecordsOffset, (bytes) =>
        decodeSegmentHeader(crc32c, bytes),
      );
      if (!outcome.ok) return outcome;
    }
    if (marked) return ok();
    for (const { path } of await extentFileNames(world)) {
      const outcome = await look(world.disk, path, extentContentOffset, (bytes) => decodeExtentHeader(crc32c, bytes));
      if (!outcome.ok) return outcome;
    }
    for (const path of await fragmentPaths(world)) {
      const outcome = await look(world.disk, path, fragmentHeadBytes, (bytes) => decodeFragmentHead(crc32c, bytes));
      if (!outcome.ok) return outcome;
    }
    return ok();
  });
}
