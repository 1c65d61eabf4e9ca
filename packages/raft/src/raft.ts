/**
 * One member of the cluster: messages, ticks and the caller's requests in, effects out (`ready.ts`). It has no clock, no I/O and no randomness of
 * its own.
 *
 * The paper's figure 3, and where each property is held:
 *
 * | property             | held by                                                                           |
 * |----------------------|-----------------------------------------------------------------------------------|
 * | Election Safety      | one vote in a term, durable first (`election.ts`); standing (`core.ts`, `quorum.ts`) |
 * | Leader Append-Only   | `appendOwn` (`leader.ts`)                                                         |
 * | Log Matching         | `onAppend` (`follower.ts`), `merge` (`log.ts`)                                    |
 * | Leader Completeness  | `isUpToDate` (`log.ts`), `advanceCommit` (`leader.ts`), the quorums (`quorum.ts`) |
 * | State Machine Safety | the ones above; entries are handed out once and in order (`ready`)                |
 */
import type { Outcome } from "@stamp/base";
import { assert, ok, refused } from "@stamp/base";
import { Core, type RaftOptions } from "./core.ts";
import { campaign, onPreVote, onPreVoteAnswer, onVote, onVoteAnswer, ownVoteDurable } from "./election.ts";
import { heardLeader, onAppend, onHeartbeat, tickFollower } from "./follower.ts";
import { advanceCommit, appendOwn, changeMembers, notLeader, tickLeader, transferLeadership } from "./leader/leader.ts";
import { onAppendAnswer, onHeartbeatAnswer, onSnapshotAnswer } from "./leader/leader-answers.ts";
import type { Progress } from "./leader/progress.ts";
import { flush } from "./leader/replication.ts";
import type { Position } from "./log.ts";
import type { MemberChange } from "./members.ts";
import type { Message, MessageOf } from "./messages.ts";
import type { RaftStatus, Ready } from "./ready.ts";
import { type Chunk, chunkStored, giveChunk, onSnapshotChunk, onSnapshotOffer } from "./snapshot-stream.ts";
import type { HardState, MemberId, Members, SnapshotMeta } from "./types.ts";

type Effects = Omit<Ready, "number" | "hardState" | "entries" | "mustSync" | "committed">;

export class Raft {
  readonly #core: Core;
  #number = 0;
  /** Hard state that the caller got last. */
  #given: HardState;
  /** Term and vote of each write in hand. */
  #writes: { readonly number: number; readonly term: number; readonly vote: MemberId | undefined }[] = [];

  constructor(options: RaftOptions) {
    this.#core = new Core(options);
    this.#given = options.stored.hardState;
  }

  get status(): RaftStatus {
    const { id, role, term, leader, full, commit, log, contradiction } = this.#core;
    return { id, role, term, leader, full, commit, lastIndex: log.last.index, durable: log.durable, contradiction };
  }

  /** Newest configuration in this member's log, committed or not. */
  get members(): Members {
    return this.#core.log.members;
  }

  /** Returns the term of an entry; undefined if the log does not have it. */
  entryTerm(index: number): number | undefined {
    return this.#core.log.termAt(index);
  }

  /** First index that is held in memory. */
  get firstHeld(): number {
    return this.#core.log.base.index + 1;
  }

  /** Entries that are held in memory: `compact` gives them up. */
  get entriesHeld(): number {
    return this.#core.log.length;
  }

  /** Number of Readys whose writes are not durable yet. */
  get writesHeld(): number {
    return this.#writes.length;
  }

