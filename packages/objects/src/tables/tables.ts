/**
 * Operations on tables. A table is one row; its incarnation is the sequence of the commit that created it, so it is never used again under
 * that name, and it is part of the key of every entity. Deleting a table removes the row and nothing else: its entities can't be reached
 * from then on.
 */
import { answer, done, fail, getRow, intact, type Plan, type PlanContext } from "../plan.ts";
import { type DictionaryEntry, decodeRow, encodeRow } from "../rows/row.ts";
import { entitySchema } from "../rows/schemas.ts";
import { tableKey } from "./keys.ts";
import type { StoredPolicy, Table, TableAddress, TableOperation } from "./operation.ts";

type Value<K extends TableOperation["case"]> = Extract<TableOperation, { case: K }>["value"];

const policyParts = ["starts", "expires", "permissions"] as const;
/** What no id of a policy contains: it keeps the parts of an entry's name apart. */
const separator = "\n";

/** Per policy an entry for its id, and one for each part that it has. */
const encodePolicies = (policies: readonly StoredPolicy[]): DictionaryEntry[] =>
  policies.flatMap((policy, index) => [
    { name: String(index), type: "string", value: policy.id } as const,
    ...policyParts.flatMap((part) =>
      policy[part] === "" ? [] : [{ name: `${index}${separator}${part}`, type: "string", value: policy[part] } as const],
    ),
  ]);

function decodePolicies(entries: readonly DictionaryEntry[]): StoredPolicy[] {
  const texts = new Map(entries.map(({ name, value }) => [name, String(value)]));
  const policies: StoredPolicy[] = [];
  for (let index = 0; ; index++) {
    const id = texts.get(String(index));
    if (id === undefined) return policies;
    const part = (name: (typeof policyParts)[number]): string => texts.get(`${index}${separator}${name}`) ?? "";
    policies.push({ id, starts: part("starts"), expires: part("expires"), permissions: part("permissions") });
  }
}

const encodeTable = ({ name, incarnation, policies }: Table): Uint8Array =>
  encodeRow(entitySchema, {
    name,
    incarnation: BigInt(incarnation),
    policies: policies.length === 0 ? undefined : encodePolicies(policies),
  });

export function decodeTable(bytes: Uint8Array): Table {
  const { name, incarnation, policies } = intact(decodeRow(entitySchema, bytes));
  return { name: name ?? "", incarnation: Number(incarnation ?? 0n), policies: decodePolicies(policies ?? []) };
}

function* readTable({ account, table }: TableAddress): Plan<Table | undefined> {
  const row = yield* getRow(tableKey(account, table));
  return row ? decodeTable(row) : undefined;
}

export function* createTable(value: TableAddress, context: PlanContext): Plan {
  if (yield* readTable(value)) return fail("TableAlreadyExists");
  const table: Table = { name: value.table, incarnation: context.sequence, policies: [] };
  return answer({ case: "table", value: { case: "table", value: table } }, [put(value, table)]);
}

export function* getTable(value: TableAddress): Plan {
  const table = yield* readTable(value);
  return table ? answer({ case: "table", value: { case: "table", value: table } }) : fail("TableNotFound");
}

export function* setTableAcl(value: Value<"setTableAcl">): Plan {
  const table = yield* readTable(value);
  if (!table) return fail("TableNotFound");
  return answer(done, [put(value, { ...table, policies: value.policies })]);
}

export function* deleteTable(value: TableAddress): Plan {
  if (!(yield* readTable(value))) return fail("ResourceNotFound");
  return answer(done, [{ kind: "delete", key: tableKey(value.account, value.table) }]);
}

const put = ({ account, table }: TableAddress, state: Table) =>
  ({ kind: "put", key: tableKey(account, table), value: encodeTable(state) }) as const;
