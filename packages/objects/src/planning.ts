/** The plan of every operation. */
import { changeAccount, getAccount, listAccounts, putAccount } from "./accounts/accounts.ts";
import { appendBlock, sealBlob } from "./blobs/append.ts";
import { getBlob, putBlob, setBlobHeaders, setBlobMetadata } from "./blobs/blobs.ts";
import { getBlockList, putBlock, putBlockList } from "./blobs/blocks.ts";
import {
  beginDeletion,
  createContainer,
  deleteContainer,
  getContainer,
  markProtected,
  restoreContainer,
  setContainerAcl,
  setContainerMetadata,
} from "./blobs/containers.ts";
import { abortCopy, addToCopy, claimCopy, endCopy, readParts, startCopy } from "./blobs/copy.ts";
import { deleteBlob, undeleteBlob } from "./blobs/deletion.ts";
import { findBlobs, listBlobs, listContainers } from "./blobs/listing.ts";
import { clearPages, getPageRanges, putPages, setPageBlobProperties } from "./blobs/pages/pages.ts";
import { leaseBlob, leaseContainer } from "./blobs/protect/lease-operations.ts";
import { guarded } from "./blobs/protect/protection.ts";
import { snapshotBlob } from "./blobs/snapshots.ts";
import {
  deleteImmutabilityPolicy,
  setBlobExpiry,
  setBlobTags,
  setBlobTier,
  setImmutabilityPolicy,
  setLegalHold,
} from "./blobs/state/blob-properties.ts";
import { type BlobName, blobPrefix } from "./object-keys.ts";
import { isRead, type Operation } from "./operation.ts";
import type { Plan, PlanContext } from "./plan.ts";
import { planOfQueue } from "./queues/planning.ts";
import { planOfTables } from "./tables/planning.ts";

/** Returns the plan of an operation. `guarded` keeps protected states as they are, whatever the operation. */
export function planOf(operation: Operation, context: PlanContext): Plan {
  const plan = unguardedPlanOf(operation, context);
  const name = isRead(operation) ? undefined : blobOfOperation(operation);
  if (name === undefined) return plan;
  const policy = operation.case === "setImmutabilityPolicy" || operation.case === "deleteImmutabilityPolicy";
  return guarded(blobPrefix(context.rules, name), context, { hold: operation.case === "setLegalHold", policy }, plan);
}

const blobOfOperation = ({ value }: Operation): BlobName | undefined =>
  "name" in value && typeof value.name === "object" ? value.name : undefined;

function unguardedPlanOf(operation: Operation, context: PlanContext): Plan {
  switch (operation.case) {
    case "getAccount":
      return getAccount(operation.value, context);
    case "putAccount":
      return putAccount(operation.value, context);
    case "listAccounts":
      return listAccounts(operation.value, context);
    case "changeAccount":
      return changeAccount(operation.value, context);
    case "createContainer":
      return createContainer(operation.value, context);
    case "getContainer":
      return getContainer(operation.value, context);
    case "setContainerMetadata":
      return setContainerMetadata(operation.value, context);
    case "setContainerAcl":
      return setContainerAcl(operation.value, context);
    case "deleteContainer":
      return deleteContainer(operation.value, context);
    case "listContainers":
      return listContainers(operation.value, context);
    case "putBlob":
      return putBlob(operation.value, context);
    case "getBlob":
      return getBlob(operation.value, context);
    case "setBlobMetadata":
      return setBlobMetadata(operation.value, context);
    case "setBlobHeaders":
      return setBlobHeaders(operation.value, context);
    case "deleteBlob":
      return deleteBlob(operation.value, context);
    case "listBlobs":
      return listBlobs(operation.value, context);
    case "putBlock":
      return putBlock(operation.value, context);
    case "putBlockList":
      return putBlockList(operation.value, context);
    case "getBlockList":
      return getBlockList(operation.value, context);
    case "table":
      return planOfTables(operation.value, context);
    case "queue":
      return planOfQueue(operation.value, context);
    case "appendBlock":
      return appendBlock(operation.value, context);
    case "sealBlob":
      return sealBlob(operation.value, context);
    case "putPages":
      return putPages(operation.value, context);
    case "clearPages":
      return clearPages(operation.value, context);
    case "setPageBlobProperties":
      return setPageBlobProperties(operation.value, context);
    case "getPageRanges":
      return getPageRanges(operation.value, context);
    case "readParts":
      return readParts(operation.value, context);
    case "startCopy":
      return startCopy(operation.value, context);
    case "addToCopy":
      return addToCopy(operation.value, context);
    case "endCopy":
      return endCopy(operation.value, context);
    case "abortCopy":
      return abortCopy(operation.value, context);
    case "claimCopy":
      return claimCopy(operation.value, context);
    case "leaseContainer":
      return leaseContainer(operation.value, context);
    case "restoreContainer":
      return restoreContainer(operation.value, context);
    case "leaseBlob":
      return leaseBlob(operation.value, context);
    case "snapshotBlob":
      return snapshotBlob(operation.value, context);
    case "undeleteBlob":
      return undeleteBlob(operation.value, context);
    case "setBlobTags":
      return setBlobTags(operation.value, context);
    case "setBlobTier":
      return setBlobTier(operation.value, context);
    case "setBlobExpiry":
      return setBlobExpiry(operation.value, context);
    case "setImmutabilityPolicy":
      return setImmutabilityPolicy(operation.value, context);
    case "deleteImmutabilityPolicy":
      return deleteImmutabilityPolicy(operation.value, context);
    case "setLegalHold":
      return setLegalHold(operation.value, context);
    case "findBlobs":
      return findBlobs(operation.value, context);
    case "beginDeletion":
      return beginDeletion(operation.value, context);
    case "markProtected":
      return markProtected(operation.value);
  }
}
