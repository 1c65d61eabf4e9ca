/** What each operation of the Blob service asks of a SAS, a bearer, or nobody ("Create an account SAS", "Create a service SAS"). */
import { needingToo, type OperationAuthorization, type PermissionGroups, type SignedResource } from "../auth/authorization.ts";
import type { HttpHeaders } from "../headers.ts";
import { type Query, queryValue } from "../target.ts";
import type { BlobOperationName } from "./operations.ts";
import type { BlobResource } from "./resource.ts";

const onBlob = (groups: PermissionGroups, role: OperationAuthorization["role"]): OperationAuthorization => ({
  resourceType: "o",
  accountSas: groups,
  serviceSas: groups,
  role,
});
const readsBlob: OperationAuthorization = { ...onBlob(["r"], "read"), anonymous: "blob" };
const writesBlob = onBlob(["w"], "contribute");
/** With `c` alone what is there can't be overwritten (`access.may("w")`). */
const createsBlob = onBlob(["cw"], "contribute");

const onContainer = (groups: PermissionGroups, role: OperationAuthorization["role"]): OperationAuthorization => ({
  resourceType: "c",
  accountSas: groups,
  serviceSas: "never",
  role,
});
const onService = (groups: PermissionGroups, role: OperationAuthorization["role"]): OperationAuthorization => ({
  resourceType: "s",
  accountSas: groups,
  serviceSas: "never",
  role,
});
const anyPermission = "rwdlacxyupftmeoi";

export const blobAuthorization: Readonly<Record<BlobOperationName, OperationAuthorization>> = {
  ListContainers: onService(["l"], "read"),
  GetServiceProperties: onService(["r"], "read"),
  SetServiceProperties: onService(["w"], "own"),
  GetUserDelegationKey: onService("never", "read"),
  GetAccountInformation: {
    resourceType: "sco",
    accountSas: [anyPermission],
    serviceSas: [anyPermission],
    role: "read",
  },
  CreateContainer: onContainer(["cw"], "contribute"),
  GetContainerProperties: { ...onContainer(["r"], "read"), anonymous: "container" },
  GetContainerMetadata: { ...onContainer(["r"], "read"), anonymous: "container" },
  SetContainerMetadata: onContainer(["w"], "contribute"),
  GetContainerAcl: onContainer("never", "own"),
  SetContainerAcl: onContainer("never", "own"),
  DeleteContainer: onContainer(["d"], "contribute"),
  ListBlobs: { ...onContainer(["l"], "read"), serviceSas: ["l"], anonymous: "container" },
  PutBlob: createsBlob,
  GetBlob: readsBlob,
  GetBlobProperties: readsBlob,
  GetBlobMetadata: readsBlob,
  SetBlobMetadata: writesBlob,
  SetBlobHeaders: writesBlob,
  DeleteBlob: onBlob(["d"], "contribute"),
  PutBlock: createsBlob,
  PutBlockList: createsBlob,
  GetBlockList: readsBlob,
  AppendBlock: onBlob(["aw"], "contribute"),
  SealAppendBlob: writesBlob,
  PutPage: writesBlob,
  GetPageRanges: readsBlob,
  LeaseContainer: onContainer(["wd"], "contribute"),
  RestoreContainer: onContainer(["w"], "contribute"),
  FindBlobsByTags: onService(["f"], "read"),
  FindBlobsByTagsInContainer: { ...onContainer(["f"], "read"), serviceSas: ["f"] },
  LeaseBlob: onBlob(["wd"], "contribute"),
  SnapshotBlob: createsBlob,
  UndeleteBlob: writesBlob,
  SetBlobTier: writesBlob,
  SetBlobTags: onBlob(["t"], "contribute"),
  GetBlobTags: onBlob(["t"], "read"),
  SetBlobExpiry: writesBlob,
  SetBlobImmutabilityPolicy: onBlob(["i"], "own"),
  DeleteBlobImmutabilityPolicy: onBlob(["i"], "own"),
  SetBlobLegalHold: onBlob(["i"], "own"),
  CopyBlob: createsBlob,
  CopyBlobFromUrl: createsBlob,
  AbortCopyBlob: writesBlob,
  PutBlobFromUrl: createsBlob,
  PutBlockFromUrl: createsBlob,
  AppendBlockFromUrl: onBlob(["aw"], "contribute"),
  PutPageFromUrl: writesBlob,
  // Each request of a batch is let in on its own.
  BlobBatch: { ...onService([anyPermission], "read"), resourceType: "sco" },
  ContainerBlobBatch: { ...onContainer([anyPermission], "read"), resourceType: "sco", serviceSas: [anyPermission] },
};

/** The row of the operation, and what headers and query of this request need besides. */
export function blobAuthorizationOf(operation: BlobOperationName, headers: HttpHeaders, query: Query): OperationAuthorization {
  let row = blobAuthorization[operation];
  if (headers["x-ms-tags"] !== undefined || headers["x-ms-if-tags"] !== undefined) row = needingToo(row, "t");
  if (operation !== "DeleteBlob") return row;
  if (query.has("versionid")) row = needingToo(row, "x");
  return query.has("deletetype") ? needingToo(row, "y") : row;
}

export function signedBlobResource({ container, blob }: BlobResource, query: Query): SignedResource {
  if (container === undefined) return { kind: "account" };
  if (blob === undefined) return { kind: "container", container };
  return { kind: "blob", container, blob, snapshot: queryValue(query, "snapshot"), versionId: queryValue(query, "versionid") };
}
