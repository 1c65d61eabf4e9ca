/**
 * Lineage of a range's commit log. A log that lost its end gives its sequences again, to other commits: after a restore of the metadata store, or
 * if a person accepted a loss. Then it begins a new lineage, which counts before the sequence wherever commits are compared.
 *
 *     state (metadata stream), streams as opened, followers' cursors ──► lineageAtLoad ──► recorded with the next record of the range
 *
 * Invariants:
 * - Two commits of a range with the same lineage and sequence are the same commit, also over moves, splits and merges.
 * - Lineages of one range only rise. All are on one scale: 2^20 for each second since 2026, as numbers of the metadata store after a restore
 *   (docs/design/processes.md). A clock that is set back before a second restore takes that away.
 * - A follower whose cursor is of an earlier lineage is ended: what it has may be other commits than those of the log.
 */
import { timeNumber } from "@stamp/base";
import type { FollowerCursors } from "./log-followers.ts";

export interface LogLineage {
  /** Lineage of the commit log. */
  readonly log: number;
  /** Highest lineage of the metadata store that the range was loaded under: rows of the range from before are as the restored store has them. */
  readonly store: number;
}

/** Log, state and followers of a range as a load finds them. */
interface FoundLog {
  readonly stored: LogLineage | undefined;
  /** Lineage of the metadata store; 0: it was never restored, or the stream manager is of an older release. */
  readonly store: number;
  readonly cursors: FollowerCursors;
  /** Sequence of the last commit. */
  readonly end: number;
  readonly wallMs: number;
}

const none: LogLineage = { log: 0, store: 0 };

/** Returns the lineages with which the range goes on. A higher `log` than the stored one ends all followers. */
export function lineageAtLoad({ stored = none, store, cursors, end, wallMs }: FoundLog): LogLineage {
  const seen = Math.max(stored.store, store);
  const isCut = Object.values(cursors).some(({ sequence }) => sequence > end);
  const log = store > stored.store ? Math.max(stored.log + 1, store) : stored.log;
  return { log: isCut ? Math.max(log + 1, timeNumber(wallMs)) : log, store: seen };
}

/** Returns the lineages of the range that two become: its sequences rise above those of both. */
export const joinedLineage = (a: LogLineage = none, b: LogLineage = none): LogLineage => ({
  log: Math.max(a.log, b.log),
  store: Math.max(a.store, b.store),
});
