/** Who may do what: shared keys in their Table forms, access policies, SAS with key ranges. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { AzureNamedKeyCredential, generateAccountSas, generateTableSas, type TransactionAction } from "@azure/data-tables";
import { all, refusal, type TableClients } from "./target.ts";

export function accessSuite(clients: () => TableClients): void {
  const signed = async (scheme: string, textOf: (date: string, resource: string) => string, path: string): Promise<number> => {
    const { endpoint, accountName, accountKey } = clients().target;
    const date = new Date().toUTCString();
    const text = textOf(date, `/${accountName}/${accountName}${path.split("?")[0]}`);
    const signature = createHmac("sha256", Buffer.from(accountKey, "base64")).update(text).digest("base64");
    const headers = { "x-ms-date": date, authorization: `${scheme} ${accountName}:${signature}`, accept: "application/json" };
    return (await fetch(`${endpoint}/${accountName}${path}`, { headers })).status;
  };

  describe("access", () => {
    test("SharedKey and SharedKeyLite sign what the Table service signs", async () => {
      assert.equal(await signed("SharedKey", (date, resource) => `GET\n\n\n${date}\n${resource}`, "/Tables?$top=1"), 200);
      assert.equal(await signed("SharedKeyLite", (date, resource) => `${date}\n${resource}`, "/Tables?$top=1"), 200);
      const properties = "/?restype=service&comp=properties";
      assert.equal(await signed("SharedKeyLite", (date, resource) => `${date}\n${resource}?comp=properties`, properties), 200);
      assert.equal(await signed("SharedKey", (date, resource) => `GET\n\n\n\nx-ms-date:${date}\n${resource}`, "/Tables"), 403);
      assert.equal(await signed("SharedKeyLite", (date, resource) => `GET\n${date}\n${resource}`, "/Tables"), 403);
    });

    test("nobody is let in without authorization, and nobody with a wrong key", async () => {
      const { tableName } = await clients().table();
      assert.equal((await clients().raw("GET", `/${tableName}`, { sign: false })).status, 401);
      const wrong = await clients().raw("GET", "/Tables", {
        headers: { authorization: `SharedKey ${clients().target.accountName}:AAAA` },
        sign: false,
      });
      assert.equal(wrong.status, 403);
    });

    test("access policies are kept and given back; at most five", async () => {
      const table = await clients().table();
      assert.deepEqual(await table.getAccessPolicy().then((held) => [...held]), []);
      const accessPolicy = { start: new Date("2024-01-01T00:00:00Z"), expiry: new Date("2034-01-01T00:00:00Z"), permission: "raud" };
      await table.setAccessPolicy([{ id: "all", accessPolicy }, { id: "none" }]);
      const held = await table.getAccessPolicy();
      assert.deepEqual(
        held.map(({ id, accessPolicy: policy }) => [id, policy?.permission, policy?.expiry?.getTime()]),
        [
          ["all", "raud", Date.UTC(2034, 0, 1)],
          ["none", undefined, undefined],
        ],
      );
      const six = Array.from({ length: 6 }, (_, i) => ({ id: `p${i}` }));
      assert.match(await refusal(table.setAccessPolicy(six)), /^400/);
      assert.equal(await refusal(clients().client("Nowhere1").getAccessPolicy()), "404 TableNotFound");
    });

    test("a table's SAS allows what it names, in its table only", async () => {
      const table = await clients().table();
      await table.createEntity({ partitionKey: "p", rowKey: "r" });
      const expiresOn = new Date(Date.now() + 3_600_000);
      const reads = clients().clientBy(
        generateTableSas(table.tableName, clients().credential, { permissions: { query: true }, expiresOn }),
        table.tableName,
      );
      assert.equal((await all(reads.listEntities())).length, 1);
      assert.match(await refusal(reads.createEntity({ partitionKey: "p", rowKey: "s" })), /^403/);
      assert.match(await refusal(reads.submitTransaction([["create", { partitionKey: "p", rowKey: "s" }]])), /^403/);
      const adds = clients().clientBy(
        generateTableSas(table.tableName, clients().credential, { permissions: { add: true }, expiresOn }),
        table.tableName,
      );
      await adds.createEntity({ partitionKey: "p", rowKey: "s" });
      assert.match(await refusal(adds.upsertEntity({ partitionKey: "p", rowKey: "s" })), /^403/);
      assert.match(await refusal(adds.getEntity("p", "s")), /^403/);
      const mixed: TransactionAction[] = [
        ["create", { partitionKey: "p", rowKey: "t" }],
        ["delete", { partitionKey: "p", rowKey: "r" }],
      ];
      assert.match(await refusal(adds.submitTransaction(mixed)), /^403 1:/);
      const other = await clients().table();
      const elsewhere = clients().clientBy(
        generateTableSas(table.tableName, clients().credential, { permissions: { query: true }, expiresOn }),
        other.tableName,
      );
      assert.match(await refusal(all(elsewhere.listEntities())), /^403/);
    });

    test("a SAS by a stored policy ends with the policy", async () => {
      const table = await clients().table();
      const expiry = new Date(Date.now() + 3_600_000);
      await table.setAccessPolicy([{ id: "readers", accessPolicy: { start: new Date(Date.now() - 60_000), expiry, permission: "r" } }]);
      const sas = generateTableSas(table.tableName, clients().credential, { identifier: "readers" });
      const reads = clients().clientBy(sas, table.tableName);
      assert.deepEqual(await all(reads.listEntities()), []);
      await table.setAccessPolicy([]);
      assert.match(await refusal(all(reads.listEntities())), /^403/);
    });

    test("a SAS with key ranges shows and changes what lies inside them", async () => {
      const table = await clients().table();
      for (const partitionKey of ["a", "b", "c"]) for (const rowKey of ["1", "2", "3"]) await table.createEntity({ partitionKey, rowKey });
      const sas = generateTableSas(table.tableName, clients().credential, {
        permissions: { query: true, add: true, update: true, delete: true },
        expiresOn: new Date(Date.now() + 3_600_000),
        startPartitionKey: "a",
        startRowKey: "2",
        endPartitionKey: "b",
        endRowKey: "2",
      });
      const ranged = clients().clientBy(sas, table.tableName);
      const found = await all(ranged.listEntities());
      assert.deepEqual(
        found.map(({ partitionKey, rowKey }) => `${partitionKey}${rowKey}`),
        ["a2", "a3", "b1", "b2"],
      );
      const filtered = await all(ranged.listEntities({ queryOptions: { filter: "RowKey eq '3' or PartitionKey eq 'c'" } }));
      assert.deepEqual(
        filtered.map(({ partitionKey, rowKey }) => `${partitionKey}${rowKey}`),
        ["a3"],
      );
      await ranged.getEntity("a", "2");
      for (const [partitionKey, rowKey] of [
        ["a", "1"],
        ["b", "3"],
        ["c", "1"],
      ] as const) {
        assert.match(await refusal(ranged.getEntity(partitionKey, rowKey)), /^403/);
        assert.match(await refusal(ranged.upsertEntity({ partitionKey, rowKey })), /^403/);
        assert.match(await refusal(ranged.deleteEntity(partitionKey, rowKey)), /^403/);
      }
      const actions: TransactionAction[] = [
        ["upsert", { partitionKey: "b", rowKey: "2" }],
        ["upsert", { partitionKey: "b", rowKey: "3" }],
      ];
      assert.match(await refusal(ranged.submitTransaction(actions)), /^403 1:/);
    });

    test("an account SAS lists tables and works on all of them", async () => {
      const table = await clients().table();
      const { accountName, accountKey } = clients().target;
      const sas = generateAccountSas(new AzureNamedKeyCredential(accountName, accountKey), {
        services: { table: true },
        resourceTypes: "sco",
        permissions: { query: true, list: true, add: true, write: true, delete: true },
      });
      const client = clients().clientBy(sas, table.tableName);
      await client.createEntity({ partitionKey: "p", rowKey: "r" });
      assert.equal((await all(client.listEntities())).length, 1);
      assert.match(await refusal(client.upsertEntity({ partitionKey: "p", rowKey: "r" })), /^403/);
    });
  });
}
