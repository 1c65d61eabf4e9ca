/** Operations on accounts: one row each in the Account table, keyed by the name. */
import { compareBytes, concatBytes, emptyBytes, neededLevels, refused } from "@stamp/base";
import { serviceError } from "../errors.ts";
import { accountKey, accountsFrom, accountsPrefix, afterPrefix } from "../object-keys.ts";
import type { OperationValue } from "../operation.ts";
import { answer, type Decision, errorAnswer, fail, getRow, intact, type Plan, type PlanContext, refuse, scanRows } from "../plan.ts";
import { decodeKey } from "../rows/key.ts";
import { type DictionaryEntry, dateTimeOfMs, decodeRow, encodeRow, msOfDateTime } from "../rows/row.ts";
import { accountSchema } from "../rows/schemas.ts";
import type { Account, AccountSettings, ChangeAccount, EncryptionScope, ListAccounts } from "./operation.ts";
import { changedSetting, isHierarchical } from "./operator-settings.ts";
import { masterKeyIdIn, type Seals } from "./seals.ts";

export const accountsPageMax = 1_000;
/** A front-end reads all of an account's scopes with the account, every few seconds. */
export const encryptionScopesMax = 256;
const batchLimits = { rowsMax: 100, bytesMax: 512 * 1024 } as const;

const texts = (entries: readonly (readonly [string, string])[]): DictionaryEntry[] | undefined =>
  entries.length > 0 ? entries.map(([name, value]) => ({ name, type: "string", value })) : undefined;
const bytes = (value: Uint8Array): Uint8Array | undefined => (value.length > 0 ? value : undefined);
const owned = (value: Uint8Array | undefined): Uint8Array => (value ? concatBytes([value]) : emptyBytes);

function decodeAccount(name: string, row: Uint8Array, seals: Seals): Account {
  const held = intact(decodeRow(accountSchema, row));
  // The sealed part of a row is itself a row, of the secret properties.
  const secrets = held.sealed === undefined ? held : intact(decodeRow(accountSchema, intact(seals.open(name, held.sealed))));
  return {
    name,
    keys: (secrets.keys ?? []).map((entry) => String(entry.value)),
    delegationSecret: owned(secrets.delegationSecret),
    serviceProperties: Object.fromEntries((held.serviceProperties ?? []).map((entry) => [entry.name, String(entry.value)])),
    configuredDigest: owned(secrets.configuredDigest),
    encryptionScopes: (secrets.encryptionScopes ?? []).map(({ name: scope, value }) => decodeScope(scope, value)),
    createdMs: held.created === undefined ? 0 : msOfDateTime(held.created),
    geoRole: held.geoRole ?? "",
    ...(held.sealed === undefined ? {} : { sealedBy: masterKeyIdIn(held.sealed) }),
  };
}

/** A scope's value in the row: its state (0: enabled, 1: disabled), then its key. */
const scopeBytes = 1 + 32;

function decodeScope(name: string, value: unknown): EncryptionScope {
  const held = value instanceof Uint8Array && value.length === scopeBytes && (value[0] as number) <= 1 ? value : undefined;
  if (!held) return intact(refused("dataLoss", "damaged", `the encryption scope ${name} of an account`));
  return { name, key: concatBytes([held.subarray(1)]), disabled: held[0] === 1 };
}

/** True if the scope can be read again after it was written. */
const isScope = ({ name, key }: EncryptionScope): boolean => name !== "" && key.length === scopeBytes - 1;
const whatScopesAre = `a scope has a name and a key of ${scopeBytes - 1} bytes; an account has at most ${encryptionScopesMax}`;

const scopesOf = (scopes: readonly EncryptionScope[]): DictionaryEntry[] | undefined =>
  scopes.length === 0
    ? undefined
    : scopes.map(({ name, key, disabled }) => ({ name, type: "binary", value: concatBytes([Uint8Array.of(disabled ? 1 : 0), key]) }));

const levelNotHeard = "the partition server has not heard the feature level of the stamp yet";
const namespaceStays = "an account gets a hierarchical namespace when it is made, or never: make another account, and copy its blobs";
const hierarchicalIsAlone = "an account with a hierarchical namespace is at one stamp: it can't be copied to another, or moved, yet";
const hierarchicalNeedsLevel = `accounts with a hierarchical namespace need feature level ${neededLevels.hierarchicalAccounts}: ./stamp upgrade status`;
const rolesNeedLevel = `roles of accounts at several stamps need feature level ${neededLevels.accountRoles}: ./stamp upgrade status`;

