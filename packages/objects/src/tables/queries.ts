/**
 * Queries over tables and entities, in key order: only the spans of keys that the filter can fit are read (spans.ts). One go is bounded
 * by what it answers and by what it reads, so that a query that finds little in much holds nobody up; the asker goes on behind `last`.
 */
import { compareBytes } from "@stamp/base";
import { answer, type Plan, type PlanContext, type RowEntry, scanRows } from "../plan.ts";
import { entityOf } from "./entities.ts";
import { decodeEntity, propertyCount } from "./entity-rows.ts";
import { type FilterConstant, type FilterTerm, fitsFilter } from "./filter.ts";
import { entityKey, entityKeyOf, foldedName, partitionPrefix, tableKey } from "./keys.ts";
import type { Entity, ListTables, QueryEntities, Table } from "./operation.ts";
import { packRows } from "./packed-entities.ts";
import { type KeySpan, spansFrom, spansOfQuery, spansOfTables, successor } from "./spans.ts";
import { decodeTable } from "./tables.ts";

/** Entities of one page of the service. */
export const queryPageMax = 1_000;
/** Rows that one call reads. */
export const rowsReadMax = 2_000;
const bytesReadMax = 2 * 1024 * 1024;
/** Rows of one step: an entity may have 252 properties, and a step is one turn of the event loop. */
const batch = { rowsMax: 64, bytesMax: 512 * 1024 } as const;
/** Properties that one go answers, about: who encodes and who decodes an answer does it in one turn. */
export const propertiesAnsweredMax = 8_192;

interface Walk {
  readonly more: boolean;
  readonly rangeEnded: boolean;
  readonly rowsRead: number;
}

/** Looks at row after row of the spans inside the range; `look` says whether the row counts as found, `isFull` whether to stop before the next step. */
function* walk(
  spans: readonly KeySpan[],
  context: PlanContext,
  foundMax: number,
  look: (row: RowEntry) => boolean,
  isFull: () => boolean = () => false,
): Plan<Walk> {
  const { range } = context;
  const rangeEnded = range.high.length > 0 && spans.some((span) => compareBytes(span.high, range.high) > 0);
  let found = 0;
  let rowsRead = 0;
  let bytesRead = 0;
  for (const span of spansFrom(spans, range.low)) {
    const high = range.high.length > 0 && compareBytes(range.high, span.high) < 0 ? range.high : span.high;
    for (let low = span.low, more = compareBytes(low, high) < 0; more; ) {
      if (found >= foundMax || rowsRead >= rowsReadMax || bytesRead >= bytesReadMax || isFull())
        return { more: true, rangeEnded: false, rowsRead };
      const page = yield* scanRows(low, high, { ...batch, rowsMax: Math.min(batch.rowsMax, foundMax - found) });
      for (const row of page.rows) {
        rowsRead++;
        bytesRead += row.value.length;
        if (look(row)) found++;
      }
      const last = page.rows.at(-1);
      if (last) low = successor(last.key);
      more = page.more;
    }
  }
  return { more: false, rangeEnded, rowsRead };
}

/** Returns where the query goes on: behind what was looked at last. */
export function queryStart(value: QueryEntities, context: Pick<PlanContext, "rules">): readonly KeySpan[] {
  const spans = spansOfQuery(context.rules, value);
  const { table, after } = value;
  if (!after) return spans;
  return spansFrom(spans, successor(entityKey(partitionPrefix(context.rules, table, after.partitionKey), after.rowKey)));
}

export function* queryEntities(value: QueryEntities, context: PlanContext): Plan {
  const { filter, select } = value;
  const isPacked = value.packed === true && select.length === 0;
  const everyOneFits = filter.length === 0 || isOfOnePartition(filter);
  const entities: Entity[] = [];
  const rows: RowEntry[] = [];
  let last: Uint8Array | undefined;
  let properties = 0;
  const isFull = (): boolean => properties >= propertiesAnsweredMax;
  const look = (row: RowEntry): boolean => {
    last = row.key;
    if (isPacked && everyOneFits) {
      properties += propertyCount(row.value);
      rows.push(row);
      return true;
    }
    const key = entityKeyOf(row.key);
    const state = decodeEntity(row.value);
    if (!everyOneFits && !fitsFilter(filter, propertyOf(entityOf(key, state, [])))) return false;
    const shown = entityOf(key, state, select);
    properties += shown.properties.length;
    if (isPacked) rows.push(row);
    else entities.push(shown);
    return true;
  };
  const end = yield* walk(queryStart(value, context), context, pageSize(value.entitiesMax), look, isFull);
  const page = { ...end, entities, last: last && entityKeyOf(last) };
  return answer({
    case: "table",
    value: { case: "entities", value: isPacked ? { ...page, rows: packRows(rows, context.pageMemory) } : page },
  });
}

/** True for `PartitionKey eq '…'` alone: the span that is read has no other entities. */
function isOfOnePartition(filter: readonly FilterTerm[]): boolean {
  const [term] = filter;
  return (
    filter.length === 1 &&
    term?.kind === "compare" &&
    term.property === "PartitionKey" &&
    term.operator === "eq" &&
    term.constant.type === "string"
  );
}

/** Returns the value of any property, the three that every entity has included. */
function propertyOf(entity: Entity): (name: string) => FilterConstant | undefined {
  return (name) => {
    switch (name) {
      case "PartitionKey":
        return { type: "string", value: entity.partitionKey };
      case "RowKey":
        return { type: "string", value: entity.rowKey };
      case "Timestamp":
        return { type: "DateTime", value: entity.timestamp };
      default:
        return entity.properties.find((property) => property.name === name);
    }
  };
}

export function tablesStart(value: ListTables): readonly KeySpan[] {
  const spans = spansOfTables(value);
  return value.after === "" ? spans : spansFrom(spans, successor(tableKey(value.account, value.after)));
}

export function* listTables(value: ListTables, context: PlanContext): Plan {
  const tables: Table[] = [];
  let last = value.after;
  const filter = value.filter.map((term) =>
    term.kind === "compare" && term.constant.type === "string"
      ? { ...term, constant: { ...term.constant, value: foldedName(String(term.constant.value)) } }
      : term,
  );
  const end = yield* walk(tablesStart(value), context, pageSize(value.tablesMax), (row) => {
    const table = decodeTable(row.value);
    last = foldedName(table.name);
    const fit = fitsFilter(filter, (name) => (name === "TableName" ? { type: "string", value: foldedName(table.name) } : undefined));
    if (fit) tables.push(table);
    return fit;
  });
  return answer({ case: "table", value: { case: "tables", value: { ...end, tables, last } } });
}

const pageSize = (asked: number): number => (asked < 1 ? queryPageMax : Math.min(asked, queryPageMax));
