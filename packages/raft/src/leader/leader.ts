/**
 * Steps of a leader (figure 2, "Leaders"): entries of its own, the commit index, quorum checks, handover of leadership.
 *
 * Invariants:
 * - It appends only, and begins with an empty entry of its term.
 * - It commits an entry of its own term when a quorum has it on disk; its own copy counts when its own write is done. Entries of earlier terms
 *   are committed by that, and never by counting (section 5.4.2, figure 8).
 * - A member that says it has no standing is readmitted by an entry. Whatever it acknowledged before its start lies in front of that entry.
 * - It appends a configuration only when the one before it is committed, and an entry of its own term.
 * - If no quorum answered within an election timeout, or its removal is committed, it leads no more.
 */
import type { Outcome } from "@stamp/base";
import { ok, present, refused } from "@stamp/base";
import type { Core } from "../core.ts";
import type { Position } from "../log.ts";
import { changed, type MemberChange } from "../members.ts";
import type { Message } from "../messages.ts";
import { acknowledgedIndex, type Match, verdictOf } from "../quorum.ts";
import { type EntryBody, entryBytes, type MemberId } from "../types.ts";
import { LeaderState } from "./leadership.ts";
import type { Progress } from "./progress.ts";
import { sendAppends, sendHeartbeats } from "./replication.ts";

export function becomeLeader(core: Core): void {
  core.role = "leader";
  core.leader = core.id;
  core.elapsed = 0;
  core.leadership = new LeaderState(core.log.last.index + 1, core.limits.pendingReadsMax);
  follow(core);
  appendOwn(core, { kind: "empty" });
  if (!core.full) appendOwn(core, { kind: "readmit", member: core.id, session: core.session });
  sendHeartbeats(core, leading(core));
}

/** Appends an entry of the leader's term. */
export function appendOwn(core: Core, body: EntryBody): Position {
  const entry = { index: core.log.last.index + 1, term: core.term, body };
  core.log.append(entry);
  leading(core).uncommittedBytes += entryBytes(entry);
  if (body.kind === "members") follow(core);
  return { index: entry.index, term: entry.term };
}

export const leading = (core: Core): LeaderState => present(core.leadership, "the state of a leader");

/** Follows every member of the configurations that decide. */
function follow(core: Core): void {
  const ids = new Set(core.log.configurationsAt(core.commit).flatMap(({ voters, learners }) => [...voters, ...learners]));
  ids.delete(core.id);
  leading(core).follow(ids, core.log.last.index);
}

/** Notes an answer of a follower, and readmits it if it has no standing. Undefined: it is no member. */
export function heardFollower(core: Core, { from, session, full }: Message): Progress | undefined {
  const leadership = leading(core);
  const progress = leadership.progress.get(from);
  if (progress === undefined) return undefined;
  progress.heard(session, full, core.log.last.index);
  if (!full && leadership.readmits(from, session)) appendOwn(core, { kind: "readmit", member: from, session });
  return progress;
}

/** Raises the commit index to the entries that a quorum has, and acts on them. */
export function advanceCommit(core: Core): void {
  const leadership = core.leadership;
  if (leadership === undefined) return;
  for (;;) {
    const own = core.rule("raftAckAfterSync") ? core.log.durable : core.log.last.index;
    const matchOf = (id: MemberId): Match =>
      id === core.id ? { any: own, full: core.full ? own : 0 } : (leadership.progress.get(id)?.acknowledged ?? { any: 0, full: 0 });
    const index = acknowledgedIndex(core.log.votersAt(core.commit), matchOf);
    if (index <= core.commit) return;
    if (core.rule("raftCommitsOwnTerm") && core.log.termAt(index) !== core.term) return;
    commit(core, leadership, index);
    // With its own readmission committed, its own copies count in a majority: more may be committed by them.
    if (core.role !== "leader") return;
  }
}