/** Returns what the level of the stamp says. Throws FailureError `notReady` if the level is not known: then nothing may be written for want of an answer. */
function heard(may: boolean | undefined): boolean {
  return may ?? intact<boolean>(refused("unavailable", "notReady", levelNotHeard));
}

/**
 * Rows that the release before can't read wait for the level of the stamp, once they have begun they go on. A row that was written before there was a
 * master key is sealed when it is written next.
 */
function put(account: Account, { seals, mayWrite }: PlanContext, row: Uint8Array | undefined) {
  const held = row && intact(decodeRow(accountSchema, row));
  const before = held && Object.fromEntries((held.serviceProperties ?? []).map((entry) => [entry.name, String(entry.value)]));
  const hierarchical = isHierarchical(account.serviceProperties);
  if (before && isHierarchical(before) !== hierarchical) intact(refused("failedPrecondition", "conflict", namespaceStays));
  if (hierarchical && account.geoRole !== "") intact(refused("failedPrecondition", "conflict", hierarchicalIsAlone));
  if (hierarchical && !held && !heard(mayWrite(neededLevels.hierarchicalAccounts)))
    intact(refused("failedPrecondition", "conflict", hierarchicalNeedsLevel));
  const getsRole = account.geoRole !== "" && held?.geoRole === undefined;
  if (getsRole && !heard(mayWrite(neededLevels.accountRoles))) intact(refused("failedPrecondition", "conflict", rolesNeedLevel));
  const secrets = {
    keys: texts(account.keys.map((key, index) => [`key${index + 1}`, key])),
    delegationSecret: bytes(account.delegationSecret),
    // It tells whether a guess of the keys is right.
    configuredDigest: bytes(account.configuredDigest),
    encryptionScopes: scopesOf(account.encryptionScopes),
  };
  const sealed = seals.seal(account.name, encodeRow(accountSchema, secrets));
  const maySeal = sealed !== undefined && (held?.sealed !== undefined || heard(mayWrite(neededLevels.sealedAccounts)));
  const value = encodeRow(accountSchema, {
    ...(maySeal ? { sealed } : secrets),
    created: dateTimeOfMs(account.createdMs),
    serviceProperties: texts(Object.entries(account.serviceProperties)),
    geoRole: account.geoRole === "" ? undefined : account.geoRole,
  });
  const { sealedBy: _before, ...same } = account;
  const written = maySeal ? { ...same, sealedBy: masterKeyIdIn(sealed) } : same;
  return answer({ case: "account", value: written }, [{ kind: "put", key: accountKey(account.name), value }]);
}

export function* getAccount(value: OperationValue<"getAccount">, { seals }: PlanContext): Plan {
  const row = yield* getRow(accountKey(value.account));
  return row ? answer({ case: "account", value: decodeAccount(value.account, row, seals) }) : fail("AccountNotFound");
}

/**
 * Inserts it. One that is there stays as it is with `onlyIfAbsent`, is replaced if it has the expected role, and otherwise gets these keys.
 */
export function* putAccount(value: OperationValue<"putAccount">, context: PlanContext): Plan {
  const { account, onlyIfAbsent, expectedGeoRole, expectedSettings } = value;
  if (!account.encryptionScopes.every(isScope) || account.encryptionScopes.length > encryptionScopesMax)
    return refuse("badRequest", whatScopesAre);
  const row = yield* getRow(accountKey(account.name));
  const held = row ? decodeAccount(account.name, row, context.seals) : undefined;
  if (held && onlyIfAbsent) return answer({ case: "account", value: held });
  if (expectedGeoRole !== undefined && expectedGeoRole !== held?.geoRole) return conditionNotMet();
  if (expectedSettings !== undefined && (held === undefined || !hasSettings(held, expectedSettings))) return conditionNotMet();
  const changed = expectedGeoRole === undefined ? { keys: account.keys } : { ...account, createdMs: held?.createdMs ?? 0 };
  const next = held ? { ...held, ...changed } : { ...account, createdMs: context.wallMs };
  return put(next, context, row);
}

