/** Default limits of a partition. */
import type { PartitionLimits } from "./types.ts";

const mebibyte = 1024 * 1024;

export const limitDefaults: Required<PartitionLimits> = {
  memoryTableBytesMax: 64 * mebibyte,
  logBytesMax: 256 * mebibyte,
  rowCacheBytesMax: 32 * mebibyte,
  indexCacheBytesMax: 32 * mebibyte,
  groupBytesMax: 4 * mebibyte,
  overdueBytesMax: 14 * mebibyte,
  transactionsMax: 10_000,
  checkpointsMax: 8,
  followedBytesMax: 4 * mebibyte,
};
