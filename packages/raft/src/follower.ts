/**
 * Steps of a follower (figure 2, "AppendEntries RPC: receiver implementation"). A candidate that hears a leader of its term becomes one.
 *
 * Invariants:
 * - An append changes the log only if the entry before it matches; only entries that differ are cut off.
 * - An acknowledgement waits until every entry that it covers is durable.
 * - The commit index follows the leader's only as far as this member's log is known to equal the leader's.
 */

import type { Core } from "./core.ts";
import { preCampaign } from "./election.ts";
import type { Message, MessageOf } from "./messages.ts";

/** Notes that the leader of this term was heard. Returns false for a message that no leader can have sent. */
export function heardLeader(core: Core, { from }: Message): boolean {
  if (core.role === "leader" || (core.leader !== undefined && core.leader !== from)) return false;
  if (core.role !== "follower" || core.leader === undefined) core.becomeFollower(core.term, from);
  core.elapsed = 0;
  return true;
}

export function onAppend(core: Core, { from, prevIndex, prevTerm, entries, commit }: MessageOf<"append">): void {
  const { log } = core;
  if (prevIndex < log.base.index) {
    core.sendAfterSync(from, { kind: "appendAnswer", accepted: true, index: core.commit });
    return;
  }
  if (log.termAt(prevIndex) !== prevTerm) {
    const hint = log.agreement(prevIndex, prevTerm);
    const answer = { index: prevIndex, hintIndex: hint.index, hintTerm: hint.term };
    core.sendAfterSync(from, { kind: "appendAnswer", accepted: false, ...answer });
    return;
  }
  const contradicted = entries.find(({ index, term }) => index <= core.commit && index > log.base.index && log.termAt(index) !== term);
  if (contradicted !== undefined) {
    core.contradiction =
      `the log of ${from} contradicts entry ${contradicted.index}, which was committed here: the folders of two members were put back ` +
      "together. Keep the folders of all members, then restore the state from a copy";
    return;
  }
  log.merge(entries, core.commit);
  const index = prevIndex + entries.length;
  core.commitTo(Math.min(commit, index));
  core.sendAfterSync(from, { kind: "appendAnswer", accepted: true, index });
}

export function onHeartbeat(core: Core, { from, round, commit, commitTerm }: MessageOf<"heartbeat">): void {
  if (core.log.termAt(commit) === commitTerm) core.commitTo(commit);
  core.send(from, { kind: "heartbeatAnswer", round });
}

/** Does one tick of a member that does not lead. */
export function tickFollower(core: Core): void {
  core.elapsed += 1;
  if (core.elapsed < core.timeout) return;
  if (core.mayLead) preCampaign(core);
  else core.becomeFollower(core.term, undefined);
}
