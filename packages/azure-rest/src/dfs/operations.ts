/**
 * Operation of a Data Lake Storage request: a table by level, method and the query parameters that tell operations apart. A request without
 * a row is the client's mistake: a parameter is missing or has a value without a meaning (400), or the resource has no such method (405).
 */
import type { HttpHeaders } from "../headers.ts";
import { badHeader, badQuery, type Parsed, parsed, type RestError, rejected } from "../rest-error.ts";
import type { Query } from "../target.ts";
import {
  type DataLakeLevel,
  type DataLakeOperationName,
  dataLakeOperationNames,
  dataLakeOperations,
  renameSource,
  tellingParameters,
} from "./operation-rows.ts";
import type { DataLakeResource } from "./resource.ts";

interface Row {
  readonly operation: DataLakeOperationName;
  readonly level: string;
  readonly method: string;
  readonly told: ReadonlyMap<string, string>;
}

const rows: readonly Row[] = dataLakeOperationNames.flatMap((operation) =>
  dataLakeOperations[operation].requests.map((request): Row => {
    const [level = "", method = "", ...pairs] = request.split(" ");
    return { operation, level, method, told: new Map(pairs.map((pair) => pair.split("=") as [string, string])) };
  }),
);

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"]);
const overriding = "x-http-method-override";

/** Returns the method that is meant. Clients whose HTTP library has no PATCH put it into a header of a PUT or POST (Hadoop's ABFS). */
export function methodOf(method: string, headers: HttpHeaders): Parsed<string> {
  const meant = headers[overriding];
  if (meant === undefined) return methods.has(method) ? parsed(method) : rejected("InvalidHttpVerb");
  if (meant.toUpperCase() !== "PATCH" || (method !== "PUT" && method !== "POST" && method !== "PATCH")) {
    return badHeader(overriding, meant, "It makes a PUT or POST a PATCH, and nothing else.");
  }
  return parsed("PATCH");
}

const levelsOf = ({ filesystem, path }: DataLakeResource): readonly DataLakeLevel[] =>
  filesystem === undefined ? ["account"] : path === undefined || path === "" ? ["filesystem", "root"] : ["path"];

export const valueIn = (query: Query, name: string): string | undefined => query.get(name)?.[0];

/** `method`: as `methodOf` returns it. */
export function recognizeDataLake(
  method: string,
  resource: DataLakeResource,
  query: Query,
  headers: HttpHeaders,
): Parsed<DataLakeOperationName> {
  const levels: readonly string[] = levelsOf(resource);
  const given = new Map<string, string>();
  for (const name of tellingParameters) {
    const value = valueIn(query, name)?.toLowerCase();
    if (value !== undefined) given.set(name, value);
  }
  const candidates = rows.filter((row) => row.method === method && levels.includes(row.level));
  const renames = method === "PUT" && headers[renameSource] !== undefined && resource.path !== undefined && resource.path !== "";
  if (renames && !given.has("comp") && !given.has("restype")) return renamed(given.get("resource"));
  const row = candidates.find(({ operation, told }) => operation !== "RenamePath" && isSame(told, given));
  // A filesystem has no properties of a path; its root has, and is named with a slash behind it.
  if (row && !(row.operation === "GetPathProperties" && resource.path === undefined)) return parsed(row.operation);
  return unrecognized(candidates, given);
}

const renamed = (type: string | undefined): Parsed<DataLakeOperationName> =>
  type === undefined || type === "file" || type === "directory"
    ? parsed("RenamePath")
    : badQuery("resource", type, "It names the type of what is renamed: file or directory.");

const isSame = (told: ReadonlyMap<string, string>, given: ReadonlyMap<string, string>): boolean =>
  told.size === given.size && [...told].every(([name, value]) => given.get(name) === value);

function unrecognized(candidates: readonly Row[], given: ReadonlyMap<string, string>): { readonly ok: false; readonly error: RestError } {
  if (candidates.length === 0) return rejected("UnsupportedHttpVerb");
  for (const [name, value] of given) {
    if (!candidates.some(({ told }) => told.get(name) === value)) {
      return badQuery(name, value, "It does not name an operation of this method on this resource.");
    }
  }
  for (const name of ["resource", "action", "comp", "restype"]) {
    if (!given.has(name) && candidates.some(({ told }) => told.has(name))) {
      return rejected("MissingRequiredQueryParameter", { QueryParameterName: name });
    }
  }
  const [name = "", value = ""] = [...given][0] ?? [];
  return badQuery(name, value, "It does not go together with the other parameters.");
}

/** Clients of the Blob service ask for XML, and know its names of errors only. */
export const asksForXml = ({ accept }: HttpHeaders): boolean => accept?.includes("xml") === true;

/** Parameters of the Blob service that name a state of a blob, or a deletion of one. */
const ofStates = ["snapshot", "versionid", "deletetype"] as const;

/**
 * True for a request that only this service has, at a door that serves the Blob service's requests on the same files, too: clients of one
 * endpoint ask there for both. What both have is the Blob service's, but for properties that are asked for without naming XML: this service
 * shows those of users in another header.
 */
export function isDataLakeRequest(method: string, resource: DataLakeResource, query: Query, headers: HttpHeaders): boolean {
  if (query.has("restype") || query.has("comp")) return false;
  // A deletion of a snapshot or a version, or of the snapshots only, must not delete the file.
  if (ofStates.some((name) => query.has(name)) || headers["x-ms-delete-snapshots"]?.toLowerCase() === "only") return false;
  const own = query.has("resource") || query.has("action") || headers[renameSource] !== undefined;
  const asksForProperties = method === "HEAD" && resource.path !== undefined && !asksForXml(headers);
  if (own || asksForProperties || method === "PATCH" || method === "DELETE" || method === "POST" || headers[overriding] !== undefined)
    return true;
  // The root directory is no blob.
  return resource.path === "";
}
