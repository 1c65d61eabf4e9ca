/** Where operations on tables and entities belong. */
import { emptyBytes, type Rules } from "@stamp/base";
import type { Route } from "../routing.ts";
import { entityKey, partitionPrefix, tableKey } from "./keys.ts";
import type { TableOperation } from "./operation.ts";
import { queryStart, tablesStart } from "./queries.ts";
import { spansFrom } from "./spans.ts";

export function routeOfTables(rules: Rules, operation: TableOperation): Route {
  return { table: "Entity", key: keyOf(rules, operation) };
}

function keyOf(rules: Rules, { case: kind, value }: TableOperation): Uint8Array {
  switch (kind) {
    case "createTable":
    case "getTable":
    case "setTableAcl":
    case "deleteTable":
      return tableKey(value.account, value.table);
    case "changeEntities":
    case "getEntity":
      return partitionPrefix(rules, value.table, value.partitionKey);
    case "listTables":
      return tablesStart(value)[0]?.low ?? emptyBytes;
    case "queryEntities":
      return queryStart(value, { rules })[0]?.low ?? emptyBytes;
  }
}

/** Where a query goes on that has ended in the range before this key; undefined: nowhere, it has ended. */
export function queryRouteFrom(rules: Rules, operation: TableOperation, key: Uint8Array): Route | undefined {
  const start =
    operation.case === "queryEntities"
      ? queryStart(operation.value, { rules })
      : operation.case === "listTables"
        ? tablesStart(operation.value)
        : [];
  const next = spansFrom(start, key)[0];
  return next && { table: "Entity", key: next.low };
}

/** One for each entity that is changed, so that a transaction has the turn of all of its entities. */
export function lockKeysOfTables(rules: Rules, operation: TableOperation): Uint8Array[] {
  if (operation.case !== "changeEntities") return [keyOf(rules, operation)];
  const { table, partitionKey, changes } = operation.value;
  const prefix = partitionPrefix(rules, table, partitionKey);
  return [...new Set(changes.map(({ rowKey }) => rowKey))].map((rowKey) => entityKey(prefix, rowKey));
}
