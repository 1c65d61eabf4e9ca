/**
 * Operation of a request: a table by resource, method, `restype` and `comp`. A row is an operation that Stamp serves,
 * or the name of one that only the service has: that is answered 501 with the name. A request without a row is the
 * client's mistake: 400 for a query without a meaning, 405 for a method that the resource does not have.
 */
import type { HttpHeaders } from "../headers.ts";
import { badQuery, notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import { refuseStatistics } from "../secondary.ts";
import { queryValue, type Target } from "../target.ts";
import type { BlobResource } from "./resource.ts";

export const blobOperationNames = [
  "ListContainers",
  "GetServiceProperties",
  "SetServiceProperties",
  "GetUserDelegationKey",
  "GetAccountInformation",
  "CreateContainer",
  "GetContainerProperties",
  "GetContainerMetadata",
  "SetContainerMetadata",
  "GetContainerAcl",
  "SetContainerAcl",
  "DeleteContainer",
  "ListBlobs",
  "PutBlob",
  "GetBlob",
  "GetBlobProperties",
  "GetBlobMetadata",
  "SetBlobMetadata",
  "SetBlobHeaders",
  "DeleteBlob",
  "PutBlock",
  "PutBlockList",
  "GetBlockList",
  "AppendBlock",
  "SealAppendBlob",
  "PutPage",
  "GetPageRanges",
  "BlobBatch",
  "ContainerBlobBatch",
  "LeaseContainer",
  "RestoreContainer",
  "FindBlobsByTagsInContainer",
  "FindBlobsByTags",
  "LeaseBlob",
  "SnapshotBlob",
  "SetBlobTier",
  "GetBlobTags",
  "SetBlobTags",
  "UndeleteBlob",
  "SetBlobExpiry",
  "SetBlobImmutabilityPolicy",
  "DeleteBlobImmutabilityPolicy",
  "SetBlobLegalHold",
  "CopyBlob",
  "CopyBlobFromUrl",
  "AbortCopyBlob",
  "PutBlobFromUrl",
  "PutBlockFromUrl",
  "AppendBlockFromUrl",
  "PutPageFromUrl",
] as const;
export type BlobOperationName = (typeof blobOperationNames)[number];

/** Served; not served here, with the feature's name; or refused as the service refuses it for an account of this kind. */
type Row =
  | { readonly operation: BlobOperationName }
  | { readonly feature: string }
  | { readonly refused: string; readonly refuse: typeof refuseStatistics };
const serve = (operation: BlobOperationName): Row => ({ operation });
const later = (feature: string): Row => ({ feature });

const accountInformation = {
  "GET restype=account comp=properties": serve("GetAccountInformation"),
  "HEAD restype=account comp=properties": serve("GetAccountInformation"),
} as const;

const serviceRows: Readonly<Record<string, Row>> = {
  ...accountInformation,
  "GET comp=list": serve("ListContainers"),
  "GET restype=service comp=properties": serve("GetServiceProperties"),
  "PUT restype=service comp=properties": serve("SetServiceProperties"),
  "GET restype=service comp=stats": { refused: "Get Blob Service Stats", refuse: refuseStatistics },
  "POST restype=service comp=userdelegationkey": serve("GetUserDelegationKey"),
  "POST comp=batch": serve("BlobBatch"),
  // With the account in the path the SDK takes it for a container.
  "POST restype=container comp=batch": serve("BlobBatch"),
  "GET comp=blobs": serve("FindBlobsByTags"),
};

const containerRows: Readonly<Record<string, Row>> = {
  ...accountInformation,
  "PUT restype=container": serve("CreateContainer"),
  "GET restype=container": serve("GetContainerProperties"),
  "HEAD restype=container": serve("GetContainerProperties"),
  "DELETE restype=container": serve("DeleteContainer"),
  "GET restype=container comp=metadata": serve("GetContainerMetadata"),
  "HEAD restype=container comp=metadata": serve("GetContainerMetadata"),
  "PUT restype=container comp=metadata": serve("SetContainerMetadata"),
  "GET restype=container comp=list": serve("ListBlobs"),
  "GET restype=container comp=acl": serve("GetContainerAcl"),
  "HEAD restype=container comp=acl": serve("GetContainerAcl"),
  "PUT restype=container comp=acl": serve("SetContainerAcl"),
  "PUT restype=container comp=lease": serve("LeaseContainer"),
  "PUT restype=container comp=undelete": serve("RestoreContainer"),
  "PUT restype=container comp=rename": later("Rename Container"),
  "POST restype=container comp=batch": serve("ContainerBlobBatch"),
  "GET restype=container comp=blobs": serve("FindBlobsByTagsInContainer"),
};

const blobRows: Readonly<Record<string, Row>> = {
  ...accountInformation,
  PUT: serve("PutBlob"),
  GET: serve("GetBlob"),
  HEAD: serve("GetBlobProperties"),
  DELETE: serve("DeleteBlob"),
  "GET comp=metadata": serve("GetBlobMetadata"),
  "HEAD comp=metadata": serve("GetBlobMetadata"),
  "PUT comp=metadata": serve("SetBlobMetadata"),
  "PUT comp=properties": serve("SetBlobHeaders"),
  "PUT comp=block": serve("PutBlock"),
  "PUT comp=blocklist": serve("PutBlockList"),
  "GET comp=blocklist": serve("GetBlockList"),
  "PUT comp=lease": serve("LeaseBlob"),
  "PUT comp=snapshot": serve("SnapshotBlob"),
  "PUT comp=copy": serve("AbortCopyBlob"),
  "PUT comp=incrementalcopy": later("Incremental Copy Blob"),
  "PUT comp=appendblock": serve("AppendBlock"),
  "PUT comp=seal": serve("SealAppendBlob"),
  "PUT comp=page": serve("PutPage"),
  "GET comp=pagelist": serve("GetPageRanges"),
  "PUT comp=tier": serve("SetBlobTier"),
  "GET comp=tags": serve("GetBlobTags"),
  "PUT comp=tags": serve("SetBlobTags"),
  "PUT comp=undelete": serve("UndeleteBlob"),
  "PUT comp=expiry": serve("SetBlobExpiry"),
  "PUT comp=immutabilitypolicies": serve("SetBlobImmutabilityPolicy"),
  "DELETE comp=immutabilitypolicies": serve("DeleteBlobImmutabilityPolicy"),
  "PUT comp=legalhold": serve("SetBlobLegalHold"),
  "POST comp=query": later("Query Blob Contents"),
};

/** Requests that are another operation when their content is that of a URL. */
const fromUrl: Partial<Record<BlobOperationName, BlobOperationName>> = {
  PutBlock: "PutBlockFromUrl",
  AppendBlock: "AppendBlockFromUrl",
  PutPage: "PutPageFromUrl",
};

function withHeaders(operation: BlobOperationName, headers: HttpHeaders): BlobOperationName {
  if (headers["x-ms-copy-source"] === undefined) return operation;
  if (operation !== "PutBlob") return fromUrl[operation] ?? operation;
  if (headers["x-ms-blob-type"] !== undefined) return "PutBlobFromUrl";
  return headers["x-ms-requires-sync"]?.toLowerCase() === "true" ? "CopyBlobFromUrl" : "CopyBlob";
}

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "MERGE"]);

