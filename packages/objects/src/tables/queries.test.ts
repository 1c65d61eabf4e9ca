import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes } from "@stamp/base";
import fc from "fast-check";
import { compareText } from "../rows/key.ts";
import { TestTable } from "../testing/table.ts";
import { type ComparisonOperator, comparisonOperators, type FilterConstant, type FilterTerm, fitsFilter, isFilter } from "./filter.ts";
import { entityKey, partitionPrefix } from "./keys.ts";
import type { EntityKey, EntityPage, LocatedTable, QueryEntities } from "./operation.ts";
import { unpackEntities } from "./packed-entities.ts";
import { propertiesAnsweredMax } from "./queries.ts";
import { queryRouteFrom } from "./routing.ts";

const compare = (
  property: string,
  operator: ComparisonOperator,
  value: FilterConstant["value"],
  type: FilterConstant["type"] = "string",
): FilterTerm => ({
  kind: "compare",
  property,
  operator,
  constant: { type, value },
});
const and: FilterTerm = { kind: "and" };
const or: FilterTerm = { kind: "or" };
const not: FilterTerm = { kind: "not" };

class Entities extends TestTable {
  readonly table: LocatedTable = { account: "acct", table: "T01", incarnation: 7 };

  insert(partitionKey: string, rowKey: string, n = 0): void {
    const properties = [{ name: "N", type: "int32", value: n } as const];
    const result = this.run({
      case: "table",
      value: { case: "changeEntities", value: { table: this.table, partitionKey, changes: [{ action: "insert", rowKey, properties }] } },
    });
    assert.equal(result.case, "table");
  }

  insertWide(partitionKey: string, rowKey: string, count: number): void {
    const properties = Array.from({ length: count }, (_, i) => ({ name: `P${i}`, type: "int32", value: i }) as const);
    const changes = [{ action: "insert", rowKey, properties } as const];
    this.run({ case: "table", value: { case: "changeEntities", value: { table: this.table, partitionKey, changes } } });
  }

  page(question: Partial<QueryEntities>): EntityPage {
    const value = { table: this.table, filter: [], select: [], entitiesMax: 1_000, ...question };
    const { rows, ...page } = this.#ask({ ...value, packed: false });
    assert.equal(rows, undefined);
    const { rows: packed, ...rest } = this.#ask({ ...value, packed: true });
    if (value.select.length > 0) assert.equal(packed, undefined);
    else assert.deepEqual({ ...rest, entities: [...unpackEntities(packed as Uint8Array)] }, page);
    return page;
  }

  #ask(value: QueryEntities): EntityPage {
    const result = this.run({ case: "table", value: { case: "queryEntities", value } });
    assert.ok(result.case === "table" && result.value.case === "entities");
    return result.value.value;
  }

  /** All pages. */
  all(question: Partial<QueryEntities>): { keys: string[]; rowsRead: number } {
    const keys: string[] = [];
    let rowsRead = 0;
    let after: EntityKey | undefined;
    for (;;) {
      const page = this.page({ ...question, after });
      keys.push(...page.entities.map(({ partitionKey, rowKey }) => `${partitionKey}/${rowKey}`));
      rowsRead += page.rowsRead;
      after = page.last ?? after;
      if (!page.more) return { keys, rowsRead };
    }
  }
}

function filled(partitions: number, rows: number): Entities {
  const entities = new Entities();
  for (let p = 0; p < partitions; p++) for (let r = 0; r < rows; r++) entities.insert(`p${p}`, `r${String(r).padStart(3, "0")}`, r);
  return entities;
}

