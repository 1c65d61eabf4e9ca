/**
 * Keys of accounts, read from the Account table and used for some seconds (the one thing a front-end may cache, which is documented).
 * The key that everybody knows is no key where others than this machine can connect.
 */

import {
  decodeServiceProperties,
  fromBase64,
  type ServiceName,
  type ServiceProperties,
  serviceNames,
  unreadableProperties,
} from "@stamp/azure-rest";
import { type Outcome, ok, refused } from "@stamp/base";
import { type AccountRole, decodeRole, roleTermMs } from "@stamp/geo";
import { type World, within } from "@stamp/ports";
import type { Account } from "@stamp/wire";
import type { CallLimits, Router } from "../routing/router.ts";

/** Key of devstoreaccount1, which every Azure Storage tool has built in. */
export const wellKnownKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

export interface AccountKeys {
  readonly kind: "known";
  /** Keys of the account, decoded, without the well-known one. */
  readonly keys: readonly Uint8Array[];
  /** Keys that everybody knows: good for the requests that `peers/well-known-key.ts` names. Empty if they are good for nobody. */
  readonly wellKnownKeys: readonly Uint8Array[];
  /** True if a key was left out because it is the well-known one. */
  readonly refusedWellKnown: boolean;
  /** Secret from which user delegation keys are derived; empty until the first was asked for. */
  readonly delegationSecret: Uint8Array;
  readonly serviceProperties: Readonly<Record<ServiceName, ServiceProperties>>;
  /** True if the operator forbids anonymous reads of all containers, whatever their access policies say. */
  readonly publicAccessForbidden: boolean;
  /** Role of the account at this stamp; undefined: it has one stamp only. */
  readonly role: AccountRole | undefined;
  /** Encryption scopes of the account, by name. */
  readonly encryptionScopes: ReadonlyMap<string, { readonly key: Uint8Array; readonly disabled: boolean }>;
}
export type AccountLookup = AccountKeys | { readonly kind: "unknown" };

export interface AccountsOptions {
  readonly accountCacheMs: number;
  readonly accountsMax: number;
  /** Requests for which the key that everybody knows is good. */
  readonly wellKnownKey: "everybody" | "thisMachine" | "nobody";
  readonly lookupTimeoutMs: number;
  readonly lastSyncMs: LastSyncMs;
  /** Returns the time for which this stamp's copy of an account may be read, in milliseconds; undefined: not known now. */
  readonly servesForMs?: (account: string) => Promise<number | undefined>;
}

/**
 * Last Sync Time of the copy that this stamp has of an account under a role epoch, in milliseconds since 1970; undefined:
 * it is not known.
 */
export type LastSyncMs = (account: string, epoch: number) => Promise<number | undefined>;

interface Entry {
  readonly lookup: Promise<Outcome<AccountLookup>>;
  /** Answer to the lookup, once it is there. */
  known: AccountLookup | undefined;
  /** Time until which the answer counts; for an account with two stamps at most the term of its role, in milliseconds. */
  untilMs: number;
  readonly sentMs: number;
}

const notHere = (account: string) => refused("unavailable", "notReady", `account ${account} is not at this stamp any more`);

/** An account that is not there may be made any moment. */
const unknownCacheMs = 200;
/** How often at most an account is read again because a signature did not fit. */
const rereadAfterMs = 200;

export class Accounts {
  readonly #world: World;
  readonly #router: Router;
  readonly #options: AccountsOptions;
  readonly #entries = new Map<string, Entry>();
  /** End of the time for which a copy here may be read from, by the monotonic clock, in milliseconds. */
  readonly #servesUntilMs = new Map<string, number>();

  constructor(world: World, router: Router, options: AccountsOptions) {
    this.#world = world;
    this.#router = router;
    this.#options = options;
  }

  async find(account: string, limits: CallLimits): Promise<Outcome<AccountLookup> | undefined> {
    const { clock } = this.#world;
    const nowMs = clock.monotonicMs();
    const held = this.#entries.get(account);
    const entry = held && held.untilMs > nowMs ? held : this.#newEntry(account, nowMs);
    if (entry.known !== undefined) return ok(entry.known);
    return within(clock, limits.deadlineMs - nowMs, entry.lookup);
  }

  /** Reads the row anew, unless what is known is only just read: then undefined. */
  async findAgain(account: string, limits: CallLimits): Promise<Outcome<AccountLookup> | undefined> {
    const { clock } = this.#world;
    const nowMs = clock.monotonicMs();
    const held = this.#entries.get(account);
    if (held && held.sentMs + rereadAfterMs > nowMs) return undefined;
    const entry = this.#newEntry(account, nowMs);
    return within(clock, limits.deadlineMs - nowMs, entry.lookup);
  }

