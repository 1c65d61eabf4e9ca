/**
 * Starts and stops the shipping of ranges by the roles of accounts: asks the partition manager for the roles, and looks at the ranges that
 * this server has.
 *
 *     roles (partition manager) ─┐
 *     ranges served here ────────┴──► one RangeShipping for each range and account that is shipped from here,
 *                                     one RangeReport while this stamp owes a report of what only it has
 *
 * Invariant: a range whose account is not shipped any more, or by another role epoch, has no follower of that account, unless
 * the report is owed.
 */
import { compareBytes, type Outcome, ok } from "@stamp/base";
import { type AccountRole, outgrown, owesReport, roleOf, ships } from "@stamp/geo";
import { LeaderCalls } from "@stamp/metadata-store";
import { accountKeys, isShippedFor, isShippedTable, type Place } from "@stamp/objects";
import { holdsKey, type Range } from "@stamp/partition-map";
import { jitteredPause, type World } from "@stamp/ports";
import { Accounts, toWire } from "@stamp/wire";
import { accountPrefix } from "../operations/admission.ts";
import type { Holdings } from "../ranges/holdings.ts";
import { ByteGates } from "./data/byte-gate.ts";
import { PlacesBudget } from "./data/copied-places.ts";
import { FreshBytes } from "./data/fresh-bytes.ts";
import { ofDrained } from "./drained.ts";
import { GeoLink } from "./geo-link.ts";
import { RangeReport } from "./range-report.ts";
import { RangeShipping, type ShippingOptions } from "./range-shipping.ts";
import type { AskedShipping, Facts, RangeWork, ShippingFacts } from "./range-work.ts";
import { pushSettings } from "./settings-push.ts";

export interface ShipperOptions extends Omit<ShippingOptions, "gates" | "places" | "fresh"> {
  readonly lockService: string;
  /** How often the roles are asked for, in milliseconds; 0: never, and nothing is shipped. */
  readonly everyMs: number;
  /** Bound of the log that is kept for all accounts of this server together, in bytes. */
  readonly backlogBytesMax: number;
}

const askTimeoutMs = 5_000;
/** Bytes of blobs that a server holds while they are on their way to one other stamp. One that does not answer stops no copies to the others. */
const copiedBytesMax = 32 * 1024 * 1024;
/** Places of bytes that a server remembers for all ranges and accounts. */
const placesMax = 524_288;
/** Bytes of blobs that were just appended, and wait in memory to be sent. */
const freshBytesMax = 32 * 1024 * 1024;
/** Table whose range at the beginning of an account tells the other stamp the copy's progress. */
const reportedTable = "Entity";
const notBegun: Facts = {
  state: "waiting",
  complete: false,
  pending: 0,
  backlogBytes: 0,
  pendingBytes: 0,
  lastSyncMs: undefined,
  passedMonotonicMs: undefined,
  seededBytes: 0,
  seedBytes: 0,
  seedBytesPerSecond: 0,
  sentWhole: 0,
  failure: "",
};

/** An account for which ranges of this server have work. */
interface Worked {
  readonly account: string;
  readonly role: AccountRole;
  readonly low: Uint8Array;
  readonly high: Uint8Array;
}

export class Shipper {
  readonly #world: World;
  readonly #holdings: Holdings;
  readonly #options: ShipperOptions & ShippingOptions;
  readonly #manager: LeaderCalls;
  /** Keyed by range, owner epoch, account and role. */
  readonly #running = new Map<string, RangeWork>();
  /** Reports to the copy that are under way, by account. */
  readonly #reporting = new Map<string, Promise<void>>();
  /** Settings that are being sent to the copy, by account. */
  readonly #pushing = new Map<string, Promise<void>>();
  /** Lineages that the stamps of copies told last, by copy; a new `RangeShipping` asks here. */
  readonly #copyLineages = new Map<string, number>();
  /** Roles that were told last; undefined: none yet. */
  #roles: ReadonlyMap<string, AccountRole> | undefined;
  #removed: ReadonlyMap<string, AccountRole> = new Map();
  /** Accounts that are worked on, in key order. */
  #worked: readonly Worked[] = [];
  /** Prefixes of the keys of accounts whose bytes are shipped from here. */
  #shipped: ReadonlySet<string> = new Set();
  readonly #fresh = new FreshBytes(freshBytesMax);

