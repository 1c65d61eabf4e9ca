/**
 * Creation of accounts by the location service: the account is placed at a stamp, recorded, and made there.
 *
 * Invariants:
 * - An account is recorded, with its stamp, before the stamp is told to create it. A crash at any step loses nothing.
 * - The stamp makes the keys. They go to the caller, and are in no record.
 */
import { isAccountName } from "@stamp/azure-rest";
import { type Outcome, ok, refused } from "@stamp/base";
import { type AccountRecord, commandToSend, planAnswer, planCreate, roleWithoutRow } from "@stamp/geo";
import { type World, within } from "@stamp/ports";
import { mayCopyQueues } from "./queues/queue-copies.ts";
import { knownAccount, type Registry, unknownStamp } from "./registry.ts";
import type { Stamps } from "./stamps.ts";

/** How long the creation of an account waits for a stamp that did not answer last, in ms. */
const silentWaitMs = 200;

export interface NewAccount {
  readonly account: AccountRecord;
  readonly keys: readonly string[];
}

export interface NewAccountsOptions {
  readonly world: World;
  readonly registry: Registry;
  readonly stamps: Stamps;
  /** Goes on with an operation of the account. */
  readonly drive: (account: string) => void;
}

export class NewAccounts {
  readonly #options: NewAccountsOptions;
  /** Creations of accounts at their stamps that are under way. */
  readonly #creating = new Map<string, Promise<Outcome<NewAccount>>>();
  /** Number of accounts that were created in this term. */
  created = 0;

  constructor(options: NewAccountsOptions) {
    this.#options = options;
  }

  /**
   * Places the account, records it and creates it. With `second`, a location, it gets a copy at a stamp there: that goes
   * on by itself. `withQueues`: its queues are copied, too.
   */
  async create(name: string, location: string, second: string, withQueues: boolean): Promise<Outcome<NewAccount>> {
    const { registry } = this.#options;
    if (!isAccountName(name))
      return refused("invalidArgument", "badRequest", `${name}: an account's name has 3 to 24 lower-case letters and digits`);
    const elsewhere = await this.#found(name);
    if (!elsewhere.ok) return elsewhere;
    const early = this.#options.stamps.place(location, second);
    const mayCopy = withQueues && early.ok ? await mayCopyQueues(this.#options.stamps, name, registry.stampsOf(early.value)) : ok();
    if (!mayCopy.ok) return mayCopy;
    const recorded = await registry.turn(async () => {
      const held = registry.account(name);
      if (held !== undefined) return isThere(held);
      const placed = this.#options.stamps.place(location, second);
      if (!placed.ok) return placed;
      const [primary, copy] = placed.value;
      const planned = planCreate(name, primary, copy, withQueues);
      return planned.ok ? registry.put([{ kind: "account", record: planned.value }]) : planned;
    });
    if (!recorded.ok) return recorded;
    const created = await this.carryOn(name);
    if (created.ok) this.#options.drive(name);
    return created;
  }

  /** Refuses a name that a stamp has, also one that was made there since its last list. */
  async #found(name: string): Promise<Outcome<void>> {
    const { registry } = this.#options;
    if (registry.account(name) !== undefined) return ok();
    // A stamp that did not answer its last question is not waited for long: what it has is pinned when it answers again.
    const asked = registry.stamps;
    const answers = await Promise.all(
      asked.map((stamp) => {
        const answer = this.#options.stamps.onStamp(stamp, (link) => link.hasAccount(name));
        return this.#options.stamps.isSilent(stamp.name) ? within(this.#options.world.clock, silentWaitMs, answer) : answer;
      }),
    );
    for (const [at, stamp] of asked.entries()) {
      const has = answers[at];
      if (has?.ok !== true || !has.value) continue;
      await this.#options.stamps.pin(stamp, [{ name, role: roleWithoutRow }]);
      const held = registry.account(name);
      if (held !== undefined) return isThere(held);
    }
    return ok();
  }

  /** Goes on with the creation of an account, one attempt at a time: whoever else wants it hears of the same, with the keys. */
  carryOn(name: string): Promise<Outcome<NewAccount>> {
    const creating = this.#creating.get(name) ?? this.#atStamp(name).finally(() => this.#creating.delete(name));
    this.#creating.set(name, creating);
    return creating;
  }

  /** Sends the command of the account's step, and records the next step. */
  async #atStamp(name: string): Promise<Outcome<NewAccount>> {
    const { registry, world } = this.#options;
    const account = registry.account(name);
    const told = account === undefined ? undefined : commandToSend(account, account, world.rules);
    if (account === undefined || told === undefined) {
      const held = knownAccount(name, registry);
      return held.ok ? ok({ account: held.value, keys: [] }) : held;
    }
    const stamp = registry.stamp(told.stamp);
    if (stamp === undefined) return unknownStamp(told.stamp, registry);
    // A record of a release before has the keys.
    const created = await this.#options.stamps.onStamp(stamp, (link) => link.createAccount(name, account.newKeys ?? []));
    const had = !created.ok && created.failure.code === "alreadyExists";
    if (!created.ok && !had) {
      const message = `account ${name} is recorded at stamp ${stamp.name}, and is created when that answers: ${created.failure.message}`;
      return refused("unavailable", "notReady", message);
    }
    const { operation, running } = account;
    const answered = await registry.turn(async () => {
      const held = registry.account(name);
      if (held?.operation !== operation || held.running?.step !== running?.step) return ok();
      const next = planAnswer(held, { operation, step: "creating" });
      if (!next.ok) return next;
      const { newKeys: _newKeys, ...record } = next.value as AccountRecord;
      return registry.put([{ kind: "account", record }]);
    });
    if (!answered.ok) return answered;
    if (had)
      return refused(
        "alreadyExists",
        "conflict",
        `stamp ${stamp.name} has account ${name} already, made by an attempt whose answer was lost or before that, and it is pinned there now. Its keys, at the stamp: ./stamp account show ${name} --keys`,
      );
    this.created += 1;
    const held = knownAccount(name, registry);
    return held.ok ? ok({ account: held.value, keys: created.ok ? created.value.keys : [] }) : held;
  }
}

const isThere = ({ name, primary, running }: AccountRecord) =>
  refused(
    "alreadyExists",
    "conflict",
    `account ${name} is at stamp ${primary} already${running === undefined ? "" : ", or will be when that stamp answers"}`,
  );
