/**
 * Role of an account at this stamp, changed by the location service's commands (docs/design/geo.md "Operations"). The
 * decision is `planObey` of @stamp/geo; here its row is read, written and answered.
 *
 * Invariants:
 * - A row is written only if it is still the one that the decision was made by.
 * - A command is answered after its row is durable, and after front-ends have ceased to act on the row before (rule
 *   `geoCachedRolesEnd`). A process that did not write the row itself counts from its first look at it.
 */
import { create } from "@bufbuild/protobuf";
import { emptyBytes, equalBytes, type Failed, levelAllows, neededLevels, type Outcome, ok, refused } from "@stamp/base";
import {
  type AccountRole,
  answersFromMs,
  type CommandOrder,
  commandWaitMs,
  encodeRole,
  type GeoPoint,
  planObey,
  type RoleCommand,
  reportComplete,
  roleOf,
  seedingEnded,
} from "@stamp/geo";
import type { World } from "@stamp/ports";
import { type Account, AccountSchema } from "@stamp/wire";
import { CopiesHere, type CopyFacts, type ToldCopy } from "./copies-here.ts";
import { CopyWords } from "./copy-words.ts";
import {
  attemptsMax,
  change,
  type Execute,
  heldOf,
  mayHaveCopy,
  type NextRole,
  putSettings,
  type RoleRowRead,
  sameSettings,
  unknownAccount,
  writeRoleRow,
} from "./role-rows.ts";
import { type NamedRole, type ReadRoles, RolesHere } from "./roles-here.ts";
import { levelUnheard, locationMayCarry } from "./settings-gate.ts";

/** Parts of the stamp that commands need. */
export interface StampOfRoles {
  /** Feature level of the stamp; undefined: not heard yet. */
  readonly level: () => number | undefined;
  /** Ends what is shipped to this stamp's copy of an account under its role. Answers with the point where the copy ends. */
  readonly copied: (account: string, role: AccountRole) => Promise<Outcome<GeoPoint>>;
  /** The account comes back to this stamp: no range deletes what an earlier removal would. */
  readonly endRemoval: (account: string, obeyed: CommandOrder) => Promise<Outcome<void>>;
  /** Names of the first queues that the stamp has of an account. */
  readonly queues: (account: string) => Promise<Outcome<readonly string[]>>;
  /** Lineage of the stamp's metadata store. */
  readonly lineage?: () => number;
}

export interface ObeyedCommand {
  readonly role: AccountRole;
  /** Time until the command counts as answered, in milliseconds. */
  readonly waitMs: number;
}

const belowLevel = refused(
  "failedPrecondition",
  "newerFormat",
  "an older release could not read the account's row with its role: raise the feature level of the stamp first (./stamp upgrade finalize)",
);

const queuesBelowLevel = refused(
  "failedPrecondition",
  "newerFormat",
  `copies of queues need feature level ${neededLevels.queueCopies}: an older release would leave them out (./stamp upgrade finalize)`,
);

const ownQueues = (account: string, queues: readonly string[]): string =>
  `this stamp has queues of account ${account} from an earlier time (${queues.join(", ")}), which a copy would replace`;

const deletesQueues = (account: string, queues: readonly string[]): string =>
  `this stamp still deletes queues of account ${account} that were a copy, or were given up (${queues.join(", ")}): ` +
  `a copy without queues begins when they are gone. It goes on by itself; to take it back: ./stamp geo give-up ${account}`;

const restoredSince = (account: string) =>
  refused(
    "failedPrecondition",
    "staleLineage",
    `the metadata store of this stamp was put back since account ${account} was copied here: its primary seeds the copy again, and the promotion follows`,
  );

/** Commands whose rows are remembered as written by this process; of a forgotten one the wait begins anew. */
const writtenMax = 10_000;

export class RoleCommands {
  readonly #world: World;
  readonly #stamp: StampOfRoles;
  readonly #here: RolesHere;
  readonly #copies = new CopiesHere();
  readonly words: CopyWords;
  /** When the row of a command became durable, or was first seen: by account, operation and phase. */
  readonly #written = new Map<string, number>();

