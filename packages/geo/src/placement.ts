/**
 * Chooses the stamp for a new account, and the accounts that should move (article 004: each stamp near 70% of its
 * capacity, never above 80%). A stamp whose capacity is unknown or old takes nothing.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";

/** State of a stamp. `open` takes new accounts, `closed` does not, `draining` also gives its accounts away. */
export type StampState = "open" | "closed" | "draining";

export interface StampCapacity {
  readonly usedBytes: number;
  readonly totalBytes: number;
  readonly requestsPerSecond: number;
  /** Monotonic time at the location service when the report arrived, in milliseconds. */
  readonly reportedMs: number;
}

export interface PlacedStamp {
  readonly name: string;
  readonly location: string;
  readonly state: StampState;
  /** Capacity of the stamp; undefined before its first report. */
  readonly capacity?: StampCapacity;
}

export interface PlacementLimits {
  /** Used fraction of a stamp's bytes above which moves of accounts are proposed. */
  readonly proposeAbove: number;
  /** Used fraction of a stamp's bytes from which on it takes no new account. */
  readonly refuseAbove: number;
  /** A report that is older says nothing, in milliseconds. */
  readonly reportMaxAgeMs: number;
}

/** A stamp reports every 10 s: three reports may be lost. */
export const placementLimits: PlacementLimits = { proposeAbove: 0.7, refuseAbove: 0.8, reportMaxAgeMs: 40_000 };

/** Returns why a stamp takes no new account; undefined: it takes one. */
export function notPlaceable(stamp: PlacedStamp, nowMs: number, limits: PlacementLimits = placementLimits): string | undefined {
  if (stamp.state !== "open") return `it is ${stamp.state}`;
  const { capacity } = stamp;
  if (capacity === undefined) return "it has not reported its capacity yet";
  const ageMs = nowMs - capacity.reportedMs;
  if (ageMs > limits.reportMaxAgeMs) return `its last report is ${Math.floor(ageMs / 1_000)} s old`;
  if (capacity.totalBytes <= 0) return "it reports no capacity";
  const used = usedFraction(capacity);
  if (used >= limits.refuseAbove) return `${percent(used)} of its bytes are used, ${percent(limits.refuseAbove)} is the limit`;
  return undefined;
}

const usedFraction = ({ usedBytes, totalBytes }: StampCapacity): number => usedBytes / totalBytes;
const percent = (fraction: number): string => `${(100 * fraction).toFixed(1)}%`;

/** True if accounts should leave the stamp: it drains, or is too full. False if its capacity is not known. */
export function givesAway({ state, capacity }: PlacedStamp, nowMs: number, limits: PlacementLimits = placementLimits): boolean {
  if (capacity === undefined || nowMs - capacity.reportedMs > limits.reportMaxAgeMs) return false;
  return state === "draining" || usedFraction(capacity) > limits.proposeAbove;
}

/** Takes the emptiest stamp of the location. `without`: stamps that are no choice, such as the account's other one. */
export function placeAccount(
  stamps: readonly PlacedStamp[],
  location: string,
  nowMs: number,
  without: readonly string[] = [],
  limits: PlacementLimits = placementLimits,
): Outcome<string> {
  const here = stamps.filter((stamp) => stamp.location === location && !without.includes(stamp.name));
  if (here.length === 0) {
    const known = [...new Set(stamps.map((stamp) => stamp.location))].sort().join(", ") || "none";
    return refused("notFound", "noPlacement", `location ${location} has no stamp that is a choice; locations are: ${known}`);
  }
  let best: { readonly name: string; readonly used: number } | undefined;
  for (const stamp of here) {
    if (stamp.capacity === undefined || notPlaceable(stamp, nowMs, limits) !== undefined) continue;
    const used = usedFraction(stamp.capacity);
    if (best === undefined || used < best.used || (used === best.used && stamp.name < best.name)) best = { name: stamp.name, used };
  }
  if (best !== undefined) return ok(best.name);
  const why = here.map((stamp) => `${stamp.name}: ${notPlaceable(stamp, nowMs, limits)}`).join("; ");
  return refused("resourceExhausted", "noPlacement", `no stamp of location ${location} takes a new account: ${why}`);
}

export interface MovableAccount {
  readonly name: string;
  readonly stamp: string;
  readonly bytes: number;
  /** Requests that leave the stamp with the account. */
  readonly requestsPerSecond: number;
}

