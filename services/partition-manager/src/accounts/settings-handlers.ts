/** Wire calls of the operator that change an account's keys, blob settings and encryption scopes. No answer holds a secret. */
import {
  decodeServiceProperties,
  encodeServiceProperties,
  fromBase64,
  isScopeName,
  type ServiceProperties,
  toBase64,
  unreadableProperties,
} from "@stamp/azure-rest";
import { equalBytes, type Outcome, ok, refused } from "@stamp/base";
import type { Handlers, World } from "@stamp/ports";
import type { Account, Accounts } from "@stamp/wire";
import type { ChangeAccount } from "./change-account.ts";

const keyBytes = 64;
const secretBytes = 32;
const scopeKeyBytes = 32;
const retentionDaysMax = 365;

type Calls<Names extends keyof Handlers<typeof Accounts>> = Pick<Handlers<typeof Accounts>, Names>;

export function keyHandlers(world: World, change: ChangeAccount): Calls<"rotateKey" | "revokeDelegationKeys"> {
  return {
    rotateKey: async ({ account, keyNumber, newKey: given }, context) => {
      if (keyNumber !== 1 && keyNumber !== 2) return wrongSetting("an account has key 1 and key 2");
      if (given !== "" && !isKey(given)) return wrongSetting("the new key is not base64");
      const fresh = given === "" ? newKey(world) : given;
      const changed = await change(account, context, ({ keys }) => {
        const next = [...keys];
        if (keyNumber > keys.length + 1) return wrongSetting(`account ${account} has no key 1 yet`);
        next[keyNumber - 1] = fresh;
        return sameKeys(keys, next) ? ok({}) : ok({ keys: next, expectedKeys: keys });
      });
      return withoutSecrets(changed);
    },
    revokeDelegationKeys: async ({ account }, context) => {
      const delegationSecret = world.random.bytes(secretBytes);
      return withoutKeys(withoutSecrets(await change(account, context, () => ok({ delegationSecret }))));
    },
  };
}

export function blobSettingsHandlers(change: ChangeAccount): Calls<"setBlobSettings"> {
  return {
    setBlobSettings: async ({ account, versioning, containerDeleteRetentionDays: days, allowPublicAccess }, context) => {
      if (days !== undefined && days > retentionDaysMax)
        return wrongSetting(`deleted containers are kept for at most ${retentionDaysMax} days`);
      const changed = await change(account, context, ({ serviceProperties }) => {
        const text = serviceProperties.blob ?? "";
        const held = decodeServiceProperties(text);
        if (!held) return unreadableProperties(`the blob service properties of ${account}`, text);
        if (held.hierarchicalNamespace && versioning === true)
          return wrongSetting("an account with a hierarchical namespace keeps no versions");
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
  };
}

export function scopeHandlers(world: World, change: ChangeAccount): Calls<"createEncryptionScope" | "setEncryptionScopeState"> {
  return {
    createEncryptionScope: async ({ account, scope: name }, context) => {
      if (!isScopeName(name))
        return wrongSetting(`${name}: a scope's name has 3 to 63 lower-case letters, digits and single hyphens between them`);
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

export const wrongSetting = (message: string): Outcome<never> => refused("invalidArgument", "badRequest", message);
export const isKey = (key: string): boolean => (fromBase64(key)?.length ?? 0) > 0;
export const newKey = (world: World): string => toBase64(world.random.bytes(keyBytes));
export const sameKeys = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((key, index) => key === b[index]);

/** Returns the account without its secrets, but with its keys. */
export const bare = (account: Account): Account => ({
  ...account,
  delegationSecret: none,
  configuredDigest: none,
  encryptionScopes: account.encryptionScopes.map((scope) => ({ ...scope, key: none })),
});
const none = new Uint8Array(0);
/** Leaves the keys out of an answer that nobody asks for the sake of the keys. */
export const withoutKeys = (outcome: Outcome<Account>): Outcome<Account> => (outcome.ok ? ok({ ...outcome.value, keys: [] }) : outcome);
export const withoutSecrets = (outcome: Outcome<Account>): Outcome<Account> => (outcome.ok ? ok(bare(outcome.value)) : outcome);