  constructor(world: World, stamp: StampOfRoles) {
    this.#here = new RolesHere(world.clock);
    this.words = new CopyWords(world);
    this.#world = world;
    this.#stamp = stamp;
  }

  async obey(name: string, command: RoleCommand, settings: Account | undefined, execute: Execute): Promise<Outcome<ObeyedCommand>> {
    const { rules, clock } = this.#world;
    const mayCarry = this.#mayCarry(name, command, settings);
    if (!mayCarry.ok) return mayCarry;
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const held = await heldOf(name, execute);
      if (!held.ok) return held;
      // Acknowledgements are not looked at: the report begins where the promotion found the copy.
      const planned = planObey(held.value.role, command, { copied: [], acknowledged: [] }, rules);
      if (!planned.ok) return planned;
      const { changed } = planned.value;
      const mayBegin = changed ? await this.#mayBegin(name, command, held.value) : ok();
      if (!mayBegin.ok) return mayBegin;
      const isPromoted = changed && command.kind === "promote" && held.value.role !== undefined;
      const isStale = isPromoted && (command.copyLineage ?? this.lineage) !== this.lineage && rules.on("logsHaveLineages");
      if (isStale) return restoredSince(name);
      const promoted = isPromoted ? this.#promotedWith(name, command, settings, held.value) : ok(settings);
      if (!promoted.ok) return promoted;
      const copied = isPromoted ? await this.#stamp.copied(name, held.value.role) : ok([]);
      if (!copied.ok) return copied;
      const obeyed = isPromoted ? planObey(held.value.role, command, { copied: copied.value, acknowledged: [] }, rules) : planned;
      if (!obeyed.ok) return obeyed;
      const { row } = obeyed.value;
      const comesBack = changed && held.value.role?.role === "removed" && row.role !== "removed";
      const isFree = comesBack ? await this.#stamp.endRemoval(name, row.obeyed) : ok();
      if (!isFree.ok) return isFree;
      const given = this.#given(command, promoted.value);
      const written = changed ? await writeRoleRow(name, held.value, row, given, execute) : ok(true);
      if (!written.ok) return written;
      if (!written.value) continue;
      this.#here.told(name, encodeRole(row));
      const fromMs = answersFromMs(this.#writtenMs(name, row, changed), commandWaitMs(command), rules);
      return ok({ role: row, waitMs: Math.max(0, Math.ceil(fromMs - clock.monotonicMs())) });
    }
    return refused("aborted", "conflict", `the role of account ${name} is changed by others again and again`);
  }

  /** Refuses settings that come with a command from the level on at which primaries push them; below it, a copy that would begin without them. */
  #mayCarry(name: string, { kind }: RoleCommand, settings: Account | undefined): Outcome<void> {
    if (settings !== undefined) return this.#locationMayCarry();
    if (kind !== "follow" || this.#allows(neededLevels.pushedSettings)) return ok();
    if (this.#stamp.level() === undefined) return levelUnheard;
    return refused(
      "invalidArgument",
      "badRequest",
      `below feature level ${neededLevels.pushedSettings} a copy of account ${name} needs its keys`,
    );
  }

  /**
   * Returns the settings that are written with a promotion: those that came with it, or those of the copy if the drained primary has the same.
   * Writing them leaves no time for others between the comparison and the promotion.
   */
  #promotedWith(name: string, command: RoleCommand, settings: Account | undefined, { account }: RoleRowRead): Outcome<Account | undefined> {
    const tag = command.kind === "promote" ? command.settingsTag : undefined;
    if (settings !== undefined || tag === undefined || account === undefined) return ok(settings);
    if (!this.#world.rules.on("geoPromotedAsCompared")) return ok(undefined);
    return equalBytes(tag, this.words.tagOf(account)) ? ok(account) : notOfPrimary(name);
  }

  /**
   * Returns the settings that are written with a role; undefined: those of the row stay. A copy gets the settings of its primary, and keeps none of an
   * earlier life of the account here. A stamp that gives the account up keeps no keys of it.
   */
  #given({ kind }: RoleCommand, settings: Account | undefined): Account | undefined {
    if (kind === "follow") return settings ?? create(AccountSchema);
    return kind === "remove" && this.#world.rules.on("geoRemovedKeepNoKeys") ? create(AccountSchema) : settings;
  }

