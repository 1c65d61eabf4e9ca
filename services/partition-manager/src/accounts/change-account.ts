/** Changes of an account's row: made only if the row is still as it was read. */
import { type Outcome, ok, refused } from "@stamp/base";
import { roleOf } from "@stamp/geo";
import type { CallContext } from "@stamp/ports";
import type { Account } from "@stamp/wire";
import type { AccountOperation, AccountResult } from "./account-rows.ts";

const attemptsMax = 8;

export type AccountChange = Omit<Extract<AccountOperation, { case: "changeAccount" }>["value"], "$typeName" | "account">;

export type ChangeAccount = (
  account: string,
  context: CallContext,
  decide: (held: Account) => Outcome<AccountChange>,
) => Promise<Outcome<Account>>;

/** Access to an account's row: reads it, and executes an operation on it. */
export interface AccountAccess {
  readonly read: (account: string, context: CallContext) => Promise<Outcome<Account>>;
  readonly execute: (operation: AccountOperation, context: CallContext) => Promise<Outcome<AccountResult>>;
}

/**
 * Changes an account as it was read. `decide` says what is changed, and what must still be so. Reads again if somebody else changed the
 * account meanwhile. Refused where the account is not at its primary: the primary's settings would replace the change.
 */
export async function changeAccount(
  { read, execute }: AccountAccess,
  account: string,
  context: CallContext,
  decide: (held: Account) => Outcome<AccountChange>,
): Promise<Outcome<Account>> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const held = await read(account, context);
    if (!held.ok) return held;
    const atPrimary = changesHere(held.value);
    if (!atPrimary.ok) return atPrimary;
    const changes = decide(held.value);
    if (!changes.ok) return changes;
    const value = { account, ...changes.value, ...atPrimary.value };
    const changed = await execute({ case: "changeAccount", value }, context);
    if (changed.ok && changed.value.case === "error" && changed.value.value.code === "ResourceNotFound") {
      return refused("notFound", "badRequest", `account ${account} has no scope ${changes.value.encryptionScopeState?.name}`);
    }
    if (changed.ok && changed.value.case === "error" && changed.value.value.code === "ConditionNotMet") continue;
    return accountOf(account, changed);
  }
  return refused("aborted", "conflict", `account ${account} is changed by others again and again`);
}

/** Refuses a change of settings at a stamp that is not the account's primary. Returns the role that must still be so. */
function changesHere({ name, geoRole }: Account): Outcome<Pick<AccountChange, "expectedGeoRole">> {
  if (geoRole === "") return ok({});
  const role = roleOf(geoRole);
  if (!role.ok) return role;
  if (role.value.role === "primary") return ok({ expectedGeoRole: geoRole });
  const where = role.value.peer === undefined ? "" : `; its other stamp is ${role.value.peer}`;
  return refused(
    "failedPrecondition",
    "conflict",
    `account ${name} is ${role.value.role} at this stamp, and is changed at its primary${where}`,
  );
}

/** Returns the account that an operation answered with; refuses one that has gone to another stamp. */
export function accountOf(name: string, outcome: Outcome<AccountResult>): Outcome<Account> {
  if (!outcome.ok) return outcome;
  const result = outcome.value;
  if (result.case === "account") return isRemoved(result.value.geoRole) ? removed(name) : ok(result.value);
  if (result.case === "error" && result.value.code === "AccountNotFound")
    return refused("notFound", "badRequest", `there is no account ${name}`);
  return refused("internal", "bug", `an account was answered by ${result.case}`);
}

/** True if the account has gone to another stamp. Its row stays, to keep late commands out. */
export function isRemoved(geoRole: string): boolean {
  const role = roleOf(geoRole);
  return role.ok && role.value.role === "removed";
}
const removed = (name: string) => refused("notFound", "badRequest", `account ${name} has been at this stamp, and is at another one now`);
