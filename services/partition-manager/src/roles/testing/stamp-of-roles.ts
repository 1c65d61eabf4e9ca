/** A stamp that obeys commands about the role of one account, over rows in memory that decide as @stamp/objects does. */
import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { allRules, type Outcome, ok, type RuleName, unwrap } from "@stamp/base";
import { type AccountRole, type CommandOrder, decodeRole, type GeoPoint, type RoleCommand } from "@stamp/geo";
import type { World } from "@stamp/ports";
import { type Account, AccountSchema } from "@stamp/wire";
import type { AccountOperation, AccountResult } from "../../accounts/account-rows.ts";
import type { ToldCopy } from "../copies-here.ts";
import { RoleCommands } from "../role-commands.ts";

export const account = "acct";
export const point: GeoPoint = [{ range: "r1", sequence: 7 }];
export const settings = create(AccountSchema, { name: "other", keys: ["a2V5"], serviceProperties: { blob: "text" } });

/** Rows of accounts, and a clock that is set by hand. */
export class Stamp {
  readonly rows = new Map<string, Account>();
  nowMs = 1_000;
  /** Milliseconds since 1970. */
  wallMs = 1_000_000;
  /** Feature level of the stamp. */
  level: number | undefined = 1;
  /** Lineage of the stamp's metadata store. */
  lineage = 0;
  writes = 0;
  /** Called once, before the next write. */
  beforeWrite: (() => void) | undefined;
  /** Names of the queues that the stamp has of the account. */
  queues: readonly string[] = [];
  /** Commands by which the account came back. */
  readonly cameBack: CommandOrder[] = [];
  commands = this.restarted();

  restarted(off?: RuleName): RoleCommands {
    const rules = off === undefined ? allRules : { on: (name: RuleName) => name !== off };
    const digest = { sha256: (bytes: Uint8Array) => createHash("sha256").update(bytes).digest() };
    const world = { rules, digest, clock: { monotonicMs: () => this.nowMs, wallMs: () => this.wallMs } } as unknown as World;
    this.commands = new RoleCommands(world, {
      level: () => this.level,
      copied: async () => ok(point),
      endRemoval: async (_account, obeyed) => {
        this.cameBack.push(obeyed);
        return ok();
      },
      queues: async () => ok(this.queues),
      lineage: () => this.lineage,
    });
    return this.commands;
  }

  readonly execute = async (operation: AccountOperation): Promise<Outcome<AccountResult>> => {
    const error = (code: string): Outcome<AccountResult> => ok({ case: "error", value: { code } } as unknown as AccountResult);
    const answer = (value: Account): Outcome<AccountResult> => ok({ case: "account", value } as AccountResult);
    if (operation.case === "getAccount") {
      const held = this.rows.get(account);
      return held === undefined ? error("AccountNotFound") : answer(held);
    }
    const race = this.beforeWrite;
    this.beforeWrite = undefined;
    race?.();
    const held = this.rows.get(account);
    const value = operation.value as {
      account: unknown;
      geoRole?: string;
      expectedGeoRole?: string;
      onlyIfAbsent?: boolean;
      expectedSettings?: Account;
    };
    if (value.onlyIfAbsent && held) return answer(held);
    if (value.expectedGeoRole !== undefined && value.expectedGeoRole !== held?.geoRole) return error("ConditionNotMet");
    if (value.expectedSettings?.keys.join() !== undefined && value.expectedSettings.keys.join() !== held?.keys.join())
      return error("ConditionNotMet");
    const next = operation.case === "putAccount" ? create(AccountSchema, value.account as object) : { ...held, geoRole: value.geoRole };
    this.rows.set(account, next as Account);
    this.writes++;
    return answer(next as Account);
  };

  obey(command: RoleCommand, given?: Account) {
    return this.commands.obey(account, command, given, this.execute);
  }

  /** The primary says that the copy which operation 2 began is complete. */
  complete(facts: Partial<ToldCopy> = {}) {
    const whole = { epoch: 1, paired: 2, complete: true, lastSyncMs: undefined, ...facts };
    return this.commands.noteCopy(account, whole, this.execute);
  }

  get role(): AccountRole | undefined {
    return unwrap(decodeRole(this.rows.get(account)?.geoRole ?? ""));
  }
}

export const failure = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : `${outcome.failure.code} ${outcome.failure.reason}`);
export const peer = "south-1";

/** A stamp that made the account by itself, as every stamp does today. */
export function alone(): Stamp {
  const stamp = new Stamp();
  stamp.rows.set(account, create(AccountSchema, { name: account, keys: ["a2V5"] }));
  return stamp;
}

/** Word of the primary: a tag, or settings in place of those that the copy has now. */
export function confirm(
  stamp: Stamp,
  given: Account | Uint8Array,
  fields: { readonly paired?: number; readonly replaces?: Uint8Array } = {},
) {
  const { words } = stamp.commands;
  const held = stamp.rows.get(account);
  const replaces = fields.replaces ?? (held === undefined ? new Uint8Array() : words.tagOf(held));
  const word = given instanceof Uint8Array ? { tag: given } : { tag: words.tagOf(given), settings: given };
  return stamp.commands.confirm(account, { epoch: 1, paired: fields.paired ?? 2, replaces, ...word }, stamp.execute);
}
