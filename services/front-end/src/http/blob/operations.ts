/** Table of the functions that serve the operations of the Blob service. */
import type { BlobOperationName } from "@stamp/azure-rest";
import { getServiceStatistics } from "../../geo/service-statistics.ts";
import { getUserDelegationKey } from "../delegation-key.ts";
import { getServiceProperties } from "../service-properties.ts";
import { blobBatch } from "./batch.ts";
import {
  deleteImmutabilityPolicy,
  findBlobsByTags,
  findBlobsByTagsInContainer,
  getBlobTags,
  setBlobExpiry,
  setBlobTags,
  setBlobTier,
  setImmutabilityPolicy,
  setLegalHold,
  snapshotBlob,
  undeleteBlob,
} from "./blob-state.ts";
import { deleteBlob, getBlob, getBlobMetadata, getBlobProperties, listBlobs, setBlobHeaders, setBlobMetadata } from "./blobs.ts";
import { getContainerAcl, setContainerAcl } from "./container-acl.ts";
import {
  createContainer,
  deleteContainer,
  getAccountInformation,
  getContainerMetadata,
  getContainerProperties,
  listContainers,
  restoreContainer,
  setContainerMetadata,
} from "./containers.ts";
import { appendBlock, sealAppendBlob } from "./content/append.ts";
import { abortCopyBlob, copyBlob, copyBlobFromUrl } from "./content/copy.ts";
import { appendBlockFromUrl, putBlobFromUrl, putBlockFromUrl, putPageFromUrl } from "./content/from-url.ts";
import { getPageRanges, putPage } from "./content/pages.ts";
import { getBlockList, putBlob, putBlock, putBlockList } from "./content/uploads.ts";
import type { BlobOperationHandler } from "./exchange.ts";
import { leaseBlob, leaseContainer } from "./leases.ts";
import { setBlobServiceProperties } from "./service-properties.ts";

export const operationHandlers: Readonly<Record<BlobOperationName, BlobOperationHandler>> = {
  ListContainers: listContainers,
  GetServiceProperties: (exchange) => getServiceProperties(exchange, "blob"),
  SetServiceProperties: setBlobServiceProperties,
  GetBlobServiceStats: async (exchange) => getServiceStatistics(exchange),
  GetUserDelegationKey: (exchange) => getUserDelegationKey(exchange, "blob"),
  GetAccountInformation: getAccountInformation,
  CreateContainer: createContainer,
  GetContainerProperties: getContainerProperties,
  GetContainerMetadata: getContainerMetadata,
  SetContainerMetadata: setContainerMetadata,
  GetContainerAcl: getContainerAcl,
  SetContainerAcl: setContainerAcl,
  DeleteContainer: deleteContainer,
  ListBlobs: listBlobs,
  PutBlob: putBlob,
  GetBlob: getBlob,
  GetBlobProperties: getBlobProperties,
  GetBlobMetadata: getBlobMetadata,
  SetBlobMetadata: setBlobMetadata,
  SetBlobHeaders: setBlobHeaders,
  DeleteBlob: deleteBlob,
  PutBlock: putBlock,
  PutBlockList: putBlockList,
  GetBlockList: getBlockList,
  AppendBlock: appendBlock,
  SealAppendBlob: sealAppendBlob,
  PutPage: putPage,
  GetPageRanges: getPageRanges,
  LeaseContainer: leaseContainer,
  RestoreContainer: restoreContainer,
  FindBlobsByTags: findBlobsByTags,
  FindBlobsByTagsInContainer: findBlobsByTagsInContainer,
  LeaseBlob: leaseBlob,
  SnapshotBlob: snapshotBlob,
  UndeleteBlob: undeleteBlob,
  SetBlobTier: setBlobTier,
  SetBlobTags: setBlobTags,
  GetBlobTags: getBlobTags,
  SetBlobExpiry: setBlobExpiry,
  SetBlobImmutabilityPolicy: setImmutabilityPolicy,
  DeleteBlobImmutabilityPolicy: deleteImmutabilityPolicy,
  SetBlobLegalHold: setLegalHold,
  BlobBatch: blobBatch,
  CopyBlob: copyBlob,
  CopyBlobFromUrl: copyBlobFromUrl,
  AbortCopyBlob: abortCopyBlob,
  PutBlobFromUrl: putBlobFromUrl,
  PutBlockFromUrl: putBlockFromUrl,
  AppendBlockFromUrl: appendBlockFromUrl,
  PutPageFromUrl: putPageFromUrl,
  ContainerBlobBatch: blobBatch,
};
