/**
 * Operations on accounts of one term of the leading location service (docs/design/geo.md "Operations"). What comes next
 * is decided by `operations.ts` of @stamp/geo; here it is recorded, sent and answered.
 *
 * Invariants:
 * - The step is recorded before its command is sent (rule `geoStepRecorded`). A crash at any step is gone on from.
 * - One command of an account is under way at a time.
 * - A drained primary that does not come to its end within `drainMaxMs` takes writes again: a failover is given up, a migration keeps its
 *   copy, and drains again after a pause.
 */
import type { Outcome } from "@stamp/base";
import { fromHex, ok, refused, toHex } from "@stamp/base";
import type { AccountRecord, GeoAccount, RoleCommand, StampCommand, StampRecord, StepAnswer } from "@stamp/geo";
import { commandToSend, planAnswer, planDrainLate, planSeeded } from "@stamp/geo";
import type { World } from "@stamp/ports";
import { jittered, sleep } from "@stamp/ports";
import { fromWire } from "@stamp/wire";
import type { CopySettings } from "./copies/copy-settings.ts";
import { type Registry, unknownStamp } from "./registry.ts";
import type { StampLink } from "./stamp-link.ts";

export interface OperationsOptions {
  readonly world: World;
  readonly registry: Registry;
  /** Asks a stamp, unless another one answers at its address. */
  readonly onStamp: <T>(stamp: StampRecord, work: (link: StampLink) => Promise<Outcome<T>>) => Promise<Outcome<T>>;
  /** Returns the number of commits that the account's primary has not shipped. */
  readonly pendingOf: (account: GeoAccount) => Promise<Outcome<number>>;
  /** Runs a question of a round when few enough are under way at the stamp. */
  readonly inTurn: <T>(stamp: string, work: () => Promise<Outcome<T>>) => Promise<Outcome<T>>;
  /** How keys and settings come to copies. */
  readonly settings: CopySettings;
  /** Returns why the account's primary should not be drained now, e.g. because roles differ from the record; empty: it may be. */
  readonly lateOf: (account: GeoAccount) => Promise<Outcome<string>>;
  /** Records the account without stamps that are lost. */
  readonly leaveOutLost: (account: string) => Promise<Outcome<void>>;
  readonly drainMaxMs: number;
  readonly ended: AbortSignal;
}

/** Between two questions whether a copy is complete, or a drained primary has shipped everything. */
const pollMs = { seeding: 1_000, draining: 200 } as const;
const retryMs = 1_000;
/** Pause between two drains of a migration, in times of `drainMaxMs`: clients are refused writes in one part of eleven at most. */
const drainPauses = 10;
/**
 * Failures in a row after which the next round of questions to the stamps goes on with the operation. One that keeps its primary from taking
 * writes goes on by itself.
 */
const failuresMax = 5;