function commit(core: Core, leadership: LeaderState, index: number): void {
  const changing = core.log.membersIndex > core.commit;
  for (let at = Math.max(core.commit + 1, leadership.firstIndex); at <= index; at++) {
    leadership.uncommittedBytes -= entryBytes(present(core.log.entry(at), "a committed entry"));
  }
  core.commitTo(index);
  if (!changing || core.log.membersIndex > core.commit) return;
  // Members that leave hear of it, before they are followed no more.
  for (const progress of leadership.progress.values()) progress.nudged = true;
  sendAppends(core, leadership);
  if (core.isVoter) follow(core);
  else core.becomeFollower(core.term, undefined);
}

/** Does one tick of a leader. */
export function tickLeader(core: Core): void {
  const leadership = leading(core);
  const { electionTicks, heartbeatTicks } = core.options;
  core.elapsed += 1;
  for (const id of core.log.members.learners) leadership.progress.get(id)?.tickRound(core.log.last.index, electionTicks);
  if (leadership.transfer !== undefined && ++leadership.transfer.ticks >= electionTicks) leadership.transfer = undefined;
  if (core.elapsed >= electionTicks) {
    core.elapsed = 0;
    if (!hearsQuorum(core, leadership)) {
      core.becomeFollower(core.term, undefined);
      return;
    }
    for (const progress of leadership.progress.values()) progress.checked();
  }
  leadership.heartbeatElapsed += 1;
  if (leadership.heartbeatElapsed >= heartbeatTicks) sendHeartbeats(core, leadership);
}

function hearsQuorum(core: Core, leadership: LeaderState): boolean {
  const voiceOf = (id: MemberId) => {
    if (id === core.id) return { granted: true, full: core.full };
    const progress = leadership.progress.get(id);
    return { granted: progress?.active === true, full: progress?.full === true };
  };
  return verdictOf(core.log.votersAt(core.commit), voiceOf) === "won";
}

export function changeMembers(core: Core, change: MemberChange): Outcome<Position> {
  const leadership = core.leadership;
  if (leadership === undefined) return notLeader(core);
  if (leadership.transfer !== undefined) return refused("unavailable", "notLeader", "leadership is being handed over: ask the next leader");
  if (core.rule("raftOneChangeAtATime")) {
    if (core.commit < leadership.firstIndex)
      return refused("unavailable", "notReady", "the leader is new and has committed nothing yet: try again");
    if (core.log.membersIndex > core.commit)
      return refused("failedPrecondition", "notReady", "another change of the members is under way: try again when it is committed");
  }
  if (change.kind === "promote" && core.log.members.learners.includes(change.member)) {
    const progress = leadership.progress.get(change.member);
    if (!(progress?.answers && progress.caughtUp && progress.full))
      return refused("failedPrecondition", "notReady", `${change.member} has not caught up with the leader: try again`);
  }
  const members = changed(core.log.members, change);
  return members.ok ? ok(appendOwn(core, { kind: "members", members: members.value })) : members;
}

/** Hands leadership over, to the best follower if none is named. */
export function transferLeadership(core: Core, to: MemberId | undefined): Outcome<MemberId> {
  const leadership = core.leadership;
  if (leadership === undefined) return notLeader(core);
  const fit = [...leadership.progress].filter(
    ([id, progress]) => core.log.members.voters.includes(id) && progress.full && progress.answers && (to === undefined || id === to),
  );
  const best = fit.sort(([, a], [, b]) => b.match - a.match)[0];
  if (best === undefined) {
    return refused("failedPrecondition", "notReady", `${to ?? "no other member"} is no voter that answers and has its standing`);
  }
  leadership.transfer = { to: best[0], ticks: 0, told: false };
  handOver(core);
  return ok(best[0]);
}

/** Hands leadership over to a member, if it has the whole log. */
export function handOver(core: Core): void {
  const transfer = core.leadership?.transfer;
  if (transfer === undefined || transfer.told) return;
  if (core.leadership?.progress.get(transfer.to)?.match !== core.log.last.index) return;
  transfer.told = true;
  core.send(transfer.to, { kind: "timeoutNow" });
}

export const notLeader = (core: Core): Outcome<never> =>
  refused("unavailable", "notLeader", `${core.id} does not lead: ask ${core.leader ?? "again, no leader is known"}`, {
    leader: core.leader ?? "",
  });