test("a point is one row read, a prefix its rows, a range of partitions theirs; nothing is scanned", () => {
  const entities = filled(10, 20);
  const point = [compare("PartitionKey", "eq", "p3"), compare("RowKey", "eq", "r005"), and];
  assert.deepEqual(entities.all({ filter: point }), { keys: ["p3/r005"], rowsRead: 1 });
  const prefix = [compare("PartitionKey", "eq", "p3"), compare("RowKey", "ge", "r01"), compare("RowKey", "lt", "r02"), and, and];
  assert.equal(entities.all({ filter: prefix }).rowsRead, 10);
  assert.equal(entities.all({ filter: [compare("PartitionKey", "eq", "p3")] }).rowsRead, 20);
  const partitions = [compare("PartitionKey", "ge", "p3"), compare("PartitionKey", "lt", "p5"), and];
  assert.equal(entities.all({ filter: partitions }).rowsRead, 40);
  const twoPoints = [...point, compare("PartitionKey", "eq", "p7"), compare("RowKey", "eq", "r000"), and, or];
  assert.deepEqual(entities.all({ filter: twoPoints }), { keys: ["p3/r005", "p7/r000"], rowsRead: 2 });
  const goesOn = [compare("PartitionKey", "eq", "p8"), compare("RowKey", "gt", "r017"), and, compare("PartitionKey", "gt", "p8"), or];
  assert.equal(entities.all({ filter: goesOn }).rowsRead, 22);
  assert.equal(entities.all({ filter: [...point, not, compare("PartitionKey", "eq", "p3"), and] }).rowsRead, 19);
  assert.equal(entities.all({ filter: [compare("PartitionKey", "eq", 3, "int32")] }).rowsRead, 0);
  assert.equal(entities.all({ filter: [compare("PartitionKey", "eq", "p3"), compare("PartitionKey", "eq", "p4"), and] }).rowsRead, 0);
  assert.equal(entities.all({ filter: [...point, compare("N", "eq", 5, "int32"), and] }).rowsRead, 1);
});

test("pages have the size that was asked for, and go on behind what was looked at, whatever was written meanwhile", () => {
  const entities = filled(1, 20);
  const first = entities.page({ entitiesMax: 8 });
  assert.equal(first.entities.length, 8);
  assert.deepEqual([first.more, first.last?.rowKey, first.rowsRead], [true, "r007", 8]);
  entities.insert("p0", "r0071");
  entities.insert("p0", "r0001");
  const gone = { action: "delete", rowKey: "r007", properties: [] } as const;
  entities.run({ case: "table", value: { case: "changeEntities", value: { table: entities.table, partitionKey: "p0", changes: [gone] } } });
  const next = entities.page({ after: first.last });
  assert.equal(next.entities[0]?.rowKey, "r0071");
  assert.equal(next.entities.length, 13);
  assert.equal(next.more, false);
});

test("a go is bounded by what it reads: what fits rarely is found in several", () => {
  const entities = filled(3, 1_000);
  entities.scanRowsMax = 1_000;
  const filter = [compare("N", "eq", 999, "int32")];
  const first = entities.page({ filter });
  assert.ok(first.more && first.rowsRead < 2_500 && first.entities.length < 3);
  assert.equal(entities.all({ filter }).keys.length, 3);
});

test("a query that ended in its range goes on where its next span begins", () => {
  const entities = filled(4, 3);
  const { rules, table } = entities;
  const split = partitionPrefix(rules, table, "p2");
  const filter = [compare("PartitionKey", "eq", "p0"), compare("PartitionKey", "eq", "p3"), or];
  entities.range = { low: emptyBytes, high: split };
  const page = entities.page({ filter });
  assert.deepEqual([page.entities.length, page.more, page.rangeEnded], [3, false, true]);
  const value = { table, filter, select: [], entitiesMax: 10 };
  assert.deepEqual(queryRouteFrom(rules, { case: "queryEntities", value }, split)?.key, partitionPrefix(rules, table, "p3"));
  entities.range = { low: split, high: emptyBytes };
  assert.deepEqual([entities.page({ filter }).entities.length, entities.page({ filter }).rangeEnded], [3, false]);
  assert.equal(queryRouteFrom(rules, { case: "queryEntities", value }, partitionPrefix(rules, table, "p9")), undefined);
});

const keyText = fc
  .oneof(fc.constantFrom("", "a", "b", "ab", "\u0001", "\ue000", "\u{10000}"), fc.string({ unit: "grapheme", maxLength: 3 }))
  .filter((text) => text.isWellFormed());
const terms: fc.Arbitrary<FilterTerm[]> = fc.letrec<{ filter: FilterTerm[] }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc
      .tuple(fc.constantFrom("PartitionKey", "RowKey"), fc.constantFrom(...comparisonOperators), keyText)
      .map(([property, operator, value]) => [compare(property, operator, value)]),
    fc
      .tuple(fc.constantFrom(...comparisonOperators), fc.integer({ min: 0, max: 2 }))
      .map(([operator, n]) => [compare("N", operator, n, "int32")]),
    fc.tuple(tie("filter"), tie("filter"), fc.constantFrom(and, or)).map(([a, b, connective]) => [...a, ...b, connective]),
    tie("filter").map((a) => [...a, not]),
  ),
})).filter;