export class Operations {
  readonly #options: OperationsOptions;
  readonly #driven = new Map<string, Promise<void>>();
  /** Reason why the step of an account has not ended yet. */
  readonly #troubles = new Map<string, string>();
  /** Time at which this term saw an account drained first, with the number of the operation. */
  readonly #drained = new Map<string, { readonly operation: number; readonly sinceMs: number }>();
  /** When this term saw the last drain of an account's migration end too late. */
  readonly #late = new Map<string, number>();

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  /** Returns why the account's operation waits; empty: it goes on, or there is none. */
  troubleOf({ name, running }: AccountRecord): string {
    return running === undefined ? "" : (this.#troubles.get(name) ?? "");
  }

  /** Records an operation or a change of one, and begins to act on it. */
  async plan(name: string, plan: (account: AccountRecord) => Outcome<GeoAccount>): Promise<Outcome<AccountRecord>> {
    const { registry } = this.#options;
    const recorded = await registry.turn(async () => {
      const held = registry.account(name);
      if (held === undefined) return refused("notFound", "conflict", `no stamp is known to have account ${name}`);
      const planned = plan(held);
      if (!planned.ok || planned.value === held) return planned;
      const put = await registry.put([{ kind: "account", record: planned.value }]);
      return put.ok ? planned : put;
    });
    if (!recorded.ok) return recorded;
    this.drive(name);
    return ok(registry.account(name) as AccountRecord);
  }

  /** Goes on with the account's operation, if nobody does yet. */
  drive(name: string): void {
    if (this.#driven.has(name)) return;
    const driven = this.#run(name).finally(() => this.#driven.delete(name));
    this.#driven.set(name, driven);
  }

  /** Notes that a copy is complete, and with `withSettings` looks after the copy's settings, if no operation is under way. */
  async keep(account: AccountRecord, withSettings: boolean): Promise<void> {
    const { secondary, running, seeded } = account;
    if (secondary === undefined || running !== undefined) return;
    const { inTurn } = this.#options;
    if (!seeded) await inTurn(secondary, () => this.#noteSeeded(account, secondary));
    if (!withSettings) return;
    await this.#options.settings.keep(account, secondary);
  }

  /** Lets the copy serve without a word of its primary, which does not answer (docs/design/geo.md "Keys and settings"). */
  async vouch({ name, secondary, epoch, running }: AccountRecord): Promise<void> {
    if (secondary === undefined || running !== undefined) return;
    await this.#options.inTurn(secondary, () => this.#at(secondary, (link) => link.vouchForCopy(name, epoch)));
  }

  async #run(name: string): Promise<void> {
    const { world, registry, ended } = this.#options;
    for (let failures = 0; !ended.aborted; ) {
      const without = await this.#options.leaveOutLost(name);
      if (!without.ok) return;
      const account = registry.account(name);
      if (account?.running === undefined) this.#late.delete(name);
      if (account?.running === undefined || account.running.step === "creating") return;
      const { step: at } = account.running;
      if (at === "draining") this.#drainedSince(account);
      else this.#drained.delete(name);
      if (failures >= failuresMax && at !== "draining" && at !== "undraining") return;
      const step = await this.#step(account);
      if (step.ok) {
        this.#troubles.delete(name);
        failures = 0;
        if (step.value > 0) await sleep(world.clock, step.value, ended);
      } else {
        this.#troubles.set(name, step.failure.message);
        failures += 1;
        await this.#giveUpLate(account);
        await sleep(world.clock, jittered(world.random, retryMs), ended);
      }
    }
  }

  /** Makes one attempt at the account's step. Answers with the time until the next one, in milliseconds. */
  async #step(account: AccountRecord): Promise<Outcome<number>> {
    const { rules } = this.#options.world;
    const told = commandToSend(account, account, rules);
    if (told === undefined) return this.#seeding(account);
    const obeyed = await this.#send(account, told);
    if (!obeyed.ok) return obeyed;
    const { role, waitMs } = obeyed.value;
    if (waitMs > 0) return ok(waitMs);
    if (told.command.kind === "drain") return this.#draining(account);
    const queues = told.command.kind === "promote" ? { queues: role.queues === true } : {};
    return this.#answered(account, { ...(role.promotedAt === undefined ? {} : { point: role.promotedAt }), ...queues });
  }

  async #send(account: AccountRecord, { stamp, command }: StampCommand) {
    const settings = await this.#options.settings.withCommand(account, stamp, command);
    if (!settings.ok) return settings;
    const told = await this.#toSend(account, stamp, command);
    if (!told.ok) return told;
    return this.#at(stamp, (link) => link.obey(account.name, told.value, settings.value));
  }

