/**
 * Every operation on objects, a row each: whether it reads or writes, where it belongs, its plan, and what is special about it. A new
 * operation is a case of `Operation`, a plan, and a row here (CONTRIBUTING.md, "A new operation").
 */
import { changeAccount, getAccount, listAccounts, putAccount } from "../accounts/accounts.ts";
import type { Account } from "../accounts/operation.ts";
import { appendBlock, sealBlob } from "../blobs/append.ts";
import { getBlob, putBlob, setBlobHeaders, setBlobMetadata } from "../blobs/blobs.ts";
import { getBlockList, putBlock, putBlockList } from "../blobs/blocks.ts";
import {
  beginDeletion,
  createContainer,
  deleteContainer,
  getContainer,
  markProtected,
  restoreContainer,
  setContainerAcl,
  setContainerMetadata,
} from "../blobs/containers.ts";
import { abortCopy, addToCopy, claimCopy, endCopy, readParts, startCopy } from "../blobs/copy.ts";
import { deleteBlob, undeleteBlob } from "../blobs/deletion.ts";
import { findBlobs, listBlobs, listContainers } from "../blobs/listing.ts";
import { clearPages, getPageRanges, putPages, setPageBlobProperties } from "../blobs/pages/pages.ts";
import { leaseBlob, leaseContainer } from "../blobs/protect/lease-operations.ts";
import { snapshotBlob } from "../blobs/snapshots.ts";
import {
  deleteImmutabilityPolicy,
  setBlobExpiry,
  setBlobTags,
  setBlobTier,
  setImmutabilityPolicy,
  setLegalHold,
  setPathAccess,
} from "../blobs/state/blob-properties.ts";
import { inlineBytesMax } from "../blobs/state/content.ts";
import { onlyLists, stepHandles } from "../handles/handle-steps.ts";
import type { ListStart } from "../list-start.ts";
import type { BlobName } from "../object-keys.ts";
import type { ContainerName, Operation, OperationKind, OperationValue } from "../operation.ts";
import type { QueueOperation } from "../queues/operation.ts";
import { type QueueOperationRoutable, queueOperations } from "../queues/operations.ts";
import type { TableOperation } from "../tables/operation.ts";
import { tableOperations } from "../tables/operations.ts";
import { changesNothing, partitionOfStep, takeStep } from "../tree/in-tree.ts";
import type { TreeRoutable, TreeStep } from "../tree/operation.ts";
import {
  accountRoute,
  accountsRoute,
  blobRoute,
  blobsRoute,
  containerRoute,
  containersRoute,
  type LocatedContainer,
  type NamedBlob,
  wholeAccountRoute,
} from "./routes.ts";
import { byCase, type OperationRows, type RowsOf } from "./row.ts";

/** Rows of a blob are written under its key only, so many writers of one blob share commits. */
const blobWrite = { access: "write", route: blobRoute, pipelined: true } as const;

