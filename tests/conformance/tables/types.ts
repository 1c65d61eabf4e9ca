/** Properties of every type, to the last digit, and the limits of the data model. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type EdmTypes, refusal, type TableClients } from "./target.ts";

export function typeSuite(clients: () => TableClients): void {
  describe("types", () => {
    const typed: readonly (readonly [EdmTypes, string, string?])[] = [
      ["Int64", "9223372036854775807"],
      ["Int64", "-9223372036854775808"],
      ["DateTime", "1601-01-01T00:00:00Z"],
      ["DateTime", "9999-12-31T23:59:59.9999999Z"],
      ["DateTime", "2013-08-22T01:12:06.2608595Z"],
      ["DateTime", "2013-08-22T03:12:06.26+02:00", "2013-08-22T01:12:06.26Z"],
      ["DateTime", "2013-08-22T01:12:06", "2013-08-22T01:12:06Z"],
      // As Java writes OffsetDateTime.now().
      ["DateTime", "2023-04-11T21:16:40.331047814Z", "2023-04-11T21:16:40.3310478Z"],
      ["Guid", "C9DA6455-213D-42C9-9A79-3E9149A57833", "c9da6455-213d-42c9-9a79-3e9149a57833"],
      ["Binary", ""],
      ["Binary", "AP8="],
      ["Double", "NaN"],
      ["Double", "Infinity"],
      ["Double", "-Infinity"],
      ["Double", "INF", "Infinity"],
      ["Double", "-INF", "-Infinity"],
    ];
    test("values with an annotation come back to the last digit, with their type", async () => {
      const { tableName } = await clients().table();
      const entity: Record<string, string> = { PartitionKey: "p", RowKey: "r" };
      for (const [index, [type, value]] of typed.entries())
        Object.assign(entity, { [`p${index}@odata.type`]: `Edm.${type}`, [`p${index}`]: value });
      assert.equal((await clients().json("POST", `/${tableName}`, entity)).status, 201);
      const { body } = await clients().json("GET", `/${tableName}(PartitionKey='p',RowKey='r')`);
      for (const [index, [type, value, shown = value]] of typed.entries()) {
        assert.deepEqual([body[`p${index}`], body[`p${index}@odata.type`]], [shown, `Edm.${type}`], `${type} ${value}`);
      }
    });

    test("U+FEFF at the start of keys and texts belongs to them, and stays after a merge of other properties", async () => {
      const { tableName } = await clients().table();
      const entity = { PartitionKey: "\ufeffp", RowKey: "\ufeff", csv: "\ufeffname,age" };
      assert.equal((await clients().json("POST", `/${tableName}`, entity)).status, 201);
      const path = `/${tableName}(PartitionKey='${encodeURIComponent(entity.PartitionKey)}',RowKey='${encodeURIComponent(entity.RowKey)}')`;
      assert.equal((await clients().json("MERGE", path, { other: 1 })).status, 204);
      const { body } = await clients().json("GET", path);
      assert.deepEqual([body.PartitionKey, body.RowKey, body.csv, body.other], [entity.PartitionKey, entity.RowKey, entity.csv, 1]);
    });

    test("numbers: an integer is an Int32, with a point or beyond 32 bits a Double; a Double stays one", async () => {
      const { tableName } = await clients().table();
      const numbers = ["0", "-2147483648", "2147483647", "1.5", "5.0", "-0.0", "1e300", "2147483648", "1E+2", "0.1", "5e-324"];
      const shown = ["0", "-2147483648", "2147483647", "1.5", "5.0", "-0.0", "1e+300", "2147483648.0", "100.0", "0.1", "5e-324"];
      const text = `{"PartitionKey":"p","RowKey":"r",${numbers.map((number, i) => `"n${i}":${number}`).join(",")},"d@odata.type":"Edm.Double","d":7}`;
      assert.equal((await clients().json("POST", `/${tableName}`, text)).status, 201);
      const { text: answer } = await clients().json("GET", `/${tableName}(PartitionKey='p',RowKey='r')`);
      for (const [i, number] of shown.entries()) assert.ok(answer.includes(`"n${i}":${number},`), `${number} in ${answer}`);
      assert.ok(answer.includes('"d":7.0'));
      assert.ok(!answer.includes("n0@odata.type"));
    });

    test("the SDK's own types come back as they went", async () => {
      const table = await clients().table();
      const entity = {
        text: "it's ‘quoted’ \" \\ \n \u0001 \u{1f600}",
        empty: "",
        yes: true,
        no: false,
        integer: -7,
        half: 0.5,
        large: 9007199254740993n,
        when: new Date("2024-02-29T12:34:56.789Z"),
        bytes: new Uint8Array([0, 255, 128]),
        guid: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
        __proto: "not special",
        constructor1: "x",
      } as const;
      await table.createEntity({ partitionKey: "p", rowKey: "r", ...entity });
      const {
        etag: _e,
        timestamp: _t,
        "odata.metadata": _m,
        partitionKey: _p,
        rowKey: _r,
        bytes,
        ...found
      } = await table.getEntity("p", "r");
      const { bytes: sent, ...rest } = entity;
      assert.deepEqual(found, rest);
      assert.deepEqual([...(bytes as Uint8Array)], [...sent]);
    });

    test("names like __proto__ and constructor are properties like any other", async () => {
      const { tableName } = await clients().table();
      const text = '{"PartitionKey":"p","RowKey":"r","__proto__":"a","constructor":"b","toString":"c"}';
      assert.equal((await clients().json("POST", `/${tableName}`, text)).status, 201);
      const answer = await clients().json("GET", `/${tableName}(PartitionKey='p',RowKey='r')`);
      assert.ok(answer.text.includes('"__proto__":"a","constructor":"b","toString":"c"'));
    });

    test("a Boolean is written in any case, as a text or not", async () => {
      const { tableName } = await clients().table();
      const text = (name: string, value: string): string => `"${name}@odata.type":"Edm.Boolean","${name}":${value}`;
      const values = [text("a", '"True"'), text("b", '"FALSE"'), text("c", '"true"'), text("d", "false")];
      const sent = `{"PartitionKey":"p","RowKey":"r",${values.join()},"plain":"True"}`;
      assert.equal((await clients().json("POST", `/${tableName}`, sent)).status, 201);
      const { body } = await clients().json("GET", `/${tableName}(PartitionKey='p',RowKey='r')`);
      const { a, b, c, d, plain } = body;
      assert.deepEqual([a, b, c, d, plain], [true, false, true, false, "True"]);
      const found = await clients().json("GET", `/${tableName}()?$filter=${encodeURIComponent("a eq TRUE and b eq false")}`);
      assert.equal(found.body.value.length, 1);
    });

    test("values that are none of their type are refused, and so is what is no entity", async () => {
      const { tableName } = await clients().table();
      const code = async (text: string): Promise<string> => {
        const answer = await clients().json("POST", `/${tableName}`, `{"PartitionKey":"p","RowKey":"r",${text}}`);
        return `${answer.status} ${answer.body?.["odata.error"]?.code}`;
      };
      for (const [text, expected] of [
        ['"a@odata.type":"Edm.Int32","a":"2147483648"', "InvalidValueType"],
        ['"a@odata.type":"Edm.Int64","a":"9223372036854775808"', "InvalidValueType"],
        ['"a@odata.type":"Edm.Guid","a":"c9da6455"', "InvalidValueType"],
        ['"a@odata.type":"Edm.DateTime","a":"2013-02-30T00:00:00Z"', "InvalidValueType"],
        ['"a@odata.type":"Edm.DateTime","a":"1600-12-31T23:59:59Z"', "OutOfRangeInput"],
        ['"a@odata.type":"Edm.Binary","a":"%%"', "InvalidValueType"],
        ['"a@odata.type":"Edm.Double","a":"five"', "InvalidValueType"],
        ['"a@odata.type":"Edm.Boolean","a":"maybe"', "InvalidValueType"],
        ['"a@odata.type":"Edm.Boolean","a":" true"', "InvalidValueType"],
        ['"a@odata.type":"Edm.Boolean","a":1', "InvalidValueType"],
        ['"a@odata.type":"Edm.Decimal","a":"5"', "InvalidInput"],
        ['"a":1e400', "InvalidInput"],
        ['"a@odata.type":"Edm.Double","a":"13e7705"', "InvalidInput"],
        ['"a@odata.type":"Edm.Double","a":"-1e309"', "InvalidInput"],
        ...["Int32", "Int64", "String", "Boolean"].map((type) => [`"a@odata.type":"Edm.${type}","a":-1e400`, "InvalidInput"] as const),
        ['"Timestamp":1e400', "InvalidInput"],
        ['"a":[1]', "InvalidInput"],
        ['"a":{"b":1}', "InvalidInput"],
        ['"a":"\\ud800"', "InvalidValueType"],
        ['"a":1,"a":2', "DuplicatePropertiesSpecified"],
        ['"a":', "InvalidInput"],
        ['"a-b":1', "PropertyNameInvalid"],
        [`"${"n".repeat(256)}":1`, "PropertyNameTooLong"],
      ] as const) {
        assert.equal(await code(text), `400 ${expected}`, text);
      }
    });

    test("an entity has at most 252 properties, a text 64 KiB, a binary 64 KiB, all of it 1 MiB", async () => {
      const table = await clients().table();
      const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, i]));
      await table.createEntity({ partitionKey: "p", rowKey: "many", ...many(252) });
      assert.equal(await refusal(table.createEntity({ partitionKey: "p", rowKey: "more", ...many(253) })), "400 TooManyProperties");
      assert.equal(await refusal(table.updateEntity({ partitionKey: "p", rowKey: "many", other: 1 }, "Merge")), "400 TooManyProperties");
      await table.createEntity({ partitionKey: "p", rowKey: "long", text: "x".repeat(32_768), bytes: new Uint8Array(65_536) });
      assert.equal(
        await refusal(table.createEntity({ partitionKey: "p", rowKey: "x", text: "x".repeat(32_769) })),
        "400 PropertyValueTooLarge",
      );
      assert.equal(
        await refusal(table.createEntity({ partitionKey: "p", rowKey: "x", bytes: new Uint8Array(65_537) })),
        "400 PropertyValueTooLarge",
      );
      const texts = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, "x".repeat(32_000)]));
      await table.createEntity({ partitionKey: "p", rowKey: "large", ...texts(16) });
      assert.equal(await refusal(table.createEntity({ partitionKey: "p", rowKey: "larger", ...texts(17) })), "400 EntityTooLarge");
      assert.equal(
        await refusal(table.upsertEntity({ partitionKey: "p", rowKey: "large", t16: "x".repeat(32_000) }, "Merge")),
        "400 EntityTooLarge",
      );
    });
  });
}