  /** Returns the command with what stamps say at the moment. */
  #toSend(account: AccountRecord, stamp: string, command: RoleCommand): Promise<Outcome<RoleCommand>> {
    if (command.kind === "remove") return this.#withQueues(account, stamp, command);
    if (command.kind === "promote" && account.running?.kind !== "forced") return this.#withLineage(account, stamp, command);
    return Promise.resolve(ok(this.#withDoors(command)));
  }

  /**
   * The copy is promoted if it still has everything, and the primary's settings: its stamp may have been restored since its primary was drained, and
   * its front-ends may have told what is not so. A primary that does not answer,
   * or is of an older release, keeps no promotion from going on.
   */
  async #withLineage(
    account: AccountRecord,
    stamp: string,
    command: RoleCommand & { readonly kind: "promote" },
  ): Promise<Outcome<RoleCommand>> {
    const { name, epoch, primary, running } = account;
    const role = await this.#at(stamp, (link) => link.role(name));
    if (!role.ok) return role;
    // It was promoted, and the answer was lost, or is waited for.
    if (role.value.epoch === command.operation) return ok(this.#withDoors(command));
    // A drained account's settings stay as they are: the hash of the record is the primary's, also if that is silent now.
    const recorded = running?.settingsTag;
    const settingsTag = recorded === undefined ? await this.#options.settings.tagAt(running?.source ?? primary, name) : fromHex(recorded);
    const compared = this.#withDoors({ ...command, ...(settingsTag !== undefined && { settingsTag }) });
    const asked = await this.#at(running?.source ?? primary, (link) => link.shipping(name));
    if (!asked.ok || fromWire(asked.value.epoch) !== epoch || asked.value.copyLineage === undefined) return ok(compared);
    if (asked.value.pendingCommits !== 0n)
      return refused("unavailable", "notReady", `the copy of account ${name} does not have everything any more: it is seeded again`);
    return ok({ ...compared, copyLineage: fromWire(asked.value.copyLineage) });
  }

  /** Queues that were not copied stay where they are, out of reach, if nobody gave up those of this stamp. */
  async #withQueues(
    account: AccountRecord,
    stamp: string,
    command: RoleCommand & { readonly kind: "remove" },
  ): Promise<Outcome<RoleCommand>> {
    const { running } = account;
    if (running?.givenUp === true) return ok(command);
    // A stamp deletes queues that were copied without being told.
    if (account.queues === true) return ok(command);
    if (running?.dropQueues === true) return ok({ ...command, dropsQueues: true });
    const queues = await this.#at(stamp, (link) => link.queues(account.name));
    if (!queues.ok && queues.failure.reason !== "newerFormat") return queues;
    return ok(queues.ok && queues.value.length === 0 ? { ...command, dropsQueues: true } : command);
  }