/** Query parameters whose meaning we don't have, whatever the operation. */
const laterParameters: Readonly<Record<string, string>> = {
  endbefore: "Listing up to a name (endBefore)",
};

const rowsOf = (target: BlobResource): Readonly<Record<string, Row>> =>
  target.blob !== undefined ? blobRows : target.container !== undefined ? containerRows : serviceRows;

/** `restype` and `comp` as the tables have them, behind the method. */
function rowKey(method: string, target: Target): string {
  const restype = queryValue(target.query, "restype")?.toLowerCase() ?? "";
  const comp = queryValue(target.query, "comp")?.toLowerCase() ?? "";
  return `${method}${restype === "" ? "" : ` restype=${restype}`}${comp === "" ? "" : ` comp=${comp}`}`;
}

/** A kind of request that the service has: its name, and the status of a refusal, if it is not served. */
export interface BlobRequest {
  readonly title: string;
  readonly resource: "service" | "container" | "blob";
  /** `PUT comp=page` */
  readonly request: string;
  readonly served: boolean;
  /** HTTP status of the refusal; undefined: 501. */
  readonly refusedWith?: number;
}

/** In one word as in two: PutBlockList is Put Block List. */
const titleOf = (row: Row): string =>
  "operation" in row ? row.operation.replace(/(?<=[a-z])(?=[A-Z])/g, " ") : "refused" in row ? row.refused : row.feature;

