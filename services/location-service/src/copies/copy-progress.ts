/**
 * How far the copies of accounts are, as their primaries tell it, and what follows for operations: whether a primary may be drained, and how much
 * a drained one has not shipped yet.
 *
 * Invariant: without an answer, what a primary told last stays. Its age counts as lag.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { BacklogRate, type GeoAccount, type StampRecord } from "@stamp/geo";
import type { World } from "@stamp/ports";
import { type AccountShipping, fromWire } from "@stamp/wire";
import { type Registry, unknownStamp } from "../registry.ts";
import type { StampLink } from "../stamp-link.ts";
import { notDrainable } from "./drainable.ts";

export interface CopyProgressOptions {
  readonly world: World;
  readonly registry: Registry;
  /** Asks a stamp, unless another one answers at its address. */
  readonly onStamp: <T>(stamp: StampRecord, work: (link: StampLink) => Promise<Outcome<T>>) => Promise<Outcome<T>>;
  readonly drainMaxMs: number;
}

interface Told {
  readonly told: AccountShipping;
  readonly toldMs: number;
  readonly rate: BacklogRate;
}

export class CopyProgress {
  readonly #options: CopyProgressOptions;
  /** Progress that was told last, by account. */
  readonly #told = new Map<string, Told>();

  constructor(options: CopyProgressOptions) {
    this.#options = options;
  }

  /**
   * Returns how far the account's copy is, as its primary told last; undefined: it has none, or nothing was told. The time at the primary goes
   * on, so that the lag of a copy grows while its primary tells nothing.
   */
  of({ name, secondary, running }: GeoAccount): AccountShipping | undefined {
    if (secondary === undefined && running?.target === undefined) return undefined;
    const known = this.#told.get(name);
    if (known === undefined) return undefined;
    const agoMs = this.#options.world.clock.monotonicMs() - known.toldMs;
    const { commits, bytes } = known.rate.perSecond;
    const rates = { caughtUpCommitsPerSecond: commits, caughtUpBytesPerSecond: bytes };
    return { ...known.told, ...rates, nowMs: known.told.nowMs + BigInt(Math.max(0, Math.round(agoMs))) };
  }

  /** Asks the primary how far the copy is. */
  async ask({ name, primary, secondary, running }: GeoAccount): Promise<Outcome<AccountShipping>> {
    const { registry, onStamp, world } = this.#options;
    const stamp = registry.stamp(primary);
    if (stamp === undefined) return unknownStamp(primary, registry);
    if (secondary === undefined && running?.target === undefined) {
      this.#told.delete(name);
      return refused("failedPrecondition", "conflict", `account ${name} has no second stamp`);
    }
    const asked = await onStamp(stamp, (link) => link.shipping(name));
    const toldMs = world.clock.monotonicMs();
    if (asked.ok && asked.value.epoch > 0n)
      this.#told.set(name, { told: asked.value, toldMs, rate: this.#rateOf(name, asked.value, toldMs) });
    else if (asked.ok) this.#told.delete(name);
    return asked;
  }

  /** Notes the backlog that was told. Under another role epoch, or of another copy, the rate begins anew. */
  #rateOf(name: string, told: AccountShipping, toldMs: number): BacklogRate {
    const known = this.#told.get(name);
    const isSame = known?.told.epoch === told.epoch && known.told.paired === told.paired;
    const rate = isSame ? known.rate : new BacklogRate();
    if (told.pendingCommits !== undefined)
      rate.noted({ commits: fromWire(told.pendingCommits), bytes: fromWire(told.pendingBytes) }, toldMs);
    return rate;
  }

  /** Returns Last Sync Time of the copy, as the stamp that has it knows it, and the role epoch under which it was told; undefined: not known. */
  async lastSync(name: string): Promise<{ readonly epoch: number; readonly lastSyncMs: number } | undefined> {
    const { registry, onStamp } = this.#options;
    const stamp = registry.stamp(registry.account(name)?.secondary ?? "");
    const copy = stamp === undefined ? undefined : await onStamp(stamp, (link) => link.copy(name));
    if (copy?.ok !== true || copy.value.lastSyncMs === undefined) return undefined;
    const lastSyncMs = Math.min(fromWire(copy.value.lastSyncMs), this.#options.world.clock.wallMs());
    return { epoch: fromWire(copy.value.epoch), lastSyncMs };
  }

  /** Refuses a planned failover that is likely to be given up. What else is wrong with it is told when it is planned. */
  async mayDrain(name: string): Promise<Outcome<void>> {
    const account = this.#options.registry.account(name);
    if (account?.secondary === undefined || account.running !== undefined || !account.seeded) return ok();
    const late = await this.lateOf(account);
    if (!late.ok) return late;
    if (late.value === "") return ok();
    const next = "Or begin with --anyway: it is given up by itself if it takes too long";
    return refused("failedPrecondition", "notReady", `planned failover of account ${name}: ${late.value}. ${next}`);
  }

  /** Returns why the primary should not be drained now; empty: it may be. */
  async lateOf(account: GeoAccount): Promise<Outcome<string>> {
    const asked = await this.ask(account);
    if (!asked.ok) return asked;
    return ok(notDrainable(this.of(account) ?? asked.value, this.#options.drainMaxMs, account.running?.anyway) ?? "");
  }

  /** Returns the commits that the primary has not shipped. Refused if some range does not say it. */
  async pendingOf(account: GeoAccount): Promise<Outcome<number>> {
    const { name, primary, epoch } = account;
    const asked = await this.ask(account);
    if (!asked.ok) return asked;
    const { pendingCommits, trouble } = asked.value;
    if (fromWire(asked.value.epoch) === epoch && pendingCommits !== undefined) return ok(fromWire(pendingCommits));
    const why = trouble === "" ? "" : `: ${trouble}`;
    return refused("unavailable", "notReady", `stamp ${primary} does not say how much of account ${name} it has not shipped yet${why}`);
  }
}
