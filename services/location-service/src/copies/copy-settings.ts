/**
 * How keys and settings of an account come to its copy (docs/design/geo.md "Keys and settings"), as the location service takes part in it. The
 * feature levels of both stamps decide, as they say now:
 *
 *     both below `pushedSettings`   this service carries them, as the release before does
 *     both at it or above           the primary pushes them; this service compares a hash of them, and sees none
 *     one of them below             no copy begins, and no primary is drained: the lower stamp is to be finalized
 *
 * Invariants:
 * - From the level on no stamp is asked for keys, and none is given any. A stamp refuses both, too.
 * - A drained primary is not followed by a promotion before its copy has the settings that the primary has, as both partition managers say (rule
 *   `geoSettingsBeforePromotion`). What the primary has heard about its copy came through front-ends.
 */
import { neededLevels, type Outcome, ok, type Rules, refused } from "@stamp/base";
import type { AccountRecord, GeoAccount, RoleCommand, StampRecord } from "@stamp/geo";
import type { Account, SettingsInForce } from "@stamp/wire";
import { type Registry, unknownStamp } from "../registry.ts";
import type { StampLink } from "../stamp-link.ts";

export interface CopySettingsOptions {
  readonly rules: Rules;
  readonly registry: Registry;
  /** Asks a stamp, unless another one answers at its address. */
  readonly onStamp: <T>(stamp: StampRecord, work: (link: StampLink) => Promise<Outcome<T>>) => Promise<Outcome<T>>;
  /** Returns the feature level that the stamp tells now; 0: it tells none. */
  readonly levelOf: (stamp: StampRecord) => Promise<Outcome<number>>;
  /** Runs a question of a round when few enough are under way at the stamp. */
  readonly inTurn: <T>(stamp: string, work: () => Promise<Outcome<T>>) => Promise<Outcome<T>>;
}

/** "carried": by this service. "pushed": by the primary. Otherwise why neither is possible, for people. */
type Way = "carried" | "pushed" | { readonly mixed: string };

export class CopySettings {
  readonly #options: CopySettingsOptions;

  constructor(options: CopySettingsOptions) {
    this.#options = options;
  }

  /** Returns the settings that go with a command to `stamp`; undefined: none. Refuses a copy that could not get them. */
  async withCommand(account: AccountRecord, stamp: string, { kind }: RoleCommand): Promise<Outcome<Account | undefined>> {
    const { running, name, primary } = account;
    if (kind === "follow") {
      const way = await this.#way(primary, stamp);
      if (!way.ok) return way;
      if (typeof way.value === "object") return refused("failedPrecondition", "newerFormat", way.value.mixed);
      return way.value === "pushed" ? ok(undefined) : this.#read(name, primary);
    }
    // A primary that was deposed by force is not asked for settings.
    if (kind !== "promote" || running === undefined || running.kind === "forced") return ok(undefined);
    const way = await this.#way(running.source, stamp);
    const settings = way.ok && way.value === "carried" ? await this.#read(name, running.source) : undefined;
    // They came to the copy when the primary was drained.
    return ok(settings?.ok === true ? settings.value : undefined);
  }

