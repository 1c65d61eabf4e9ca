/**
 * Says whether a drained primary would ship everything in time (docs/design/geo.md "Location service"). An operation that drains the primary is not
 * begun before: its clients would be refused writes for nothing.
 *
 * What counts is how fast the copy acknowledges commits, because a drained primary takes no new ones: also a copy that gets as many new commits as
 * it acknowledges has caught up soon after writes are refused.
 */
import { type AccountShipping, fromWire, type RangeShippingFacts } from "@stamp/wire";

export interface ToldShipping
  extends Pick<AccountShipping, "lastSyncMs" | "pendingCommits" | "nowMs" | "trouble" | "caughtUpCommitsPerSecond"> {
  readonly ranges: readonly Pick<RangeShippingFacts, "rangeId" | "state" | "pendingCommits" | "rates">[];
}

/**
 * Returns why the primary should not be drained now, and what to do; undefined: it may be. `anyway`: it may be also while the copy is far behind,
 * but not while a range is seeded or does not say how far it is: no drain would come to its end.
 */
export function notDrainable(told: ToldShipping, drainMaxMs: number, anyway = false): string | undefined {
  const { ranges, pendingCommits, lastSyncMs, nowMs, trouble } = told;
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
  const leftMs = timeLeftMs(told, pending);
  if (leftMs === Number.POSITIVE_INFINITY)
    return `the copy lacks ${pending} commits, and they do not become fewer${why}: wait until they do; ${limit}`;
  if (leftMs <= drainMaxMs) return undefined;
  return `the copy lacks ${pending} commits, and would have them in ${Math.ceil(leftMs / 1_000)} s${why}: wait until they are fewer; ${limit}`;
}

/**
 * Returns the time until the copy has everything that was committed until now, in milliseconds. Ranges ship at the same time: the last one
 * counts. A stamp of an earlier release tells no rates: there, by how much the backlog became smaller counts.
 */
function timeLeftMs({ ranges, caughtUpCommitsPerSecond }: ToldShipping, pending: number): number {
  const behind = ranges.filter(({ pendingCommits }) => pendingCommits > 0n);
  if (behind.length === 0 || behind.some(({ rates }) => rates === undefined)) return timeMs(pending, caughtUpCommitsPerSecond);
  return Math.max(...behind.map(({ pendingCommits, rates }) => timeMs(fromWire(pendingCommits), rates?.shippedCommits ?? 0)));
}

const timeMs = (commits: number, perSecond: number): number => (perSecond > 0 ? (1_000 * commits) / perSecond : Number.POSITIVE_INFINITY);
