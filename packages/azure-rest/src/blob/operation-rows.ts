/**
 * Every operation of the Blob service, a row each: requests that ask for it, needs of callers without an account key, conditions that it
 * evaluates, and headers that mean something to it and not to every operation. A header that some operation names and the asked one does not
 * is the client's mistake. A new operation is a name and a row here; a new header, a name in the rows that take it.
 *
 * Sources: the page of each operation in the REST reference; "Create an account SAS", "Create a service SAS", "Create a user delegation SAS",
 * "Authorize with Microsoft Entra ID"; for conditions the table in "Specifying conditional headers for Blob service operations", and for
 * operations that it does not have, the parameters of each operation in `@azure/storage-blob` 12.34. Where both are silent the condition
 * is refused, with one exception: Get Block List, whose own page says that it takes them.
 */
import { needs, type OperationAuthorization } from "../auth/authorization.ts";
import {
  appending,
  customerKey,
  defaultScope,
  etags,
  expiry,
  lease,
  leasing,
  newState,
  onTags,
  policy,
  position,
  sequence,
  sourceHashes,
  sourceKey,
  sourceState,
  state,
  tagsAndLease,
  tier,
  times,
} from "./header-groups.ts";

export type BlobOperationName =
  | "ListContainers"
  | "GetServiceProperties"
  | "SetServiceProperties"
  | "GetBlobServiceStats"
  | "GetUserDelegationKey"
  | "GetAccountInformation"
  | "BlobBatch"
  | "FindBlobsByTags"
  | "CreateContainer"
  | "GetContainerProperties"
  | "DeleteContainer"
  | "GetContainerMetadata"
  | "SetContainerMetadata"
  | "ListBlobs"
  | "GetContainerAcl"
  | "SetContainerAcl"
  | "LeaseContainer"
  | "RestoreContainer"
  | "ContainerBlobBatch"
  | "FindBlobsByTagsInContainer"
  | "PutBlob"
  | "GetBlob"
  | "GetBlobProperties"
  | "DeleteBlob"
  | "GetBlobMetadata"
  | "SetBlobMetadata"
  | "SetBlobHeaders"
  | "LeaseBlob"
  | "SnapshotBlob"
  | "SetBlobTier"
  | "GetBlobTags"
  | "SetBlobTags"
  | "UndeleteBlob"
  | "SetBlobExpiry"
  | "SetBlobImmutabilityPolicy"
  | "DeleteBlobImmutabilityPolicy"
  | "SetBlobLegalHold"
  | "PutBlock"
  | "PutBlockList"
  | "GetBlockList"
  | "AppendBlock"
  | "SealAppendBlob"
  | "PutPage"
  | "GetPageRanges"
  | "CopyBlob"
  | "CopyBlobFromUrl"
  | "AbortCopyBlob"
  | "PutBlobFromUrl"
  | "PutBlockFromUrl"
  | "AppendBlockFromUrl"
  | "PutPageFromUrl";

export interface BlobOperationRow {
  /** Resource (any: all three), method and query. `with` names headers that make another operation of the same request (`withHeaders`). */
  readonly requests: readonly string[];
  readonly needs: OperationAuthorization;
  /** Names of the conditions that the operation evaluates; absent: none. */
  readonly conditions?: readonly string[];
  /** Names of headers that only some operations take. */
  readonly headers?: readonly string[];
  /** True if snapshots and versions have this operation, too. */
  readonly ofStates?: true;
  /** True if the content comes from a URL: the operation takes the headers of a source. */
  readonly copies?: true;
  /** A condition may name several ETags; the reference answers a write that does with 400. */
  readonly severalEtags?: true;
}

/** Blocks are written with `w`. A user delegation SAS may do it with `c`, too, since this version. */
const putsBlocks: OperationAuthorization = { ...needs("o", "w", "w", "cw", "contribute"), since: { c: "2026-04-06" } };

