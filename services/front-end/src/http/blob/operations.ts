/** Table of the functions that serve the operations of the Blob service. */
import type { BlobOperationName } from "@stamp/azure-rest";
import { getServiceStatistics } from "../../geo/service-statistics.ts";
import { getUserDelegationKey } from "../delegation-key.ts";
import { getServiceProperties } from "../service-properties.ts";
import { blobBatch } from "./batch.ts";
import * as blobState from "./blob-state.ts";
import * as blobs from "./blobs.ts";
import * as containerAcl from "./container-acl.ts";
import * as containers from "./containers.ts";
import * as append from "./content/append.ts";
import * as copy from "./content/copy.ts";
import * as fromUrl from "./content/from-url.ts";
import * as pages from "./content/pages.ts";
import * as uploads from "./content/uploads.ts";
import type { BlobOperationHandler } from "./exchange.ts";
import * as leases from "./leases.ts";
import { setBlobServiceProperties } from "./service-properties.ts";

/** A function of one of these modules is named as the operation that it serves: `putBlob` serves PutBlob. */
const functions: { readonly [Name in BlobOperationName as Uncapitalize<Name>]: BlobOperationHandler } = {
  ...append,
  ...blobState,
  ...blobs,
  ...containerAcl,
  ...containers,
  ...copy,
  ...fromUrl,
  ...leases,
  ...pages,
  ...uploads,
  blobBatch,
  containerBlobBatch: blobBatch,
  getBlobServiceStats: async (exchange) => getServiceStatistics(exchange),
  getServiceProperties: (exchange) => getServiceProperties(exchange, "blob"),
  getUserDelegationKey: (exchange) => getUserDelegationKey(exchange, "blob"),
  setServiceProperties: setBlobServiceProperties,
};

export const operationHandlers = Object.fromEntries(
  Object.entries(functions).map(([name, serve]) => [name.slice(0, 1).toUpperCase() + name.slice(1), serve]),
) as Readonly<Record<BlobOperationName, BlobOperationHandler>>;
