/**
 * Operation of a request: a table by resource, method, `restype` and `comp`. A row is an operation that Stamp serves,
 * or the name of one that only the service has: that is answered 501 with the name. A request without a row is the
 * client's mistake: 400 for a query without a meaning, 405 for a method that the resource does not have.
 */
import type { HttpHeaders } from "../headers.ts";
import { badQuery, notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import { queryValue, type Target } from "../target.ts";
import { type BlobOperationName, blobOperationNames, blobOperations } from "./operation-rows.ts";
import type { BlobResource } from "./resource.ts";

/** Served; or not served here, with the feature's name. */
type Row = { readonly operation: BlobOperationName } | { readonly feature: string };
const later = (feature: string): Row => ({ feature });

/** Requests that the service has and Stamp does not serve. */
const notServed: Readonly<Record<string, Row>> = {
  "container PUT restype=container comp=rename": later("Rename Container"),
  "blob PUT comp=incrementalcopy": later("Incremental Copy Blob"),
  "blob POST comp=query": later("Query Blob Contents"),
};

/** All requests of the service, each with its row. */
const all: readonly (readonly [request: string, row: Row])[] = [
  ...blobOperationNames.flatMap((operation) => blobOperations[operation].requests.map((request) => [request, { operation }] as const)),
  ...Object.entries(notServed),
];

type Resource = "service" | "container" | "blob";
const resources: readonly Resource[] = ["service", "container", "blob"];

/** Rows by method and query, for each resource. */
const rowsByResource: Readonly<Record<Resource, Readonly<Record<string, Row>>>> = {
  service: rowsFor("service"),
  container: rowsFor("container"),
  blob: rowsFor("blob"),
};

function rowsFor(resource: Resource): Readonly<Record<string, Row>> {
  const rows: Record<string, Row> = {};
  for (const [request, row] of all) {
    const [asked, key] = split(request);
    if ((asked === resource || asked === "any") && !key.includes(" with ")) rows[key] = row;
  }
  return rows;
}

/** Returns the resource, and the method and parameters that follow it. */
function split(request: string): readonly [resource: string, key: string] {
  const space = request.indexOf(" ");
  return [request.slice(0, space), request.slice(space + 1)];
}

/** Operation that a request is when its content comes from a URL. */
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
  rowsByResource[target.blob !== undefined ? "blob" : target.container !== undefined ? "container" : "service"];

/** Returns the key of a row: the method, then `restype` and `comp`. */
function rowKey(method: string, target: Target): string {
  const restype = queryValue(target.query, "restype")?.toLowerCase() ?? "";
  const comp = queryValue(target.query, "comp")?.toLowerCase() ?? "";
  return `${method}${restype === "" ? "" : ` restype=${restype}`}${comp === "" ? "" : ` comp=${comp}`}`;
}

/** A kind of request that the service has: its name, and the status of a refusal, if it is not served. */
export interface BlobRequest {
  readonly title: string;
  readonly resource: "service" | "container" | "blob";
  /** Method and parameters, e.g. `PUT comp=page`. */
  readonly request: string;
  /** True if the operation is served; false: it is refused with 501. */
  readonly served: boolean;
}

/** Returns the title of the operation in the reference, with spaces: "Put Block List" for PutBlockList. */
const titleOf = (row: Row): string => ("operation" in row ? row.operation.replace(/(?<=[a-z])(?=[A-Z])/g, " ") : row.feature);

/** Returns every row of the tables; of requests for any of the three resources, as one for the service. */
export function blobRequests(): BlobRequest[] {
  return resources.flatMap((resource) =>
    all.flatMap(([asked, row]) => {
      const [of, request] = split(asked);
      if ((of === "any" ? "service" : of) !== resource) return [];
      return [{ title: titleOf(row), resource, request, served: "operation" in row }];
    }),
  );
}

/** Returns the title of the row that a request fits; undefined: none. */
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
  if (row) return "operation" in row ? parsed(withHeaders(row.operation, headers)) : notImplemented(row.feature);
  if (Object.keys(rows).some((key) => key.slice(key.indexOf(" ")) === query || (query === "" && !key.includes(" ")))) {
    return rejected("UnsupportedHttpVerb");
  }
  const comp = queryValue(target.query, "comp") ?? "";
  const restype = queryValue(target.query, "restype") ?? "";
  if (comp !== "") return badQuery("comp", comp, "It does not name an operation on this resource.");
  if (restype !== "") return badQuery("restype", restype, "It does not name a resource of this path.");
  return rejected("InvalidUri");
}
