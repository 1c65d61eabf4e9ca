/**
 * Stamps that a person declared lost (docs/design/geo.md "A lost stamp"): operations go on without them, and what they were not told is told when they
 * answer again.
 *
 * Invariants:
 * - That a stamp is lost is recorded before any operation goes on without it.
 * - A lost stamp that answers is told what it is owed, in order, before it counts as a stamp again: until then no operation uses it.
 * - Accounts are told apart from each other: a command that is refused, or has no answer, holds back no other account.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { type AccountRecord, type GeoAccount, owedTo, planLost, planTold, type StampRecord } from "@stamp/geo";
import { type Clock, type Logger, sleep, within } from "@stamp/ports";
import { Lanes } from "../lanes.ts";
import { type Registry, unknownStamp } from "../registry.ts";
import type { StampLink } from "../stamp-link.ts";

const namesMax = 10;
/** Commands to a lost stamp that are sent at once. */
const toldAtOnce = 16;
/** How long a command without an answer keeps its place among these, in ms. A refusal may take as long as the deadline, because it is sent again. */
const placeMs = 250;

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
  readonly #lanes = new Lanes(toldAtOnce);
  /** Stamp and account of commands that wait for their turn, for an answer, or for the pause that the stamp asked for. */
  readonly #telling = new Set<string>();
  /** Lost stamps that did not answer the last question. */
  readonly #silent = new Set<string>();

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

  /** Records the account without lost stamps, if its operation or copy waits for one. */
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
   * Asks a lost stamp whether it answers, and begins to tell it what it is owed of every account that is not being told. Waits for none of these
   * commands: whoever calls asks again soon. If nothing is owed, the stamp is a stamp again that takes no new accounts.
   */
  async tell(stamp: StampRecord): Promise<void> {
    const { registry, onStamp } = this.#options;
    if (registry.stamp(stamp.name)?.lost !== true) return;
    const owing = this.#owing(stamp.name);
    if (owing.length === 0) return this.#welcome(stamp.name);
    const there = await onStamp(stamp, async () => ok());
    if (!there.ok) {
      this.#silent.add(stamp.name);
      return;
    }
    this.#silent.delete(stamp.name);
    for (const name of owing) this.#unlessTold(name, stamp);
  }

  #unlessTold(name: string, stamp: StampRecord): void {
    const key = `${stamp.name} ${name}`;
    if (this.#telling.has(key)) return;
    this.#telling.add(key);
    void this.#tellOf(name, stamp)
      .catch((error: unknown) =>
        this.#options.logger.error("a lost stamp could not be told of an account", {
          stamp: stamp.name,
          account: name,
          error: String(error),
        }),
      )
      .finally(() => this.#telling.delete(key));
  }

  /**
   * Tells the stamp of one account, until nothing is owed of it or a command fails. The pause that a command asks for takes no place in the lane, and
   * an answer that is late gives its place up.
   */
  async #tellOf(name: string, stamp: StampRecord): Promise<void> {
    const { clock, ended } = this.#options;
    while (this.#firstOwed(name, stamp.name) !== undefined) {
      const sent = await this.#lanes.run(stamp.name, async () => {
        const answer = this.#tellFirst(name, stamp);
        await within(clock, placeMs, answer);
        return { answer };
      });
      const told = await sent.answer;
      if (!told.ok || ended.aborted) return;
      if (told.value > 0) await sleep(clock, told.value, ended);
      if (ended.aborted) return;
    }
  }

  /** Sends the first command that the stamp is owed of an account. Returns for how long the stamp asks to wait before it is sent again. */
  async #tellFirst(name: string, stamp: StampRecord): Promise<Outcome<number>> {
    const told = this.#firstOwed(name, stamp.name);
    if (told === undefined) return ok(0);
    // A silent stamp is sent nothing more: each command that waited for its turn would take its whole deadline.
    if (this.#options.ended.aborted || this.#silent.has(stamp.name))
      return refused("unavailable", "notReady", `stamp ${stamp.name} is silent`);
    const obeyed = await this.#options.onStamp(stamp, (link) => link.obey(name, told.command));
    if (!obeyed.ok) return obeyed;
    if (obeyed.value.waitMs > 0) return ok(obeyed.value.waitMs);
    const noted = await this.#record(name, (held) => planTold(held, told));
    return noted.ok ? ok(0) : noted;
  }

  /** Records that the stamp is no longer lost, if no account names it. */
  async #welcome(name: string): Promise<void> {
    const { registry, logger } = this.#options;
    const back = await registry.turn(async () => {
      const held = registry.stamp(name);
      if (held === undefined || isNamed(name, registry.accounts)) return ok(false);
      const { lost: _lost, ...record } = held;
      const put = await registry.put([{ kind: "stamp", record }]);
      return put.ok ? ok(true) : put;
    });
    if (back.ok && back.value) logger.info("a lost stamp has come back and was told everything", { stamp: name });
  }

  /** Returns the names of the accounts of which the stamp has not been told everything. */
  #owing(stamp: string): readonly string[] {
    return this.#options.registry.accounts.filter((account) => owedTo(account, stamp).length > 0).map(({ name }) => name);
  }

  /** Returns the number of accounts of which a stamp has not been told everything. */
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

/** Returns the account without lost stamps; the same record if it waits for none. */
export function withoutLost(account: AccountRecord, registry: Registry): GeoAccount {
  let left: GeoAccount = account;
  for (const { name, lost } of registry.stamps) {
    const planned = lost === true ? planLost(left, name) : ok(left);
    if (planned.ok) left = planned.value;
  }
  return left;
}

/** True if an account owes commands to the stamp, or its operation or copy names it. */
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
