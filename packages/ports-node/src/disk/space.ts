import type { StatsFs } from "node:fs";
import type { DiskSpace } from "@stamp/ports";

type Blocks = Pick<StatsFs, "blocks" | "bfree" | "bavail" | "bsize" | "files" | "ffree">;

/**
 * Returns the space of a file system in bytes and files, as `df` tells it: blocks that are kept for the administrator, or for whoever shares the
 * disk, are neither free nor part of the whole. Otherwise a disk would look nearly full while most of what can be used is free.
 */
export function usableSpace({ blocks, bfree, bavail, bsize, files, ffree }: Blocks): DiskSpace {
  const kept = bfree - bavail;
  const bytes = { freeBytes: bavail * bsize, totalBytes: (blocks - kept) * bsize };
  // Btrfs, for one, says 0: it makes inodes as they are needed.
  return files === 0 ? bytes : { ...bytes, freeFiles: ffree, totalFiles: files };
}
