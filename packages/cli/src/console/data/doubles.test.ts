import assert from "node:assert/strict";
import { test } from "node:test";
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import { entityRow } from "./data-lists.ts";
import { typedDoubles } from "./doubles.ts";

test("entities: a Double without digits behind the point stays a Double, in lists of the SDK", async () => {
  const text =
    '{"value":[{"odata.etag":"e","PartitionKey":"p","RowKey":"5.0","whole":5.0,"large":1E+20,"small":-0.5,"int":5,' +
    '"long@odata.type":"Edm.Int64","long":"9007199254740993","none@odata.type":"Edm.Double","none":"NaN","text":"1.0"}]}';
  const client = new TableClient("http://127.0.0.1:1/a", "t", new AzureNamedKeyCredential("a", "a2V5"), {
    allowInsecureConnection: true,
    additionalPolicies: typedDoubles,
    httpClient: { sendRequest: async (request) => ({ request, status: 200, headers: request.headers, bodyAsText: text }) },
  });
  const { value = [] } = await client.listEntities({ disableTypeConversion: true }).byPage().next();
  const row = entityRow(value[0]);
  assert.deepEqual([row.partitionKey, row.rowKey], ["p", "5.0"]);
  assert.deepEqual(
    row.properties.map(({ name, type, value }) => `${name} ${type} ${value}`),
    [
      "whole Double 5",
      "large Double 100000000000000000000",
      "small Double -0.5",
      "int Int32 5",
      "long Int64 9007199254740993",
      "none Double NaN",
      "text String 1.0",
    ],
  );
});