  /** Progress of each follower, `match` being the last index that it acknowledged; empty unless this member leads. */
  get followers(): ReadonlyMap<MemberId, Readonly<Pick<Progress, "match" | "full" | "answers" | "caughtUp">>> {
    return new Map(this.#core.leadership?.progress);
  }

  tick(): void {
    if (this.#core.contradiction !== undefined) return;
    if (this.#core.role === "leader") tickLeader(this.#core);
    else tickFollower(this.#core);
  }

  /** Begins an election now, if this member is a voter: for a member that has begun the cluster, and for tests. */
  campaign(): void {
    if (this.#core.mayLead && this.#core.role !== "leader") campaign(this.#core, true);
  }

  step(message: Message): void {
    const core = this.#core;
    if (message.to !== core.id || core.contradiction !== undefined) return;
    if (message.kind === "preVote") onPreVote(core, message);
    else if (message.kind === "vote") onVote(core, message);
    else if (message.term < core.term) this.#older(message);
    else {
      if (message.term > core.term) core.becomeFollower(message.term, undefined);
      this.#current(message);
    }
  }

  /** Handles a message of this member's term. */
  #current(message: Exclude<Message, { kind: "preVote" | "vote" }>): void {
    const core = this.#core;
    if (message.kind === "preVoteAnswer") onPreVoteAnswer(core, message);
    else if (message.kind === "voteAnswer") onVoteAnswer(core, message);
    else if (message.kind === "timeoutNow") {
      if (core.mayLead && core.full && core.role === "follower") campaign(core, true);
    } else if (message.kind === "appendAnswer" || message.kind === "heartbeatAnswer" || message.kind === "snapshotAnswer") {
      if (core.role === "leader") this.#answered(message);
    } else if (heardLeader(core, message)) {
      if (message.kind === "append") onAppend(core, message);
      else if (message.kind === "heartbeat") onHeartbeat(core, message);
      else if (message.kind === "snapshotOffer") onSnapshotOffer(core, message);
      else onSnapshotChunk(core, message);
    }
  }

  #answered(message: MessageOf<"appendAnswer" | "heartbeatAnswer" | "snapshotAnswer">): void {
    if (message.kind === "appendAnswer") onAppendAnswer(this.#core, message);
    else if (message.kind === "heartbeatAnswer") onHeartbeatAnswer(this.#core, message);
    else onSnapshotAnswer(this.#core, message);
  }

  /** Tells the leader of an earlier term that it leads no more; else a member with a higher term would hear no leader for ever. */
  #older(message: Message): void {
    const core = this.#core;
    if (message.kind === "append" || message.kind === "heartbeat" || message.kind === "snapshotOffer")
      core.sendAfterSync(message.from, { kind: "heartbeatAnswer", round: 0 });
    else if (message.kind === "preVoteAnswer" && message.granted) onPreVoteAnswer(core, message);
  }

  /** Gives the place where the entry stands if it is committed with this term. Another entry there means that it never will be. */
  propose(data: Uint8Array): Outcome<Position> {
    const core = this.#core;
    const { leadership } = core;
    if (leadership === undefined) return notLeader(core);
    if (leadership.transfer !== undefined) return refused("unavailable", "notLeader", "leadership is being handed over: ask again");
    if (leadership.uncommittedBytes > core.limits.uncommittedBytesMax)
      return refused("resourceExhausted", "overloaded", `${leadership.uncommittedBytes} bytes wait for a majority: ask again later`);
    return ok(appendOwn(core, { kind: "data", data }));
  }

  changeMembers(change: MemberChange): Outcome<Position> {
    return changeMembers(this.#core, change);
  }

  /** Hands leadership over to a member, or to the best one. It is given up on after an election timeout. */
  transferLeadership(to?: MemberId): Outcome<MemberId> {
    return transferLeadership(this.#core, to);
  }

  /** Asks for a `ReadState` of this context: a proof that this member led, and up to where it had committed, after this call. */
  readIndex(context: number): Outcome<void> {
    const { leadership } = this.#core;
    if (leadership === undefined) return notLeader(this.#core);
    if (leadership.reads.isFull) return refused("resourceExhausted", "overloaded", `${leadership.reads.count} reads wait for a majority`);
    leadership.reads.add(context);
    return ok();
  }

  /**
   * Notes that the caller's state after `index` is durable as a snapshot. Older entries are given up, but for the newest for slow followers: at
   * most `keepEntries`, of `keepBytes` together.
   */
  compact(index: number, keepEntries: number, keepBytes: number = Number.POSITIVE_INFINITY): SnapshotMeta {
    assert(index <= this.#core.applied, "a snapshot is of applied entries");
    return this.#core.log.compact(index, keepEntries, keepBytes);
  }

  giveChunk(to: MemberId, index: number, offsetBytes: number, chunk: Chunk | undefined): void {
    giveChunk(this.#core, to, index, offsetBytes, chunk);
  }

  /** Notes a stored chunk; `endBytes`: length of the stored part of the snapshot; undefined: it is damaged. */
  chunkStored(index: number, endBytes: number | undefined, last: boolean): void {
    chunkStored(this.#core, index, endBytes, last);
  }

  /** Returns what there is to do; undefined: nothing. */
  ready(): Ready | undefined {
    const core = this.#core;
    if (core.contradiction !== undefined) return undefined;
    if (core.leadership !== undefined) flush(core, core.leadership);
    const { term, vote, commit } = core;
    const changed = term !== this.#given.term || vote !== this.#given.vote;
    const hardState = changed || commit !== this.#given.commit ? { term, vote, commit } : undefined;
    const { committedEntriesMax, committedBytesMax } = core.limits;
    const until = Math.min(commit, core.log.durable);
    const committed = core.log.slice(core.applied + 1, Math.min(committedEntriesMax, until - core.applied), committedBytesMax);
    const effects = this.#take();
    const settles = this.#given.commit < core.log.membersIndex && core.log.membersIndex <= commit;
    const writes = changed || settles || core.log.hasUnsaved || effects.snapshot !== undefined;
    if (!writes && hardState === undefined && committed.length === 0 && isEmpty(effects)) return undefined;
    this.#number += 1;
    this.#given = hardState ?? this.#given;
    // A Ready without a write waits for none: while a disk hangs, members go on talking to this one.
    if (writes) this.#writes.push({ number: this.#number, term, vote });
    core.applied = committed.at(-1)?.index ?? core.applied;
    const entries = core.log.unsaved(this.#number);
    return { number: this.#number, hardState, entries, mustSync: writes, committed, ...effects };
  }

  /** Notes that the writes of all Readys up to this number are durable. */
  persisted(number: number): void {
    const core = this.#core;
    core.log.persisted(number);
    const done = this.#writes.filter((write) => write.number <= number).at(-1);
    this.#writes = this.#writes.filter((write) => write.number > number);
    if (done !== undefined) core.durable = done;
    ownVoteDurable(core);
    advanceCommit(core);
  }

  #take(): Effects {
    const core = this.#core;
    const { install: snapshot, messages, messagesAfterSync, reads, lostReads, chunksWanted, chunksToStore } = core;
    core.install = undefined;
    core.messages = [];
    core.messagesAfterSync = [];
    core.reads = [];
    core.lostReads = [];
    core.chunksWanted = [];
    core.chunksToStore = [];
    return { snapshot, messages, messagesAfterSync, reads, lostReads, chunksWanted, chunksToStore };
  }
}

function isEmpty({ messages, messagesAfterSync, reads, lostReads, chunksWanted, chunksToStore }: Effects): boolean {
  return [messages, messagesAfterSync, reads, lostReads, chunksWanted, chunksToStore].every((list) => list.length === 0);
}
