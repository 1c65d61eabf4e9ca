/**
 * The leader's side of replication (section 5.3): appends, heartbeats, and answers to them.
 *
 * Invariants:
 * - Appends go out in order of the log, within the window of each follower (`progress.ts`).
 * - A refusal moves `next` back by terms, not by entries: at most one refusal for each term in which the logs differ.
 */
import type { Core } from "../core.ts";
import { acknowledgedIndex } from "../quorum.ts";
import { entryBytes, type MemberId } from "../types.ts";
import type { LeaderState } from "./leadership.ts";
import type { Progress } from "./progress.ts";

/** Sends each follower what its window lets through, and begins a round for the reads that wait. */
export function flush(core: Core, leadership: LeaderState): void {
  if (core.commit >= leadership.firstIndex && leadership.reads.begin(core.commit) !== undefined) {
    sendHeartbeats(core, leadership);
    confirmReads(core, leadership);
  }
  sendAppends(core, leadership);
}

export function sendAppends(core: Core, leadership: LeaderState): void {
  for (const [to, progress] of leadership.progress) while (sendAppend(core, to, progress));
}

/** Returns true if more may follow. */
function sendAppend(core: Core, to: MemberId, progress: Progress): boolean {
  const open = progress.canSend(core.limits);
  if (!open && !(progress.nudged && progress.state === "replicate")) return false;
  const { log, limits } = core;
  const prevIndex = progress.next - 1;
  const prevTerm = log.termAt(prevIndex);
  if (prevTerm === undefined) {
    progress.toSnapshot(log.snapshot.index);
    core.send(to, { kind: "snapshotOffer", snapshot: log.snapshot });
    return false;
  }
  const entries = open ? log.slice(progress.next, limits.appendEntriesMax, limits.appendBytesMax) : [];
  const asks = progress.nudged || (progress.state === "probe" && progress.match < log.last.index);
  if (entries.length === 0 && progress.toldCommit >= core.commit && !asks) return false;
  core.send(to, { kind: "append", prevIndex, prevTerm, entries, commit: core.commit });
  progress.toldCommit = core.commit;
  progress.nudged = false;
  progress.sent(
    entries.length,
    entries.reduce((sum, entry) => sum + entryBytes(entry), 0),
  );
  return entries.length > 0;
}

/** Sends a heartbeat of the newest round to every follower. */
export function sendHeartbeats(core: Core, leadership: LeaderState): void {
  leadership.heartbeatElapsed = 0;
  const commitTerm = core.log.termAt(core.commit) ?? 0;
  for (const to of leadership.progress.keys()) {
    core.send(to, { kind: "heartbeat", round: leadership.reads.round, commit: core.commit, commitTerm });
  }
}

/** Gives out the reads whose round a quorum has answered. */
export function confirmReads(core: Core, leadership: LeaderState): void {
  const own = leadership.reads.round;
  const confirmed = core.rule("raftReadConfirmed")
    ? acknowledgedIndex(core.log.votersAt(core.commit), (id) => {
        if (id === core.id) return { any: own, full: core.full ? own : 0 };
        const progress = leadership.progress.get(id);
        return { any: progress?.round ?? 0, full: progress?.fullRound ?? 0 };
      })
    : own;
  core.reads.push(...leadership.reads.confirmed(confirmed));
}
