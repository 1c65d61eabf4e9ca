/** One entity at a time: which operation needs what, ETags, forms of answers, keys and URLs. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { refusal, type TableClients } from "./target.ts";

/** "Managing concurrency in the Table service": which operations answer an ETag, and which need If-Match. */
const concurrency = [
  { operation: "Query Entities", etag: true, needsIfMatch: false },
  { operation: "Insert Entity", etag: true, needsIfMatch: false },
  { operation: "Update Entity", etag: true, needsIfMatch: true },
  { operation: "Merge Entity", etag: true, needsIfMatch: true },
  { operation: "Delete Entity", etag: false, needsIfMatch: true },
  { operation: "Insert Or Replace Entity", etag: true, needsIfMatch: false },
  { operation: "Insert Or Merge Entity", etag: true, needsIfMatch: false },
] as const;

export function entitySuite(clients: () => TableClients): void {
  describe("entities", () => {
    for (const { operation, etag, needsIfMatch } of concurrency) {
      test(`${operation}: ${etag ? "answers" : "does not answer"} an ETag, ${needsIfMatch ? "needs" : "takes no"} If-Match`, async () => {
        const table = await clients().table();
        const name = table.tableName;
        const url = `/${name}(PartitionKey='p',RowKey='r')`;
        const entity = { PartitionKey: "p", RowKey: "r", a: 1 };
        const first = operation === "Insert Entity" ? undefined : await clients().json("POST", `/${name}`, entity);
        const old = first?.headers.get("etag") ?? "";
        const ask = (headers: Record<string, string>) => {
          switch (operation) {
            case "Query Entities":
              return clients().json("GET", url, undefined, headers);
            case "Insert Entity":
              return clients().json("POST", `/${name}`, entity, headers);
            case "Delete Entity":
              return clients().json("DELETE", url, undefined, headers);
            case "Update Entity":
            case "Insert Or Replace Entity":
              return clients().json("PUT", url, entity, headers);
            default:
              return clients().json(operation === "Merge Entity" ? "MERGE" : "PATCH", url, entity, headers);
          }
        };
        if (needsIfMatch) {
          await table.upsertEntity({ partitionKey: "p", rowKey: "r", b: 2 });
          const stale = await ask({ "if-match": old });
          assert.deepEqual([stale.status, stale.body["odata.error"].code], [412, "UpdateConditionNotSatisfied"]);
          const forced = await ask({ "if-match": "*" });
          assert.equal(forced.status, 204);
          assert.equal(forced.headers.has("etag"), etag);
          if (operation === "Delete Entity") {
            await table.createEntity({ partitionKey: "p", rowKey: "r" });
            const without = await ask({});
            assert.deepEqual([without.status, without.body["odata.error"].code], [400, "MissingRequiredHeader"]);
          }
          const { etag: now } = await table.getEntity("p", "r");
          assert.equal((await ask({ "if-match": now })).status, 204);
          const wrong = await ask({ "if-match": '"0x8D"' });
          assert.deepEqual([wrong.status, wrong.body["odata.error"].code], [400, "InvalidInput"]);
          if (operation === "Delete Entity") await table.createEntity({ partitionKey: "p", rowKey: "r" });
          for (const other of ['W/"other"', "W/\"datetime'0001-01-01T00%3A00%3A00Z'\""]) {
            const weak = await ask({ "if-match": other });
            assert.deepEqual([weak.status, weak.body["odata.error"].code], [412, "UpdateConditionNotSatisfied"], other);
          }
        } else {
          const answer = await ask({});
          assert.ok(answer.status < 300, answer.text);
          assert.equal(answer.headers.has("etag"), etag);
          assert.match(answer.headers.get("etag") ?? "", /^W\/"datetime'\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d(\.\d{1,7})?Z'"$/);
        }
      });
    }

    test("what is not there: update, merge and delete are 404; insert-or-* make it", async () => {
      const table = await clients().table();
      const entity = { partitionKey: "p", rowKey: "r" };
      assert.equal(await refusal(table.updateEntity(entity, "Replace")), "404 ResourceNotFound");
      assert.equal(await refusal(table.updateEntity(entity, "Merge")), "404 ResourceNotFound");
      assert.equal(await refusal(table.deleteEntity("p", "r")), "404 ResourceNotFound");
      assert.equal(await refusal(table.getEntity("p", "r")), "404 ResourceNotFound");
      await table.upsertEntity({ ...entity, a: 1 }, "Replace");
      await table.upsertEntity({ ...entity, b: 2 }, "Merge");
      const { a, b } = await table.getEntity<{ a: number; b: number }>("p", "r");
      assert.deepEqual([a, b], [1, 2]);
      assert.equal(await refusal(table.createEntity(entity)), "409 EntityAlreadyExists");
    });

    test("replace drops what it does not name, merge keeps it; null is nothing", async () => {
      const table = await clients().table();
      await table.createEntity({ partitionKey: "p", rowKey: "r", a: 1, b: 2, nothing: null });
      await table.updateEntity({ partitionKey: "p", rowKey: "r", b: 3, a: null }, "Merge");
      const { etag: _e, timestamp: _t, "odata.metadata": _m, ...merged } = await table.getEntity("p", "r");
      assert.deepEqual(merged, { partitionKey: "p", rowKey: "r", a: 1, b: 3 });
      await table.updateEntity({ partitionKey: "p", rowKey: "r", c: 4 }, "Replace");
      const replaced = await table.getEntity("p", "r");
      assert.deepEqual([replaced.a, replaced.c], [undefined, 4]);
    });

    test("inserting answers with the entity, or with nothing where that is preferred", async () => {
      const { tableName } = await clients().table();
      const made = await clients().json("POST", `/${tableName}`, { PartitionKey: "p", RowKey: "it's", n: 1 });
      assert.deepEqual([made.status, made.body.n], [201, 1]);
      assert.equal(made.body["odata.etag"], made.headers.get("etag"));
      assert.match(made.headers.get("location") ?? "", /\(PartitionKey='p',RowKey='it''s'\)$/);
      const content = await clients().json("POST", `/${tableName}`, { PartitionKey: "p", RowKey: "2" }, { prefer: "return-content" });
      assert.deepEqual([content.status, content.headers.get("preference-applied")], [201, "return-content"]);
      const quiet = await clients().json("POST", `/${tableName}`, { PartitionKey: "p", RowKey: "3" }, { prefer: "return-no-content" });
      assert.deepEqual([quiet.status, quiet.text, quiet.headers.get("preference-applied")], [204, "", "return-no-content"]);
    });

    test("POST with X-HTTP-Method is what that says, and with nothing else", async () => {
      const { tableName } = await clients().table();
      const url = `/${tableName}(PartitionKey='p',RowKey='r')`;
      const post = (headers: Record<string, string>) => clients().json("POST", url, { a: 1 }, headers);
      assert.equal((await post({ "x-http-method": "MERGE" })).status, 204);
      assert.equal((await post({ "x-http-method": "MERGE", "if-match": "*" })).status, 204);
      assert.equal((await post({ "x-http-method": "PUT" })).status, 204);
      const wrong = await post({ "x-http-method": "PAINT" });
      assert.deepEqual([wrong.status, wrong.body["odata.error"].code], [400, "XMethodIncorrectValue"]);
      const notPost = await clients().json("PUT", url, { a: 1 }, { "x-http-method": "MERGE" });
      assert.deepEqual([notPost.status, notPost.body["odata.error"].code], [400, "XMethodNotUsingPost"]);
      const plain = await post({});
      assert.equal(plain.status, 405);
    });

    test("metadata: none, minimal, full; Atom and verbose JSON are refused", async () => {
      const table = await clients().table();
      await table.createEntity({ partitionKey: "p", rowKey: "r", i: { type: "Int64", value: "5" }, t: "x", n: 5 });
      const url = `/${table.tableName}(PartitionKey='p',RowKey='r')`;
      const at = async (accept: string) => (await clients().json("GET", url, undefined, { accept })).body;
      assert.deepEqual(Object.keys(await at("application/json;odata=nometadata")), ["PartitionKey", "RowKey", "Timestamp", "i", "t", "n"]);
      const minimal = await at("application/json");
      assert.deepEqual(Object.keys(minimal), [
        "odata.metadata",
        "odata.etag",
        "PartitionKey",
        "RowKey",
        "Timestamp",
        "i@odata.type",
        "i",
        "t",
        "n",
      ]);
      assert.match(minimal["odata.metadata"], new RegExp(`/\\$metadata#${table.tableName}/@Element$`));
      const full = await at("application/json;odata=fullmetadata");
      assert.equal(full["Timestamp@odata.type"], "Edm.DateTime");
      assert.equal(full["odata.editLink"], `${table.tableName}(PartitionKey='p',RowKey='r')`);
      assert.equal(full["odata.type"], `${clients().target.accountName}.${table.tableName}`);
      for (const [accept, code] of [
        ["application/atom+xml", "AtomFormatNotSupported"],
        ["application/json;odata=verbose", "JsonVerboseFormatNotSupported"],
        ["text/plain", "MediaTypeNotSupported"],
      ] as const) {
        const refused = await clients().json("GET", url, undefined, { accept });
        assert.deepEqual([refused.status, refused.body["odata.error"].code], [415, code]);
      }
      const formatted = await clients().json("GET", `${url}?$format=application/json;odata=nometadata`, undefined, {
        accept: "application/atom+xml",
      });
      assert.equal(formatted.body["odata.metadata"], undefined);
      const atom = await clients().json("POST", `/${table.tableName}`, "<entry/>", { "content-type": "application/atom+xml" });
      assert.deepEqual([atom.status, atom.body["odata.error"].code], [415, "AtomFormatNotSupported"]);
    });

    test("$select shows what it names, and null for what is not there", async () => {
      const table = await clients().table();
      await table.createEntity({ partitionKey: "p", rowKey: "r", a: 1, b: 2 });
      const shown = await clients().json("GET", `/${table.tableName}(PartitionKey='p',RowKey='r')?$select=a,RowKey,zz`, undefined, {
        accept: "application/json;odata=nometadata",
      });
      assert.deepEqual(shown.body, { RowKey: "r", a: 1, zz: null });
    });

    test("keys of every kind come back as they are, and are found by their URL however it is encoded", async () => {
      const table = await clients().table();
      const keys = [
        "",
        " ",
        "'",
        "''",
        "a b",
        "a+b",
        "100%",
        "%20",
        "é",
        "\u{10348}",
        "(x)",
        "a,b",
        "RowKey='x'",
        "a&b=c",
        "\ufffd",
        "~!@$^*[]{}|;:.<>`",
      ];
      for (const key of keys) await table.createEntity({ partitionKey: key, rowKey: key, key });
      for (const key of keys) {
        const found = await table.getEntity<{ key: string }>(key, key);
        assert.deepEqual([found.partitionKey, found.rowKey, found.key ?? ""], [key, key, key]);
      }
      const everyByte = (text: string): string => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
      const url = `/${table.tableName}(PartitionKey=${everyByte("'a b'")},RowKey=${everyByte("'a b'")})`;
      assert.equal((await clients().json("GET", url)).status, 200);
      const turned = `/${table.tableName}(RowKey='a%20b',PartitionKey='a%20b')`;
      assert.equal((await clients().json("GET", turned)).status, 200);
      for (const key of ["a/b", "a\\b", "a#b", "a?b", "a\u0001b", "a\u007fb"]) {
        assert.equal(await refusal(table.createEntity({ partitionKey: key, rowKey: "r" })), "400 OutOfRangeInput");
      }
      const long = "k".repeat(512);
      await table.createEntity({ partitionKey: long, rowKey: long });
      assert.equal(await refusal(table.createEntity({ partitionKey: `${long}k`, rowKey: "r" })), "400 KeyValueTooLarge");
    });

    test("a key is needed, is a text, and is not changed by an update", async () => {
      const { tableName } = await clients().table();
      const code = async (method: string, path: string, body: unknown, headers = {}) => {
        const answer = await clients().json(method, path, body, headers);
        return `${answer.status} ${answer.body?.["odata.error"].code}`;
      };
      assert.equal(await code("POST", `/${tableName}`, { PartitionKey: "p" }), "400 PropertiesNeedValue");
      assert.equal(await code("POST", `/${tableName}`, { PartitionKey: "p", RowKey: 5 }), "400 PrimaryKeyPropertyIsInvalidType");
      const url = `/${tableName}(PartitionKey='p',RowKey='r')`;
      assert.equal(await code("PUT", url, { PartitionKey: "q", RowKey: "r" }), "400 PartitionKeyPropertyCannotBeUpdated");
      assert.equal(await code("PUT", url, { RowKey: "s" }, { "if-match": "*" }), "400 PartitionKeyPropertyCannotBeUpdated");
    });

    test("an empty If-Match is no upsert, an empty X-HTTP-Method no insert; other empty headers and options say nothing", async () => {
      const table = await clients().table();
      await table.createEntity({ partitionKey: "p", rowKey: "r", kept: 1 });
      const url = `/${table.tableName}(PartitionKey='p',RowKey='r')`;
      for (const [method, headers] of [
        ["PUT", { "if-match": "" }],
        ["MERGE", { "if-match": "" }],
        ["DELETE", { "if-match": "" }],
        ["POST", { "x-http-method": "" }],
      ] as const) {
        const answer = await clients().json(method, url, method === "DELETE" ? undefined : { lost: 1 }, headers);
        assert.deepEqual([answer.status, answer.body["odata.error"].code], [400, "InvalidHeaderValue"], method);
      }
      const same = await clients().json("PUT", url, { kept: 2 }, { "if-match": "*", prefer: "", "x-ms-client-request-id": "" });
      assert.equal(same.status, 204);
      const options = "$filter=&$select=&$top=&$orderby=&nextpartitionkey=&nextrowkey=&timeout=";
      const listed = await clients().json("GET", `/${table.tableName}()?${options}`);
      assert.deepEqual([listed.status, listed.body.value.length, listed.body.value[0].kept], [200, 1, 2]);
    });

    test("conditions that an operation does not have are refused by name; a read is answered whole to a cache", async () => {
      const { tableName } = await clients().table();
      const entity = `/${tableName}(PartitionKey='p',RowKey='r')`;
      await clients().json("PUT", entity, { a: 1 });
      const conditions = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
      for (const [method, path, body, allowed] of [
        ["PUT", entity, { a: 2 }, ["if-match"]],
        ["MERGE", entity, { a: 2 }, ["if-match"]],
        ["DELETE", entity, undefined, ["if-match"]],
        ["POST", `/${tableName}`, { PartitionKey: "p", RowKey: "s" }, []],
        ["POST", "/Tables", { TableName: "another" }, []],
        ["DELETE", `/Tables('${tableName}')`, undefined, []],
        ["GET", entity, undefined, ["if-none-match", "if-modified-since"]],
        ["GET", `/${tableName}()`, undefined, ["if-none-match", "if-modified-since"]],
        ["GET", "/Tables", undefined, ["if-none-match", "if-modified-since"]],
      ] as const) {
        for (const name of conditions.filter((one) => !(allowed as readonly string[]).includes(one))) {
          const other = method === "DELETE" && path === entity ? { "if-match": "*" } : {};
          const answer = await clients().json(method, path, body, { ...other, [name]: "*" });
          const told = [answer.status, answer.body["odata.error"]?.code];
          assert.deepEqual(told, [400, "ConditionHeadersNotSupported"], `${method} ${path} ${name}`);
        }
      }
      const cached = await clients().json("GET", entity, undefined, {
        "if-none-match": "*",
        "if-modified-since": new Date().toUTCString(),
      });
      assert.deepEqual([cached.status, cached.body.a], [200, 1]);
    });
  });
}
