/**
 * Stamps that a person declared lost (docs/design/geo.md "A lost stamp"): operations go on without them, and what they were not told is told when they
 * answer again.
 *
 * Invariants:
 * - That a stamp is lost is recorded before any operation goes on without it.
 * - A lost stamp that answers is told what it is owed, in order, before it counts as a stamp again: until then no operation uses it.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { type AccountRecord, type GeoAccount, owedTo, planLost, planTold, type StampRecord } from "@stamp/geo";
import { type Clock, type Logger, sleep } from "@stamp/ports";
import { type Registry, unknownStamp } from "../registry.ts";
import type { StampLink } from "../stamp-link.ts";

const namesMax = 10;
/** Accounts that a lost stamp is told of at once. */
const toldAtOnce = 16;

export interface LostOptions {
  readonly clock: Clock;
  /** Ends the waits of a stamp that is told. */
  readonly ended: AbortSignal;
  readonly registry: Registry;
  readonly logger: Logger;
  readonly onStamp: <T>(stamp: StampRecord, work: (link: StampLink) => Promise<Outcome<T>>) => Promise<Outcome<T>>;
  /** Goes on with the account's operation. */
  readonly drive: (account: string) => void;
}

export class LostStamps {
  readonly #options: LostOptions;

  constructor(options: LostOptions) {
    this.#options = options;
  }

  /** Declares the stamp lost. Refused while it is the primary of accounts that another stamp has a complete copy of. */
  async declare(name: string, acceptLoss: boolean): Promise<Outcome<void>> {
    const { registry, logger } = this.#options;
    if (!acceptLoss) {
      const message = `stamp ${name} is given up with what only it has, which it deletes when it comes back: that needs --accept-loss`;
      return refused("invalidArgument", "badRequest", message);
    }
    const declared = await registry.turn(async () => {
      const held = registry.stamp(name);
      if (held === undefined) return unknownStamp(name, registry);
      const led = registry.accounts.filter((account) => account.primary === name && account.secondary !== undefined && account.seeded);
      if (led.length > 0) return leads(name, led);
      return held.lost === true ? ok() : registry.put([{ kind: "stamp", record: { ...held, state: "closed", lost: true } }]);
    });
    if (!declared.ok) return declared;
    logger.warn("a stamp was declared lost", { stamp: name });
    for (const account of registry.accounts) await this.leaveOut(account.name);
    return ok();
  }

  /** Records the account without stamps that are lost, if its operation or its copy waits for one. */
  async leaveOut(name: string): Promise<Outcome<void>> {
    const { registry, drive } = this.#options;
    const recorded = await registry.turn(async () => {
      const held = registry.account(name);
      if (held === undefined) return ok(false);
      const planned = withoutLost(held, registry);
      if (planned === held) return ok(false);
      const put = await registry.put([{ kind: "account", record: planned }]);
      return put.ok ? ok(true) : put;
    });
    if (!recorded.ok) return recorded;
    if (recorded.value) drive(name);
    return ok();
  }

  /**
   * Tells a lost stamp that answers what it is owed. When that is nothing, it is a stamp again that takes no new accounts. Every account that it
   * takes writes of is deposed before the wait that a command asks for.
   */
  async tell(stamp: StampRecord): Promise<void> {
    const { registry, logger, clock, ended } = this.#options;
    if (registry.stamp(stamp.name)?.lost !== true) return;
    for (let owing = this.#owing(stamp.name); owing.length > 0; owing = this.#owing(stamp.name)) {
      let waitMs = 0;
      for (let at = 0; at < owing.length; at += toldAtOnce) {
        const told = await Promise.all(owing.slice(at, at + toldAtOnce).map((name) => this.#tellFirst(name, stamp)));
        for (const one of told) {
          // It is told again in the next round.
          if (!one.ok) return;
          waitMs = Math.max(waitMs, one.value);
        }
      }
      if (waitMs > 0) await sleep(clock, waitMs, ended);
      if (ended.aborted) return;
    }
    const back = await registry.turn(async () => {
      const held = registry.stamp(stamp.name);
      if (held === undefined || isNamed(stamp.name, registry.accounts)) return ok(false);
      const { lost: _lost, ...record } = held;
      const put = await registry.put([{ kind: "stamp", record }]);
      return put.ok ? ok(true) : put;
    });
    if (back.ok && back.value) logger.info("a lost stamp has come back and was told everything", { stamp: stamp.name });
  }

  /** Sends the first command that the stamp is owed of an account. Returns for how long the stamp asks to wait before it is sent again. */
  async #tellFirst(name: string, stamp: StampRecord): Promise<Outcome<number>> {
    const told = this.#firstOwed(name, stamp.name);
    if (told === undefined) return ok(0);
    const obeyed = await this.#options.onStamp(stamp, (link) => link.obey(name, told.command));
    if (!obeyed.ok) return obeyed;
    if (obeyed.value.waitMs > 0) return ok(obeyed.value.waitMs);
    const noted = await this.#record(name, (held) => planTold(held, told));
    return noted.ok ? ok(0) : noted;
  }

  /** Names of the accounts of which the stamp has not been told everything. */
  #owing(stamp: string): readonly string[] {
    return this.#options.registry.accounts.filter((account) => owedTo(account, stamp).length > 0).map(({ name }) => name);
  }

  /** Number of accounts of which a stamp has not been told everything. */
  owedBy(stamp: string): number {
    return this.#owing(stamp).length;
  }

  #firstOwed(account: string, stamp: string) {
    const held = this.#options.registry.account(account);
    return held === undefined ? undefined : owedTo(held, stamp)[0];
  }

  #record(name: string, plan: (held: AccountRecord) => GeoAccount): Promise<Outcome<void>> {
    const { registry } = this.#options;
    return registry.turn(async () => {
      const held = registry.account(name);
      const planned = held === undefined ? undefined : plan(held);
      return planned === undefined || planned === held ? ok() : registry.put([{ kind: "account", record: planned }]);
    });
  }
}

/** The account without lost stamps; the same record if it waits for none. */
export function withoutLost(account: AccountRecord, registry: Registry): GeoAccount {
  let left: GeoAccount = account;
  for (const { name, lost } of registry.stamps) {
    const planned = lost === true ? planLost(left, name) : ok(left);
    if (planned.ok) left = planned.value;
  }
  return left;
}

/** True if an account owes the stamp something, or its operation or copy names it. */
const isNamed = (stamp: string, accounts: readonly AccountRecord[]): boolean =>
  accounts.some(
    (account) =>
      owedTo(account, stamp).length > 0 ||
      account.secondary === stamp ||
      (account.primary !== stamp && (account.running?.source === stamp || account.running?.target === stamp)),
  );

function leads(stamp: string, accounts: readonly AccountRecord[]) {
  const names = accounts.slice(0, namesMax).map(({ name }) => name);
  const more = accounts.length > names.length ? `, and ${accounts.length - names.length} more` : "";
  const message = `stamp ${stamp} is the primary of accounts that another stamp has a copy of (${names.join(", ")}${more}): promote the copies first, with geo failover ACCOUNT --forced --accept-loss`;
  return refused("failedPrecondition", "conflict", message);
}
