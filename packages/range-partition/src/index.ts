/**
 * One range partition over its streams: rows at a snapshot, transactions, group commit, checkpoints, splits. Start at
 * `RangePartition`. The caller owes: an owner epoch that is its own, and looking at its lease after each answer.
 */
export { type Caches, makeCaches } from "./caches.ts";
export { handOver, type OwnedNames, type Parent, prepareHeirs } from "./hand-over.ts";
export type { Left } from "./leave.ts";
export { MemoryBudget } from "./memory-budget.ts";
export { RangePartition } from "./range-partition.ts";
export { type StorageCounts, StorageFigures, type StorageRatios, storageRatios } from "./storage-figures.ts";
export { StorageTimes } from "./storage-times.ts";
export type { RowScan } from "./tables.ts";
export * from "./types.ts";
