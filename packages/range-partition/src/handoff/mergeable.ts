/**
 * Merges wait for other stamps: the log of a merged range begins empty. A follower that lacks commits would begin anew with a scan, and a
 * report of a deposed primary could not be made any more.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import type { LogFollowers } from "../followers/log-followers.ts";
import { restBytesMax } from "./leave.ts";

/**
 * Rows that a merge may begin with in memory and in flight if followers lack them, in bytes for each parent: half of its share of the last
 * record. The rest is for what comes before the parents leave.
 */
const heldBytesMax: number = restBytesMax / 4;

interface FollowedParent {
  readonly followers: Pick<LogFollowers, "notes" | "untilAcknowledged">;
  readonly stats: { readonly checkpointedSequence: number };
}

interface HeldParent extends FollowedParent {
  readonly rangeId: string;
  readonly departure: { readonly heldBytes: number; holdRows(): Promise<void> };
}

/** Refuses if the range that two ranges become would not have all followers of both. */
export async function untilMergeable(parents: readonly FollowedParent[], waitMs: number): Promise<Outcome<void>> {
  const waits = parents.map(({ followers, stats }) => followers.untilAcknowledged(stats.checkpointedSequence, waitMs));
  const followed = await Promise.all(waits);
  const [first, second] = parents.map(({ followers }) => followers.notes);
  return followed.find((one) => !one.ok) ?? sameNotes(first, second);
}

/** Refuses a merge if the parents have different notes about a follower of both. */
function sameNotes(first: ReadonlyMap<string, string> = new Map(), second: ReadonlyMap<string, string> = new Map()): Outcome<void> {
  const differing = [...first].find(([name, note]) => (second.get(name) ?? note) !== note);
  return differing === undefined
    ? ok()
    : refused("unavailable", "notReady", `two ranges of account ${differing[0]} are not seeded alike yet`);
}

/**
 * Looks at parents that leave next: what their followers lack stays in memory, from where it goes into the last records. Without that, a
 * checkpoint between this look and the last record would end followers.
 */
export async function untilHeld(parents: readonly HeldParent[], waitMs: number): Promise<Outcome<void>> {
  const followed = parents.filter(({ followers }) => followers.notes.size > 0);
  await Promise.all(followed.map(({ departure }) => departure.holdRows()));
  const mergeable = await untilMergeable(parents, waitMs);
  if (!mergeable.ok) return mergeable;
  const heavy = followed.find(({ departure }) => departure.heldBytes > heldBytesMax);
  if (heavy === undefined) return ok();
  const { rangeId, departure } = heavy;
  return refused("unavailable", "notReady", `${departure.heldBytes} bytes of rows of ${rangeId} are too many for the last record`);
}