/**
 * Needs, in this order: resource types of an account SAS; letters of an account, a service and a user delegation SAS; role of a bearer; public
 * access that lets everybody in. Letters: "r" read, "cw" create or write, "a+u" add and update, "-" no SAS of this kind, "*" any letter.
 */
export const blobOperations: Readonly<Record<BlobOperationName, BlobOperationRow>> = {
  ListContainers: { requests: ["service GET comp=list"], needs: needs("s", "l", "-", "-", "read") },
  GetServiceProperties: { requests: ["service GET restype=service comp=properties"], needs: needs("s", "r", "-", "-", "own") },
  SetServiceProperties: { requests: ["service PUT restype=service comp=properties"], needs: needs("s", "w", "-", "-", "own") },
  GetBlobServiceStats: { requests: ["service GET restype=service comp=stats"], needs: needs("s", "r", "-", "-", "own") },
  GetUserDelegationKey: { requests: ["service POST restype=service comp=userdelegationkey"], needs: needs("s", "-", "-", "-", "read") },
  GetAccountInformation: {
    requests: ["any GET restype=account comp=properties", "any HEAD restype=account comp=properties"],
    needs: needs("sco", "*", "*", "*", "read"),
  },
  BlobBatch: {
    requests: ["service POST comp=batch", "service POST restype=container comp=batch"],
    needs: needs("sco", "*", "-", "-", "read"),
  },
  FindBlobsByTags: { requests: ["service GET comp=blobs"], needs: needs("o", "f", "-", "-", "own") },

  CreateContainer: {
    requests: ["container PUT restype=container"],
    needs: needs("c", "cw", "-", "-", "contribute"),
    headers: defaultScope,
  },
  GetContainerProperties: {
    requests: ["container GET restype=container", "container HEAD restype=container"],
    needs: needs("c", "r", "-", "-", "read", "container"),
    conditions: lease,
  },
  DeleteContainer: {
    requests: ["container DELETE restype=container"],
    needs: needs("c", "d", "-", "-", "contribute"),
    conditions: [...times, ...lease],
  },
  GetContainerMetadata: {
    requests: ["container GET restype=container comp=metadata", "container HEAD restype=container comp=metadata"],
    needs: needs("c", "r", "-", "-", "read", "container"),
    conditions: lease,
  },
  SetContainerMetadata: {
    requests: ["container PUT restype=container comp=metadata"],
    needs: needs("c", "w", "-", "-", "contribute"),
    conditions: ["if-modified-since", ...lease],
  },
  ListBlobs: { requests: ["container GET restype=container comp=list"], needs: needs("c", "l", "l", "l", "read", "container") },
  GetContainerAcl: {
    requests: ["container GET restype=container comp=acl", "container HEAD restype=container comp=acl"],
    needs: needs("c", "-", "-", "-", "own"),
    conditions: lease,
  },
  SetContainerAcl: {
    requests: ["container PUT restype=container comp=acl"],
    needs: needs("c", "-", "-", "-", "own"),
    conditions: [...times, ...lease],
  },
  LeaseContainer: {
    requests: ["container PUT restype=container comp=lease"],
    needs: needs("c", "w", "-", "-", "contribute"),
    conditions: [...times, ...lease],
    headers: leasing,
  },
  RestoreContainer: { requests: ["container PUT restype=container comp=undelete"], needs: needs("c", "w", "-", "-", "contribute") },
  ContainerBlobBatch: { requests: ["container POST restype=container comp=batch"], needs: needs("sco", "*", "*", "*", "read") },
  FindBlobsByTagsInContainer: { requests: ["container GET restype=container comp=blobs"], needs: needs("c", "f", "f", "f", "own") },

  // With `c` alone what is there can't be overwritten (`access.may("w")`).
  PutBlob: {
    requests: ["blob PUT"],
    needs: needs("o", "cw", "cw", "cw", "contribute"),
    conditions: state,
    headers: [...newState, ...customerKey, "x-ms-blob-sequence-number", "x-ms-blob-content-length", "x-ms-encryption-scope"],
  },
  GetBlob: {
    requests: ["blob GET"],
    needs: needs("o", "r", "r", "r", "read", "blob"),
    conditions: state,
    headers: customerKey,
    ofStates: true,
    severalEtags: true,
  },
  GetBlobProperties: {
    requests: ["blob HEAD"],
    needs: needs("o", "r", "r", "r", "read", "blob"),
    conditions: state,
    headers: customerKey,
    ofStates: true,
    severalEtags: true,
  },
  DeleteBlob: { requests: ["blob DELETE"], needs: needs("o", "d", "d", "d", "contribute"), conditions: state, ofStates: true },
  GetBlobMetadata: {
    requests: ["blob GET comp=metadata", "blob HEAD comp=metadata"],
    needs: needs("o", "r", "r", "r", "read", "blob"),
    conditions: state,
    headers: customerKey,
    ofStates: true,
    severalEtags: true,
  },
  SetBlobMetadata: {
    requests: ["blob PUT comp=metadata"],
    needs: needs("o", "w", "w", "w", "contribute"),
    conditions: state,
    headers: [...customerKey, "x-ms-encryption-scope"],
  },
  SetBlobHeaders: {
    requests: ["blob PUT comp=properties"],
    needs: needs("o", "w", "w", "w", "contribute"),
    conditions: state,
    headers: [...customerKey, "x-ms-blob-sequence-number", "x-ms-sequence-number-action", "x-ms-blob-content-length"],
  },
  LeaseBlob: { requests: ["blob PUT comp=lease"], needs: needs("o", "w", "w", "w", "contribute"), conditions: state, headers: leasing },
  SnapshotBlob: {
    requests: ["blob PUT comp=snapshot"],
    needs: needs("o", "cw", "cw", "cw", "contribute"),
    conditions: state,
    headers: [...customerKey, "x-ms-encryption-scope"],
  },
  SetBlobTier: {
    requests: ["blob PUT comp=tier"],
    needs: needs("o", "w", "w", "w", "contribute"),
    conditions: tagsAndLease,
    headers: tier,
    ofStates: true,
  },
  GetBlobTags: {
    requests: ["blob GET comp=tags"],
    needs: needs("o", "t", "t", "t", "own"),
    conditions: onTags,
    ofStates: true,
    severalEtags: true,
  },
  SetBlobTags: { requests: ["blob PUT comp=tags"], needs: needs("o", "t", "t", "t", "own"), conditions: onTags, ofStates: true },
  UndeleteBlob: { requests: ["blob PUT comp=undelete"], needs: needs("o", "w", "w", "w", "contribute") },
  SetBlobExpiry: { requests: ["blob PUT comp=expiry"], needs: needs("o", "w", "w", "w", "contribute"), conditions: lease, headers: expiry },
  SetBlobImmutabilityPolicy: {
    requests: ["blob PUT comp=immutabilitypolicies"],
    needs: needs("o", "i", "i", "i", "own"),
    conditions: ["if-unmodified-since"],
    headers: policy,
    ofStates: true,
  },
  DeleteBlobImmutabilityPolicy: {
    requests: ["blob DELETE comp=immutabilitypolicies"],
    needs: needs("o", "i", "i", "i", "own"),
    ofStates: true,
  },
  SetBlobLegalHold: {
    requests: ["blob PUT comp=legalhold"],
    needs: needs("o", "i", "i", "i", "own"),
    headers: ["x-ms-legal-hold"],
    ofStates: true,
  },

  PutBlock: { requests: ["blob PUT comp=block"], needs: putsBlocks, conditions: lease, headers: [...customerKey, "x-ms-encryption-scope"] },
  PutBlockList: {
    requests: ["blob PUT comp=blocklist"],
    needs: putsBlocks,
    conditions: state,
    headers: [...newState, ...customerKey, "x-ms-encryption-scope"],
  },
  GetBlockList: {
    requests: ["blob GET comp=blocklist"],
    needs: needs("o", "r", "r", "r", "read", "blob"),
    conditions: state,
    ofStates: true,
    severalEtags: true,
  },
  AppendBlock: {
    requests: ["blob PUT comp=appendblock"],
    needs: needs("o", "aw", "aw", "aw", "contribute"),
    conditions: [...state, ...appending],
    headers: [...customerKey, "x-ms-encryption-scope"],
  },
  SealAppendBlob: {
    requests: ["blob PUT comp=seal"],
    needs: needs("o", "w", "w", "w", "contribute"),
    conditions: [...etags, ...times, ...lease, ...position],
  },
  PutPage: {
    requests: ["blob PUT comp=page"],
    needs: needs("o", "w", "w", "w", "contribute"),
    conditions: [...state, ...sequence],
    headers: [...customerKey, "x-ms-page-write", "x-ms-encryption-scope"],
  },
  GetPageRanges: {
    requests: ["blob GET comp=pagelist"],
    needs: needs("o", "r", "r", "r", "read", "blob"),
    conditions: state,
    ofStates: true,
    severalEtags: true,
  },

  CopyBlob: {
    requests: ["blob PUT with x-ms-copy-source"],
    needs: needs("o", "cw", "cw", "cw", "contribute"),
    conditions: [...state, ...sourceState, "x-ms-source-if-tags"],
    headers: [...newState, "x-ms-requires-sync", "x-ms-seal-blob", "x-ms-copy-source-tag-option"],
    copies: true,
  },
  CopyBlobFromUrl: {
    requests: ["blob PUT with x-ms-copy-source, x-ms-requires-sync"],
    needs: needs("o", "cw", "cw", "cw", "contribute"),
    conditions: [...state, ...sourceState],
    headers: [...newState, ...sourceHashes, "x-ms-requires-sync", "x-ms-copy-source-tag-option", "x-ms-encryption-scope"],
    copies: true,
  },
  AbortCopyBlob: {
    requests: ["blob PUT comp=copy"],
    needs: needs("o", "w", "w", "w", "contribute"),
    conditions: lease,
    headers: ["x-ms-copy-action"],
  },
  PutBlobFromUrl: {
    requests: ["blob PUT with x-ms-copy-source, x-ms-blob-type"],
    needs: needs("o", "cw", "cw", "cw", "contribute"),
    conditions: [...state, ...sourceState, "x-ms-source-if-tags"],
    headers: [
      ...newState,
      ...customerKey,
      ...sourceKey,
      ...sourceHashes,
      "x-ms-copy-source-blob-properties",
      "x-ms-copy-source-tag-option",
      "x-ms-encryption-scope",
    ],
    copies: true,
  },
  PutBlockFromUrl: {
    requests: ["blob PUT comp=block with x-ms-copy-source"],
    needs: putsBlocks,
    conditions: [...lease, ...sourceState],
    headers: [...customerKey, ...sourceKey, ...sourceHashes, "x-ms-encryption-scope", "x-ms-source-range"],
    copies: true,
  },
  AppendBlockFromUrl: {
    requests: ["blob PUT comp=appendblock with x-ms-copy-source"],
    needs: needs("o", "aw", "aw", "aw", "contribute"),
    conditions: [...state, ...sourceState, ...appending],
    headers: [...customerKey, ...sourceKey, ...sourceHashes, "x-ms-encryption-scope", "x-ms-source-range"],
    copies: true,
  },
  PutPageFromUrl: {
    requests: ["blob PUT comp=page with x-ms-copy-source"],
    needs: needs("o", "w", "w", "w", "contribute"),
    conditions: [...state, ...sourceState, ...sequence],
    headers: [...customerKey, ...sourceKey, ...sourceHashes, "x-ms-page-write", "x-ms-encryption-scope", "x-ms-source-range"],
    copies: true,
  },
};

export const blobOperationNames: readonly BlobOperationName[] = Object.keys(blobOperations) as BlobOperationName[];
