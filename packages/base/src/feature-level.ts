/**
 * Feature levels of a stamp (docs/design/mixed-releases.md). A release reads everything up to its own level, and writes only what the recorded level
 * of the stamp allows. So processes of the release before can be started again until a person raises the level (`stamp upgrade finalize`).
 *
 * Invariants:
 *  - The level of a stamp only rises. A release never lowers, renames or reuses one.
 *  - What a level brings is absent from the streams, disks and metadata of a stamp below it, unless a release before feature levels wrote it.
 */
import { formatVersions } from "./formats.ts";
import type { Rules } from "./rules.ts";

/** Highest level of this release. */
export const featureLevel: number = formatVersions["feature-level"];

/** Words for the formats that each level brings, by level. */
export const featureLevels: Readonly<Record<number, string>> = {
  0: "formats of releases before feature levels",
  1: "extents as fragments (erasure coding); secrets of accounts, sealed in their rows; roles of accounts at several stamps",
  2: "rows of accounts that were removed from the stamp are deleted",
  3: "queues of accounts are copied to a second stamp, if asked for",
  4: "another stamp proves a secret that was made for it alone; rows are shipped with the lineage of their log and with handles of their bytes; encrypted content has a tag for each unit; checksums of fragments are recorded with their extent; extent nodes give raw content only to nodes that the extent's record names; keys of accounts go to their copies from stamp to stamp only; extents have creation numbers; accounts with a hierarchical namespace; shares of files",
};

/** Level that each thing needs which is written only above level 0. */
export const neededLevels = {
  fragments: 1,
  sealedAccounts: 1,
  accountRoles: 1,
  accountRemovals: 2,
  queueCopies: 3,
  pairSecrets: 4,
  lineages: 4,
  cipherUnits: 4,
  fragmentChecksums: 4,
  vouchedShipments: 4,
  namedHolders: 4,
  pushedSettings: 4,
  creationNumbers: 4,
  hierarchicalAccounts: 4,
  shares: 4,
} as const;

/** First level at which a version of a format is written. Those that are absent are written at every level. */
const levelOfVersion: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  extent: { 2: neededLevels.creationNumbers },
  fragment: { 1: neededLevels.fragments, 2: neededLevels.creationNumbers },
  metadata: { 5: neededLevels.fragmentChecksums },
  "service-properties": { 3: neededLevels.hierarchicalAccounts },
};

/** Returns the highest version of a format, up to `known`, that is written at this level; 0: the format is not written at all. */
export function versionAtLevel(format: string, known: number, level: number): number {
  const since = levelOfVersion[format] ?? {};
  for (let version = known; version > 0; version--) if ((since[version] ?? 0) <= level) return version;
  return 0;
}

/** True if what `needed` brings may be written in a stamp of this level (rule `formatsAwaitTheirLevel`). */
export const levelAllows = (rules: Rules, level: number, needed: number): boolean => level >= needed || !rules.on("formatsAwaitTheirLevel");
