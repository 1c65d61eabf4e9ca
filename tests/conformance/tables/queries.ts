/** Queries: filters of every kind, projection, pages that lose and repeat nothing. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { odata, type TableClient } from "@azure/data-tables";
import { all, refusal, type TableClients } from "./target.ts";

export function querySuite(clients: () => TableClients): void {
  describe("queries", () => {
    let shared: Promise<TableClient> | undefined;
    /** Rows r0 to r9 of partitions a and b, with one property of each type. */
    const filled = (): Promise<TableClient> => {
      shared ??= fill(clients());
      return shared;
    };
    const keysOf = async (filter: string): Promise<string> => {
      const found = await all((await filled()).listEntities({ queryOptions: { filter } }));
      return found.map(({ partitionKey, rowKey }) => `${partitionKey}${rowKey}`).join(" ");
    };

    const filters: readonly (readonly [string, string])[] = [
      ["PartitionKey eq 'a' and RowKey eq 'r3'", "ar3"],
      ["'a' eq PartitionKey and 'r8' lt RowKey", "ar9"],
      ["PartitionKey eq 'a' and RowKey ge 'r2' and RowKey lt 'r4'", "ar2 ar3"],
      ["PartitionKey gt 'a' and RowKey le 'r1'", "br0 br1"],
      ["(PartitionKey eq 'a' and RowKey eq 'r1') or (PartitionKey eq 'b' and RowKey eq 'r2')", "ar1 br2"],
      ["PartitionKey eq 'a' and not (RowKey ge 'r1')", "ar0"],
      ["PartitionKey eq 'a' and not (RowKey lt 'r8' or RowKey eq 'r8')", "ar9"],
      ["PartitionKey ne 'a' and RowKey eq 'r0'", "br0"],
      ["PartitionKey eq 'c'", ""],
      ["int eq 4", "ar4 br4"],
      ["4 eq int and PartitionKey eq 'a'", "ar4"],
      ["int ge 8 and PartitionKey eq 'a'", "ar8 ar9"],
      ["int eq 4L", ""],
      ["int eq 4.0", ""],
      ["long eq 9007199254740995L", "ar4 br4"],
      ["long gt 9007199254740998L and PartitionKey eq 'b'", "br8 br9"],
      ["double eq 2.5 and PartitionKey eq 'a'", "ar5"],
      ["double lt 0.5", "ar0 br0"],
      ["double eq 5e-1 and PartitionKey eq 'a'", "ar1"],
      ["double eq 2", "ar4 br4"],
      ["bool and PartitionKey eq 'a' and int lt 3", "ar0 ar2"],
      ["not bool and PartitionKey eq 'a' and int lt 3", "ar1"],
      ["bool eq false and PartitionKey eq 'a' and int lt 3", "ar1"],
      ["when eq datetime'2024-01-05T00:00:00Z' and PartitionKey eq 'a'", "ar4"],
      ["when lt datetime'2024-01-02T00:00:00.0000001Z' and PartitionKey eq 'a'", "ar0 ar1"],
      ["guid eq guid'00000000-0000-0000-0000-000000000004' and PartitionKey eq 'a'", "ar4"],
      ["binary eq X'04ff' and PartitionKey eq 'a'", "ar4"],
      ["binary eq binary'04FF' and PartitionKey eq 'a'", "ar4"],
      ["binary ge X'08' and PartitionKey eq 'a'", "ar8 ar9"],
      ["text eq 'it''s 4' and PartitionKey eq 'a'", "ar4"],
      ["text eq '4' or text gt 'it''s 8' and PartitionKey eq 'a'", "ar9"],
      ["absent eq 1", ""],
      ["absent ne 1", ""],
      ["not (absent eq 1) and PartitionKey eq 'a' and RowKey eq 'r0'", "ar0"],
      ["Timestamp gt datetime'2001-01-01T00:00:00Z' and RowKey eq 'r0'", "ar0 br0"],
      ["  (  (PartitionKey  eq  'a')  and  ( RowKey eq 'r0' ) )  ", "ar0"],
    ];
    for (const [filter, expected] of filters) {
      test(`$filter=${filter}`, async () => {
        assert.equal(await keysOf(filter), expected);
      });
    }

    const refusedFilters: readonly (readonly [string, string])[] = [
      ["PartitionKey eq", "400 InvalidInput"],
      ["PartitionKey eq 'a' and", "400 InvalidInput"],
      ["(PartitionKey eq 'a'", "400 InvalidInput"],
      ["PartitionKey eq 'a')", "400 InvalidInput"],
      ["PartitionKey = 'a'", "400 InvalidInput"],
      ["PartitionKey eq 'a", "400 InvalidInput"],
      ["a eq b", "400 InvalidInput"],
      ["1 eq 1", "400 InvalidInput"],
      ["'a'", "400 InvalidInput"],
      ["a eq null", "400 InvalidInput"],
      ["a eq datetime'yesterday'", "400 InvalidInput"],
      ["a eq guid'5'", "400 InvalidInput"],
      ["a eq X'5'", "400 InvalidInput"],
      ["a eq 99999999999999999999", "400 InvalidInput"],
      ["a eq 5f", "400 InvalidInput"],
      ["a add 1 eq 2", "400 InvalidInput"],
      ["a EQ 1", "400 InvalidInput"],
      ["startswith(text,'a')", "501 NotImplemented"],
      ["a eq 2147483648", "400 InvalidInput"],
      [Array.from({ length: 501 }, (_, i) => `a eq ${i}`).join(" or "), "400 InvalidInput"],
      [`${"(".repeat(300)}a eq 1${")".repeat(300)}`, "400 InvalidInput"],
    ];
    for (const [filter, expected] of refusedFilters) {
      test(`refused: $filter=${filter.slice(0, 60)}`, async () => {
        assert.equal(await refusal(all((await filled()).listEntities({ queryOptions: { filter } }))), expected);
      });
    }

    test("hundreds of comparisons are served, and parentheses a hundred deep", async () => {
      assert.equal(await keysOf(Array.from({ length: 300 }, (_, i) => `int eq ${i + 8}`).join(" or ")), "ar8 ar9 br8 br9");
      assert.equal(await keysOf(`${"not (not (".repeat(50)}int eq 8${"))".repeat(50)}`), "ar8 br8");
    });

    test("true and false are conditions", async () => {
      assert.equal(await keysOf("int eq 8 and true"), "ar8 br8");
      assert.equal(await keysOf("int eq 8 or False"), "ar8 br8");
      assert.equal(await keysOf("not true"), "");
      const table = await filled();
      const health = await clients().json("GET", "/Tables?$filter=false");
      assert.deepEqual([health.status, health.body.value], [200, []]);
      const all = await clients().json("GET", "/Tables?$filter=true");
      assert.ok(all.body.value.some(({ TableName }: { TableName: string }) => TableName === table.tableName));
    });

    test("an Int32 constant finds properties of the types Int64 and Double", async () => {
      const { tableName } = await clients().table();
      const entity = {
        PartitionKey: "p",
        RowKey: "r",
        "large@odata.type": "Edm.Int64",
        large: "5",
        real: 5.0,
        "real@odata.type": "Edm.Double",
      };
      assert.equal((await clients().json("POST", `/${tableName}`, entity)).status, 201);
      for (const [filter, found] of [
        ["large eq 5", 1],
        ["real eq 5", 1],
        ["large gt 4 and real lt 6", 1],
        ["large gt 5 or real ne 5", 0],
      ] as const) {
        const { body } = await clients().json("GET", `/${tableName}()?$filter=${encodeURIComponent(filter)}`);
        assert.equal(body.value.length, found, filter);
      }
    });

    test("the SDK's odata texts are understood", async () => {
      assert.equal(await keysOf(odata`PartitionKey eq ${"a"} and text eq ${"it's 4"} and int eq ${4} and bool eq ${true}`), "ar4");
      assert.equal(await keysOf(odata`PartitionKey eq ${"a"} and when lt ${new Date("2024-01-02T00:00:00Z")}`), "ar0");
    });

    test("a plus in an option is a space, an encoded plus is one", async () => {
      const table = await clients().table();
      for (const rowKey of ["a b", "a+b"]) await table.createEntity({ partitionKey: "p", rowKey });
      const asked = async (filter: string): Promise<string> => {
        const { body } = await clients().json("GET", `/${table.tableName}()?$filter=${filter}&$select=PartitionKey,+RowKey`);
        return body.value.map(({ RowKey }: { RowKey: string }) => RowKey).join();
      };
      assert.equal(await asked("PartitionKey+eq+'p'+and+RowKey+eq+'a+b'"), "a b");
      assert.equal(await asked("PartitionKey+eq+'p'+and+RowKey%20eq%20'a%2Bb'"), "a+b");
    });

    test("$top and continuation: pages of that size, in key order, with nothing twice and nothing left out", async () => {
      const table = await filled();
      const pages: number[] = [];
      const keys: string[] = [];
      for await (const page of table.listEntities().byPage({ maxPageSize: 7 })) {
        pages.push(page.length);
        keys.push(...page.map(({ partitionKey, rowKey }) => `${partitionKey}${rowKey}`));
      }
      assert.deepEqual(pages, [7, 7, 6]);
      assert.deepEqual(
        keys,
        ["a", "b"].flatMap((partition) => Array.from({ length: 10 }, (_, i) => `${partition}r${i}`)),
      );
    });

    test("$top=0 is an empty page without a continuation, of a table that is there", async () => {
      const { tableName } = await filled();
      for (const path of [`/${tableName}()?$top=0`, `/${tableName}()?$top=0&$filter=int%20eq%208`, "/Tables?$top=0"]) {
        const answer = await clients().json("GET", path);
        assert.deepEqual([answer.status, answer.body.value], [200, []], path);
        assert.deepEqual(
          [...answer.headers.keys()].filter((name) => name.startsWith("x-ms-continuation")),
          [],
          path,
        );
      }
      assert.equal((await clients().json("GET", "/nothere()?$top=0")).status, 404);
    });

    test("what is written between two pages neither hides nor repeats an entity", async () => {
      const table = await clients().table();
      for (let i = 0; i < 12; i++) await table.createEntity({ partitionKey: "p", rowKey: `r${String(i).padStart(2, "0")}` });
      const seen: string[] = [];
      let wrote = 0;
      for await (const page of table.listEntities().byPage({ maxPageSize: 4 })) {
        seen.push(...page.map(({ rowKey }) => rowKey ?? ""));
        const last = seen.at(-1) ?? "";
        if (wrote++ > 1) continue;
        await table.deleteEntity("p", last);
        await table.createEntity({ partitionKey: "p", rowKey: `${last}5` });
        await table.createEntity({ partitionKey: "a", rowKey: last });
      }
      const expected = [...Array.from({ length: 12 }, (_, i) => `r${String(i).padStart(2, "0")}`), "r035", "r065"].sort();
      assert.deepEqual(seen, expected);
    });

    test("a page has at most 1,000 entities", async () => {
      const table = await clients().table();
      for (let batch = 0; batch < 11; batch++) {
        const actions = Array.from(
          { length: 100 },
          (_, i) => ["create", { partitionKey: "p", rowKey: String(batch * 100 + i).padStart(5, "0") }] as const,
        );
        await table.submitTransaction(actions.map(([action, entity]) => [action, entity]));
      }
      const pages: number[] = [];
      for await (const page of table.listEntities().byPage()) pages.push(page.length);
      assert.deepEqual(pages, [1000, 100]);
      assert.equal(await refusal(all(table.listEntities().byPage({ maxPageSize: 1001 }))), "400 InvalidQueryParameterValue");
    });

    test("a page has at most 4 MiB", async () => {
      const table = await clients().table();
      const text = "x".repeat(32_000);
      for (let i = 0; i < 9; i++) {
        const texts = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`t${n}`, text]));
        await table.createEntity({ partitionKey: "p", rowKey: String(i), ...texts });
      }
      const pages: number[] = [];
      for await (const page of table.listEntities().byPage()) pages.push(page.length);
      assert.deepEqual(pages, [6, 3]);
    });

    test("query options that are none are refused", async () => {
      const { tableName } = await filled();
      for (const [query, expected] of [
        ["$top=1001", 400],
        ["$top=x", 400],
        ["$top=-1", 400],
        ["$orderby=a", 501],
        ["$skip=1", 501],
        ["NextPartitionKey=xyz", 400],
      ] as const) {
        const answer = await clients().json("GET", `/${tableName}()?${query}`);
        assert.equal(answer.status, expected, query);
      }
      assert.equal((await clients().json("GET", `/${tableName}?$top=2`)).body.value.length, 2);
    });
  });
}

async function fill(clients: TableClients): Promise<TableClient> {
  const table = await clients.table();
  for (const partitionKey of ["a", "b"]) {
    await table.submitTransaction(
      Array.from({ length: 10 }, (_, i) => [
        "create",
        {
          partitionKey,
          rowKey: `r${i}`,
          int: i,
          long: 9007199254740991n + BigInt(i),
          double: { type: "Double", value: String(i / 2) },
          bool: i % 2 === 0,
          when: new Date(Date.UTC(2024, 0, i + 1)),
          guid: { type: "Guid", value: `00000000-0000-0000-0000-00000000000${i}` },
          binary: new Uint8Array([i, 255]),
          text: `it's ${i}`,
        },
      ]),
    );
  }
  return table;
}
