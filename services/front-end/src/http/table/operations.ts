/** Table of the functions that serve the operations of the Table service. */
import type { TableOperationName } from "@stamp/azure-rest";
import { getServiceStatistics } from "../../geo/service-statistics.ts";
import { getUserDelegationKey } from "../delegation-key.ts";
import { analyticsUnsupported, getServiceProperties, setServiceProperties } from "../service-properties.ts";
import { changeEntity, getEntity, queryEntities } from "./entities.ts";
import type { TableOperationHandler } from "./exchange.ts";
import { createTable, deleteTable, getTable, getTableAcl, queryTables, setTableAcl } from "./tables.ts";
import { entityGroupTransaction } from "./transaction.ts";

export const tableHandlers = (hostSuffixes: readonly string[]): Readonly<Record<TableOperationName, TableOperationHandler>> => ({
  GetTableServiceProperties: (exchange) => getServiceProperties(exchange, "table"),
  SetTableServiceProperties: (exchange) => setServiceProperties(exchange, "table", analyticsUnsupported),
  GetTableServiceStats: async (exchange) => getServiceStatistics(exchange),
  GetUserDelegationKey: (exchange) => getUserDelegationKey(exchange, "table"),
  QueryTables: queryTables,
  CreateTable: createTable,
  GetTable: getTable,
  DeleteTable: deleteTable,
  GetTableAcl: getTableAcl,
  SetTableAcl: setTableAcl,
  QueryEntities: queryEntities,
  GetEntity: getEntity,
  InsertEntity: (exchange) => changeEntity(exchange, "InsertEntity"),
  UpdateEntity: (exchange) => changeEntity(exchange, "UpdateEntity"),
  MergeEntity: (exchange) => changeEntity(exchange, "MergeEntity"),
  DeleteEntity: (exchange) => changeEntity(exchange, "DeleteEntity"),
  InsertOrReplaceEntity: (exchange) => changeEntity(exchange, "InsertOrReplaceEntity"),
  InsertOrMergeEntity: (exchange) => changeEntity(exchange, "InsertOrMergeEntity"),
  EntityGroupTransaction: (exchange) => entityGroupTransaction(exchange, hostSuffixes),
});
