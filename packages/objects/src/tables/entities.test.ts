import assert from "node:assert/strict";
import { test } from "node:test";
import { rulesWithout } from "@stamp/base";
import type { DictionaryEntry } from "../rows/row.ts";
import { TestTable } from "../testing/table.ts";
import type { EntityChange, LocatedTable, TableOperation, TableResult } from "./operation.ts";

const text = (name: string, value: string): DictionaryEntry => ({ name, type: "string", value });

class Tables extends TestTable {
  table(operation: TableOperation): TableResult | string {
    const result = this.run({ case: "table", value: operation });
    if (result.case === "table") return result.value;
    if (result.case !== "error") return result.case;
    const { index } = result.value.details;
    return index === undefined ? result.value.code : `${index}:${result.value.code}`;
  }

  create(table: string): LocatedTable {
    const made = this.table({ case: "createTable", value: { account: "acct", table } });
    assert.ok(typeof made !== "string" && made.case === "table");
    return { account: "acct", table, incarnation: made.value.incarnation };
  }

  change(table: LocatedTable, partitionKey: string, ...changes: (Partial<EntityChange> & { rowKey: string })[]): bigint[] | string {
    const whole = changes.map((change) => ({ action: "insert" as const, properties: [], ...change }));
    const result = this.table({ case: "changeEntities", value: { table, partitionKey, changes: whole } });
    return typeof result === "string" ? result : result.case === "changed" ? [...result.value.timestamps] : result.case;
  }

  get(table: LocatedTable, partitionKey: string, rowKey: string) {
    const result = this.table({ case: "getEntity", value: { table, partitionKey, rowKey, select: [] } });
    if (typeof result === "string") return result;
    return result.case === "entity" ? result.value : result.case;
  }

  names(table: LocatedTable, partitionKey: string, rowKey: string): string {
    const found = this.get(table, partitionKey, rowKey);
    return typeof found === "string" ? found : found.properties.map(({ name, value }) => `${name}=${value}`).join(",");
  }
}

test("a table is made once, found without regard to case, and keeps the name it was given", () => {
  const tables = new Tables();
  tables.create("MyTable");
  assert.equal(tables.table({ case: "createTable", value: { account: "acct", table: "mytable" } }), "TableAlreadyExists");
  const found = tables.table({ case: "getTable", value: { account: "acct", table: "MYTABLE" } });
  assert.ok(typeof found !== "string" && found.case === "table" && found.value.name === "MyTable");
  assert.equal(tables.table({ case: "getTable", value: { account: "other", table: "MyTable" } }), "TableNotFound");
  assert.equal(tables.table({ case: "deleteTable", value: { account: "acct", table: "myTable" } }), "done");
  assert.equal(tables.table({ case: "deleteTable", value: { account: "acct", table: "MyTable" } }), "ResourceNotFound");
});

test("policies of a table come back in order, with what they leave out", () => {
  const tables = new Tables();
  tables.create("t01");
  const policies = [
    { id: "a", startMs: undefined, expiryMs: 5, permissions: "r" },
    { id: "b", startMs: undefined, expiryMs: undefined, permissions: undefined },
  ];
  assert.equal(tables.table({ case: "setTableAcl", value: { account: "acct", table: "t01", signedIdentifiers: policies } }), "done");
  const found = tables.table({ case: "getTable", value: { account: "acct", table: "t01" } });
  assert.deepEqual(typeof found === "string" || found.case !== "table" ? found : found.value.signedIdentifiers, policies);
  assert.equal(
    tables.table({ case: "setTableAcl", value: { account: "acct", table: "none", signedIdentifiers: policies } }),
    "TableNotFound",
  );
});

test("entities of a deleted table are not there in a table of the same name, unless the rule is off", () => {
  for (const [rules, expected] of [
    [undefined, "ResourceNotFound"],
    [rulesWithout("incarnationInKey"), ""],
  ] as const) {
    const tables = new Tables();
    if (rules) tables.rules = rules;
    tables.change(tables.create("t01"), "p", { rowKey: "r" });
    tables.table({ case: "deleteTable", value: { account: "acct", table: "t01" } });
    assert.equal(tables.names(tables.create("t01"), "p", "r"), expected);
  }
});

