/** What each operation of the Table service asks of a SAS or a bearer ("Create an account SAS", "Create a service SAS"). */
import type { OperationAuthorization, PermissionGroups, SignedResource } from "../auth/authorization.ts";
import { type Query, queryValue } from "../target.ts";
import type { TableOperationName } from "./operations.ts";
import type { TableResource } from "./resource.ts";

const onEntity = (groups: PermissionGroups, role: OperationAuthorization["role"]): OperationAuthorization => ({
  resourceType: "o",
  accountSas: groups,
  serviceSas: groups,
  role,
});
const accountOnly = (resourceType: string, groups: PermissionGroups, role: OperationAuthorization["role"]): OperationAuthorization => ({
  resourceType,
  accountSas: groups,
  serviceSas: "never",
  role,
});

export const tableAuthorization: Readonly<Record<TableOperationName, OperationAuthorization>> = {
  GetTableServiceProperties: accountOnly("s", ["r"], "read"),
  SetTableServiceProperties: accountOnly("s", ["w"], "own"),
  GetUserDelegationKey: accountOnly("s", "never", "read"),
  QueryTables: accountOnly("c", ["l"], "read"),
  GetTable: accountOnly("c", ["l"], "read"),
  CreateTable: accountOnly("c", ["cw"], "contribute"),
  DeleteTable: accountOnly("c", ["d"], "contribute"),
  GetTableAcl: accountOnly("c", "never", "own"),
  SetTableAcl: accountOnly("c", "never", "own"),
  QueryEntities: onEntity(["r"], "read"),
  GetEntity: onEntity(["r"], "read"),
  InsertEntity: onEntity(["a"], "contribute"),
  UpdateEntity: onEntity(["u"], "contribute"),
  MergeEntity: onEntity(["u"], "contribute"),
  DeleteEntity: onEntity(["d"], "contribute"),
  InsertOrReplaceEntity: onEntity(["a", "u"], "contribute"),
  InsertOrMergeEntity: onEntity(["a", "u"], "contribute"),
  // What each of its changes needs is looked at when they are known (`access.may`).
  EntityGroupTransaction: { resourceType: "o", accountSas: ["raud"], serviceSas: ["raud"], role: "contribute" },
};

/** A transaction names its table inside; a SAS says in `tn` which one it is for. */
export function signedTableResource(resource: TableResource, query: Query): SignedResource {
  const table = "table" in resource ? resource.table : resource.kind === "batch" ? queryValue(query, "tn") : undefined;
  return table === undefined ? { kind: "account" } : { kind: "table", table };
}