export function* changeAccount(value: ChangeAccount, context: PlanContext): Plan {
  const row = yield* getRow(accountKey(value.account));
  if (!row) return fail("AccountNotFound");
  const held = decodeAccount(value.account, row, context.seals);
  if (!expectedIsSo(value.expected, held)) return conditionNotMet();
  const setting = value.keepsOperatorSettings ? changedSetting(value.serviceProperties, held.serviceProperties) : undefined;
  if (setting !== undefined) return refuse("badRequest", `${setting} of an account is set by the operator: stamp account set`);
  const scopes = changedScopes(value, held.encryptionScopes);
  if (!scopes.ok) return scopes.decision;
  const next: Account = {
    ...held,
    encryptionScopes: scopes.value,
    keys: value.keys ?? held.keys,
    delegationSecret: value.delegationSecret ?? held.delegationSecret,
    configuredDigest: value.configuredDigest ?? held.configuredDigest,
    serviceProperties: { ...held.serviceProperties, ...value.serviceProperties },
    geoRole: value.geoRole ?? held.geoRole,
  };
  return put(next, context, row);
}

const conditionNotMet = () => errorAnswer(serviceError("ConditionNotMet", { status: "412" }));

type Scopes = { readonly ok: true; readonly value: EncryptionScope[] } | { readonly ok: false; readonly decision: Decision };

/** Returns the scopes after a change. An existing scope keeps its key, because content lies under it. */
function changedScopes(change: ChangeAccount, held: readonly EncryptionScope[]): Scopes {
  const { newEncryptionScope: added, encryptionScopeState: state } = change;
  const not = (decision: Decision): Scopes => ({ ok: false, decision });
  let scopes = [...held];
  if (added && !scopes.some(({ name }) => name === added.name)) {
    if (!isScope(added)) return not(refuse("badRequest", whatScopesAre));
    if (scopes.length >= encryptionScopesMax) return not(refuse("badRequest", `an account has at most ${encryptionScopesMax} scopes`));
    scopes = [...scopes, added].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
  if (!state) return { ok: true, value: scopes };
  if (!scopes.some(({ name }) => name === state.name)) return not(fail("ResourceNotFound"));
  return { ok: true, value: scopes.map((scope) => (scope.name === state.name ? { ...scope, disabled: state.disabled } : scope)) };
}

function expectedIsSo(expected: ChangeAccount["expected"], held: Account): boolean {
  const { keys, delegationSecret, configuredDigest, serviceProperties, geoRole } = expected;
  if (geoRole !== undefined && geoRole !== held.geoRole) return false;
  if (keys !== undefined && (keys.length !== held.keys.length || keys.some((key, index) => key !== held.keys[index]))) return false;
  if (delegationSecret !== undefined && compareBytes(delegationSecret, held.delegationSecret) !== 0) return false;
  if (configuredDigest !== undefined && compareBytes(configuredDigest, held.configuredDigest) !== 0) return false;
  return Object.entries(serviceProperties).every(([service, text]) => (held.serviceProperties[service] ?? "") === text);
}

/** True if a row with these settings would be byte for byte the same. */
const hasSettings = (held: Account, expected: AccountSettings): boolean => compareBytes(settingsRow(held), settingsRow(expected)) === 0;

const settingsRow = ({ keys, delegationSecret, serviceProperties, configuredDigest, encryptionScopes }: AccountSettings): Uint8Array =>
  encodeRow(accountSchema, {
    keys: texts(keys.map((key, index) => [`key${index + 1}`, key])),
    delegationSecret: bytes(delegationSecret),
    configuredDigest: bytes(configuredDigest),
    encryptionScopes: scopesOf(encryptionScopes),
    serviceProperties: texts(Object.entries(serviceProperties).sort(([a], [b]) => (a < b ? -1 : 1))),
  });

export function* listAccounts(value: ListAccounts, context: PlanContext): Plan {
  const end = afterPrefix(accountsPrefix());
  const cut = context.range.high.length > 0 && compareBytes(context.range.high, end) < 0;
  const high = cut ? context.range.high : end;
  const size = value.maxResults < 1 ? accountsPageMax : Math.min(value.maxResults, accountsPageMax);
  const from = accountsFrom(value.marker);
  const accounts: Account[] = [];
  for (let low = compareBytes(from, context.range.low) >= 0 ? from : context.range.low, more = true; more; ) {
    const page = yield* scanRows(low, high, { ...batchLimits, rowsMax: Math.min(batchLimits.rowsMax, size - accounts.length + 1) });
    for (const row of page.rows) {
      const name = String(intact(decodeKey(row.key))[0]?.[0]);
      if (accounts.length === size) return answer({ case: "accounts", value: { accounts, nextMarker: name, rangeEnded: false } });
      accounts.push(decodeAccount(name, row.value, context.seals));
      low = concatBytes([row.key, Uint8Array.of(0)]);
    }
    more = page.more;
  }
  return answer({ case: "accounts", value: { accounts, nextMarker: "", rangeEnded: cut } });
}