  #locationMayCarry(): Outcome<void> {
    return locationMayCarry(this.#world.rules, this.#stamp.level());
  }

  #allows(needed: number): boolean {
    return levelAllows(this.#world.rules, this.#stamp.level() ?? 0, needed);
  }

  /**
   * Refuses what the stamp's feature level does not allow, a copy of an account with directories, a copy of queues that would replace queues of the stamp's own, and a copy without
   * queues beside those that the stamp still deletes: the end of that removal would leave them there, to be served as the account's own.
   */
  async #mayBegin(name: string, command: RoleCommand, { account, role }: RoleRowRead): Promise<Outcome<void>> {
    const { queues } = this.#stamp;
    if (!this.#allows(neededLevels.accountRoles)) return belowLevel;
    const mayPair = command.kind === "pair" && account !== undefined ? mayHaveCopy(name, account) : ok();
    if (!mayPair.ok) return mayPair;
    const comesBack = command.kind === "follow" || command.kind === "create";
    if (comesBack && role?.dropsQueues === true && !("queues" in command && command.queues === true)) {
      const left = await queues(name);
      if (!left.ok || left.value.length === 0) return left.ok ? ok() : left;
      return refused("unavailable", "notReady", deletesQueues(name, left.value));
    }
    if ((command.kind !== "follow" && command.kind !== "pair") || command.queues !== true) return ok();
    if (!this.#allows(neededLevels.queueCopies)) return queuesBelowLevel;
    if (command.kind === "pair" || role?.dropsQueues === true) return ok();
    const own = await queues(name);
    if (!own.ok || own.value.length === 0) return own.ok ? ok() : own;
    return refused("failedPrecondition", "conflict", ownQueues(name, own.value));
  }

  /** Returns the role of the account; refused if the stamp never had it. */
  async roleOf(name: string, execute: Execute): Promise<Outcome<string>> {
    const held = await heldOf(name, execute);
    if (!held.ok) return held;
    return held.value.account === undefined ? unknownAccount(name) : ok(held.value.account.geoRole);
  }

  /** Returns the accounts that have a second stamp, or are no primary here. `term`: the caller's, as an object. */
  list(term: unknown, read: ReadRoles): Promise<Outcome<readonly NamedRole[]>> {
    return this.#here.list(term, read);
  }

  /** Lineage of this stamp's metadata store; 0: it was never restored. */
  get lineage(): number {
    return this.#stamp.lineage?.() ?? 0;
  }

  /**
   * Notes what the primary says about the copy here. Of a complete copy, unseeded becomes secondary when it has keys. A copy that was seeded before
   * this stamp's metadata store was put back is not complete, whatever its primary says. Nor is one under a lineage that this stamp never had: under
   * a far one no restore would be noticed any more.
   */
  async noteCopy(name: string, told: ToldCopy, execute: Execute): Promise<Outcome<AccountRole>> {
    const { lineage } = this;
    const { copyLineage = lineage, ...copy } = told;
    // A primary of an older release says nothing about settings: the location service copies them, and only below the level.
    const countsAsHeard = told.copyLineage === undefined && this.#locationMayCarry().ok;
    const isHere = copyLineage === lineage || !this.#world.rules.on("logsHaveLineages");
    const facts = isHere ? copy : { ...copy, complete: false, lastSyncMs: undefined };
    const { epoch, complete } = facts;
    const paired = facts.paired === 0 ? undefined : facts.paired;
    const isOf = (role: AccountRole): boolean =>
      (role.role === "secondary" || role.role === "unseeded") && role.epoch === epoch && role.paired === paired;
    const noted = await this.#changed(
      name,
      (role, { keys }) =>
        complete && isOf(role) && (keys.length > 0 || !this.#world.rules.on("geoCopiesHaveKeys"))
          ? seedingEnded(role, { epoch, ...(paired !== undefined && { paired }) }, this.#world.rules)
          : role,
      execute,
    );
    if (!noted.ok) return noted;
    if (!isOf(noted.value)) {
      const { role } = noted.value;
      return refused("failedPrecondition", "staleRoleEpoch", `a report about a copy of account ${name} that is ${role} here by now`);
    }
    if (countsAsHeard) this.words.heard(name, epoch);
    this.#copies.told(name, facts, { stampLineage: lineage, nowMs: this.#world.clock.wallMs() });
    return noted;
  }

  /**
   * Returns the time since no front-end acts on the row before that of a drained account, in milliseconds; undefined if the account is not
   * drained. A process that did not write the row counts from its first look at it, and gives 0 until then.
   */
  drainedMsAgo(name: string, role: AccountRole): number | undefined {
    if (role.role !== "drained") return undefined;
    const { rules, clock } = this.#world;
    const fromMs = answersFromMs(this.#writtenMs(name, role, false), commandWaitMs({ kind: "drain" }), rules);
    return Math.max(0, Math.floor(clock.monotonicMs() - fromMs));
  }

  /** Returns the last report of the primary about the copy here; refused if there was none. */
  copyOf(name: string): Outcome<CopyFacts> {
    const facts = this.#copies.get(name, { stampLineage: this.lineage, nowMs: this.#world.clock.wallMs() });
    return facts === undefined ? refused("notFound", "notReady", `nothing was told about a copy of account ${name}`) : ok(facts);
  }

  /** Returns the role of the account; one that was never given a role is at its primary. */
  async decodedRole(name: string, execute: Execute): Promise<Outcome<AccountRole>> {
    const text = await this.roleOf(name, execute);
    return text.ok ? roleOf(text.value) : text;
  }

  /** Ends the report of the primary that `epoch` deposed: it is durable. */
  endReport(name: string, epoch: number, execute: Execute): Promise<Outcome<AccountRole>> {
    return this.#changed(name, (role) => (role.epoch === epoch ? reportComplete(role) : role), execute);
  }

  async #changed(name: string, next: NextRole, execute: Execute): Promise<Outcome<AccountRole>> {
    const role = await change(name, next, execute);
    if (role.ok) this.#here.told(name, encodeRole(role.value));
    return role;
  }

  /** Replaces keys and settings of a copy that follows `epoch`, by a location service of the release before. */
  async copySettings(name: string, epoch: number, settings: Account, execute: Execute): Promise<Outcome<string>> {
    const mayCarry = this.#locationMayCarry();
    if (!mayCarry.ok) return mayCarry;
    if (this.words.hearsPrimary(name, epoch)) return this.#follows(name, epoch, execute);
    const copied = await this.#copySettings(name, epoch, settings, execute);
    if (copied.ok) this.words.heard(name, epoch);
    return copied;
  }

  /**
   * Takes a word of the primary about the settings of the copy here. Answers with the tag of the copy's settings if it has others. A word with
   * settings may be late: it replaces only what the copy had when it was asked for them (rule `geoKeysReplaceKnown`;
   * docs/design/model/geo-keys.pml).
   */
  async confirm(name: string, word: SettingsWord, execute: Execute): Promise<Outcome<Uint8Array | undefined>> {
    const { epoch, tag, settings } = word;
    const held = await heldOf(name, execute);
    if (!held.ok) return held;
    const { role, account } = held.value;
    const isOther = word.paired !== role?.paired && this.#world.rules.on("geoKeysReplaceKnown");
    if (account === undefined || !followsUnder(role, epoch) || isOther) return notFollowed(name, epoch, role);
    const has = this.words.tagOf(account);
    if (!equalBytes(tag, has)) {
      const isLate = !equalBytes(word.replaces, has) && this.#world.rules.on("geoKeysReplaceKnown");
      if (settings === undefined || isLate) return ok(has);
      if (!equalBytes(tag, this.words.tagOf(settings))) return refused("invalidArgument", "badRequest", "settings with the tag of others");
      const expected = this.#world.rules.on("geoKeysReplaceKnown") ? account : undefined;
      const copied = await putSettings(account, settings, expected, execute);
      if (!copied.ok) return copied;
    }
    this.words.said(name, epoch);
    return ok(undefined);
  }

  /** Takes a word of the location service: the primary has the settings of `tag`; without a tag, it answers that one neither. */
  async vouch(name: string, epoch: number, tag: Uint8Array, execute: Execute): Promise<Outcome<string>> {
    const follows = await this.#follows(name, epoch, execute, tag);
    if (follows.ok) this.words.heard(name, epoch);
    return follows;
  }

  /** Refuses if this stamp follows another role epoch of the account, or none, or has other settings than those of `tag`. Returns its role as text. */
  async #follows(name: string, epoch: number, execute: Execute, tag: Uint8Array = emptyBytes): Promise<Outcome<string>> {
    const held = await heldOf(name, execute);
    if (!held.ok) return held;
    const { role, account } = held.value;
    if (account === undefined || !followsUnder(role, epoch)) return notFollowed(name, epoch, role);
    return tag.length === 0 || equalBytes(tag, this.words.tagOf(account)) ? ok(account.geoRole) : otherSettings(name);
  }

  async #copySettings(name: string, epoch: number, settings: Account, execute: Execute): Promise<Outcome<string>> {
    const held = await heldOf(name, execute);
    if (!held.ok) return held;
    const { role, account } = held.value;
    if (account === undefined || !followsUnder(role, epoch)) return notFollowed(name, epoch, role);
    return sameSettings(account, settings) ? ok(account.geoRole) : putSettings(account, settings, undefined, execute);
  }

