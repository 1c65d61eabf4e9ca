/**
 * One range partition over its streams: rows at a snapshot, transactions, group commit, checkpoints, splits. Start at
 * `RangePartition`. The caller owes: an owner epoch that is its own, and looking at its lease after each answer.
 */
export type { StoredData } from "./blob-data/blob-data.ts";
export { type Caches, makeCaches } from "./cache/caches.ts";
export { MemoryBudget } from "./cache/memory-budget.ts";
export { type FollowerStatus, LogFollowers } from "./followers/log-followers.ts";
export type { LoggedCommit } from "./followers/recent-commits.ts";
export type { OwnedNames } from "./handoff/hand-over.ts";
export { Handoff, type HandoffChild, type HandoffParent, type HandoffPhase } from "./handoff/handoff.ts";
export { RangePartition } from "./range-partition.ts";
export { hasRowsBetween, type RemovalOptions, type RemovedPage, type RemovedRange, removePage } from "./removal/remove-page.ts";
export { type ForgottenPage, forgetPage, type ReportPage, reportPage, reportRange, type VersionsLink } from "./reports/report-range.ts";
export { decodeReportRow, encodeReportRow, isReportKey, type ReportPlace, type ReportRow, reportKey } from "./reports/report-row.ts";
export type { DeletedWalk, Row, ScanRange } from "./scan-range.ts";
export { applySeed, type SeedOptions, type SeedPart } from "./shipping/apply-seed.ts";
export { type AdmitsRows, applyShipped, type OnHeld, type Shipment, type ShippedRange } from "./shipping/apply-shipped.ts";
export { decodeMarker, encodeMarker, isMarkerKey, markerKey, versionFromDetails } from "./shipping/marker.ts";
export { RangeSeeder, type SeederOptions, type SeedLink } from "./shipping/range-seeder.ts";
export { RangeSender, type SenderOptions, type ShippingLink } from "./shipping/range-sender.ts";
export { decodeSeedMark, encodeSeedMark, type SeedMark, seedMarkKey } from "./shipping/seed-mark.ts";
export { type FencedEpochs, ShippedFences, shippedTicketMax } from "./shipping/shipped-fences.ts";
export { type StorageCounts, StorageFigures, type StorageRatios, storageRatios } from "./storage-figures.ts";
export { StorageTimes } from "./storage-times.ts";
export type { RowScan } from "./tables.ts";
export type {
  Cursor,
  DataExtent,
  DecidedWrites,
  PartitionLimits,
  PartitionOptions,
  PartitionStats,
  PartitionStreamNames,
  RowWrite,
  Snapshot,
  Transaction,
  TransactOptions,
} from "./types.ts";