export interface ProposedMove {
  readonly account: string;
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
}

/**
 * Proposes moves within each location until no stamp is above `proposeAbove`, or nothing more can be done. One account
 * that is just large enough is preferred to many; if none is, the largest goes first. A target stays at or below
 * `proposeAbove`, so no move is undone by the next plan. A draining stamp gives everything away.
 */
export function proposeMoves(
  stamps: readonly PlacedStamp[],
  accounts: readonly MovableAccount[],
  nowMs: number,
  limits: PlacementLimits = placementLimits,
): ProposedMove[] {
  const plan = new MovePlan(stamps, accounts, nowMs, limits);
  // A stamp that gave something away may take what found no place before.
  while (plan.pass());
  return plan.moves;
}

/** Sorts larger accounts first; of two of one size the busier one, then by name. */
const byLoad = (a: MovableAccount, b: MovableAccount): number =>
  b.bytes - a.bytes || b.requestsPerSecond - a.requestsPerSecond || (a.name < b.name ? -1 : 1);

interface MeasuredStamp extends PlacedStamp {
  readonly capacity: StampCapacity;
}

class MovePlan {
  readonly moves: ProposedMove[] = [];
  /** Stamps with the capacity that they have after the moves. */
  readonly #stamps = new Map<string, MeasuredStamp>();
  readonly #left: Map<string, MovableAccount[]>;
  readonly #nowMs: number;
  readonly #limits: PlacementLimits;

  constructor(stamps: readonly PlacedStamp[], accounts: readonly MovableAccount[], nowMs: number, limits: PlacementLimits) {
    this.#nowMs = nowMs;
    this.#limits = limits;
    for (const stamp of [...stamps].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const { capacity } = stamp;
      if (capacity !== undefined && nowMs - capacity.reportedMs <= limits.reportMaxAgeMs)
        this.#stamps.set(stamp.name, { ...stamp, capacity });
    }
    this.#left = Map.groupBy([...accounts].sort(byLoad), (account) => account.stamp);
  }

  /** Goes over all stamps once. Returns true if it added a move. */
  pass(): boolean {
    const before = this.moves.length;
    for (const name of this.#stamps.keys()) while (this.#relieve(name));
    return this.moves.length > before;
  }

  #relieve(name: string): boolean {
    const source = this.#stamps.get(name);
    const left = this.#left.get(name) ?? [];
    if (source === undefined || left.length === 0) return false;
    const { usedBytes, totalBytes } = source.capacity;
    const leaves = source.state === "draining";
    const excess = leaves ? Number.POSITIVE_INFINITY : usedBytes - this.#limits.proposeAbove * totalBytes;
    if (excess <= 0) return false;
    // The smallest one that suffices, then the others from the largest on. Empty accounts give no room, but leave a
    // draining stamp.
    const enough = left.filter(({ bytes }) => bytes >= excess).reverse();
    const rest = left.filter(({ bytes }) => bytes < excess && (bytes > 0 || leaves));
    for (const account of [...enough, ...rest]) {
      const to = this.#targetFor(account, source);
      if (to === undefined) continue;
      left.splice(left.indexOf(account), 1);
      this.#grow(name, -account.bytes);
      this.#grow(to, account.bytes);
      this.moves.push({ account: account.name, from: name, to, bytes: account.bytes });
      return true;
    }
    return false;
  }

  /** Returns the stamp that is emptiest with the account. */
  #targetFor(account: MovableAccount, source: PlacedStamp): string | undefined {
    let best: { readonly name: string; readonly used: number } | undefined;
    for (const stamp of this.#stamps.values()) {
      if (stamp.name === source.name || stamp.location !== source.location) continue;
      if (notPlaceable(stamp, this.#nowMs, this.#limits) !== undefined) continue;
      const used = (stamp.capacity.usedBytes + account.bytes) / stamp.capacity.totalBytes;
      if (used <= this.#limits.proposeAbove && (best === undefined || used < best.used)) best = { name: stamp.name, used };
    }
    return best?.name;
  }

  #grow(name: string, bytes: number): void {
    const stamp = this.#stamps.get(name);
    if (stamp === undefined) return;
    this.#stamps.set(name, { ...stamp, capacity: { ...stamp.capacity, usedBytes: stamp.capacity.usedBytes + bytes } });
  }
}