  #writtenMs(name: string, { obeyed }: AccountRole, changed: boolean): number {
    const key = `${name} ${obeyed.operation} ${obeyed.phase}`;
    const known = changed ? undefined : this.#written.get(key);
    if (known !== undefined) return known;
    const nowMs = this.#world.clock.monotonicMs();
    this.#written.delete(key);
    this.#written.set(key, nowMs);
    const oldest = this.#written.keys().next().value;
    if (this.#written.size > writtenMax && oldest !== undefined) this.#written.delete(oldest);
    return nowMs;
  }
}

/** Word of a primary about keys and settings. */
export interface SettingsWord {
  readonly epoch: number;
  /** Number of the operation that began the copy; undefined: the rows of both stamps are of a release that did not know it. */
  readonly paired: number | undefined;
  readonly tag: Uint8Array;
  /** Settings of the account; undefined: the copy is asked whether it has those with the tag. */
  readonly settings?: Account | undefined;
  /** Tag of the settings that are replaced. */
  readonly replaces: Uint8Array;
}

const followsUnder = (role: AccountRole | undefined, epoch: number): boolean =>
  (role?.role === "secondary" || role?.role === "unseeded") && role.epoch === epoch;

function notFollowed(name: string, epoch: number, role: AccountRole | undefined): Failed {
  const is = role === undefined ? "has nothing of it" : `is ${role.role} of it under role epoch ${role.epoch}`;
  return refused("failedPrecondition", "staleRoleEpoch", `settings of account ${name} under role epoch ${epoch}: this stamp ${is}`);
}

const otherSettings = (name: string): Failed =>
  refused("failedPrecondition", "conflict", `the copy of account ${name} has other settings than its primary: that pushes them to it`);

const notOfPrimary = (name: string): Failed =>
  refused(
    "unavailable",
    "notReady",
    `account ${name} is not promoted here: this stamp has other keys and settings than the drained primary, which gives them again. ` +
      "If it goes on, a front-end of this stamp says what is not so: compare at both stamps: ./stamp account show ACCOUNT",
  );
