/** Operations on accounts: one row each in the Account table. */
import { accountKey } from "../object-keys.ts";
import type { Account, OperationValue } from "../operation.ts";
import { answer, fail, getRow, intact, type Plan, type PlanContext } from "../plan.ts";
import { dateTimeOfMs, decodeRow, encodeRow } from "../rows/row.ts";
import { accountSchema } from "../rows/schemas.ts";

function decodeAccount(name: string, bytes: Uint8Array): Account {
  const row = intact(decodeRow(accountSchema, bytes));
  return { name, keys: (row.keys ?? []).map((entry) => String(entry.value)) };
}

export function* getAccount(value: OperationValue<"getAccount">): Plan {
  const row = yield* getRow(accountKey(value.account));
  return row ? answer({ case: "account", value: decodeAccount(value.account, row) }) : fail("AccountNotFound");
}

export function* putAccount(value: OperationValue<"putAccount">, context: PlanContext): Plan {
  const { account, onlyIfAbsent } = value;
  const key = accountKey(account.name);
  const row = yield* getRow(key);
  if (row && onlyIfAbsent) return answer({ case: "account", value: decodeAccount(account.name, row) });
  const keys = account.keys.map((text, index) => ({ name: `key${index + 1}`, type: "string", value: text }) as const);
  const created = row ? intact(decodeRow(accountSchema, row)).created : dateTimeOfMs(context.wallMs);
  return answer({ case: "account", value: account }, [{ kind: "put", key, value: encodeRow(accountSchema, { keys, created }) }]);
}