const rows: OperationRows<Operation> = {
  getAccount: { access: "read", route: accountRoute, plan: getAccount },
  putAccount: { access: "write", route: wholeAccountRoute, plan: putAccount },
  listAccounts: { access: "read", route: accountsRoute, plan: listAccounts, overRanges: true },
  changeAccount: { access: "write", route: accountRoute, plan: changeAccount },

  createContainer: { access: "write", route: containerRoute, plan: createContainer },
  getContainer: { access: "read", route: containerRoute, plan: getContainer },
  setContainerMetadata: { access: "write", route: containerRoute, plan: setContainerMetadata },
  setContainerAcl: { access: "write", route: containerRoute, plan: setContainerAcl },
  deleteContainer: { access: "write", route: containerRoute, plan: deleteContainer },
  beginDeletion: { access: "write", route: containerRoute, plan: beginDeletion },
  markProtected: { access: "write", route: containerRoute, plan: markProtected },
  restoreContainer: { access: "write", route: containerRoute, plan: restoreContainer },
  leaseContainer: { access: "write", route: containerRoute, plan: leaseContainer },
  listContainers: { access: "read", route: containersRoute, plan: listContainers, overRanges: true },
  listBlobs: { access: "read", route: blobsRoute, plan: listBlobs, overRanges: true },
  findBlobs: { access: "read", route: blobsRoute, plan: findBlobs },

  getBlob: { access: "read", route: blobRoute, plan: getBlob },
  putBlob: { ...blobWrite, plan: putBlob, inlineBytesMax },
  deleteBlob: { ...blobWrite, plan: deleteBlob },
  undeleteBlob: { ...blobWrite, plan: undeleteBlob },
  setBlobMetadata: { ...blobWrite, plan: setBlobMetadata },
  setBlobHeaders: { ...blobWrite, plan: setBlobHeaders },
  snapshotBlob: { ...blobWrite, plan: snapshotBlob },
  leaseBlob: { ...blobWrite, plan: leaseBlob },
  setBlobTags: { ...blobWrite, plan: setBlobTags },
  setBlobTier: { ...blobWrite, plan: setBlobTier },
  setBlobExpiry: { ...blobWrite, plan: setBlobExpiry },
  setImmutabilityPolicy: { ...blobWrite, plan: setImmutabilityPolicy },
  deleteImmutabilityPolicy: { ...blobWrite, plan: deleteImmutabilityPolicy },
  setLegalHold: { ...blobWrite, plan: setLegalHold },
  setPathAccess: { ...blobWrite, plan: setPathAccess },

  getBlockList: { access: "read", route: blobRoute, plan: getBlockList },
  putBlock: { ...blobWrite, plan: putBlock, inlineBytesMax: 0 },
  putBlockList: { ...blobWrite, plan: putBlockList },
  appendBlock: { ...blobWrite, plan: appendBlock, inlineBytesMax: 0 },
  sealBlob: { ...blobWrite, plan: sealBlob },
  getPageRanges: { access: "read", route: blobRoute, plan: getPageRanges },
  putPages: { ...blobWrite, plan: putPages, inlineBytesMax: 0 },
  clearPages: { ...blobWrite, plan: clearPages },
  setPageBlobProperties: { ...blobWrite, plan: setPageBlobProperties },

  readParts: { access: "read", route: blobRoute, plan: readParts },
  startCopy: { ...blobWrite, plan: startCopy },
  addToCopy: { ...blobWrite, plan: addToCopy },
  endCopy: { ...blobWrite, plan: endCopy },
  abortCopy: { ...blobWrite, plan: abortCopy },
  claimCopy: { ...blobWrite, plan: claimCopy },

  table: {
    access: (value) => (tableOperations.isRead(value) ? "read" : "write"),
    route: (rules, value: TableOperation) => tableOperations.route(rules, value),
    plan: tableOperations.plan,
    overRanges: tableOperations.goesOverRanges,
  },
  queue: {
    access: ({ kind }) => (queueOperations.isRead(kind) ? "read" : "write"),
    route: (rules, value: QueueOperationRoutable) => queueOperations.routeOf(rules, value),
    plan: ({ kind }, context) => queueOperations.plan(kind, context),
    overRanges: ({ kind }) => queueOperations.goesOverRanges(kind),
    pipelined: ({ kind }) => queueOperations.isPipelined(kind),
  },
  tree: {
    access: ({ action }) => (changesNothing(action) ? "read" : "write"),
    route: (_rules, value: TreeRoutable) => ({ table: "Blob", key: partitionOfStep(value) }),
    plan: takeStep,
    overRanges: ({ action }) => action === "page",
    pipelined: true,
  },
  handles: { ...blobWrite, access: (value) => (onlyLists(value) ? "read" : "write"), plan: stepHandles },
};

/** The names of a value that routing reads, which the wire's values have under the same names, and may leave out. */
type RoutableValue<Value> = Value extends TreeStep
  ? TreeRoutable
  : Value extends { readonly name: BlobName }
    ? { readonly name?: NamedBlob | undefined }
    : Value extends { readonly account: Account }
      ? { readonly account?: { readonly name: string } | undefined }
      : Value extends { readonly containerIncarnation: number }
        ? LocatedContainer & ListStart
        : Value extends ContainerName
          ? ContainerName
          : Value extends { readonly maxResults: number }
            ? Omit<Value, "maxResults" | "markerStamp" | "includeDeleted"> & ListStart
            : Value extends TableOperation
              ? TableOperation
              : Value extends QueueOperation
                ? QueueOperationRoutable
                : Value;

/** The part of an operation that routing reads: both `Operation` of this package and `Operation["kind"]` of the wire fit. */
export type Routable = {
  readonly [Kind in OperationKind]: { readonly case: Kind; readonly value: RoutableValue<OperationValue<Kind>> };
}[OperationKind];

const all: RowsOf<Operation, Routable> = byCase<Operation, Routable>(rows);

/** True if the operation changes nothing: it reads at a snapshot and waits for no write. */
export const isRead: (typeof all)["isRead"] = all.isRead;
/** True if the operation may go on in the next range. */
export const goesOverRanges: (typeof all)["goesOverRanges"] = all.goesOverRanges;
/** Whether many of one lock key are decided before the first of them is durable: each sees what those before it decided. */
export const isPipelined: (typeof all)["isPipelined"] = all.isPipelined;
export const routeOf: (typeof all)["route"] = all.route;
/** The plan of an operation, which does not look whether a state is protected: use `planOf`. */
export const unguardedPlanOf: (typeof all)["plan"] = all.plan;

/** Returns the bytes of a body that stay in the operation; undefined: the operation has none. */
export const inlineBytesOf = ({ case: kind }: Pick<Operation, "case">): number | undefined => rows[kind].inlineBytesMax;
