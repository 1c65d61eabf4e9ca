/** Tables themselves: made, listed, deleted, found without regard to case; their names; service properties. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { odata } from "@azure/data-tables";
import { serviceRules } from "../service-rules.ts";
import { all, freshName, refusal, type TableClients } from "./target.ts";

export function tableSuite(clients: () => TableClients): void {
  describe("tables", () => {
    test("a table is created once, and by the SDK as often as wanted", async () => {
      const name = freshName();
      await clients().tables.createTable(name);
      await clients().tables.createTable(name);
      const again = await clients().json("POST", "/Tables", { TableName: name.toLowerCase() });
      assert.deepEqual([again.status, again.body["odata.error"].code], [409, "TableAlreadyExists"]);
    });

    test("creating answers with the table, or with nothing where that is preferred", async () => {
      const name = freshName();
      const made = await clients().json("POST", "/Tables", { TableName: name });
      assert.equal(made.status, 201);
      assert.equal(made.body.TableName, name);
      assert.match(made.body["odata.metadata"], /\$metadata#Tables\/@Element$/);
      assert.match(made.headers.get("location") ?? "", new RegExp(`/Tables\\('${name}'\\)$`));
      const quiet = await clients().json("POST", "/Tables", { TableName: freshName() }, { prefer: "return-no-content" });
      assert.deepEqual([quiet.status, quiet.text, quiet.headers.get("preference-applied")], [204, "", "return-no-content"]);
      assert.ok(quiet.headers.get("dataserviceid"));
    });

    test("a table that is deleted is gone at once, and its entities do not come back with a new one", async () => {
      const table = await clients().table();
      await table.createEntity({ partitionKey: "p", rowKey: "r" });
      await table.deleteTable();
      assert.equal(await refusal(table.getEntity("p", "r")), "404 TableNotFound");
      assert.equal(await refusal(table.createEntity({ partitionKey: "p", rowKey: "r" })), "404 TableNotFound");
      assert.equal(await refusal(all(table.listEntities())), "404 TableNotFound");
      await table.createTable();
      assert.deepEqual(await all(table.listEntities()), []);
      const gone = await clients().json("DELETE", `/Tables('${freshName()}')`);
      assert.deepEqual([gone.status, gone.body["odata.error"].code], [404, "ResourceNotFound"]);
    });

    test("tables are listed by name, filtered, a page at a time", async () => {
      const prefix = freshName();
      const names = ["a", "B", "c", "D", "e"].map((end) => prefix + end);
      for (const name of [...names].reverse()) await clients().tables.createTable(name);
      const filter = odata`TableName ge ${prefix} and TableName lt ${`${prefix}~`}`;
      const found = await all(clients().tables.listTables({ queryOptions: { filter } }));
      assert.deepEqual(
        found.map(({ name }) => name),
        names,
      );
      const pages: string[][] = [];
      for await (const page of clients().tables.listTables({ queryOptions: { filter } }).byPage({ maxPageSize: 2 })) {
        pages.push(page.map(({ name }) => name ?? ""));
      }
      assert.deepEqual(pages, [names.slice(0, 2), names.slice(2, 4), names.slice(4)]);
      const one = await all(clients().tables.listTables({ queryOptions: { filter: odata`TableName eq ${`${prefix}C`}` } }));
      assert.deepEqual(
        one.map(({ name }) => name),
        [`${prefix}c`],
      );
    });

    test("a single table is read by its name", async () => {
      const table = await clients().table();
      const found = await clients().json("GET", `/Tables('${table.tableName.toUpperCase()}')`);
      assert.deepEqual([found.status, found.body.TableName], [200, table.tableName]);
      const absent = await clients().json("GET", `/Tables('${freshName()}')`);
      assert.deepEqual([absent.status, absent.body["odata.error"].code], [404, "TableNotFound"]);
    });

    test("names that are none are refused", async () => {
      for (const [name, code] of [
        ["a", "OutOfRangeInput"],
        ["a".repeat(64), "OutOfRangeInput"],
        ["1abc", "InvalidResourceName"],
        ["ab-c", "InvalidResourceName"],
        ["tables", "InvalidResourceName"],
      ] as const) {
        const made = await clients().json("POST", "/Tables", { TableName: name });
        assert.deepEqual([name, made.status, made.body["odata.error"].code], [name, 400, code]);
      }
      const none = await clients().json("POST", "/Tables", { Name: "abc" });
      assert.deepEqual([none.status, none.body["odata.error"].code], [400, "PropertiesNeedValue"]);
      const wrongType = await clients().json("POST", "/Tables", { TableName: 5 });
      assert.deepEqual([wrongType.status, wrongType.body["odata.error"].code], [400, "PropertiesNeedValue"]);
    });

    serviceRules(clients, "/Tables?$top=1", "table");

    test("service properties: CORS rules are kept, analytics refused", async () => {
      const service = clients().tables;
      const rule = {
        allowedOrigins: "http://a.example",
        allowedMethods: "GET,PUT",
        allowedHeaders: "x-ms-*",
        exposedHeaders: "",
        maxAgeInSeconds: 60,
      };
      await service.setProperties({ cors: [rule] });
      const held = await service.getProperties();
      assert.deepEqual(
        held.cors?.map(({ allowedOrigins, maxAgeInSeconds }) => [allowedOrigins, maxAgeInSeconds]),
        [["http://a.example", 60]],
      );
      await service.setProperties({ cors: [] });
      const logging = { version: "1.0", delete: true, read: true, write: true, retentionPolicy: { enabled: false } };
      assert.match(await refusal(service.setProperties({ logging })), /^501/);
    });
  });
}
