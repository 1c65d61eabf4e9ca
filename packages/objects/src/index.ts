/**
 * Plans of operations on objects, pure. A plan is a generator that asks for rows and ends with a `Decision`: answer and
 * writes. Start at `planOf`. The caller owes: rows of one snapshot, the lock of each key that is written, and one
 * commit for all writes of a decision.
 */
export type { Account, ChangeAccount } from "./accounts/operation.ts";
export { AccountSeals, noSeals, type Seals } from "./accounts/seals.ts";
export { BlobGarbage, purgeBlob } from "./blobs/blob-garbage.ts";
export { copyStaleMs } from "./blobs/copy.ts";
export { countOfPacked, PackedBlob } from "./blobs/packed-blobs.ts";
export { chunkBytes } from "./blobs/pages/page-runs.ts";
export { zeroExtentId } from "./blobs/pages/pages.ts";
export { type Lease, type LeaseAction, LeaseTimers } from "./blobs/protect/leases.ts";
export type { Moment } from "./blobs/protect/protection.ts";
export { beginsContent, isBlobState, type ReportedContent, reportedContent } from "./blobs/reported-content.ts";
export { clipPlaces } from "./blobs/state/content.ts";
export { type Incarnation, incarnationInRow, mayBePurged, ownerOfRow, parentRows, type RowOwner, rowsInside } from "./garbage.ts";
export {
  allRights,
  deleteRight,
  type FileHandle,
  type FileLock,
  handlesMax,
  isDoomed,
  type OpenFile,
  readRight,
  writeRight,
} from "./handles/handle-rules.ts";
export type { HandleStep, HandlesAnswer } from "./handles/operation.ts";
export {
  accountKey,
  type BlobName,
  type BlobReference,
  blobsOfContainerName,
  clientEntriesOf,
  containerKey,
  deletedContainerKey,
  doorEntriesOf,
  isShareContainer,
  shareContainer,
  shareOfContainer,
} from "./object-keys.ts";
export {
  type BlobPolicy,
  type BlobType,
  type Body,
  blobTypes,
  type Conditions,
  type DeleteSnapshots,
  type ExpiryOption,
  type NewBlobState,
  noPolicy,
  type Operation,
  type OperationKind,
  type OperationValue,
  plainState,
  type SequenceNumberAction,
  type SequenceNumberConditions,
} from "./operation.ts";
export { planOf } from "./operations/planning.ts";
export { lockKeysOf } from "./operations/routing.ts";
export type { Route } from "./operations/row.ts";
export { goesOverRanges, inlineBytesOf, isPipelined, isRead, type Routable, routeOf } from "./operations/rows.ts";
export { belongingOf, type RowParent } from "./parents.ts";
export {
  type Decision,
  type MayWrite,
  type Plan,
  type PlanContext,
  type Read,
  type ReadAnswer,
  type RowEntry,
  type RowWrite,
  type ScanAnswer,
  type ScanLimits,
  successor,
  type VisitRow,
} from "./plan.ts";
export type { Message, Queue, QueueName, QueueOperation, QueueResult } from "./queues/operation.ts";
export { QueueClocks } from "./queues/queue-clocks.ts";
export { messagesPrefix, queuesPrefix, seedMarkOf } from "./queues/queue-keys.ts";
export { receiptSecretBytes } from "./queues/receipts.ts";
export type { Blob, BlobContent, Container, OperationResult } from "./results.ts";
export { decodeKey, encodeKey, type KeyElement, partitionStart } from "./rows/key.ts";
export {
  blockUnitBytes,
  type Cipher,
  type CipherUnits,
  keepsUnits,
  pageUnitBytes,
  saltBytes,
  spanOf,
  unitTagBytes,
} from "./rows/places.ts";
export {
  type DictionaryEntry,
  decodeRow,
  encodeRow,
  type Place,
  type Property,
  type PropertyType,
  placesOfRow,
  type Schema,
  timeMsMax,
  versionOfRow,
  withPlaces,
} from "./rows/row.ts";
export {
  accountSchema,
  blobSchema,
  entitySchema,
  hasBlobData,
  isObjectTable,
  messageSchema,
  type ObjectTable,
  objectTables,
  schemaSchema,
} from "./rows/schemas.ts";
export {
  accountKeys,
  blobRowOf,
  hasBytes,
  holdsAccount,
  isShippedFor,
  isShippedTable,
  type QueueRow,
  queueRowOf,
  queuesTable,
  type ShippedBlobRow,
  type ShippedTable,
  shippedNames,
} from "./shipped.ts";
export { shippedRow } from "./shipped-rows.ts";
export { changesMax } from "./tables/entities.ts";
export { decodeEntity, entityBytes } from "./tables/entity-rows.ts";
export { type ComparisonOperator, type FilterTerm, filterTermsMax, fitsFilter, isFilter } from "./tables/filter.ts";
export type {
  Entity,
  EntityAction,
  EntityChange,
  EntityKey,
  ListTables,
  LocatedTable,
  QueryEntities,
  Table,
  TableAddress,
  TableOperation,
  TableResult,
} from "./tables/operation.ts";
export { tableOperations } from "./tables/operations.ts";
export { packRows, unpackEntities } from "./tables/packed-entities.ts";
export { PackedEntities } from "./tables/packed-reader.ts";
export { queryRouteFrom } from "./tables/routing.ts";
export { containerOfWhere, parseWhere, type TagFilter } from "./tags/where.ts";
export { addressOfPlace, placeOfAddress } from "./tree/in-tree.ts";
export type { Step, StepAnswer, TreePlace, TreeStep } from "./tree/operation.ts";
export { planOfStep, type StepContext, type StepDecision } from "./tree/step.ts";
export { type TreeName, treeKey } from "./tree/tree-keys.ts";
export {
  type Address as TreeAddress,
  addressText,
  decodeTreeRow,
  type EntryAddress,
  encodeTreeRow,
  type Fate,
  type HeldEntry,
  type HeldKind,
  type Mark as TreeMark,
  type NodeAddress,
  type Operation as TreeOperation,
  type Participant,
  type TreeRow,
} from "./tree/tree-row.ts";
