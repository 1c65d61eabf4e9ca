/**
 * Says what a node accepts while its disk fills. Beyond the high-water mark it takes no new extents; open ones can
 * still grow. Below the reserve it takes no bytes: the rest is for the journal, headers and the extent table, so that
 * everything accepted can be brought to its end.
 */
export interface DiskRoom {
  readonly totalBytes: number;
  /** Free bytes at the last look. */
  readonly freeBytes: number;
  /**
   * Part of the free bytes that is spoken for: written since that look, or durable in the journal and still to be
   * written.
   */
  readonly spokenForBytes: number;
  /** Number of files that can still be made; undefined: no fixed number. A disk without free inodes takes no extent, however many bytes are free. */
  readonly freeFiles?: number | undefined;
  /** Number of files that the disk can hold; undefined: no fixed number. */
  readonly totalFiles?: number | undefined;
  /** True if a write found no room, and none has succeeded since. */
  readonly full: boolean;
}

export interface RoomLimits {
  readonly highWaterPercent: number;
  /** Free space that is enough on any disk, in bytes: on a large one the percentage would leave hundreds of gigabytes unused. */
  readonly highWaterFreeBytes: number;
  readonly reserveBytes: number;
}

/** Free files below which bytes are refused: kept for extents that were taken and have no file yet, journal segments, and tables. */
const reserveFiles = 64;
/** Free files that are enough for new extents on any disk. */
const enoughFiles = 10_000;

export const takesExtents = (room: DiskRoom, limits: RoomLimits): boolean =>
  missingForExtents(room, limits) === 0 && missingFilesForExtents(room, limits) === 0 && takesBytes(room, limits, 1);

/** Files that have to become free before new extents are taken, above twice the reserve and the smaller of a share of the disk and a number. */
export function missingFilesForExtents({ freeFiles, totalFiles }: DiskRoom, { highWaterPercent }: RoomLimits): number {
  if (freeFiles === undefined || totalFiles === undefined) return 0;
  const keptFree = Math.max(2 * reserveFiles, Math.min((totalFiles * (100 - highWaterPercent)) / 100, enoughFiles));
  return freeFiles > keptFree ? 0 : Math.floor(keptFree - freeFiles) + 1;
}

/** Returns the bytes that have to become free before new extents are taken: above the smaller of a share of the disk and a size. */
export function missingForExtents({ totalBytes, freeBytes, spokenForBytes }: DiskRoom, limits: RoomLimits): number {
  const keptFree = Math.min((totalBytes * (100 - limits.highWaterPercent)) / 100, limits.highWaterFreeBytes);
  const left = freeBytes - spokenForBytes;
  return totalBytes === 0 || left > keptFree ? 0 : Math.floor(keptFree - left) + 1;
}

export function takesBytes(room: DiskRoom, limits: RoomLimits, bytes: number): boolean {
  return !room.full && hasFiles(room) && room.freeBytes - room.spokenForBytes - bytes >= limits.reserveBytes;
}

/** True if the reserve of files is free. */
export const hasFiles = ({ freeFiles }: Pick<DiskRoom, "freeFiles">): boolean => freeFiles === undefined || freeFiles >= reserveFiles;
