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
import type { Logger } from "@stamp/ports";
import { type Registry, unknownStamp } from "../registry.ts";
import type { StampLink } from "../stamp-link.ts";

const namesMax = 10;

export interface LostOptions {
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

  /** Tells a lost stamp that answers what it is owed. When that is nothing, it is a stamp again that takes no new accounts. */
  async tell(stamp: StampRecord): Promise<void> {
    const { registry, logger, onStamp } = this.#options;
    if (registry.stamp(stamp.name)?.lost !== true) return;
    for (const { name } of registry.accounts) {
      for (let owed = this.#firstOwed(name, stamp.name); owed !== undefined; owed = this.#firstOwed(name, stamp.name)) {
        const told = owed;
        const obeyed = await onStamp(stamp, (link) => link.obey(name, told.command));
        // A command of which the stamp is asked to wait is sent again in the next round.
        if (!obeyed.ok || obeyed.value.waitMs > 0) return;
        const noted = await this.#record(name, (held) => planTold(held, told));
        if (!noted.ok) return;
      }
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

  /** Number of accounts of which a stamp has not been told everything. */
  owedBy(stamp: string): number {
    return this.#options.registry.accounts.filter((account) => owedTo(account, stamp).length > 0).length;
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
