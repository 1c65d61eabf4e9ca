/** Wire calls of the operator about accounts. Every change is made only if the row is still as it was read. */
import {
  decodeServiceProperties,
  encodeServiceProperties,
  fromBase64,
  isAccountName,
  isScopeName,
  type ServiceProperties,
  toBase64,
  unreadableProperties,
} from "@stamp/azure-rest";
import { equalBytes, type Outcome, ok, refused } from "@stamp/base";
import { roleOf } from "@stamp/geo";
import type { CallContext, Handlers, World } from "@stamp/ports";
import type { Account, Accounts } from "@stamp/wire";
import { type CopiedOf, RoleCommands } from "../roles/role-commands.ts";
import { roleHandlers } from "../roles/role-handlers.ts";
import type { NamedRole } from "../roles/roles-here.ts";
import { shippingHere } from "../roles/shipping-here.ts";
import type { Term } from "../term/term.ts";
import { type AccountOperation, type AccountResult, AccountRows } from "./account-rows.ts";
import { resealPage } from "./reseal.ts";

const keyBytes = 64;
const secretBytes = 32;
const scopeKeyBytes = 32;
const retentionDaysMax = 365;
const listPageMax = 1_000;
const attemptsMax = 8;

type ChangeInit = Omit<Extract<AccountOperation, { case: "changeAccount" }>["value"], "$typeName" | "account">;

/** `mayHaveRoles`: the stamp's feature level allows rows with roles. `copied`: how far this stamp's copy of an account has come. */
export function accountsHandlers(
  world: World,
  leading: () => Outcome<Term>,
  mayHaveRoles: () => boolean = () => true,
  copied: CopiedOf = notKnown,
): Handlers<typeof Accounts> {
  const roles = new RoleCommands(world, mayHaveRoles, copied);
  const rows = (): Outcome<AccountRows> => {
    const term = leading();
    if (!term.ok) return term;
    return term.value.map
      ? ok(new AccountRows(world, term.value.map))
      : refused("unavailable", "notReady", "the partition map is not open yet");
  };
  const execute = async (operation: AccountOperation, context: CallContext): Promise<Outcome<AccountResult>> => {
    const opened = rows();
    return opened.ok ? opened.value.execute(operation, { deadlineMs: context.deadlineMs, signal: context.signal }) : opened;
  };
  const read = async (account: string, context: CallContext): Promise<Outcome<Account>> =>
    accountOf(account, await execute({ case: "getAccount", value: { account } }, context));

  /**
   * `decide` says what is changed in the account as it was read, and what of it must still be so. Refused where the account is not at its
   * primary: the primary's settings would replace the change.
   */
  const change = async (
    account: string,
    context: CallContext,
    decide: (held: Account) => Outcome<ChangeInit>,
  ): Promise<Outcome<Account>> => {
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
  };

  return {
    list: async ({ marker, maxResults }, context) => {
      const opened = rows();
      if (!opened.ok) return opened;
      const page = await opened.value.page(marker, maxResults < 1 ? listPageMax : Math.min(maxResults, listPageMax), context);
      if (!page.ok) return page;
      const here = page.value.accounts.filter(({ geoRole }) => !isRemoved(geoRole));
      return ok({ accounts: here.map((account) => ({ ...bare(account), keys: [] })), nextMarker: page.value.nextMarker });
    },
    reseal: async (request, context) => {
      const opened = rows();
      return opened.ok ? resealPage(opened.value, request, context) : opened;
    },
    get: async ({ account }, context) => withoutSecrets(await read(account, context)),
    getForCopy: ({ account }, context) => read(account, context),
    ...roleHandlers(world, roles, execute, async (account, role) => {
      const term = leading();
      if (!term.ok) return term;
      const { map } = term.value;
      if (map === undefined) return refused("unavailable", "notReady", "the partition map is not open yet");
      const found = await shippingHere(world, map, account, role);
      // Another leader may have given the ranges to other servers meanwhile.
      const still = leading();
      return still.ok && still.value === term.value ? found : refused("unavailable", "notLeader", "the term of this manager ended");
    }),
    listRoles: async (_request, context) => {
      const [term, opened] = [leading(), rows()];
      if (!term.ok) return term;
      if (!opened.ok) return opened;
      const listedRoles = await roles.list(term.value, () => rolesOf(opened.value, context));
      return listedRoles.ok ? ok({ roles: [...listedRoles.value] }) : listedRoles;
    },
    create: async ({ account, keys }, context) => {
      if (!isAccountName(account)) return wrong(`${account}: an account's name has 3 to 24 lower-case letters and digits`);
      if (keys.length > 2 || keys.some((key) => !isKey(key))) return wrong("one or two keys, in base64");
      const made = keys.length > 0 ? keys : [newKey(world), newKey(world)];
      const value = { account: { name: account, keys: made }, onlyIfAbsent: true };
      const created = withoutSecrets(accountOf(account, await execute({ case: "putAccount", value }, context)));
      if (created.ok && !sameKeys(created.value.keys, made))
        return refused("alreadyExists", "conflict", `account ${account} is there already`);
      return created;
    },
    rotateKey: async ({ account, keyNumber, newKey: given }, context) => {
      if (keyNumber !== 1 && keyNumber !== 2) return wrong("an account has key 1 and key 2");
      if (given !== "" && !isKey(given)) return wrong("the new key is not base64");
      const fresh = given === "" ? newKey(world) : given;
      const changed = await change(account, context, ({ keys }) => {
        const next = [...keys];
        if (keyNumber > keys.length + 1) return wrong(`account ${account} has no key 1 yet`);
        next[keyNumber - 1] = fresh;
        return sameKeys(keys, next) ? ok({}) : ok({ keys: next, expectedKeys: keys });
      });
      return withoutSecrets(changed);
    },
    revokeDelegationKeys: async ({ account }, context) => {
      const delegationSecret = world.random.bytes(secretBytes);
      return withoutKeys(withoutSecrets(await change(account, context, () => ok({ delegationSecret }))));
    },
    setBlobSettings: async ({ account, versioning, containerDeleteRetentionDays: days, allowPublicAccess }, context) => {
      if (days !== undefined && days > retentionDaysMax) return wrong(`deleted containers are kept for at most ${retentionDaysMax} days`);
      const changed = await change(account, context, ({ serviceProperties }) => {
        const text = serviceProperties.blob ?? "";
        const held = decodeServiceProperties(text);
        if (!held) return unreadableProperties(`the blob service properties of ${account}`, text);
        const next: ServiceProperties = {
          ...held,
          ...(versioning === undefined ? {} : { versioning }),
          ...(allowPublicAccess === undefined ? {} : { publicAccessForbidden: !allowPublicAccess }),
          ...(days === undefined ? {} : { containerDeleteRetention: days === 0 ? { enabled: false } : { enabled: true, days } }),
        };
        return ok({ serviceProperties: { blob: encodeServiceProperties(next) }, expectedServiceProperties: { blob: text } });
      });
      return withoutKeys(withoutSecrets(changed));
    },
    createEncryptionScope: async ({ account, scope: name }, context) => {
      if (!isScopeName(name))
        return wrong(`${name}: a scope's name has 3 to 63 lower-case letters, digits and single hyphens between them`);
      const newEncryptionScope = { name, key: world.random.bytes(scopeKeyBytes), disabled: false };
      const made = await change(account, context, () => ok({ newEncryptionScope }));
      if (!made.ok) return made;
      const held = made.value.encryptionScopes.find((scope) => scope.name === name);
      if (!held || !equalBytes(held.key, newEncryptionScope.key)) {
        return refused("alreadyExists", "conflict", `account ${account} has a scope ${name} already`);
      }
      return withoutKeys(withoutSecrets(made));
    },
    setEncryptionScopeState: async ({ account, scope: name, disabled }, context) => {
      return withoutKeys(withoutSecrets(await change(account, context, () => ok({ encryptionScopeState: { name, disabled } }))));
    },
  };
}

