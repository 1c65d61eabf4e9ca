/**
 * Merges wait for other stamps: the log of a merged range begins empty. A follower that lacks commits would begin anew with a scan, and a
 * report of a deposed primary could not be made any more.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import type { LogFollowers } from "../followers/log-followers.ts";

interface FollowedParent {
  readonly followers: Pick<LogFollowers, "notes" | "untilAcknowledged">;
  readonly stats: { readonly checkpointedSequence: number };
}

/** Refuses if the range that two ranges become would not have all followers of both. */
export async function untilMergeable(parents: readonly FollowedParent[], waitMs: number): Promise<Outcome<void>> {
  const waits = parents.map(({ followers, stats }) => followers.untilAcknowledged(stats.checkpointedSequence, waitMs));
  const followed = await Promise.all(waits);
  const [first, second] = parents.map(({ followers }) => followers.notes);
  return followed.find((one) => !one.ok) ?? sameNotes(first, second);
}

/** A merged range keeps a follower of both parents only if both have one note about it. */
function sameNotes(first: ReadonlyMap<string, string> = new Map(), second: ReadonlyMap<string, string> = new Map()): Outcome<void> {
  const differing = [...first].find(([name, note]) => (second.get(name) ?? note) !== note);
  return differing === undefined
    ? ok()
    : refused("unavailable", "notReady", `two ranges of account ${differing[0]} are not seeded alike yet`);
}
