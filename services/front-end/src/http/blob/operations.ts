/** Which function serves which operation of the Blob service. */
import type { BlobOperationName } from "@stamp/azure-rest";

import { appendBlock, sealAppendBlob } from "./append.ts";
import { deleteBlob, getBlob, getBlobMetadata, getBlobProperties, listBlobs, setBlobHeaders, setBlobMetadata } from "./blobs.ts";
import {
  createContainer,
  deleteContainer,
  getAccountInformation,
  getContainerMetadata,
  getContainerProperties,
  getServiceProperties,
  listContainers,
  setContainerMetadata,
} from "./containers.ts";
import type { BlobOperationHandler } from "./exchange.ts";
import { getPageRanges, putPage } from "./pages.ts";
import { getBlockList, putBlob, putBlock, putBlockList } from "./uploads.ts";

export const operationHandlers: Readonly<Record<BlobOperationName, BlobOperationHandler>> = {
  ListContainers: listContainers,
  GetServiceProperties: getServiceProperties,
  GetAccountInformation: getAccountInformation,
  CreateContainer: createContainer,
  GetContainerProperties: getContainerProperties,
  GetContainerMetadata: getContainerMetadata,
  SetContainerMetadata: setContainerMetadata,
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
};