const notKnown: CopiedOf = async (account) =>
  refused("unavailable", "notReady", `how far the copy of account ${account} has come is not known at this stamp`);

/** Refuses a change of settings at a stamp that is not the account's primary. Returns the role that must still be so. */
function changesHere({ name, geoRole }: Account): Outcome<Pick<ChangeInit, "expectedGeoRole">> {
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

const wrong = (message: string) => refused("invalidArgument", "badRequest", message);
const isKey = (key: string): boolean => (fromBase64(key)?.length ?? 0) > 0;
const newKey = (world: World): string => toBase64(world.random.bytes(keyBytes));
const sameKeys = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((key, index) => key === b[index]);

function accountOf(name: string, outcome: Outcome<AccountResult>): Outcome<Account> {
  if (!outcome.ok) return outcome;
  const result = outcome.value;
  if (result.case === "account") return isRemoved(result.value.geoRole) ? removed(name) : ok(result.value);
  if (result.case === "error" && result.value.code === "AccountNotFound")
    return refused("notFound", "badRequest", `there is no account ${name}`);
  return refused("internal", "bug", `an account was answered by ${result.case}`);
}

/** The row of an account that has gone to another stamp stays, to keep late commands out. */
function isRemoved(geoRole: string): boolean {
  const role = roleOf(geoRole);
  return role.ok && role.value.role === "removed";
}
const removed = (name: string) => refused("notFound", "badRequest", `account ${name} has been at this stamp, and is at another one now`);

const bare = (account: Account): Account => ({
  ...account,
  delegationSecret: none,
  configuredDigest: none,
  encryptionScopes: account.encryptionScopes.map((scope) => ({ ...scope, key: none })),
});
const none = new Uint8Array(0);
/** For answers that nobody asks for the sake of the keys. */
const withoutKeys = (outcome: Outcome<Account>): Outcome<Account> => (outcome.ok ? ok({ ...outcome.value, keys: [] }) : outcome);
const withoutSecrets = (outcome: Outcome<Account>): Outcome<Account> => (outcome.ok ? ok(bare(outcome.value)) : outcome);

/** Roles of all accounts, also of those that were removed. */
async function rolesOf(rows: AccountRows, context: CallContext): Promise<Outcome<NamedRole[]>> {
  const roles: NamedRole[] = [];
  for (let marker = ""; ; ) {
    const page = await rows.page(marker, listPageMax, context);
    if (!page.ok) return page;
    for (const { name, geoRole } of page.value.accounts) if (geoRole !== "") roles.push({ account: name, geoRole });
    if (page.value.nextMarker === "") return ok(roles);
    marker = page.value.nextMarker;
  }
}
