/**
 * The stamps of all locations, as one term of the leading location service sees them: their links, what they answered
 * last, and the accounts that they have.
 *
 * Invariants:
 * - An account that a stamp has is pinned to it, unless the name is pinned to another stamp already.
 * - A stamp whose identity is not the recorded one is asked for nothing and told nothing.
 */
import type { Failure, Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { AccountRecord, PlacedStamp, StampRecord, StampState } from "@stamp/geo";
import { notPlaceable, type PlacementLimits, placeAccount, placementLimits } from "@stamp/geo";
import type { Transport, World } from "@stamp/ports";
import type { AccountRemoval } from "@stamp/wire";
import type { LocationServiceConfig } from "./config.ts";
import { type Registry, unknownStamp } from "./registry.ts";
import { conflictOf, hasDoors, withDoors, wrongStamp } from "./stamp-checks.ts";
import { type AccountAtStamp, type Announcer, type Capacity, StampLink, sameStamp } from "./stamp-link.ts";

const takenMax = 100;
/** Accounts that one transaction pins; etcd takes at most 128 operations in one. */
const pinnedTogetherMax = 100;

/** Last report of one stamp. */
interface Seen {
  readonly link: StampLink;
  /** Reason why the stamp did not answer; undefined: it did. */
  trouble: string | undefined;
  capacity: (Capacity & { readonly reportedMs: number }) | undefined;
  /** Accounts of the stamp whose names are pinned to other stamps. */
  taken: readonly string[];
  accountsAskedMs: number | undefined;
  /** Removed accounts whose data the stamp still deletes. */
  removals: readonly AccountRemoval[];
  /** Number of the latest question that `trouble` is about. */
  judged: number;
}

export interface StampView {
  readonly record: StampRecord;
  readonly answers: boolean;
  readonly trouble: string;
  readonly capacity: Seen["capacity"];
  readonly accounts: number;
  readonly taken: readonly string[];
}

export interface StampsOptions {
  readonly world: World;
  readonly config: LocationServiceConfig;
  readonly registry: Registry;
  /**
   * Transport that proves a stamp's secret: that of the named file, or the process's own secret. Refused if there is no
   * such file.
   */
  readonly transportTo: (secret: string) => Outcome<Transport>;
  readonly announcer: Announcer;
}

export class Stamps {
  readonly #options: StampsOptions;
  readonly #seen = new Map<string, Seen>();
  /** Number of questions that were begun. */
  #questions = 0;

  constructor(options: StampsOptions) {
    this.#options = options;
  }

  get facts() {
    const seen = [...this.#seen.values()];
    return {
      stamps: this.#options.registry.stamps.length,
      stampsSilent: seen.filter(({ trouble }) => trouble !== undefined).length,
      taken: seen.reduce((sum, { taken }) => sum + taken.length, 0),
    };
  }

  /** Returns the stamps that still deleted data of the account when they last told. */
  removalsOf(account: string): AccountRemoval[] {
    return [...this.#seen].flatMap(([stamp, { removals }]) =>
      removals.filter((one) => one.account === account).map((one) => ({ ...one, stamp })),
    );
  }

  get views(): StampView[] {
    return this.#options.registry.stamps.map((stamp) => this.#view(stamp));
  }

  /** True if the stamp did not answer the last question. */
  isSilent(name: string): boolean {
    return this.#seen.get(name)?.trouble !== undefined;
  }

  async add(added: Omit<StampRecord, "stampId" | "state">): Promise<Outcome<StampView>> {
    const { registry } = this.#options;
    const wrong = wrongStamp(added);
    if (wrong !== undefined) return refused("invalidArgument", "badRequest", wrong);
    const link = this.#linkTo(added);
    if (!link.ok) return link;
    const stampId = await link.value.stampId();
    if (!stampId.ok) return stampId;
    const recorded = await registry.turn(async () => {
      const record: StampRecord = { ...added, stampId: stampId.value, state: "open" };
      const conflict = conflictOf(record, registry.stamps);
      if (conflict !== undefined) return refused("aborted", "conflict", conflict);
      const held = registry.stamp(record.name);
      const lost = held?.lost === true ? { lost: true } : {};
      return registry.put([{ kind: "stamp", record: { ...record, state: held?.state ?? "open", ...lost } }]);
    });
    if (!recorded.ok) return recorded;
    this.#seen.delete(added.name);
    const record = registry.stamp(added.name) as StampRecord;
    await this.ask(record);
    return ok(this.#view(record));
  }

  async setState(name: string, state: StampState): Promise<Outcome<StampView>> {
    const { registry } = this.#options;
    return registry.turn(async () => {
      const held = registry.stamp(name);
      if (held === undefined) return unknownStamp(name, registry);
      if (held.lost === true && state !== "closed") return stillLost(name);
      const record = { ...held, state };
      const recorded = await registry.put([{ kind: "stamp", record }]);
      return recorded.ok ? ok(this.#view(record)) : recorded;
    });
  }

  /** Asks the stamp for its capacity and, from time to time and when it answers again, for its accounts. Returns these if it was asked for them. */
  async ask(stamp: StampRecord): Promise<readonly AccountAtStamp[] | undefined> {
    const { world, config, announcer } = this.#options;
    await this.#seen.get(stamp.name)?.link.announce(announcer);
    const capacity = await this.onStamp(stamp, (link) => link.capacity());
    const seen = this.#seen.get(stamp.name);
    if (seen === undefined || !capacity.ok) return undefined;
    const nowMs = world.clock.monotonicMs();
    seen.capacity = { ...capacity.value, reportedMs: nowMs };
    const removals = await this.onStamp(stamp, (link) => link.removals());
    if (removals.ok) seen.removals = removals.value;
    if (seen.accountsAskedMs !== undefined && nowMs - seen.accountsAskedMs < config.accountsEveryMs) return undefined;
    const accounts = await this.onStamp(stamp, (link) => link.accounts());
    if (!accounts.ok) return undefined;
    seen.accountsAskedMs = nowMs;
    seen.taken = await this.pin(stamp, accounts.value);
    return accounts.value;
  }

  /**
   * Pins accounts to the stamp that is their primary. Returns the names of those that are pinned to another one and are
   * no copy of it.
   */
  pin(stamp: StampRecord, accounts: readonly AccountAtStamp[]): Promise<string[]> {
    const { registry } = this.#options;
    return registry.turn(async () => {
      const fresh = accounts.filter(({ name, role }) => role.role === "primary" && registry.account(name) === undefined);
      for (let at = 0; at < fresh.length; at += pinnedTogetherMax) {
        const records = fresh.slice(at, at + pinnedTogetherMax).map(({ name, role }) => {
          const { epoch, obeyed, peer, queues } = role;
          const secondary = peer === undefined ? {} : { secondary: peer, ...(queues === true ? { queues } : {}) };
          const record: AccountRecord = { name, primary: stamp.name, ...secondary, epoch, operation: obeyed.operation, seeded: false };
          return { kind: "account", record } as const;
        });
        const pinned = await registry.put(records);
        if (!pinned.ok) break;
      }
      return accounts.flatMap(({ name, role }) => {
        const primary = registry.account(name)?.primary ?? stamp.name;
        return primary !== stamp.name && role.role === "primary" && role.peer === undefined ? [name] : [];
      });
    });
  }

  /** Returns the stamps that a new account gets: its primary, and the one with its copy if a second location is named. */
  place(location: string, second: string): Outcome<[primary: string, copy?: string]> {
    const primary = this.emptiest(location, []);
    if (!primary.ok || second === "") return primary.ok ? ok([primary.value]) : primary;
    const copy = this.emptiestForCopy(second, [primary.value]);
    return copy.ok ? ok([primary.value, copy.value]) : copy;
  }

  /** Returns the feature level that a stamp tells now. */
  levelOf(stamp: StampRecord): Promise<Outcome<number>> {
    return this.onStamp(stamp, async (link) => {
      await link.announce(this.#options.announcer);
      return ok(link.level);
    });
  }

  /** Asks a stamp, unless another one answers at its address. */
  async onStamp<T>(stamp: StampRecord, work: (link: StampLink) => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const question = ++this.#questions;
    const answer = await this.#answerOf(stamp, work);
    const seen = this.#seen.get(stamp.name);
    // A question that was begun before the last one that was judged says nothing about now: it may have waited for its deadline.
    if (seen !== undefined && question > seen.judged) {
      seen.judged = question;
      const trouble = answer.ok || isAnswer(answer.failure) ? undefined : answer.failure.message;
      // Its metadata store may have been put back meanwhile, and the roles of its accounts with it.
      if (seen.trouble !== undefined && trouble === undefined) seen.accountsAskedMs = undefined;
      seen.trouble = trouble;
    }
    return answer;
  }

  async #answerOf<T>(stamp: StampRecord, work: (link: StampLink) => Promise<Outcome<T>>): Promise<Outcome<T>> {
    let seen = this.#seen.get(stamp.name);
    if (seen === undefined) {
      const link = this.#linkTo(stamp);
      if (!link.ok) return link;
      seen = { link: link.value, trouble: undefined, capacity: undefined, taken: [], accountsAskedMs: undefined, removals: [], judged: 0 };
      this.#seen.set(stamp.name, seen);
    }
    const stampId = await seen.link.stampId();
    if (!stampId.ok) return stampId;
    const same = sameStamp(stamp, stampId.value);
    if (!same.ok) return same;
    const understood = seen.link.understood();
    return understood.ok ? work(seen.link) : understood;
  }

  #linkTo(stamp: Pick<StampRecord, "name" | "lockService" | "secret">): Outcome<StampLink> {
    const { world, config, transportTo } = this.#options;
    const transport = transportTo(stamp.secret);
    return transport.ok ? ok(new StampLink({ ...world, transport: transport.value }, stamp, config.stampTimeoutMs)) : transport;
  }

  /** Returns the emptiest stamp of the location that takes accounts. */
  emptiest(location: string, without: readonly string[]): Outcome<string> {
    return placeAccount(this.placed, location, this.#options.world.clock.monotonicMs(), without, this.limits);
  }

  /** Returns the emptiest stamp of the location that takes copies: the location knows front-ends of it. */
  emptiestForCopy(location: string, without: readonly string[]): Outcome<string> {
    const unreached = this.#options.registry.stamps.filter((stamp) => stamp.location === location && !hasDoors(stamp));
    const reached = this.emptiest(location, [...without, ...unreached.map(({ name }) => name)]);
    if (reached.ok || unreached.length === 0) return reached;
    // Says what one of the others lacks, if it would be taken with front-ends.
    const other = this.emptiest(location, without);
    if (!other.ok) return other;
    const unknown = withDoors(other.value, this.#options.registry.stamp(other.value));
    return unknown.ok ? other : unknown;
  }

  get limits(): PlacementLimits {
    return { ...placementLimits, refuseAbove: this.#options.config.refuseAboveUsed };
  }

  /** All stamps, as the placement of accounts needs them. */
  get placed(): PlacedStamp[] {
    return this.#options.registry.stamps.map(({ name, location, state }) => {
      const capacity = this.#seen.get(name)?.capacity;
      return { name, location, state, ...(capacity === undefined ? {} : { capacity: { ...capacity, requestsPerSecond: 0 } }) };
    });
  }

  #view(record: StampRecord): StampView {
    const { registry, world } = this.#options;
    const seen = this.#seen.get(record.name);
    const placed = this.placed.find(({ name }) => name === record.name);
    const closed =
      placed === undefined ? undefined : notPlaceable({ ...placed, state: record.state }, world.clock.monotonicMs(), this.limits);
    return {
      record,
      answers: seen !== undefined && seen.trouble === undefined,
      trouble: seen?.trouble ?? closed ?? "",
      capacity: seen?.capacity,
      accounts: registry.accounts.filter(({ primary }) => primary === record.name).length,
      taken: seen?.taken.slice(0, takenMax) ?? [],
    };
  }
}

const stillLost = (name: string) =>
  refused(
    "failedPrecondition",
    "conflict",
    `stamp ${name} was declared lost, and was not told everything since: it takes no accounts until then`,
  );

/** True if the stamp itself refused the question: it is there, and the one that was added. */
const isAnswer = ({ code, reason }: Failure): boolean => answers.includes(code) && reason !== "wrongStamp";
const answers: readonly string[] = ["alreadyExists", "notFound", "invalidArgument", "failedPrecondition", "aborted"];
