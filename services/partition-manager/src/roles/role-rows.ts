/**
 * Rows of accounts with a role at this stamp: how they are read, and written only if they are still as they were read (role-commands.ts decides what
 * is written).
 */
import { create, toBinary } from "@bufbuild/protobuf";
import { decodeServiceProperties, unreadableProperties } from "@stamp/azure-rest";
import { equalBytes, type Outcome, ok, refused } from "@stamp/base";
import { type AccountRole, decodeRole, encodeRole, roleWithoutRow } from "@stamp/geo";
import { type Account, AccountSchema } from "@stamp/wire";
import type { AccountOperation, AccountResult } from "../accounts/account-rows.ts";

/** Runs an operation at the range of the account's row. */
export type Execute = (operation: AccountOperation) => Promise<Outcome<AccountResult>>;

/** Row as it was read; `account`: undefined if there is none. */
export interface RoleRowRead {
  readonly account: Account | undefined;
  /** Role of the account; undefined: the stamp has never heard of the account. */
  readonly role: AccountRole | undefined;
}

/** Returns the role after a change; the same one if nothing changes. */
export type NextRole = (role: AccountRole, account: Account) => AccountRole;

type PutAccountInit = Extract<AccountOperation, { case: "putAccount" }>["value"];

/** Attempts of a change that others come before. */
export const attemptsMax = 8;

/** Returns the settings that an account's copy shares with it. */
const settingsOf = ({ keys, delegationSecret, serviceProperties, configuredDigest, encryptionScopes }: Account) => ({
  keys,
  delegationSecret,
  serviceProperties,
  configuredDigest,
  encryptionScopes,
});

export function sameSettings(a: Account, b: Account): boolean {
  const [bare, wanted] = [a, b].map((one) => toBinary(AccountSchema, create(AccountSchema, settingsOf(one))));
  return bare !== undefined && wanted !== undefined && equalBytes(bare, wanted);
}

/** True if the account has shares: the first one writes the properties of its Files service. */
const hasShares = ({ file = "" }: Account["serviceProperties"]): boolean => file !== "";

/** Refuses a second stamp for an account with a hierarchical namespace or with shares: shipments know nothing of trees. */
export function mayHaveCopy(name: string, { serviceProperties }: Account): Outcome<void> {
  if (hasShares(serviceProperties)) {
    return refused(
      "failedPrecondition",
      "conflict",
      `account ${name} has, or had, shares of files, so it is at one stamp only: take the copy or the move back (./stamp geo give-up ${name})`,
    );
  }
  const text = serviceProperties.blob ?? "";
  const held = decodeServiceProperties(text);
  if (!held) return unreadableProperties(`the blob service properties of account ${name}`, text);
  if (!held.hierarchicalNamespace) return ok();
  return refused(
    "failedPrecondition",
    "conflict",
    `account ${name} has a hierarchical namespace, so it is at one stamp only: take the copy or the move back (./stamp geo give-up ${name})`,
  );
}

export const unknownAccount = (name: string) => refused("notFound", "badRequest", `there is no account ${name}`);

export async function heldOf(name: string, execute: Execute): Promise<Outcome<RoleRowRead>> {
  const answer = await execute({ case: "getAccount", value: { account: name } });
  if (!answer.ok) return answer;
  if (answer.value.case !== "account") return ok({ account: undefined, role: undefined });
  const account = answer.value.value;
  const role = decodeRole(account.geoRole);
  return role.ok ? ok({ account, role: role.value ?? roleWithoutRow }) : role;
}

/** Writes the row; false if it has changed since it was read. */
export async function writeRoleRow(
  name: string,
  { account }: RoleRowRead,
  row: AccountRole,
  settings: Account | undefined,
  execute: Execute,
): Promise<Outcome<boolean>> {
  const geoRole = encodeRole(row);
  if (settings === undefined && account !== undefined) return changed(name, account, geoRole, execute);
  const put = { ...(settings === undefined ? {} : settingsOf(settings)), name, geoRole };
  const value: PutAccountInit =
    account === undefined ? { account: put, onlyIfAbsent: true } : { account: put, expectedGeoRole: account.geoRole };
  const answer = await execute({ case: "putAccount", value });
  return answer.ok ? ok(answer.value.case === "account" && answer.value.value.geoRole === geoRole) : answer;
}

async function changed(name: string, account: Account, geoRole: string, execute: Execute): Promise<Outcome<boolean>> {
  // Shares that were made since the row was read keep the account at one stamp.
  const expectedServiceProperties = { file: account.serviceProperties.file ?? "" };
  const value = { account: name, geoRole, expectedGeoRole: account.geoRole, expectedServiceProperties };
  const answer = await execute({ case: "changeAccount", value });
  return answer.ok ? ok(answer.value.case === "account") : answer;
}

export async function change(name: string, next: NextRole, execute: Execute): Promise<Outcome<AccountRole>> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const held = await heldOf(name, execute);
    if (!held.ok) return held;
    const { account, role } = held.value;
    if (account === undefined || role === undefined) return unknownAccount(name);
    const wanted = next(role, account);
    if (wanted === role) return ok(role);
    const written = await changed(name, account, encodeRole(wanted), execute);
    if (!written.ok) return written;
    if (written.value) return ok(wanted);
  }
  return refused("aborted", "conflict", `the role of account ${name} is changed by others again and again`);
}

/** Replaces the settings of a copy's row; `expected`: what it must still have. Returns its role as text. */
export async function putSettings(
  { name, geoRole }: Account,
  settings: Account,
  expected: Account | undefined,
  execute: Execute,
): Promise<Outcome<string>> {
  const expectedSettings = expected && { ...settingsOf(expected), name };
  const value = { account: { ...settingsOf(settings), name, geoRole }, onlyIfAbsent: false, expectedGeoRole: geoRole, expectedSettings };
  const put = await execute({ case: "putAccount", value } as AccountOperation);
  if (!put.ok) return put;
  return put.value.case === "account"
    ? ok(geoRole)
    : refused("aborted", "conflict", `role or settings of account ${name} were changed meanwhile: ask again`);
}
