/**
 * The key that content is encrypted under: one that a client brings, or that of an encryption scope, which the account's row holds. Operations
 * name the key in their conditions; the key itself stays in the front-end.
 */
import { badHeader, type Parsed, parsed, rejected, restError } from "@stamp/azure-rest";
import type { Blob } from "@stamp/wire";
import { restErrorOf } from "../objects/failures.ts";
import type { WireConditions } from "../objects/wire-conditions.ts";
import type { CallLimits } from "../routing/router.ts";
import type { AccountLookup, Accounts } from "./accounts.ts";

export interface ContentKey {
  readonly bytes: Uint8Array;
  /** SHA-256 of a key that the client brings. */
  readonly sha256?: Uint8Array;
  /** Name of the encryption scope that the key belongs to. */
  readonly scope?: string;
  /** True if nobody named the scope: the blob was found under it. */
  readonly asFound?: boolean;
}

/** Adds the name of the key that the content is encrypted under to the conditions. */
export function underKey(key: ContentKey | undefined, conditions: WireConditions): WireConditions {
  if (key === undefined) return conditions;
  if (key.scope === undefined) return key.sha256 === undefined ? conditions : { ...conditions, encryptionKeySha256: key.sha256 };
  return { ...conditions, encryptionScope: key.scope, ...(key.asFound ? { encryptionAsFound: true } : {}) };
}

/** Adds the name of the key for a change of content that is there: without a key, the content is encrypted as the blob was found, which was not at all. */
export const underFoundKey = (key: ContentKey | undefined, conditions: WireConditions): WireConditions =>
  key === undefined ? { ...conditions, encryptionAsFound: true } : underKey(key, conditions);

interface UnderScope {
  readonly account: string;
  readonly scope: string | undefined;
}

/** True if what is stored for one blob can be stored for the other as it is. Scopes of two accounts have two keys, whatever their names are. */
export const sharesKey = (a: UnderScope, b: UnderScope): boolean =>
  a.scope === b.scope && (a.scope === undefined || a.account === b.account);

/** Keys of encryption scopes, as the front-end knows accounts: a change of a scope's state is seen some seconds later. */
export class ScopeKeys {
  readonly #accounts: Pick<Accounts, "find" | "findAgain">;

  constructor(accounts: Pick<Accounts, "find" | "findAgain">) {
    this.#accounts = accounts;
  }

  /** Returns the key of the scope under which a blob's content is encrypted already. Refused while the scope is disabled. */
  async key(account: string, scope: string, limits: CallLimits): Promise<Parsed<ContentKey>> {
    const found = await this.#find(account, scope, limits);
    if (!found.ok) return found;
    if (found.value) return parsed(found.value);
    return { ok: false, error: restError("InternalError", {}, { message: `Account ${account} has no encryption scope ${scope}.` }) };
  }

  /** Returns the key of a scope that a request names. */
  async named(account: string, scope: string, limits: CallLimits): Promise<Parsed<ContentKey>> {
    const found = await this.#find(account, scope, limits);
    if (!found.ok) return found;
    return found.value
      ? parsed(found.value)
      : badHeader("x-ms-encryption-scope", scope, "The account has no encryption scope of this name.");
  }

  /** Returns the key of the blob's content: its scope's, or what the caller brings. */
  async ofBlob(
    account: string,
    { encryptionScope }: Pick<Blob, "encryptionScope">,
    brought: ContentKey | undefined,
    limits: CallLimits,
  ): Promise<Parsed<ContentKey | undefined>> {
    return encryptionScope === undefined ? parsed(brought) : this.key(account, encryptionScope, limits);
  }

  /** Finds a scope's key. A scope made a moment ago may be unknown here: then the account is read again. */
  async #find(account: string, scope: string, limits: CallLimits): Promise<Parsed<ContentKey | undefined>> {
    const held = await this.#accounts.find(account, limits);
    const first = held && (held.ok ? scopeOf(held.value, scope) : undefined);
    const again = first ? undefined : await this.#accounts.findAgain(account, limits);
    const last = again ?? held;
    if (!last) return rejected("ServerBusy");
    if (!last.ok) return { ok: false, error: restErrorOf(last.failure) };
    const found = scopeOf(last.value, scope);
    if (found?.disabled) return rejected("EncryptionScopeDisabled");
    return parsed(found && { bytes: found.key, scope });
  }
}

const scopeOf = (lookup: AccountLookup, name: string) => (lookup.kind === "known" ? lookup.encryptionScopes.get(name) : undefined);
