/** Where queries go on, and the locks of changes. */
import type { Rules } from "@stamp/base";
import type { Route } from "../operations/row.ts";
import { entityKey, partitionPrefix } from "./keys.ts";
import type { TableOperation } from "./operation.ts";
import { tableOperations } from "./operations.ts";
import { queryStart, tablesStart } from "./queries.ts";
import { spansFrom } from "./spans.ts";

/** Returns where a query goes on that has ended in the range before this key; undefined: nowhere, it has ended. */
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

/** Returns a lock key for each changed entity, so that a transaction has the turn of all of them. */
export function lockKeysOfTables(rules: Rules, operation: TableOperation): Uint8Array[] {
  if (operation.case !== "changeEntities") return [tableOperations.route(rules, operation).key];
  const { table, partitionKey, changes } = operation.value;
  const prefix = partitionPrefix(rules, table, partitionKey);
  return [...new Set(changes.map(({ rowKey }) => rowKey))].map((rowKey) => entityKey(prefix, rowKey));
}
