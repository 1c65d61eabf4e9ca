/**
 * Operations on tables. A table is one row; its incarnation is the sequence of the commit that created it, so it is never used again under
 * that name, and it is part of the key of every entity. Deleting a table removes the row and nothing else: its entities can't be reached
 * from then on.
 */
import { answer, done, fail, getRow, intact, type Plan, type PlanContext } from "../plan.ts";
import { decodeRow, encodeRow } from "../rows/row.ts";
import { entitySchema } from "../rows/schemas.ts";
import { decodeSignedIdentifiers, encodeSignedIdentifiers } from "../signed-identifiers.ts";
import { tableKey } from "./keys.ts";
import type { Table, TableAddress, TableOperation } from "./operation.ts";

type Value<K extends TableOperation["case"]> = Extract<TableOperation, { case: K }>["value"];

const encodeTable = ({ name, incarnation, signedIdentifiers }: Table): Uint8Array =>
  encodeRow(entitySchema, {
    name,
    incarnation: BigInt(incarnation),
    signedIdentifiers: encodeSignedIdentifiers(signedIdentifiers),
  });

export function decodeTable(bytes: Uint8Array): Table {
  const { name, incarnation, signedIdentifiers } = intact(decodeRow(entitySchema, bytes));
  return { name: name ?? "", incarnation: Number(incarnation ?? 0n), signedIdentifiers: decodeSignedIdentifiers(signedIdentifiers) };
}

function* readTable({ account, table }: TableAddress): Plan<Table | undefined> {
  const row = yield* getRow(tableKey(account, table));
  return row ? decodeTable(row) : undefined;
}

export function* createTable(value: TableAddress, context: PlanContext): Plan {
  if (yield* readTable(value)) return fail("TableAlreadyExists");
  const table: Table = { name: value.table, incarnation: context.sequence, signedIdentifiers: [] };
  return answer({ case: "table", value: { case: "table", value: table } }, [put(value, table)]);
}

export function* getTable(value: TableAddress): Plan {
  const table = yield* readTable(value);
  return table ? answer({ case: "table", value: { case: "table", value: table } }) : fail("TableNotFound");
}

export function* setTableAcl(value: Value<"setTableAcl">): Plan {
  const table = yield* readTable(value);
  if (!table) return fail("TableNotFound");
  return answer(done, [put(value, { ...table, signedIdentifiers: value.signedIdentifiers })]);
}

export function* deleteTable(value: TableAddress): Plan {
  if (!(yield* readTable(value))) return fail("ResourceNotFound");
  return answer(done, [{ kind: "delete", key: tableKey(value.account, value.table) }]);
}

const put = ({ account, table }: TableAddress, state: Table) =>
  ({ kind: "put", key: tableKey(account, table), value: encodeTable(state) }) as const;
