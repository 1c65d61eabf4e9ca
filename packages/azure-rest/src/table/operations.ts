/** Operation of a request to the Table service, by the resource in its path, its method and `comp`. */
import type { HttpHeaders } from "../headers.ts";
import { badQuery, type Parsed, parsed, rejected } from "../rest-error.ts";
import { type Query, queryValue } from "../target.ts";
import { checkKey, checkTableName } from "./names.ts";
import type { TableResource } from "./resource.ts";

export const tableOperationNames = [
  "GetTableServiceProperties",
  "SetTableServiceProperties",
  "GetTableServiceStats",
  "GetUserDelegationKey",
  "QueryTables",
  "CreateTable",
  "GetTable",
  "DeleteTable",
  "GetTableAcl",
  "SetTableAcl",
  "QueryEntities",
  "GetEntity",
  "InsertEntity",
  "UpdateEntity",
  "MergeEntity",
  "DeleteEntity",
  "InsertOrReplaceEntity",
  "InsertOrMergeEntity",
  "EntityGroupTransaction",
] as const;
export type TableOperationName = (typeof tableOperationNames)[number];

const onOneEntity: ReadonlySet<TableOperationName> = new Set(["UpdateEntity", "MergeEntity", "DeleteEntity"]);

/**
 * Returns the conditions of HTTP that a request may have: If-Match where the reference lists it. Reads have none there. A cache adds
 * `If-None-Match` and `If-Modified-Since` to a read by itself, as an offer to save the answer; a read is always answered whole.
 */
export const tableConditions = (method: string, operation: TableOperationName): readonly string[] =>
  onOneEntity.has(operation) ? ["if-match"] : method === "GET" || method === "HEAD" ? ["if-none-match", "if-modified-since"] : [];

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE"]);
const tunnelled: ReadonlySet<string> = new Set(["MERGE", "PATCH", "PUT", "DELETE"]);

/** Returns the method that counts: POST with X-HTTP-Method is what that says. */
function effectiveMethod(method: string, headers: HttpHeaders): Parsed<string> {
  const wanted = headers["x-http-method"] ?? headers["x-http-method-override"];
  if (wanted === undefined) return methods.has(method) ? parsed(method) : rejected("InvalidHttpVerb");
  if (method !== "POST") return rejected("XMethodNotUsingPost");
  const meant = wanted.trim().toUpperCase();
  return tunnelled.has(meant) ? parsed(meant) : rejected("XMethodIncorrectValue");
}

export function recognizeTable(method: string, resource: TableResource, query: Query, headers: HttpHeaders): Parsed<TableOperationName> {
  const meant = effectiveMethod(method, headers);
  if (!meant.ok) return meant;
  if (meant.value === "OPTIONS") return rejected("CorsPreflightFailure");
  const names = checkTableNames(resource);
  if (!names.ok) return names;
  const comp = queryValue(query, "comp")?.toLowerCase() ?? "";
  const found = recognized(meant.value, resource, comp, queryValue(query, "restype")?.toLowerCase() ?? "", headers);
  if (!found)
    return comp === "" || comp === "acl"
      ? rejected("UnsupportedHttpVerb")
      : badQuery("comp", comp, "It does not name an operation on this resource.");
  return found;
}

function recognized(
  method: string,
  resource: TableResource,
  comp: string,
  restype: string,
  headers: HttpHeaders,
): Parsed<TableOperationName> | undefined {
  const conditional = headers["if-match"] !== undefined;
  switch (resource.kind) {
    case "service":
      return ofService(method, comp, restype);
    case "batch":
      return method === "POST" ? parsed("EntityGroupTransaction") : undefined;
    case "tables":
      return method === "GET" ? parsed("QueryTables") : method === "POST" ? parsed("CreateTable") : undefined;
    case "table":
      return method === "GET" ? parsed("GetTable") : method === "DELETE" ? parsed("DeleteTable") : undefined;
    case "entities":
      if (comp === "acl") {
        return method === "GET" || method === "HEAD" ? parsed("GetTableAcl") : method === "PUT" ? parsed("SetTableAcl") : undefined;
      }
      if (comp !== "") return undefined;
      return method === "GET" ? parsed("QueryEntities") : method === "POST" ? parsed("InsertEntity") : undefined;
    case "entity":
      switch (method) {
        case "GET":
          return parsed("GetEntity");
        case "PUT":
          return parsed(conditional ? "UpdateEntity" : "InsertOrReplaceEntity");
        case "MERGE":
        case "PATCH":
          return parsed(conditional ? "MergeEntity" : "InsertOrMergeEntity");
        case "DELETE":
          return conditional ? parsed("DeleteEntity") : rejected("MissingRequiredHeader", { HeaderName: "If-Match" });
        default:
          return undefined;
      }
  }
}

function ofService(method: string, comp: string, restype: string): Parsed<TableOperationName> | undefined {
  if (restype !== "service") return rejected("InvalidUri");
  if (comp === "stats" && method === "GET") return parsed("GetTableServiceStats");
  if (comp === "userdelegationkey" && method === "POST") return parsed("GetUserDelegationKey");
  if (comp !== "properties") return undefined;
  return method === "GET" ? parsed("GetTableServiceProperties") : method === "PUT" ? parsed("SetTableServiceProperties") : undefined;
}

function checkTableNames(resource: TableResource): Parsed<unknown> {
  if (!("table" in resource)) return parsed(undefined);
  const table = checkTableName(resource.table);
  if (!table.ok || resource.kind !== "entity") return table;
  const partitionKey = checkKey("PartitionKey", resource.partitionKey);
  return partitionKey.ok ? checkKey("RowKey", resource.rowKey) : partitionKey;
}