test("spans lose nothing: a query finds exactly what the filter fits, in key order, at any page size and any split", () => {
  const keys = fc.uniqueArray(fc.tuple(keyText, keyText), { maxLength: 12, selector: ([p, r]) => `${p}\n${r}` });
  fc.assert(
    fc.property(keys, terms, fc.integer({ min: 1, max: 4 }), keyText, (all, filter, entitiesMax, splitAt) => {
      assert.ok(isFilter(filter));
      const entities = new Entities();
      for (const [index, [partitionKey, rowKey]] of all.entries()) entities.insert(partitionKey, rowKey, index % 3);
      const expected = all
        .map(([PartitionKey, RowKey], index) => ({ PartitionKey, RowKey, N: index % 3 }))
        .filter((entity) =>
          fitsFilter(filter, (name) =>
            name === "N" ? { type: "int32", value: entity.N } : { type: "string", value: entity[name as "RowKey"] },
          ),
        )
        .sort((a, b) => compareText(a.PartitionKey, b.PartitionKey) || compareText(a.RowKey, b.RowKey))
        .map(({ PartitionKey, RowKey }) => `${PartitionKey}/${RowKey}`);
      assert.deepEqual(entities.all({ filter, entitiesMax }).keys, expected);
      const split = entityKey(partitionPrefix(entities.rules, entities.table, splitAt), splitAt);
      const found: string[] = [];
      for (const range of [
        { low: emptyBytes, high: split },
        { low: split, high: emptyBytes },
      ]) {
        entities.range = range;
        found.push(...entities.all({ filter, entitiesMax }).keys);
      }
      assert.deepEqual(found, expected);
    }),
    { numRuns: 300 },
  );
});

test("tables are listed by prefix, a page at a time, without regard to case", () => {
  const tables = new TestTable();
  for (const table of ["Beta", "alpha", "ALPS", "gamma"])
    tables.run({ case: "table", value: { case: "createTable", value: { account: "acct", table } } });
  const list = (filter: FilterTerm[], after: string, tablesMax: number) => {
    const result = tables.run({ case: "table", value: { case: "listTables", value: { account: "acct", filter, after, tablesMax } } });
    assert.ok(result.case === "table" && result.value.case === "tables");
    return result.value.value;
  };
  assert.deepEqual(
    list([], "", 10).tables.map(({ name }) => name),
    ["alpha", "ALPS", "Beta", "gamma"],
  );
  const page = list([], "", 2);
  assert.deepEqual([page.tables.length, page.more, page.last], [2, true, "alps"]);
  assert.deepEqual(
    list([], page.last, 2).tables.map(({ name }) => name),
    ["Beta", "gamma"],
  );
  const prefix = [compare("TableName", "ge", "AL"), compare("TableName", "lt", "am"), and];
  assert.deepEqual([list(prefix, "", 9).tables.length, list(prefix, "", 9).rowsRead], [2, 2]);
});

test("queries: one go answers a bounded number of properties, and the next goes on behind it", () => {
  const table = new Entities();
  for (let i = 0; i < 200; i++) table.insertWide("p", String(i).padStart(3, "0"), 252);
  const first = table.page({});
  assert.ok(first.more && first.entities.length > 0);
  // A step of 64 rows is finished.
  assert.ok(first.entities.length * 252 < propertiesAnsweredMax + 64 * 252, `${first.entities.length} entities`);
  const { keys } = table.all({});
  assert.deepEqual(
    keys,
    Array.from({ length: 200 }, (_, i) => `p/${String(i).padStart(3, "0")}`),
  );
  // Properties that are not selected do not count.
  assert.equal(table.page({ select: ["P1"] }).entities.length, 200);
});

test("a filter of one PartitionKey, alone, finds what its operator says", () => {
  const entities = filled(3, 2);
  const keysOf = (operator: ComparisonOperator): string[] =>
    entities.page({ filter: [compare("PartitionKey", operator, "p1")] }).entities.map(({ partitionKey }) => partitionKey);
  const [p0, p1, p2] = [0, 1, 2].map((p) => [`p${p}`, `p${p}`]) as [string[], string[], string[]];
  assert.deepEqual(keysOf("eq"), p1);
  assert.deepEqual(keysOf("ne"), [...p0, ...p2]);
  assert.deepEqual(keysOf("gt"), p2);
  assert.deepEqual(keysOf("ge"), [...p1, ...p2]);
  assert.deepEqual(keysOf("lt"), p0);
  assert.deepEqual(keysOf("le"), [...p0, ...p1]);
});
