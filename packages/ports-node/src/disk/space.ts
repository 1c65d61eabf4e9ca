import type { StatsFs } from "node:fs";

type Blocks = Pick<StatsFs, "blocks" | "bfree" | "bavail" | "bsize">;

/**
 * Space of a file system in bytes, as `df` tells it: blocks that are kept for the administrator, or for whoever shares the disk, are neither
 * free nor part of the whole. Otherwise a disk would look nearly full while most of what can be used is free.
 */
export function usableSpace({ blocks, bfree, bavail, bsize }: Blocks): { readonly freeBytes: number; readonly totalBytes: number } {
  const kept = bfree - bavail;
  return { freeBytes: bavail * bsize, totalBytes: (blocks - kept) * bsize };
}
