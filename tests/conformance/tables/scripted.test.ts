/** The suite against a front-end and a partition server over memory, the table cut into ranges. What it sees is what docs/api/table.md says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseTableResource, parseTarget, recognizeTable, type TableOperationName, tableOperationNames } from "@stamp/azure-rest";
import type { HttpRequest } from "@stamp/ports";
import { ApiRecord, checkApiPage } from "../../tools/api-table.ts";
import { testIssuer } from "../issuer.ts";
import { accountKey, accountName, startScriptedStamp } from "../scripted-stamp.ts";
import { roleRow, statisticsOf } from "../statistics.ts";
import { tableConformance } from "./index.ts";

const entity = "(PartitionKey='…',RowKey='…')";
const requests: Readonly<Record<TableOperationName, string>> = {
  GetTableServiceProperties: "GET restype=service comp=properties",
  SetTableServiceProperties: "PUT restype=service comp=properties",
  GetTableServiceStats: "GET restype=service comp=stats",
  GetUserDelegationKey: "POST restype=service comp=userdelegationkey",
  QueryTables: "GET Tables",
  CreateTable: "POST Tables",
  GetTable: "GET Tables('table')",
  DeleteTable: "DELETE Tables('table')",
  GetTableAcl: "GET table comp=acl",
  SetTableAcl: "PUT table comp=acl",
  QueryEntities: "GET table()",
  GetEntity: `GET table${entity}`,
  InsertEntity: "POST table",
  UpdateEntity: `PUT table${entity} with If-Match`,
  MergeEntity: `MERGE or PATCH table${entity} with If-Match`,
  DeleteEntity: `DELETE table${entity}`,
  InsertOrReplaceEntity: `PUT table${entity}`,
  InsertOrMergeEntity: `MERGE or PATCH table${entity}`,
  EntityGroupTransaction: "POST $batch",
};
const titleOf = (operation: TableOperationName): string => operation.replace(/(?<=[a-z])(?=[A-Z])/g, " ").replace(/Acl$/, "ACL");

const record = new ApiRecord();

function onTableAnswer({ method, target, headers }: HttpRequest, status: number): void {
  const parsed = parseTarget(target, headers.host ?? "", { hostSuffixes: [] });
  const resource = parsed.ok ? parseTableResource(parsed.value.resource) : parsed;
  if (!parsed.ok || !resource.ok) return;
  const operation = recognizeTable(method, resource.value, parsed.value.query, headers);
  if (operation.ok) record.saw(titleOf(operation.value), status);
}

tableConformance(
  "front-end and partition server over memory",
  async () => {
    const issuer = await testIssuer();
    const stamp = await startScriptedStamp({ onTableAnswer, frontEnd: issuer.settings });
    return { endpoint: stamp.tableEndpoint, accountName, accountKey, issuer, stop: () => stamp.stop().finally(() => issuer.remove()) };
  },
  record,
);

test("statistics are given at the secondary location", async () => {
  record.part = "statistics.ts";
  const stamp = await startScriptedStamp({ onTableAnswer });
  await stamp.setRole(roleRow("secondary"));
  assert.equal((await statisticsOf("table", stamp)).status, "unavailable");
  await stamp.stop();
});

test("docs/api/table.md says what the suite has seen", () => {
  checkApiPage(
    {
      path: "docs/api/table.md",
      heading: "Table service",
      about: "One row per operation of the Table service REST API. Bodies are JSON; Atom is refused with 415.",
      requests: tableOperationNames.map((operation) => ({ title: titleOf(operation), request: requests[operation], served: true })),
    },
    record,
  );
});
