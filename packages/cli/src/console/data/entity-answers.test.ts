import assert from "node:assert/strict";
import { test } from "node:test";
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import type { EntityRow } from "@stamp/console-page";
import { entityRow } from "./data-lists.ts";
import { exactEntities } from "./entity-answers.ts";

/** Row that the console makes of an entity in the service's JSON, through the SDK. */
async function rowOf(entity: string): Promise<EntityRow> {
  const text = `{"odata.metadata":"m","value":[{"odata.etag":"e","PartitionKey":"p","RowKey":"5.0",${entity}}]}`;
  const client = new TableClient("http://127.0.0.1:1/a", "t", new AzureNamedKeyCredential("a", "a2V5"), {
    allowInsecureConnection: true,
    additionalPolicies: exactEntities,
    httpClient: { sendRequest: async (request) => ({ request, status: 200, headers: request.headers, bodyAsText: text }) },
  });
  const { value = [] } = await client.listEntities({ disableTypeConversion: true }).byPage().next();
  return entityRow(value[0]);
}
const textsOf = ({ properties }: EntityRow): string[] => properties.map(({ name, type, value }) => `${name} ${type} ${value}`);

test("entities: a Double without digits behind the point stays a Double", async () => {
  const row = await rowOf(
    '"whole":5.0,"large":1E+20,"small":-0.5,"int":5,"long@odata.type":"Edm.Int64","long":"9007199254740993",' +
      '"none@odata.type":"Edm.Double","none":"NaN","text":"1.0"',
  );
  assert.deepEqual([row.partitionKey, row.rowKey], ["p", "5.0"]);
  assert.deepEqual(textsOf(row), [
    "whole Double 5",
    "large Double 100000000000000000000",
    "small Double -0.5",
    "int Int32 5",
    "long Int64 9007199254740993",
    "none Double NaN",
    "text String 1.0",
  ]);
});

test("entities: properties do not stand in for keys and ETag, and are shown by names that nothing can be written with", async () => {
  const row = await rowOf(
    '"Timestamp":"2026-11-29T00:00:00Z","partitionKey":"other","rowKey@odata.type":"Edm.Int64","rowKey":"7","etag":"*","timestamp":1.0,"__proto__":true',
  );
  const { partitionKey, rowKey, etag, timestamp } = row;
  assert.deepEqual([partitionKey, rowKey, etag, timestamp], ["p", "5.0", "e", "2026-11-29T00:00:00Z"]);
  assert.deepEqual(textsOf(row).toSorted(), [
    "@__proto__ Boolean true",
    "@etag String *",
    "@partitionKey String other",
    "@rowKey Int64 7",
    "@timestamp Double 1",
  ]);
});