  /** Returns the role by a row that was asked for less than its term ago; undefined if there is none in memory. */
  roleKnown(account: string): Outcome<AccountRole | undefined> | undefined {
    const entry = this.#entries.get(account);
    if (entry?.known === undefined || entry.untilMs <= this.#world.clock.monotonicMs()) return undefined;
    return entry.known.kind === "known" ? ok(entry.known.role) : notHere(account);
  }

  /** Returns the role by a row that was asked for less than its term ago; undefined if it was not read in time. */
  async roleNow(account: string, limits: CallLimits): Promise<Outcome<AccountRole | undefined> | undefined> {
    for (;;) {
      const found = await this.find(account, limits);
      if (found === undefined || !found.ok) return found;
      // An answer that came after its term has told of a role that may have ended.
      const known = this.roleKnown(account);
      if (known !== undefined) return known;
      if (found.value.kind === "unknown") return notHere(account);
    }
  }

  /** Returns Last Sync Time of the account's copy at this stamp; undefined: it is not known. */
  lastSyncMs(account: string, epoch: number): Promise<number | undefined> {
    return this.#options.lastSyncMs(account, epoch);
  }

  /** True if the copy here has heard of its primary lately: its keys and settings are not older than that (docs/design/geo.md "Keys and settings"). */
  copyServes(account: string): boolean {
    return (this.#servesUntilMs.get(account) ?? 0) > this.#world.clock.monotonicMs();
  }

  /** Asks how long the copy serves. Without an answer the time that was told before holds. */
  async #askTerm(account: string): Promise<void> {
    const { servesForMs = async () => Number.POSITIVE_INFINITY } = this.#options;
    const sentMs = this.#world.clock.monotonicMs();
    const forMs = await servesForMs(account);
    if (forMs === undefined) return;
    this.#servesUntilMs.delete(account);
    this.#servesUntilMs.set(account, sentMs + forMs);
    const oldest = this.#servesUntilMs.keys().next().value;
    if (this.#servesUntilMs.size > this.#options.accountsMax && oldest !== undefined) this.#servesUntilMs.delete(oldest);
  }

  /** Forgets the row, which was changed from here: the next who asks reads it anew. */
  forget(account: string): void {
    this.#entries.delete(account);
  }

  #newEntry(account: string, nowMs: number): Entry {
    const untilMs = nowMs + Math.min(this.#options.accountCacheMs, roleTermMs(undefined));
    const entry: Entry = { lookup: this.#read(account, nowMs), known: undefined, untilMs, sentMs: nowMs };
    this.#remember(account, entry);
    const failed = (): void => {
      if (this.#entries.get(account) === entry) this.#entries.delete(account);
    };
    void entry.lookup.then((lookup) => {
      if (!lookup.ok) return failed();
      entry.known = lookup.value;
      if (lookup.value.kind === "known") entry.untilMs = Math.min(entry.untilMs, nowMs + roleTermMs(lookup.value.role));
    }, failed);
    return entry;
  }

  #remember(account: string, entry: Entry): void {
    this.#entries.delete(account);
    this.#entries.set(account, entry);
    if (this.#entries.size <= this.#options.accountsMax) return;
    const oldest = this.#entries.keys().next().value;
    if (oldest !== undefined) this.#entries.delete(oldest);
  }

  async #read(account: string, sentMs: number): Promise<Outcome<AccountLookup>> {
    const { clock } = this.#world;
    const deadlineMs = sentMs + this.#options.lookupTimeoutMs;
    const answer = await this.#router.execute({ case: "getAccount", value: { account } }, { deadlineMs });
    const lookup: Outcome<AccountLookup> = answer.ok
      ? answer.value.case === "account"
        ? this.#usable(answer.value.value)
        : ok({ kind: "unknown" })
      : answer;
    if (lookup.ok && lookup.value.kind === "known" && lookup.value.role?.role === "secondary") await this.#askTerm(account);
    if (lookup.ok && lookup.value.kind === "unknown") {
      const known = this.#entries.get(account);
      if (known) known.untilMs = clock.monotonicMs() + unknownCacheMs;
    }
    return lookup;
  }

  #usable({ name, keys: texts, delegationSecret, serviceProperties, encryptionScopes, geoRole }: Account): Outcome<AccountLookup> {
    const role = decodeRole(geoRole);
    if (!role.ok) return role;
    if (role.value?.role === "removed") return ok({ kind: "unknown" });
    const held = serviceNames.map((service) => serviceProperties[service] ?? "");
    const [blob, queue, table, file] = held.map(decodeServiceProperties);
    if (!blob || !queue || !table || !file) {
      const unreadable = held.find((text) => decodeServiceProperties(text) === undefined) ?? "";
      return unreadableProperties(`the service properties of account ${name}`, unreadable);
    }
    const { wellKnownKey: serves } = this.#options;
    const decoded = (wanted: (text: string) => boolean): Uint8Array[] =>
      texts
        .filter(wanted)
        .map((text) => fromBase64(text))
        .filter((key) => key !== undefined);
    const keys = decoded((text) => text !== wellKnownKey);
    const wellKnownKeys = decoded((text) => serves !== "nobody" && text === wellKnownKey);
    const refusedWellKnown = serves === "nobody" && texts.includes(wellKnownKey);
    const { publicAccessForbidden } = blob;
    return ok({
      kind: "known",
      keys,
      wellKnownKeys,
      refusedWellKnown,
      delegationSecret,
      serviceProperties: { blob, queue, table, file },
      publicAccessForbidden,
      role: role.value,
      encryptionScopes: new Map(encryptionScopes.map((scope) => [scope.name, scope])),
    });
  }
}