  /** Gives the copy the settings of its primary, or vouches for those that it has if they are the same, if no operation is under way. */
  async keep(account: AccountRecord, secondary: string): Promise<void> {
    const { inTurn, registry } = this.#options;
    const { name, primary, epoch } = account;
    const way = await this.#wayHeard(primary, secondary);
    // An operation that was begun meanwhile may have changed what was read before.
    const isSame = (): boolean => {
      const held = registry.account(name);
      return held?.running === undefined && held?.operation === account.operation && held.secondary === secondary;
    };
    if (way === "carried") {
      const settings = await inTurn(primary, () => this.#read(name, primary));
      if (!settings.ok) return;
      await inTurn(secondary, async () =>
        isSame() ? this.#at(secondary, (link) => link.copySettings(name, epoch, settings.value)) : ok(),
      );
    } else if (way !== undefined) {
      const told = await inTurn(primary, () => this.#inForce(name, primary));
      if (!told.ok || told.value.tag.length === 0) return;
      await inTurn(secondary, async () =>
        isSame() ? this.#at(secondary, (link) => link.vouchForCopy(name, epoch, told.value.tag)) : ok(),
      );
    }
  }

  /** Returns the SHA-256 of the account's settings at its primary; undefined: not told. */
  async tagAt(primary: string, name: string): Promise<Uint8Array | undefined> {
    const told = await this.#inForce(name, primary);
    return told.ok && told.value.tag.length > 0 ? told.value.tag : undefined;
  }

  /**
   * Ends without failure when the copy at `target` has the settings that the drained primary has. Returns their SHA-256; undefined: this service
   * gave them itself.
   */
  async shipped({ name, primary, epoch }: AccountRecord, target: string): Promise<Outcome<Uint8Array | undefined>> {
    const way = await this.#way(primary, target);
    if (!way.ok) return way;
    if (way.value !== "carried") {
      if (!this.#options.rules.on("geoSettingsBeforePromotion")) return ok(undefined);
      const told = await this.#inForce(name, primary);
      if (!told.ok) return told;
      if (told.value.where !== "") return refused("unavailable", "notReady", notConfirmed(told.value));
      const { tag } = told.value;
      const same = await this.#at(target, (link) => link.vouchForCopy(name, epoch, tag));
      return same.ok ? ok(tag.length > 0 ? tag : undefined) : same;
    }
    const settings = await this.#read(name, primary);
    const given = settings.ok ? await this.#at(target, (link) => link.copySettings(name, epoch, settings.value)) : settings;
    return given.ok ? ok(undefined) : given;
  }

  /** Returns why the primary should not be drained now; empty: it may be. */
  async lateOf({ name, primary, secondary, running }: GeoAccount): Promise<Outcome<string>> {
    const target = running?.target ?? secondary;
    if (target === undefined) return ok("");
    const way = await this.#way(primary, target);
    if (!way.ok) return way;
    if (typeof way.value === "object") return ok(way.value.mixed);
    if (way.value === "carried") return ok("");
    const told = await this.#inForce(name, primary);
    if (!told.ok) return told;
    return ok(told.value.where === "" ? "" : notConfirmed(told.value));
  }

  /** Refuses a planned failover that would wait for settings that do not come. What else is wrong with it is told when it is planned. */
  async mayDrain(name: string): Promise<Outcome<void>> {
    const account = this.#options.registry.account(name);
    if (account?.secondary === undefined || account.running !== undefined || !account.seeded) return ok();
    const late = await this.lateOf(account);
    // A failover that waits for a silent stamp is given up by itself.
    if (!late.ok || late.value === "") return ok();
    return refused("failedPrecondition", "notReady", `planned failover of account ${name}: ${late.value}`);
  }

  /** Returns how settings come from one stamp to another, by what both say now. */
  async #way(from: string, to: string): Promise<Outcome<Way>> {
    const { registry, levelOf } = this.#options;
    const levels: number[] = [];
    for (const name of [from, to]) {
      const stamp = registry.stamp(name);
      const level = stamp === undefined ? unknownStamp(name, registry) : await levelOf(stamp);
      if (!level.ok) return level;
      if (level.value === 0)
        return refused("unavailable", "notReady", `stamp ${name} does not say its feature level: its stream manager is asked again`);
      levels.push(level.value);
    }
    return ok(wayOf([from, to], levels));
  }

  /** Returns the way between the stamps by what both said last; undefined: one of them has said nothing. */
  async #wayHeard(from: string, to: string): Promise<Way | undefined> {
    const levels: number[] = [];
    for (const name of [from, to]) {
      const level = await this.#at(name, async (link) => ok(link.level));
      if (!level.ok || level.value === 0) return undefined;
      levels.push(level.value);
    }
    return wayOf([from, to], levels);
  }

  #read(name: string, stamp: string): Promise<Outcome<Account>> {
    return this.#at(stamp, (link) => link.accountForCopy(name));
  }

  #inForce(name: string, stamp: string): Promise<Outcome<SettingsInForce>> {
    return this.#at(stamp, (link) => link.settingsInForce(name));
  }

  async #at<T>(name: string, work: (link: StampLink) => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const { registry, onStamp } = this.#options;
    const stamp = registry.stamp(name);
    return stamp === undefined ? unknownStamp(name, registry) : onStamp(stamp, work);
  }
}

const notConfirmed = ({ where }: SettingsInForce): string => `keys and settings of the account are not at the copy: ${where}`;

function wayOf(names: readonly string[], levels: readonly number[]): Way {
  const needed = neededLevels.pushedSettings;
  const lower = levels.findIndex((level) => level < needed);
  if (lower < 0) return "pushed";
  if (levels.every((level) => level < needed)) return "carried";
  const mixed = `stamp ${names[lower]} has feature level ${levels[lower]}, and stamp ${names[1 - lower]} has level ${levels[1 - lower]}`;
  return {
    mixed: `${mixed}: keys go from stamp to stamp when both have level ${needed}. At stamp ${names[lower]}: ./stamp upgrade finalize`,
  };
}
