/**
 * Says whether a drained primary would ship everything in time (docs/design/geo.md "Location service"). An operation that drains the primary is not
 * begun before: its clients would be refused writes for nothing.
 */
import { type AccountShipping, fromWire } from "@stamp/wire";

export interface ToldShipping
  extends Pick<AccountShipping, "lastSyncMs" | "pendingCommits" | "nowMs" | "trouble" | "caughtUpCommitsPerSecond"> {
  readonly ranges: readonly { readonly rangeId: string; readonly state: string }[];
}

/**
 * Why the primary should not be drained now, and what to do; undefined: it may be. `anyway`: it may be also while the copy is far behind,
 * but not while a range is seeded or does not say how far it is: no drain would come to its end.
 */
export function notDrainable(told: ToldShipping, drainMaxMs: number, anyway = false): string | undefined {
  const { ranges, pendingCommits, lastSyncMs, nowMs, trouble, caughtUpCommitsPerSecond: perSecond } = told;
  const seeding = ranges.find(({ state }) => state === "seeding");
  if (seeding !== undefined) return `range ${seeding.rangeId} of the copy is seeded anew: wait until "stamp geo status" shows no seeding`;
  const why = trouble === "" ? "" : ` (${trouble})`;
  if (pendingCommits === undefined)
    return `the primary does not say of every range how much it has not shipped yet${why}: wait until it does`;
  const pending = fromWire(pendingCommits);
  if (pending === 0 || anyway) return undefined;
  const lagMs = lastSyncMs === undefined ? undefined : fromWire(nowMs) - fromWire(lastSyncMs);
  // Some commits are always on their way to a copy that keeps up.
  const isBehind = lagMs === undefined ? trouble !== "" : lagMs > drainMaxMs;
  if (!isBehind) return undefined;
  const limit = `writes are refused for ${drainMaxMs / 1_000} s at most`;
  if (perSecond <= 0) return `the copy lacks ${pending} commits, and they do not become fewer${why}: wait until they do; ${limit}`;
  const leftMs = (1_000 * pending) / perSecond;
  if (leftMs <= drainMaxMs) return undefined;
  return `the copy lacks ${pending} commits, and would have them in ${Math.ceil(leftMs / 1_000)} s${why}: wait until they are fewer; ${limit}`;
}