/** Every row of the tables; of requests for any of the three resources, as one for the service. */
export function blobRequests(): BlobRequest[] {
  const requests: BlobRequest[] = [];
  for (const [resource, rows] of [
    ["service", serviceRows],
    ["container", containerRows],
    ["blob", blobRows],
  ] as const) {
    for (const [request, row] of Object.entries(rows)) {
      if (resource !== "service" && Object.hasOwn(accountInformation, request)) continue;
      const refusedWith = "refused" in row ? { refusedWith: row.refuse().error.status } : {};
      requests.push({ title: titleOf(row), resource, request, served: "operation" in row, ...refusedWith });
    }
  }
  for (const [operation, request] of [
    ["CopyBlob", "PUT with x-ms-copy-source"],
    ["CopyBlobFromUrl", "PUT with x-ms-copy-source, x-ms-requires-sync"],
    ["PutBlobFromUrl", "PUT with x-ms-copy-source, x-ms-blob-type"],
    ["PutBlockFromUrl", "PUT comp=block with x-ms-copy-source"],
    ["AppendBlockFromUrl", "PUT comp=appendblock with x-ms-copy-source"],
    ["PutPageFromUrl", "PUT comp=page with x-ms-copy-source"],
  ] as const) {
    requests.push({ title: titleOf({ operation }), resource: "blob", request, served: true });
  }
  return requests;
}

/** The title of the row that a request fits; undefined: none. */
export function blobRequestTitle(method: string, target: Target & BlobResource, headers: HttpHeaders): string | undefined {
  const rows = rowsOf(target);
  const key = rowKey(method, target);
  const row = Object.hasOwn(rows, key) ? rows[key] : undefined;
  return row && titleOf("operation" in row ? { operation: withHeaders(row.operation, headers) } : row);
}

export function recognizeBlob(method: string, target: Target & BlobResource, headers: HttpHeaders = {}): Parsed<BlobOperationName> {
  if (!methods.has(method)) return rejected("InvalidHttpVerb");
  for (const name of target.query.keys()) {
    const feature = laterParameters[name];
    if (feature !== undefined) return notImplemented(feature);
  }
  const rows = rowsOf(target);
  const asked = rowKey(method, target);
  const query = asked.slice(method.length);
  const row = Object.hasOwn(rows, asked) ? rows[asked] : undefined;
  if (row) {
    if ("operation" in row) return parsed(withHeaders(row.operation, headers));
    return "refused" in row ? row.refuse() : notImplemented(row.feature);
  }
  if (Object.keys(rows).some((key) => key.slice(key.indexOf(" ")) === query || (query === "" && !key.includes(" ")))) {
    return rejected("UnsupportedHttpVerb");
  }
  const comp = queryValue(target.query, "comp") ?? "";
  const restype = queryValue(target.query, "restype") ?? "";
  if (comp !== "") return badQuery("comp", comp, "It does not name an operation on this resource.");
  if (restype !== "") return badQuery("restype", restype, "It does not name a resource of this path.");
  return rejected("InvalidUri");
}
