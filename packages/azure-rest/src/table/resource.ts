/** Resource in the path of a Table service request. */
import type { SignedResource } from "../auth/authorization.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodePercent, type Query, queryValue } from "../target.ts";

export type TableResource =
  | { readonly kind: "service" }
  | { readonly kind: "batch" }
  /** Resource `Tables`: the list of tables. */
  | { readonly kind: "tables" }
  /** Resource `Tables('name')`: one table. */
  | { readonly kind: "table"; readonly table: string }
  /** Resource `name` or `name()`: the entities of a table. */
  | { readonly kind: "entities"; readonly table: string }
  /** `name(PartitionKey='…',RowKey='…')` */
  | { readonly kind: "entity"; readonly table: string; readonly partitionKey: string; readonly rowKey: string };

const text = "'((?:[^']|'')*)'";
const keyFirst = new RegExp(`^\\s*PartitionKey\\s*=\\s*${text}\\s*,\\s*RowKey\\s*=\\s*${text}\\s*$`);
const rowFirst = new RegExp(`^\\s*RowKey\\s*=\\s*${text}\\s*,\\s*PartitionKey\\s*=\\s*${text}\\s*$`);

const unquoted = (quoted: string | undefined): string => (quoted ?? "").replaceAll("''", "'");

/** `resource`: path behind the account, not decoded. The caller checks names and keys. */
export function parseTableResource(resource: string): Parsed<TableResource> {
  const path = decodePercent(resource.endsWith("/") ? resource.slice(0, -1) : resource);
  if (path === undefined) return rejected("InvalidUri");
  if (path === "") return parsed({ kind: "service" });
  if (path === "$batch") return parsed({ kind: "batch" });
  const match = /^([^(]+)(?:\((.*)\))?$/s.exec(path);
  if (!match) return rejected("InvalidUri");
  const [, name = "", inside = ""] = match;
  if (name.toLowerCase() === "tables") {
    if (inside === "") return parsed({ kind: "tables" });
    const named = new RegExp(`^\\s*${text}\\s*$`).exec(inside);
    return named ? parsed({ kind: "table", table: unquoted(named[1]) }) : rejected("InvalidUri");
  }
  if (inside === "") return parsed({ kind: "entities", table: name });
  const keys = keyFirst.exec(inside);
  if (keys) return parsed({ kind: "entity", table: name, partitionKey: unquoted(keys[1]), rowKey: unquoted(keys[2]) });
  const turned = rowFirst.exec(inside);
  if (turned) return parsed({ kind: "entity", table: name, partitionKey: unquoted(turned[2]), rowKey: unquoted(turned[1]) });
  return rejected("InvalidUri");
}

/** Returns the table that a signature is for: of a transaction, the one that `tn` of the SAS names. */
export function signedTableResource(resource: TableResource, query: Query): SignedResource {
  const table = "table" in resource ? resource.table : resource.kind === "batch" ? queryValue(query, "tn") : undefined;
  return table === undefined ? { kind: "account" } : { kind: "table", table };
}
