/**
 * One term of the leading location service: it asks the stamps, and carries on what was begun with accounts
 * (docs/design/geo.md "Location service").
 */
import type { Failure, Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { AccountRecord, GeoAccount, MigrationChoices } from "@stamp/geo";
import { planFailover, planForcedFailover, planGiveUp, planMigrate, planProtect, planUnprotect } from "@stamp/geo";
import { sleep } from "@stamp/ports";
import type { AccountShipping, ForgetDivergedResponse, ListDivergedResponse } from "@stamp/wire";
import { CopyProgress } from "./copies/copy-progress.ts";
import { CopySettings } from "./copies/copy-settings.ts";
import { OlderRoles } from "./copies/older-roles.ts";
import { Lanes } from "./lanes.ts";
import { LostStamps } from "./lost-stamps/lost.ts";
import { NewAccounts } from "./new-accounts.ts";
import { Operations, type OperationsOptions } from "./operations.ts";
import { mayCopyQueues, mayLeaveQueues, type ProtectionChoices } from "./queues/queue-copies.ts";
import { QueueRoles } from "./queues/queue-roles.ts";
import { type Proposal, rebalancePlan } from "./rebalance.ts";
import { knownAccount, type Registry, unknownStamp } from "./registry.ts";
import { Rounds } from "./rounds.ts";
import { withDoors } from "./stamp-checks.ts";
import { Stamps, type StampsOptions } from "./stamps.ts";

/** Questions of rounds that are under way at one stamp at once. What a person asks for, and operations, do not wait behind them. */
const askedAtOnce = 8;
/** Pause between two questions to a stamp that is lost: until it is told, it takes writes by the roles that it knew, which are lost. */
const askLostEveryMs = 500;
export interface LocationOptions extends StampsOptions {
  readonly ended: AbortSignal;
}

export class Location {
  readonly #options: LocationOptions;
  /** The stamps of all locations. */
  readonly stamps: Stamps;
  readonly #operations: Operations;
  /** Stamps that a person declared lost. */
  readonly lost: LostStamps;
  readonly #rounds: Rounds;
  readonly #lanes = new Lanes(askedAtOnce);
  /** Progress of copies, as their primaries told last. */
  readonly copies: CopyProgress;
  readonly #queueRoles: QueueRoles;
  readonly #settings: CopySettings;
  readonly #olderRoles: OlderRoles;
  readonly newAccounts: NewAccounts;
  /** Time of the last comparison of all copies' settings with their primaries', in milliseconds. */
  #keptMs: number | undefined;

  constructor(options: LocationOptions) {
    const { world, config, registry, ended } = options;
    this.#options = options;
    this.stamps = new Stamps(options);
    const onStamp: OperationsOptions["onStamp"] = (stamp, work) => this.stamps.onStamp(stamp, work);
    this.copies = new CopyProgress({ world, registry, onStamp, drainMaxMs: config.drainMaxMs });
    this.#queueRoles = new QueueRoles({ registry, onStamp });
    this.newAccounts = new NewAccounts({ world, registry, stamps: this.stamps, drive: (account) => this.#operations.drive(account) });
    const inTurn: OperationsOptions["inTurn"] = (stamp, work) => this.#inTurn(stamp, work);
    this.#olderRoles = new OlderRoles({ logger: world.logger, registry, onStamp, inTurn, deposes: world.rules.on("geoOlderRolesEnd") });
    this.#settings = new CopySettings({ rules: world.rules, registry, onStamp, inTurn, levelOf: (stamp) => this.stamps.levelOf(stamp) });
    this.#operations = new Operations({
      world,
      registry,
      ended,
      drainMaxMs: config.drainMaxMs,
      onStamp,
      pendingOf: (account) => this.copies.pendingOf(account),
      lateOf: async (account) => {
        const trouble = await this.#queueRoles.compare(account);
        if (!trouble.ok || trouble.value !== "") return trouble;
        const late = await this.copies.lateOf(account);
        return !late.ok || late.value !== "" ? late : this.#settings.lateOf(account);
      },
      leaveOutLost: (account) => this.lost.leaveOut(account),
      inTurn,
      settings: this.#settings,
    });
    this.lost = new LostStamps({
      registry,
      clock: world.clock,
      ended,
      logger: world.logger,
      onStamp,
      drive: (account) => this.#operations.drive(account),
    });
    this.#rounds = new Rounds({
      stamps: () => registry.stamps,
      accounts: () => registry.accounts,
      askStamp: async (stamp) => {
        // Nothing else is asked of a lost stamp before it was told everything.
        if (stamp.lost === true) await this.lost.tell(stamp);
        // A stamp that is still owed something is not asked for its disks: it may come back at any moment, and has to be told at once.
        if (this.lost.owedBy(stamp.name) > 0) return;
        const listed = await this.stamps.ask(stamp);
        if (listed !== undefined) await this.#olderRoles.judge(stamp, listed);
      },
      askAccount: (account, withSettings) => this.#askAccount(account, withSettings),
      onThrown: (what, error) =>
        world.logger.error("a question of a round could not be judged; the others go on", { what, error: String(error) }),
    });
  }

  get facts() {
    const { registry } = this.#options;
    const { accounts } = registry;
    return {
      ...this.stamps.facts,
      accounts: accounts.length,
      operations: accounts.filter(({ running }) => running !== undefined).length,
      created: this.newAccounts.created,
    };
  }

  /** Asks every stamp again and again, and repeats what was not answered, until the term ends. */
  async run(): Promise<void> {
    const { world, config, ended } = this.#options;
    for (let dueMs = 0; !ended.aborted; ) {
      const nowMs = world.clock.monotonicMs();
      if (nowMs >= dueMs) {
        const withSettings = this.#keptMs === undefined || nowMs - this.#keptMs >= config.accountsEveryMs;
        if (withSettings) this.#keptMs = nowMs;
        this.#rounds.begin(withSettings);
        dueMs = nowMs + config.askEveryMs;
      } else this.#rounds.askLost();
      await sleep(world.clock, Math.min(askLostEveryMs, dueMs - nowMs, config.askEveryMs), ended);
    }
  }

  /** Asks how far the copy is, and goes on with what is under way. */
  async #askAccount(account: AccountRecord, withSettings: boolean): Promise<void> {
    const { name, running } = account;
    if (running !== undefined && running.step !== "creating") this.#operations.drive(name);
    const told = await this.#inTurn(account.primary, () => this.copies.ask(account));
    if (!told.ok && isSilent(told.failure)) await this.#operations.vouch(account);
    if (running?.step === "creating") await this.#inTurn(account.primary, () => this.newAccounts.carryOn(name));
    else if (running === undefined) {
      if (withSettings) await this.#queueRoles.compare(account);
      await this.#operations.keep(account, withSettings || (told.ok && lacksWord(told.value)));
    }
  }

  /** Runs a question of a round when the stamp's lane has a place. */
  #inTurn<T>(stamp: string, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const { ended } = this.#options;
    return this.#lanes.run(stamp, () => (ended.aborted ? Promise.resolve(termEnded) : work()));
  }

  /** Begins to keep a copy at a stamp, or at the emptiest one of a location. */
  async protect(name: string, wanted: ProtectionChoices): Promise<Outcome<AccountRecord>> {
    return this.#withSecond(name, (account) => {
      const without = [account.primary, ...(account.secondary === undefined ? [] : [account.secondary])];
      const target =
        wanted.stamp === "" ? this.stamps.emptiestForCopy(wanted.location, without) : knownStamp(wanted.stamp, this.#options.registry);
      return target.ok ? planProtect(account, target.value, wanted.withQueues) : target;
    });
  }

  unprotect(name: string, dropQueues: boolean): Promise<Outcome<AccountRecord>> {
    return this.#operations.plan(name, (account) => planUnprotect(account, dropQueues));
  }

  /** Begins to make the copy the primary. `stamp`: the one that must have it; empty: whichever has it. */
  async failOver(
    name: string,
    how: { readonly forced: boolean; readonly acceptLoss: boolean; readonly stamp: string; readonly anyway: boolean },
  ): Promise<Outcome<AccountRecord>> {
    const { registry } = this.#options;
    if (how.forced && !how.acceptLoss) {
      const message = `a forced failover of account ${name} loses what its primary has not shipped: it needs --accept-loss`;
      return refused("invalidArgument", "badRequest", message);
    }
    const copy = how.forced ? await this.copies.lastSync(name) : undefined;
    const early = how.forced || how.anyway ? ok() : await this.copies.mayDrain(name);
    if (!early.ok) return early;
    const settled = how.forced ? ok() : await this.#settings.mayDrain(name);
    if (!settled.ok) return settled;
    const mayBegin = how.forced ? ok() : await this.#queueRoles.mayFailOver(registry.account(name));
    if (!mayBegin.ok) return mayBegin;
    return this.#operations.plan(name, (account) => {
      if (how.stamp !== "") {
        const known = knownStamp(how.stamp, registry);
        if (!known.ok) return known;
        if (account.secondary !== undefined && account.secondary !== how.stamp) return notTheCopy(account, how.stamp);
      }
      if (how.forced) return planForcedFailover(account, copy?.epoch === account.epoch ? copy.lastSyncMs : undefined);
      const failover = planFailover(account);
      // The old primary has the copy afterwards. A forced failover does not wait for that: `troubleOf` tells it.
      const reached = failover.ok ? withDoors(account.primary, registry.stamp(account.primary)) : ok();
      return reached.ok ? failover : reached;
    });
  }

  /** Begins to move an account. Refuses one that has queues, unless they move, too, or are given up. */
  async migrate(name: string, stamp: string, how: MigrationChoices): Promise<Outcome<AccountRecord>> {
    const { registry } = this.#options;
    const held = registry.account(name);
    const mayLeave = await mayLeaveQueues(this.stamps, held, registry.stamp(held?.primary ?? ""), how);
    const plan = (account: AccountRecord): Outcome<GeoAccount> => {
      const target = knownStamp(stamp, registry);
      return target.ok ? planMigrate(account, target.value, how) : target;
    };
    return mayLeave.ok ? this.#withSecond(name, plan) : mayLeave;
  }

  /** Proposes accounts that should move. */
  proposeMoves(): Promise<Proposal> {
    const { registry, world } = this.#options;
    return rebalancePlan(registry, this.stamps, world.clock.monotonicMs());
  }

  giveUp(name: string): Promise<Outcome<AccountRecord>> {
    return this.#operations.plan(name, planGiveUp);
  }

  /** Returns a page of the report of a stamp that a forced failover deposed. */
  async diverged(name: string, stamp: string, marker: string): Promise<Outcome<ListDivergedResponse>> {
    const { registry } = this.#options;
    const held = registry.stamp(stamp);
    if (held === undefined) return unknownStamp(stamp, registry);
    const unheard = this.#unheard(name, stamp);
    const page = await this.stamps.onStamp(held, (link) => link.diverged(name, marker));
    return page.ok && unheard !== undefined ? ok({ ...page.value, complete: false, trouble: unheard }) : page;
  }

  /** Returns a text if a stamp is being deposed and has not answered: it may have more than it says, and may go on writing. */
  #unheard(name: string, stamp: string): string | undefined {
    const running = this.#options.registry.account(name)?.running;
    if (running?.kind !== "forced" || running.source !== stamp) return undefined;
    return `stamp ${stamp} has not heard yet that it is no primary any more`;
  }

  /** Deletes such a page at the stamp. Refuses before the stamp knows that it owes a report. */
  async forgetDiverged(name: string, stamp: string, marker: string): Promise<Outcome<ForgetDivergedResponse>> {
    const { registry } = this.#options;
    const held = registry.stamp(stamp);
    if (held === undefined) return unknownStamp(stamp, registry);
    const unheard = this.#unheard(name, stamp);
    if (unheard !== undefined) return refused("unavailable", "notReady", unheard);
    return this.stamps.onStamp(held, (link) => link.forgetDiverged(name, marker));
  }

  /** Returns why the account's operation waits, how its stamps differ from its record, or why its copy can't be shipped to; empty: nothing is wrong. */
  troubleOf(account: AccountRecord): string {
    const { running, secondary } = account;
    const trouble = this.#operations.troubleOf(account) || this.#olderRoles.known(account) || this.#queueRoles.known(account);
    // After a forced failover the old primary has the copy.
    const copy = running === undefined ? secondary : running.kind === "forced" ? running.source : undefined;
    if (trouble !== "" || copy === undefined) return trouble;
    const reached = withDoors(copy, this.#options.registry.stamp(copy));
    return reached.ok ? "" : reached.failure.message;
  }

  /** True if queues are copied to the account's second stamp, unless its stamps say otherwise. */
  copiesQueues(account: AccountRecord): boolean {
    return account.queues === true && this.#queueRoles.known(account) === "";
  }

  account(name: string): Outcome<AccountRecord> {
    return knownAccount(name, this.#options.registry);
  }

  accounts(after: string, limit: number): { readonly accounts: readonly AccountRecord[]; readonly more: boolean } {
    const behind = this.#options.registry.accounts.filter(({ name }) => name > after);
    return { accounts: behind.slice(0, limit), more: behind.length > limit };
  }

  locationOf({ primary }: AccountRecord): string {
    return this.#options.registry.stamp(primary)?.location ?? "";
  }

  /**
   * Records an operation that makes a copy at another stamp. Refuses if one of the two stamps does not answer, is not the
   * one that was added, or runs a release without second stamps: the operation would wait for it.
   */
  async #withSecond(name: string, plan: (account: AccountRecord) => Outcome<GeoAccount>): Promise<Outcome<AccountRecord>> {
    const { registry } = this.#options;
    const held = registry.account(name);
    const planned = held === undefined ? undefined : plan(held);
    if (planned !== undefined && !planned.ok) return planned;
    const stamps = registry.stampsOf([held?.primary, planned?.value.running?.target]);
    const lost = stamps.find((stamp) => stamp.lost === true);
    if (lost !== undefined)
      return refused("failedPrecondition", "conflict", `stamp ${lost.name} was declared lost, and was not told everything since`);
    const target = planned?.value.running?.target;
    const reached = target === undefined ? ok() : withDoors(target, registry.stamp(target));
    if (!reached.ok) return reached;
    for (const role of await Promise.all(stamps.map((stamp) => this.stamps.onStamp(stamp, (link) => link.role(name)))))
      if (!role.ok && role.failure.code !== "notFound") return role;
    const mayCopy = planned?.value.queues === true ? await mayCopyQueues(this.stamps, name, stamps) : ok();
    return mayCopy.ok ? this.#operations.plan(name, plan) : mayCopy;
  }
}

const termEnded = refused("unavailable", "notLeader", "the term of this location service has ended");

function knownStamp(name: string, registry: Registry): Outcome<string> {
  return registry.stamp(name) === undefined ? unknownStamp(name, registry) : ok(name);
}

const notTheCopy = ({ name, secondary }: AccountRecord, stamp: string) =>
  refused("aborted", "conflict", `the copy of account ${name} is at stamp ${secondary}, not at ${stamp}`);

/** True if nobody answered for the stamp. */
const isSilent = ({ code }: Failure): boolean => code === "unavailable" || code === "deadlineExceeded";

/** Time without a copy's confirmation after which the location service gives it the settings, in milliseconds: its primary does not reach it. */
const unconfirmedMs = 15_000n;
const lacksWord = ({ settingsConfirmedMsAgo: agoMs, epoch }: AccountShipping): boolean =>
  epoch > 0n && (agoMs === undefined || agoMs > unconfirmedMs);
