/**
 * Followers of a range's commit log, as the state of the range names them: whoever reads the log behind its checkpoints,
 * from a cursor of its own. The log is kept from the earliest cursor on.
 *
 * Invariant: every commit behind the cursor of a named follower is in the log behind `from`, or in the rest of the
 * record. A follower of which this is not certain is not named any more: it has to scan the rows.
 */
import { fromHex, toHex } from "@stamp/base";
import { intersect, type KeyBounds, type LogPlace } from "./key-bounds.ts";

/** Durable cursor of one follower. */
export interface StoredFollower {
  /** The follower has every commit up to this sequence. */
  readonly sequence: number;
  /** Place in the log before every commit behind the cursor; undefined: the beginning of the log. */
  readonly from?: LogPlace;
  /** Followed keys, in hexadecimal, as in `StoredCheckpoint.bounds`. */
  readonly low: string;
  readonly high: string;
  /** Note of the follower's owner, which only the owner understands. */
  readonly note: string;
}

/** Keyed by name of the follower. */
export type FollowerCursors = Readonly<Record<string, StoredFollower>>;

export interface StoredFollowers {
  /**
   * Ids of the ranges for which the cursors hold. A release that does not know followers copies this field into the
   * records of child ranges, whose ids are not in it, and cuts the log.
   */
  readonly for: readonly string[];
  readonly cursors: FollowerCursors;
}

/** Returns the followed keys; undefined if they can't be read. */
export function followedKeys({ low, high }: Pick<StoredFollower, "low" | "high">): KeyBounds | undefined {
  const [first, end] = [fromHex(low), fromHex(high)];
  return first && end && { low: first, high: end };
}

const isEmpty = ({ low, high }: KeyBounds): boolean => high.length > 0 && toHex(low) >= toHex(high);

/** True if some key of `own` is followed. */
export function followsKey(follower: Pick<StoredFollower, "low" | "high">, own: KeyBounds): boolean {
  const keys = followedKeys(follower);
  return keys !== undefined && !isEmpty(intersect(keys, own));
}

/** Returns the cursors with which a range with the keys of `own` begins. */
export function followersFor(stored: StoredFollowers | undefined, rangeId: string, own: KeyBounds): FollowerCursors {
  if (stored === undefined || !stored.for.includes(rangeId)) return {};
  return Object.fromEntries(Object.entries(stored.cursors).filter(([, follower]) => followsKey(follower, own)));
}

/**
 * Returns the cursors of the range that two neighbours become, whose log begins empty behind `sequence`. Both have
 * dropped the followers that lack more than the rest of their record (`coveredByRest`). A follower of keys of both
 * counts only if both name it, with the same facts.
 */
export function joinedFollowers(
  first: FollowerCursors,
  own: KeyBounds,
  second: FollowerCursors,
  secondOwn: KeyBounds,
  sequence: number,
): FollowerCursors {
  const joined: Record<string, StoredFollower> = {};
  for (const [name, { low, high, note }] of [...Object.entries(first), ...Object.entries(second)]) {
    const bounds = { low, high };
    const isNamed = (cursors: FollowerCursors, keys: KeyBounds): boolean =>
      cursors[name] === undefined ? !followsKey(bounds, keys) : cursors[name].note === note && cursors[name].low === low;
    if (isNamed(first, own) && isNamed(second, secondOwn)) joined[name] = { sequence, low, high, note };
  }
  return joined;
}

/**
 * Returns the followers that lack nothing but what the rest of the last record has, which follows `restSequence` - 1.
 * `inRestFrom`: sequence of the first commit whose rows are in that rest.
 */
export function coveredByRest(cursors: FollowerCursors, inRestFrom: number, restSequence: number): FollowerCursors {
  const covered = Object.entries(cursors).filter(([, { sequence }]) => sequence >= inRestFrom - 1);
  return Object.fromEntries(covered.map(([name, { from: _, ...follower }]) => [name, { ...follower, sequence: restSequence - 1 }]));
}

/** True if the decoded field `followers` is well-formed. */
export function areFollowers(stored: unknown): stored is StoredFollowers | undefined {
  if (stored === undefined) return true;
  const { for: ranges, cursors } = (stored ?? {}) as { readonly for?: unknown; readonly cursors?: unknown };
  if (!Array.isArray(ranges) || !ranges.every((id) => typeof id === "string")) return false;
  return typeof cursors === "object" && cursors !== null && Object.values(cursors).every(isFollower);
}

function isFollower(value: unknown): value is StoredFollower {
  const { sequence, from, low, high, note } = (value ?? {}) as Partial<StoredFollower>;
  const isPlace = from === undefined || (Number.isSafeInteger(from?.extentId) && Number.isSafeInteger(from?.offsetBytes));
  if (!Number.isSafeInteger(sequence) || !isPlace || typeof note !== "string") return false;
  return typeof low === "string" && typeof high === "string" && followedKeys({ low, high }) !== undefined;
}
