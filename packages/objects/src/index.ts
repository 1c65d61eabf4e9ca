/**
 * Plans of operations on objects, pure. A plan is a generator that asks for rows and ends with a `Decision`: answer and
 * writes. Start at `planOf`. The caller owes: rows of one snapshot, the lock of each key that is written, and one
 * commit for all writes of a decision.
 */
export * from "./accounts/operation.ts";
export { AccountSeals, masterKeyBytes, noSeals, type SealingCiphers, type Seals } from "./accounts/seals.ts";
export { appendedBlocksMax } from "./blobs/append.ts";
export { BlobGarbage, purgeBlob, purgeMarginMs } from "./blobs/blob-garbage.ts";
export { contentPlacesMax } from "./blobs/blobs.ts";
export { committedBlocksMax, uncommittedBlocksMax } from "./blobs/blocks.ts";
export { copyPartBytesMax, copyStaleMs, sizeOfPart } from "./blobs/copy.ts";
export { chunkBytes, pageBytes } from "./blobs/pages/page-runs.ts";
export { pageBlobBytesMax, pageRangesMax, pageWriteBytesMax, sequenceNumberMax, zeroExtentId } from "./blobs/pages/pages.ts";
export * from "./blobs/protect/leases.ts";
export type { Moment } from "./blobs/protect/protection.ts";
export { clipPlaces, inlineBytesMax, placesPerBlockMax } from "./blobs/state/content.ts";
export * from "./errors.ts";
export { etagOf, sequenceOfEtag } from "./etag.ts";
export * from "./garbage.ts";
export { listPageMax } from "./lists.ts";
export { accountKey, type BlobName, type BlobReference, blobsOfContainerName, containerKey } from "./object-keys.ts";
export * from "./operation.ts";
export { planOf } from "./operations/planning.ts";
export { lockKeysOf } from "./operations/routing.ts";
export type { Route } from "./operations/row.ts";
export { goesOverRanges, inlineBytesOf, isPipelined, isRead, type Routable, routeOf } from "./operations/rows.ts";
export { type Belonging, belongingOf } from "./parents.ts";
export type {
  Decision,
  MayWrite,
  Plan,
  PlanContext,
  PlanRefusal,
  Read,
  ReadAnswer,
  RowEntry,
  RowWrite,
  ScanAnswer,
  ScanLimits,
  VisitRow,
} from "./plan.ts";
export { successor } from "./plan.ts";
export * from "./queues/operation.ts";
export { QueueClocks } from "./queues/queue-clocks.ts";
export { receiptSecretBytes } from "./queues/receipts.ts";
export * from "./results.ts";
export { decodeKey, encodeKey, type KeyComponent, type KeyElement, partitionStart } from "./rows/key.ts";
export { partOfPlace, saltBytes } from "./rows/places.ts";
export * from "./rows/row.ts";
export * from "./rows/schemas.ts";
export * from "./shipped.ts";
export { decodeSignedIdentifiers, encodeSignedIdentifiers, type SignedIdentifier } from "./signed-identifiers.ts";
export { changesMax } from "./tables/entities.ts";
export { entityBytes } from "./tables/entity-rows.ts";
export {
  type Comparison,
  type ComparisonOperator,
  comparisonOperators,
  type FilterConstant,
  type FilterTerm,
  filterTermsMax,
  fits,
  isFilter,
} from "./tables/filter.ts";
export * from "./tables/operation.ts";
export { tableOperations } from "./tables/operations.ts";
export { queryPageMax } from "./tables/queries.ts";
export { queryRouteFrom } from "./tables/routing.ts";
export { containerOfWhere, holds, parseWhere, tagsOfWhere, type Where, type WhereKind } from "./tags/where.ts";
