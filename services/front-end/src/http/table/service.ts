/** The Table service. */
import {
  errorBody,
  formatIso,
  odataErrorBody,
  parsed,
  parseTableResource,
  recognizeTable,
  refuseConditions,
  signedTableResource,
  tableAuthorizationOf,
  tableConditions,
} from "@stamp/azure-rest";
import type { RestService } from "../service.ts";
import { tableHandlers } from "./operations.ts";

export function tableService(hostSuffixes: readonly string[]): RestService {
  const handlers = tableHandlers(hostSuffixes);
  return {
    name: "table",
    serverName: "Stamp-Table/1.0",
    hostSuffixes,
    resource(target) {
      const resource = parseTableResource(target.resource);
      return resource.ok ? parsed(signedTableResource(resource.value, target.query)) : resource;
    },
    async storedPolicies(objects, account, resource, limits) {
      if (resource.kind !== "table") return parsed([]);
      const table = await objects.tables.find({ account, table: resource.table }, limits);
      if (!table.ok) return table.error.code === "TableNotFound" ? parsed([]) : table;
      return parsed(table.value.signedIdentifiers);
    },
    recognize(method, target, headers) {
      const resource = parseTableResource(target.resource);
      if (!resource.ok) return resource;
      const operation = recognizeTable(method, resource.value, target.query, headers);
      if (!operation.ok) return operation;
      const conditions = refuseConditions(headers, tableConditions(method, operation.value));
      if (!conditions.ok) return conditions;
      return parsed({
        name: operation.value,
        authorization: tableAuthorizationOf(operation.value),
        serve: (exchange) => handlers[operation.value]({ ...exchange, resource: resource.value, operation: operation.value }),
      });
    },
    errorBody(error, { requestId, nowMs, headers }) {
      const time = formatIso(nowMs);
      // Access policies and service properties are XML, and so are their errors.
      if ((headers["content-type"] ?? headers.accept ?? "").toLowerCase().startsWith("application/xml")) {
        return { contentType: "application/xml", text: errorBody(error, requestId, time) };
      }
      return {
        contentType: "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
        text: odataErrorBody(error, { requestId, time }),
      };
    },
  };
}
