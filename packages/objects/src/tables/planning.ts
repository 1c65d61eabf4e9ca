/** The plan of every operation on tables and entities. */
import type { Plan, PlanContext } from "../plan.ts";
import { changeEntities, getEntity } from "./entities.ts";
import type { TableOperation } from "./operation.ts";
import { listTables, queryEntities } from "./queries.ts";
import { createTable, deleteTable, getTable, setTableAcl } from "./tables.ts";

export function planOfTables(operation: TableOperation, context: PlanContext): Plan {
  switch (operation.case) {
    case "createTable":
      return createTable(operation.value, context);
    case "getTable":
      return getTable(operation.value);
    case "setTableAcl":
      return setTableAcl(operation.value);
    case "deleteTable":
      return deleteTable(operation.value);
    case "listTables":
      return listTables(operation.value, context);
    case "changeEntities":
      return changeEntities(operation.value, context);
    case "getEntity":
      return getEntity(operation.value, context);
    case "queryEntities":
      return queryEntities(operation.value, context);
  }
}