  #withDoors(command: RoleCommand): RoleCommand {
    if (!("peer" in command)) return command;
    const doors = this.#options.registry.stamp(command.peer)?.doors;
    return doors === undefined ? command : { ...command, peerDoors: doors };
  }

  async #seeding(account: AccountRecord): Promise<Outcome<number>> {
    const target = account.running?.target;
    if (target === undefined) return refused("internal", "bug", "an operation that waits for seeding has a target");
    const role = await this.#at(target, (link) => link.role(account.name));
    if (!role.ok) return role;
    if (role.value.role === "secondary" && role.value.epoch === account.epoch) {
      // The primary is drained next.
      const late = this.#pausesDraining(account) ?? (await this.#options.lateOf(account));
      if (!late.ok) return late;
      if (late.value !== "") return refused("unavailable", "notReady", late.value);
    }
    const noted = await this.#noteSeeded(account, target);
    return noted.ok ? ok(noted.value ? 0 : pollMs.seeding) : noted;
  }

  /** Records the copy at `target` as complete, if it is. */
  async #noteSeeded(account: AccountRecord, target: string): Promise<Outcome<boolean>> {
    const role = await this.#at(target, (link) => link.role(account.name));
    if (!role.ok) return role;
    if (role.value.role !== "secondary" || role.value.epoch !== account.epoch) return ok(false);
    const recorded = await this.#record(account.name, (held) => ok(planSeeded(held, account.epoch, target)));
    return recorded.ok ? ok(true) : recorded;
  }

  /** Handles the step of a drained primary: when all is shipped, with its settings, the promotion is next. */
  async #draining(account: AccountRecord): Promise<Outcome<number>> {
    const { running } = account;
    const pending = await this.#options.pendingOf(account);
    if (!pending.ok) return pending;
    if (pending.value > 0) {
      const late = await this.#giveUpLate(account);
      return late.ok ? ok(pollMs.draining) : late;
    }
    const copied = await this.#options.settings.shipped(account, running?.target ?? "");
    if (!copied.ok) return copied;
    return this.#answered(account, { pendingCommits: 0, ...(copied.value !== undefined && { settingsTag: toHex(copied.value) }) });
  }

  /** Returns why a migration does not drain again yet; undefined: it may. A new term begins without a pause. */
  #pausesDraining({ name }: AccountRecord): Outcome<string> | undefined {
    const { world, drainMaxMs } = this.#options;
    const lateMs = this.#late.get(name);
    if (lateMs === undefined) return undefined;
    const leftMs = lateMs + drainPauses * drainMaxMs - world.clock.monotonicMs();
    if (leftMs <= 0) return undefined;
    return ok(
      `the primary was drained for ${drainMaxMs / 1_000} s and had not shipped everything: it is drained again in ${Math.ceil(leftMs / 1_000)} s`,
    );
  }

  /** Ends the drain of a primary that has been drained for too long. */
  async #giveUpLate(account: AccountRecord): Promise<Outcome<void>> {
    const { world, drainMaxMs } = this.#options;
    const { name, operation, running } = account;
    if (running?.step !== "draining") return ok();
    if (world.clock.monotonicMs() - this.#drainedSince(account) < drainMaxMs) return ok();
    const what = running.kind === "migrate" ? "a migration waits" : "an operation is given up";
    world.logger.warn(`${what}: its primary was drained for too long`, { account: name, operation, limitMs: drainMaxMs });
    this.#drained.delete(name);
    if (running.kind === "migrate") this.#late.set(name, world.clock.monotonicMs());
    return this.#record(name, (held) => (held.operation === operation ? planDrainLate(held) : ok(held)));
  }

  /** Returns the time at which this term first saw the account drained by its operation. */
  #drainedSince({ name, operation }: AccountRecord): number {
    const known = this.#drained.get(name);
    if (known?.operation === operation) return known.sinceMs;
    const sinceMs = this.#options.world.clock.monotonicMs();
    this.#drained.set(name, { operation, sinceMs });
    return sinceMs;
  }

  async #answered(account: AccountRecord, answer: Omit<StepAnswer, "operation" | "step">) {
    const { operation, running, name } = account;
    if (running === undefined) return ok(0);
    const planned = planAnswer(account, { operation, step: running.step, ...answer });
    if (!planned.ok) return planned;
    const { rules } = this.#options.world;
    const early = commandToSend(account, planned.value, rules);
    // Only with the rule switched off is there a command that nobody has recorded.
    if (early !== undefined && early.command.kind !== commandToSend(account, account, rules)?.command.kind)
      await this.#send(account, early);
    const recorded = await this.#record(name, (held) => planAnswer(held, { operation, step: running.step, ...answer }));
    return recorded.ok ? ok(0) : recorded;
  }

  #record(name: string, plan: (held: AccountRecord) => Outcome<GeoAccount>): Promise<Outcome<void>> {
    const { registry } = this.#options;
    return registry.turn(async () => {
      const held = registry.account(name);
      if (held === undefined) return ok();
      const planned = plan(held);
      if (!planned.ok) return planned;
      return planned.value === held ? ok() : registry.put([{ kind: "account", record: planned.value }]);
    });
  }

  async #at<T>(name: string, work: (link: StampLink) => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const { registry, onStamp } = this.#options;
    const stamp = registry.stamp(name);
    return stamp === undefined ? unknownStamp(name, registry) : onStamp(stamp, work);
  }
}