  constructor(world: World, holdings: Holdings, options: ShipperOptions) {
    this.#world = world;
    this.#holdings = holdings;
    this.#options = { ...options, gates: new ByteGates(copiedBytesMax), places: new PlacesBudget(placesMax), fresh: this.#fresh };
    this.#manager = new LeaderCalls(world, { lockService: options.lockService, leaseName: "partition-manager" });
  }

  get facts(): readonly ShippingFacts[] {
    return [...this.#running.values()].map(({ facts }) => facts);
  }

  /** Returns the facts of a range about an account, under its role at the manager; `waiting` if it has not begun. */
  factsOf({ rangeId, ownerEpoch }: Range, { account, epoch, paired, drainedMsAgo, copyLineage = 0 }: AskedShipping): Facts {
    const { clock, rules } = this.#world;
    this.#heardLineage(copyOf(account, { epoch, paired }), copyLineage);
    for (const [key, shipping] of this.#running) {
      const { epoch: own, paired: begun = 0 } = shipping.role;
      if (!key.startsWith(`${rangeId} ${ownerEpoch} ${account} `) || own !== epoch || begun !== paired) continue;
      shipping.heardCopyLineage?.(copyLineage);
      return ofDrained(shipping.facts, drainedMsAgo, clock.monotonicMs(), rules);
    }
    return ofDrained(notBegun, drainedMsAgo, clock.monotonicMs(), rules);
  }

  /** True if the account's rows here are those of another stamp, or if that is not known yet: for what must leave a copy alone. */
  mayBeCopy(account: string): boolean {
    if (this.#options.everyMs === 0) return false;
    const role = this.roleOf(account)?.role;
    return this.#roles === undefined || role === "secondary" || role === "unseeded";
  }

  /** Returns the role of the account, as the partition manager said last; undefined: it named none, or has not answered yet. */
  roleOf(account: string): AccountRole | undefined {
    return this.#roles?.get(account);
  }

  /** Accounts that left this stamp, with their roles as told last. */
  get removed(): ReadonlyMap<string, AccountRole> {
    return this.#removed;
  }

  /** Notes appended bytes of an account's blob. They are kept for a while if they are to be sent. */
  appended(account: string, place: Place, bytes: Uint8Array): boolean {
    return this.#shipped.has(account) && this.#fresh.keep(place, bytes);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { everyMs } = this.#options;
    if (everyMs === 0) return;
    const { logger } = this.#world;
    while (!signal.aborted) {
      await jitteredPause(this.#world, everyMs, signal);
      if (signal.aborted) break;
      const asked = await this.#ask();
      if (!asked.ok) logger.debug("roles of accounts are not known now", { reason: asked.failure.reason });
      await this.#reconcile();
      this.#reportAll(signal);
    }
    for (const shipping of this.#running.values()) shipping.stop();
    await Promise.all([...[...this.#running.values()].map(({ ended }) => ended), ...this.#reporting.values(), ...this.#pushing.values()]);
  }

  async #ask(): Promise<Outcome<void>> {
    const answer = await this.#manager.call(
      askTimeoutMs,
      (address, timeoutMs) => this.#world.transport.client(address, Accounts).listRoles({}, { timeoutMs }),
      { idempotent: true, mayLackMethod: true },
    );
    if (!answer.ok) return answer;
    const roles = new Map<string, AccountRole>();
    for (const { account, geoRole } of answer.value.roles) {
      const role = roleOf(geoRole);
      const known = this.#roles?.get(account);
      if (role.ok) roles.set(account, role.value);
      else if (known !== undefined) roles.set(account, known);
      if (!role.ok) this.#world.logger.warn("the role of an account can't be read", { account, ...role.failure });
    }
    this.#roles = roles;
    const copies = new Set([...roles].map(([account, role]) => copyOf(account, role)));
    for (const copy of this.#copyLineages.keys()) if (!copies.has(copy)) this.#copyLineages.delete(copy);
    this.#removed = new Map([...roles].filter(([, { role }]) => role === "removed"));
    this.#worked = [...roles]
      .filter(([, role]) => ships(role) || owesReport(role))
      .map(([account, role]) => ({ account, role, ...accountKeys(account) }))
      .sort((a, b) => compareBytes(a.low, b.low));
    this.#shipped = new Set(this.#worked.filter(({ role }) => ships(role)).map(({ low }) => accountPrefix(low)));
    if (this.#shipped.size === 0) this.#fresh.clear();
    return ok();
  }

  async #reconcile(): Promise<void> {
    if (this.#roles === undefined) return;
    const wanted = new Set<string>();
    for (const { range, state, engine } of this.#holdings.all) {
      const partition = engine?.partition;
      if (state !== "serving" || partition === undefined || !isShippedTable(range.table)) continue;
      const accounts = this.#within(range).filter(({ role }) => isShippedFor(role, range.table));
      for (const name of partition.followers.names) {
        if (!accounts.some(({ account }) => account === name)) await partition.followers.end(name);
      }
      for (const { account, role } of accounts) {
        const key = keyOf(range, account, role);
        wanted.add(key);
        const running = this.#running.get(key);
        if (running !== undefined && !running.isEnded) continue;
        const before = this.#stopOthers(range, account);
        const work = owesReport(role)
          ? new RangeReport(this.#world, range, partition, account, role, this.#options, before)
          : new RangeShipping(this.#world, range, partition, account, role, this.#options, this.#copyLineages.get(copyOf(account, role)));
        this.#running.set(key, work);
      }
    }
    for (const [key, shipping] of this.#running) {
      if (wanted.has(key)) continue;
      shipping.stop();
      this.#running.delete(key);
    }
    await this.#bound();
  }

  /** Returns the accounts of which a range has keys. */
  #within({ low, high }: Range): readonly Worked[] {
    const first = firstWith(this.#worked, (one) => compareBytes(one.high, low) > 0);
    const end = high.length === 0 ? this.#worked.length : firstWith(this.#worked, (one) => compareBytes(one.low, high) >= 0);
    return this.#worked.slice(first, end);
  }

  /** Tells the other stamp the copy's progress, or the manager that the report may be complete, for accounts whose first range is here. */
  #reportAll(signal: AbortSignal): void {
    for (const { range, state } of this.#holdings.all) {
      if (state !== "serving" || range.table !== reportedTable) continue;
      for (const { account, role, low } of this.#within(range)) {
        if (!holdsKey(range, low)) continue;
        if (ships(role) && !this.#pushing.has(account)) {
          const pushed = this.#push(account, role, signal).finally(() => this.#pushing.delete(account));
          this.#pushing.set(account, pushed);
        }
        if (this.#reporting.has(account)) continue;
        const report = ships(role) ? this.#report(account, role, signal) : this.#endReport(account, role);
        const reported = report.finally(() => this.#reporting.delete(account));
        this.#reporting.set(account, reported);
      }
    }
  }

  #heardLineage(copy: string, lineage: number): void {
    if (lineage > (this.#copyLineages.get(copy) ?? 0)) this.#copyLineages.set(copy, lineage);
  }

  async #push(account: string, role: AccountRole, signal: AbortSignal): Promise<void> {
    const { peer = "", peerDoors: doors = [] } = role;
    const link = new GeoLink({ account, table: reportedTable, peer, doors, transportTo: this.#options.transportTo });
    const pushed = await pushSettings(this.#world, this.#manager, link, account, role, signal);
    if (!pushed.ok) this.#world.logger.debug("keys and settings were not given to a copy", { account, ...pushed.failure });
  }

  async #report(account: string, role: AccountRole, signal: AbortSignal): Promise<void> {
    const { peer = "", peerDoors: doors = [] } = role;
    const copy = copyOf(account, role);
    const copyLineage = toWire(this.#copyLineages.get(copy) ?? 0);
    const asked = await this.#manager.call(
      askTimeoutMs,
      (address, timeoutMs) => this.#world.transport.client(address, Accounts).getShipping({ account, copyLineage }, { timeoutMs }),
      { idempotent: true, mayLackMethod: true },
    );
    if (!asked.ok || asked.value.epoch === 0n || signal.aborted) return;
    const { epoch, paired, complete, lastSyncMs, lineage } = asked.value;
    const link = new GeoLink({ account, table: reportedTable, peer, doors, transportTo: this.#options.transportTo });
    const report = {
      epoch,
      paired,
      complete,
      lineage,
      copyLineage: asked.value.copyLineage ?? 0n,
      ...(lastSyncMs === undefined ? {} : { lastSyncMs }),
    };
    const reported = await link.report(report, { timeoutMs: askTimeoutMs, signal });
    if (reported.ok) this.#heardLineage(copy, reported.value.lineage);
    else this.#world.logger.debug("the other stamp was not told how far its copy is", { account, ...reported.failure });
  }

  /** Asks the manager to end the report. It does so if every range has made its part. */
  async #endReport(account: string, { epoch }: AccountRole): Promise<void> {
    const ended = await this.#manager.call(
      askTimeoutMs,
      (address, timeoutMs) => this.#world.transport.client(address, Accounts).endReport({ account, epoch: toWire(epoch) }, { timeoutMs }),
      { idempotent: true, mayLackMethod: true },
    );
    if (!ended.ok) this.#world.logger.debug("the report of a deposed primary is not complete", { account, ...ended.failure });
  }

  /** Stops what ran under a former role. Resolves when it has stopped. */
  #stopOthers(range: Range, account: string): Promise<unknown> {
    const stopped: Promise<void>[] = [];
    for (const [key, shipping] of this.#running) {
      if (!key.startsWith(`${range.rangeId} ${range.ownerEpoch} ${account} `)) continue;
      shipping.stop();
      stopped.push(shipping.ended);
      this.#running.delete(key);
    }
    return Promise.all(stopped);
  }

  /** Lets the largest backlog go when all backlogs together exceed their bound: the primary never stops for its secondary. */
  async #bound(): Promise<void> {
    const { backlogBytesMax } = this.#options;
    const all = [...this.#running.values()].map((shipping) => ({ shipping, bytes: shipping.facts.backlogBytes }));
    all.sort((a, b) => b.bytes - a.bytes);
    let sum = all.reduce((total, { bytes }) => total + bytes, 0);
    for (const { shipping, bytes } of all) {
      if (!outgrown(sum, backlogBytesMax)) return;
      await shipping.letGo();
      sum -= bytes;
    }
  }
}

/** Returns the first index for which the condition holds; it holds for all behind. */
function firstWith(all: readonly Worked[], holds: (one: Worked) => boolean): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(all[middle] as Worked)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const copyOf = (account: string, { epoch, paired = 0 }: Pick<AccountRole, "epoch" | "paired">): string => `${account} ${epoch} ${paired}`;

const keyOf = ({ rangeId, ownerEpoch }: Range, account: string, { epoch, peer, peerDoors, paired }: AccountRole): string =>
  `${rangeId} ${ownerEpoch} ${account} ${epoch} ${paired ?? 0} ${peer} ${peerDoors?.join() ?? ""}`;