test("each action says what it needs: insert nothing, update, merge and delete the entity and its state, insert-or-* neither", () => {
  const tables = new Tables();
  const table = tables.create("t01");
  for (const action of ["replace", "merge", "delete"] as const)
    assert.equal(tables.change(table, "p", { rowKey: "r", action }), "0:ResourceNotFound");
  const [first] = tables.change(table, "p", { rowKey: "r", properties: [text("a", "1"), text("b", "1")] }) as bigint[];
  assert.equal(tables.change(table, "p", { rowKey: "r" }), "0:EntityAlreadyExists");
  const [second] = tables.change(table, "p", {
    rowKey: "r",
    action: "merge",
    ifTimestamp: first,
    properties: [text("b", "2"), text("c", "2")],
  }) as bigint[];
  assert.equal(tables.names(table, "p", "r"), "a=1,b=2,c=2");
  for (const action of ["replace", "merge", "delete"] as const) {
    assert.equal(tables.change(table, "p", { rowKey: "r", action, ifTimestamp: first }), "0:UpdateConditionNotSatisfied");
  }
  assert.ok(
    Array.isArray(tables.change(table, "p", { rowKey: "r", action: "replace", ifTimestamp: second, properties: [text("d", "3")] })),
  );
  assert.equal(tables.names(table, "p", "r"), "d=3");
  assert.ok(Array.isArray(tables.change(table, "p", { rowKey: "r", action: "insertOrMerge", properties: [text("e", "4")] })));
  assert.equal(tables.names(table, "p", "r"), "d=3,e=4");
  assert.ok(Array.isArray(tables.change(table, "p", { rowKey: "r", action: "insertOrReplace", properties: [text("f", "5")] })));
  assert.equal(tables.names(table, "p", "r"), "f=5");
  assert.ok(Array.isArray(tables.change(table, "p", { rowKey: "r", action: "delete" })));
  assert.equal(tables.names(table, "p", "r"), "ResourceNotFound");
});

test("timestamps of an entity rise, also when the clock is set back, and differ after it was deleted within a millisecond", () => {
  const tables = new Tables();
  const table = tables.create("t01");
  const [first] = tables.change(table, "p", { rowKey: "r" }) as [bigint];
  tables.wallMs -= 60_000;
  const [second] = tables.change(table, "p", { rowKey: "r", action: "insertOrReplace" }) as [bigint];
  assert.ok(second > first);
  tables.wallMs += 60_000;
  tables.change(table, "p", { rowKey: "r", action: "delete" });
  const [third] = tables.change(table, "p", { rowKey: "r" }) as [bigint];
  assert.ok(third !== first && third !== second);
});

test("a transaction of 100 with a conflict at 57 changes nothing and names 57", () => {
  const tables = new Tables();
  const table = tables.create("t01");
  tables.change(table, "p", { rowKey: "r57" });
  const rows = tables.rows.size;
  const changes = Array.from({ length: 100 }, (_, i) => ({ rowKey: `r${i}` }));
  assert.equal(tables.change(table, "p", ...changes), "57:EntityAlreadyExists");
  assert.equal(tables.rows.size, rows);
  assert.equal((tables.change(table, "q", ...changes) as bigint[]).length, 100);
  assert.equal(tables.change(table, "q", { rowKey: "a" }, { rowKey: "b" }, { rowKey: "a" }), "2:InvalidDuplicateRow");
});

test("an entity that grew too large by a merge is refused: by properties, by bytes", () => {
  const tables = new Tables();
  const table = tables.create("t01");
  const many = (from: number, count: number) => Array.from({ length: count }, (_, i) => text(`p${from + i}`, ""));
  tables.change(table, "p", { rowKey: "r", properties: many(0, 252) });
  assert.equal(tables.change(table, "p", { rowKey: "r", action: "merge", properties: many(252, 1) }), "0:TooManyProperties");
  assert.ok(Array.isArray(tables.change(table, "p", { rowKey: "r", action: "merge", properties: many(0, 252) })));
  const large = (name: string) => text(name, "x".repeat(32_000));
  const first = Array.from({ length: 16 }, (_, i) => large(`a${i}`));
  assert.ok(Array.isArray(tables.change(table, "p", { rowKey: "big", properties: first })));
  assert.equal(tables.change(table, "p", { rowKey: "big", action: "insertOrMerge", properties: [large("b")] }), "0:EntityTooLarge");
});
