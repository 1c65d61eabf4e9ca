/**
 * Elections (section 5.2), with the restriction on the log (5.4.1), pre-vote and the refusal of disruptive servers (dissertation, 9.6 and 4.2.3).
 *
 *     follower ──timeout──▶ preCandidate ──quorum would vote──▶ candidate ──quorum votes──▶ leader
 *
 * Invariants:
 * - A member raises its term by itself only after a quorum has said that it would vote for it, or when the leader hands over to it.
 * - In one term a member gives one vote, to one start of one candidate, and never again.
 * - Nobody votes before term and vote are durable; a candidate does not count its own vote before.
 * - Who has heard a leader within the shortest election timeout takes no part in an election, unless that leader asked for it.
 */
import type { Core } from "./core.ts";
import { becomeLeader } from "./leader/leader.ts";
import type { MessageOf } from "./messages.ts";
import { verdictOf } from "./quorum.ts";
import type { MemberId } from "./types.ts";

/** Asks whether a quorum would vote for this member. Its term stays. */
export function preCampaign(core: Core): void {
  if (!core.rule("raftPreVote")) {
    campaign(core, false);
    return;
  }
  core.becomeFollower(core.term, undefined);
  core.role = "preCandidate";
  core.voices.set(core.id, { granted: true, full: core.full });
  const { index, term } = core.log.last;
  for (const id of others(core)) {
    core.send(id, { kind: "preVote", nextTerm: core.term + 1, lastIndex: index, lastTerm: term });
  }
  count(core);
}

/** Begins an election. `transfer`: the leader asked for it. */
export function campaign(core: Core, transfer: boolean): void {
  core.becomeFollower(core.term + 1, undefined);
  core.role = "candidate";
  core.vote = core.id;
  const { index, term } = core.log.last;
  for (const id of others(core)) core.sendAfterSync(id, { kind: "vote", lastIndex: index, lastTerm: term, transfer });
  if (!core.rule("raftVoteAfterSync")) voteForItself(core);
}

/** Counts the candidate's own vote, which is durable now. */
export function ownVoteDurable(core: Core): void {
  const { term, vote } = core.durable;
  if (core.role === "candidate" && term === core.term && vote === core.id) voteForItself(core);
}

function voteForItself(core: Core): void {
  core.voices.set(core.id, { granted: true, full: core.full });
  count(core);
}

export function onPreVote(core: Core, { from, session: candidate, nextTerm, lastIndex, lastTerm }: MessageOf<"preVote">): void {
  const granted = nextTerm > core.term && !core.hearsLeader && isUpToDate(core, lastIndex, lastTerm);
  core.send(from, { kind: "preVoteAnswer", candidate, nextTerm, granted });
}

export function onPreVoteAnswer(core: Core, { from, candidate, nextTerm, granted, full }: MessageOf<"preVoteAnswer">): void {
  if (core.role !== "preCandidate" || candidate !== core.session || nextTerm !== core.term + 1) return;
  core.voices.set(from, { granted, full });
  count(core);
}

export function onVote(core: Core, message: MessageOf<"vote">): void {
  const { from, session: candidate, term, lastIndex, lastTerm, transfer } = message;
  if (term >= core.term && core.hearsLeader && !transfer) return;
  if (term > core.term) core.becomeFollower(term, undefined);
  // A vote is given once: a candidate that forgot its earlier run in this term must not win the term again with another log.
  if (term === core.term && core.vote === from) return;
  const free = core.vote === undefined && core.leader === undefined;
  const granted = term === core.term && free && isUpToDate(core, lastIndex, lastTerm);
  if (granted) {
    core.vote = from;
    core.drawTimeout();
  }
  core.sendAfterSync(from, { kind: "voteAnswer", candidate, granted });
}

export function onVoteAnswer(core: Core, { from, candidate, granted, full }: MessageOf<"voteAnswer">): void {
  if (core.role !== "candidate" || candidate !== core.session) return;
  core.voices.set(from, { granted, full });
  count(core);
}

/**
 * True if the candidate's log is at least as up to date as this member's. A member that is no voter by a committed configuration counts in no quorum
 * for what lies behind it, so it asks only for what it knows to be committed. Else a removed leader could keep all others from an election.
 */
function isUpToDate(core: Core, index: number, term: number): boolean {
  const { log, commit } = core;
  const own = core.mayLead ? log.last : { index: commit, term: log.termAt(commit) ?? 0 };
  return !core.rule("raftVoteChecksLog") || term > own.term || (term === own.term && index >= own.index);
}

function count(core: Core): void {
  const verdict = verdictOf(core.log.votersAt(core.commit), (id) => core.voices.get(id));
  if (verdict === "lost") core.becomeFollower(core.term, undefined);
  else if (verdict === "won" && core.role === "preCandidate") campaign(core, false);
  else if (verdict === "won") becomeLeader(core);
}

/** Voters of the configurations that decide, without this member. */
function others(core: Core): ReadonlySet<MemberId> {
  const ids = new Set(core.log.votersAt(core.commit).flat());
  ids.delete(core.id);
  return ids;
}
