/** Every operation on tables and entities, a row each (../operations/row.ts). */
import { emptyBytes, type Rules } from "@stamp/base";
import { byCase, type OperationRows, type Route, type RowsOf } from "../operations/row.ts";
import { changeEntities, getEntity } from "./entities.ts";
import { partitionPrefix, tableKey } from "./keys.ts";
import type { ChangeEntities, GetEntity, TableAddress, TableOperation } from "./operation.ts";
import { listTables, queryEntities, queryStart, tablesStart } from "./queries.ts";
import { createTable, deleteTable, getTable, setTableAcl } from "./tables.ts";

const tableRoute = (_rules: Rules, { account, table }: TableAddress): Route => ({ table: "Entity", key: tableKey(account, table) });

const partitionRoute = (rules: Rules, { table, partitionKey }: Pick<ChangeEntities | GetEntity, "table" | "partitionKey">): Route => ({
  table: "Entity",
  key: partitionPrefix(rules, table, partitionKey),
});

type Values = { readonly [O in TableOperation as O["case"]]: O["value"] };

const rows: OperationRows<TableOperation> = {
  createTable: { access: "write", route: tableRoute, plan: createTable },
  getTable: { access: "read", route: tableRoute, plan: getTable },
  setTableAcl: { access: "write", route: tableRoute, plan: setTableAcl },
  deleteTable: { access: "write", route: tableRoute, plan: deleteTable },
  listTables: {
    access: "read",
    route: (_rules, value: Values["listTables"]) => ({ table: "Entity", key: tablesStart(value)[0]?.low ?? emptyBytes }),
    plan: listTables,
    overRanges: true,
  },
  changeEntities: { access: "write", route: partitionRoute, plan: changeEntities },
  getEntity: { access: "read", route: partitionRoute, plan: getEntity },
  queryEntities: {
    access: "read",
    route: (rules, value: Values["queryEntities"]) => ({ table: "Entity", key: queryStart(value, { rules })[0]?.low ?? emptyBytes }),
    plan: queryEntities,
    overRanges: true,
  },
};

export const tableOperations: RowsOf<TableOperation, TableOperation> = byCase<TableOperation, TableOperation>(rows);
