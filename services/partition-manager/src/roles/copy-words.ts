/**
 * Words about the keys and settings of accounts with a copy (docs/design/geo.md "Keys and settings"): at the primary, which ones the copy has
 * confirmed; at the secondary, when the primary was heard last. Kept in memory by the leading partition manager.
 *
 *     row of the primary ──► tag ──► partition server ──► door of the other stamp ──► row of the copy ──► confirmed
 *
 * Invariants:
 * - Settings are in force when no front-end of this stamp acts on older ones, and none of the copy's stamp.
 * - A copy is read from for `copyTermMs` after a word of its primary, or of the location service while the primary answers it neither (rule
 *   `copiesServeWhileHeard`).
 * - A new leader has heard nothing, and learns it again within seconds.
 */
import { equalBytes, toHex, utf8 } from "@stamp/base";
import { type AccountRole, copyTermMs, settingsTermMs, ships } from "@stamp/geo";
import type { World } from "@stamp/ports";
import type { Account } from "@stamp/wire";

/** Settings of an account at its primary. Times are of the monotonic clock, in milliseconds. */
interface AtPrimary {
  /** Copy that confirms the settings, by role epoch, operation that began it, and stamp. */
  readonly copy: string;
  readonly tag: Uint8Array;
  /** Time at which this manager first saw the settings, in milliseconds. */
  readonly seenMs: number;
  /** Times of the copy's first and last confirmation; undefined: it has not confirmed. */
  readonly confirmed: { readonly firstMs: number; readonly lastMs: number } | undefined;
}

interface AtSecondary {
  readonly epoch: number;
  readonly heardMs: number;
  /** Time at which the primary itself last told its settings; undefined: never. */
  readonly saidMs: number | undefined;
}

export interface InForce {
  readonly inForce: boolean;
  readonly waitMs: number;
  /** Place where the settings are not in force, with advice; empty: they are, or will be after `waitMs`. */
  readonly where: string;
}

const accountsMax = 10_000;
/** Time after its last word for which a primary counts as speaking, in milliseconds: it says one every 2 s, and calls end within 10 s. */
const speaksMs = 15_000;

export class CopyWords {
  readonly #world: World;
  readonly #primary = new Map<string, AtPrimary>();
  readonly #secondary = new Map<string, AtSecondary>();

  constructor(world: World) {
    this.#world = world;
  }

  get #nowMs(): number {
    return this.#world.clock.monotonicMs();
  }

  /** Returns the SHA-256 over the settings that a copy shares with its primary. */
  tagOf({ keys, delegationSecret, serviceProperties, configuredDigest, encryptionScopes }: Account): Uint8Array {
    const scopes = encryptionScopes.map(({ name, key, disabled }) => [name, toHex(key), disabled]);
    const { blob, queue, table } = serviceProperties;
    const shared = [keys, toHex(delegationSecret), blob, queue, table, toHex(configuredDigest), scopes];
    return this.#world.digest.sha256(utf8(JSON.stringify(shared)));
  }

  /** Notes the settings that an account has at its primary; `confirmed`: tag that its copy has just confirmed. */
  seen(name: string, tag: Uint8Array, { epoch, paired, peer }: AccountRole, confirmed?: Uint8Array): AtPrimary {
    const nowMs = this.#nowMs;
    const copy = `${epoch} ${paired} ${peer}`;
    const known = this.#primary.get(name);
    const held = known !== undefined && equalBytes(known.tag, tag) ? known : { copy, tag, seenMs: nowMs, confirmed: undefined };
    const same = held.copy === copy ? held : { ...held, copy, confirmed: undefined };
    const isConfirmed = confirmed !== undefined && equalBytes(confirmed, tag);
    const next = isConfirmed ? { ...same, confirmed: { firstMs: same.confirmed?.firstMs ?? nowMs, lastMs: nowMs } } : same;
    remember(this.#primary, name, next);
    return next;
  }

  /** Returns the time since the copy confirmed the settings that the account was last seen with, in milliseconds; undefined: it has not. */
  confirmedMsAgo(name: string): number | undefined {
    const confirmed = this.#primary.get(name)?.confirmed;
    return confirmed && Math.max(0, Math.round(this.#nowMs - confirmed.lastMs));
  }

  /** Returns if the settings of an account at its primary are in force everywhere. */
  inForce(name: string, tag: Uint8Array, role: AccountRole): InForce {
    const { seenMs, confirmed } = this.seen(name, tag, role);
    const termMs = settingsTermMs(role);
    const waitOf = (sinceMs: number): number => Math.max(0, Math.ceil(sinceMs + termMs - this.#nowMs));
    if (!ships(role)) return { inForce: waitOf(seenMs) === 0, waitMs: waitOf(seenMs), where: "" };
    if (confirmed === undefined) return { inForce: false, waitMs: waitOf(seenMs), where: unconfirmed(role) };
    const waitMs = Math.max(waitOf(seenMs), waitOf(confirmed.firstMs));
    return { inForce: waitMs === 0, waitMs, where: "" };
  }

  /** Notes that the primary told its settings, and that the copy's row has them. */
  said(name: string, epoch: number): void {
    const nowMs = this.#nowMs;
    remember(this.#secondary, name, { epoch, heardMs: nowMs, saidMs: nowMs });
  }

  /** Notes that the primary was heard or vouched for, or that the location service brought its settings. */
  heard(name: string, epoch: number): void {
    remember(this.#secondary, name, { epoch, heardMs: this.#nowMs, saidMs: this.#saidMs(name, epoch) });
  }

  /** True if the primary itself speaks: settings that come another way may be older, and are left out. */
  hearsPrimary(name: string, epoch: number): boolean {
    const saidMs = this.#saidMs(name, epoch);
    return saidMs !== undefined && this.#nowMs - saidMs < speaksMs;
  }

  #saidMs(name: string, epoch: number): number | undefined {
    const held = this.#secondary.get(name);
    return held?.epoch === epoch ? held.saidMs : undefined;
  }

  /** Returns the time for which the copy under a role epoch may be read from, in milliseconds; 0: not at all. */
  servesForMs(name: string, epoch: number): number {
    if (!this.#world.rules.on("copiesServeWhileHeard")) return copyTermMs;
    const held = this.#secondary.get(name);
    return held?.epoch === epoch ? Math.max(0, Math.floor(held.heardMs + copyTermMs - this.#nowMs)) : 0;
  }
}

const unconfirmed = ({ peer = "the other stamp" }: AccountRole): string =>
  `stamp ${peer} has not confirmed them. It refuses reads ${copyTermMs / 1_000} s after it last heard of this stamp, unless the location service ` +
  "cannot reach this stamp either: look at ./stamp geo status, and at the link to that stamp";

function remember<T>(map: Map<string, T>, name: string, value: T): void {
  map.delete(name);
  map.set(name, value);
  const oldest = map.keys().next().value;
  if (map.size > accountsMax && oldest !== undefined) map.delete(oldest);
}
