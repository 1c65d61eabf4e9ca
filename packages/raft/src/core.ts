/**
 * State that every role has (figure 2), and the effects that wait for the caller. Roles are in `election.ts`, `follower.ts` and
 * `leader.ts`, which change this state in one call each.
 *
 * Invariants:
 * - `term` never falls. In one term a member votes once, and it counts a leader that it obeys as its vote.
 * - `commit` never falls and never exceeds the log. An entry is handed out for applying once, in order, and only when it is durable here.
 * - A message that says what this member will remember (vote, term, acknowledged entries) waits for the write before it.
 */
import type { Rules } from "@stamp/base";
import { assert, present } from "@stamp/base";
import type { LeaderState } from "./leader/leadership.ts";
import { RaftLog } from "./log.ts";
import { isVoter } from "./members.ts";
import type { Message, MessageBody } from "./messages.ts";
import type { Voice } from "./quorum.ts";
import type { ChunkToStore, ChunkWanted, ReadState } from "./ready.ts";
import type { Entry, HardState, MemberId, Role, SnapshotMeta } from "./types.ts";

export interface RaftOptions {
  readonly id: MemberId;
  /** Unique number of this start: never given to another start of this member, whatever folder it has. At least 1. */
  readonly session: number;
  /**
   * True if the caller knows that the folder is as this member left it, or that it has nobody to ask: a single member. It then has its
   * standing at once. False after any other start.
   */
  readonly trusted: boolean;
  /** Content of the folder. At first: `firstSnapshot`, or `noSnapshot` of a member that joins or has lost its folder. */
  readonly stored: { readonly hardState: HardState; readonly snapshot: SnapshotMeta; readonly entries: readonly Entry[] };
  /** Last entry that the caller's durable state includes. */
  readonly applied: number;
  /** Ticks without a leader before an election: between this number and twice this number. */
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  /** Returns a random number in [0, 1), for each new election timeout. */
  readonly random: () => number;
  readonly rules: Rules;
  readonly limits?: Partial<RaftLimits>;
}

export interface RaftLimits {
  /** Bounds of one append. A single larger entry goes out alone. */
  readonly appendEntriesMax: number;
  readonly appendBytesMax: number;
  /** Bound of the appends that are on their way to one follower. */
  readonly inFlightMax: number;
  readonly inFlightBytesMax: number;
  /** Bound of the entries that a leader has proposed and not committed, in bytes. */
  readonly uncommittedBytesMax: number;
  readonly committedEntriesMax: number;
  readonly committedBytesMax: number;
  readonly pendingReadsMax: number;
  readonly chunkBytesMax: number;
}

export const raftLimits: RaftLimits = {
  appendEntriesMax: 256,
  appendBytesMax: 1 << 20,
  inFlightMax: 64,
  inFlightBytesMax: 8 << 20,
  uncommittedBytesMax: 64 << 20,
  committedEntriesMax: 1_024,
  committedBytesMax: 4 << 20,
  pendingReadsMax: 10_000,
  chunkBytesMax: 256 << 10,
};

export interface Incoming {
  readonly from: MemberId;
  readonly term: number;
  readonly snapshot: SnapshotMeta;
  storedBytes: number;
  /** True if the caller has a chunk in hand. */
  storing: boolean;
}

export class Core {
  readonly id: MemberId;
  readonly session: number;
  readonly options: RaftOptions;
  readonly limits: RaftLimits;
  readonly log: RaftLog;
  term: number;
  vote: MemberId | undefined;
  commit: number;
  applied: number;
  /** True if this member has its standing: it has seen its readmission committed, or its caller vouches for its folder. */
  full: boolean;
  role: Role = "follower";
  leader: MemberId | undefined;
  /** Ticks since the leader was heard, or since the election began; of a leader: since it checked its quorum. */
  elapsed = 0;
  timeout = 0;
  /** Answers in the election that this member runs. */
  voices: Map<MemberId, Voice> = new Map();
  /** State of a leader; undefined in the other roles. */
  leadership: LeaderState | undefined;
  /** Term and vote that are on this member's disk. */
  durable: { readonly term: number; readonly vote: MemberId | undefined };
  /** Snapshot that this member receives. */
  incoming: Incoming | undefined;

  messages: Message[] = [];
  messagesAfterSync: Message[] = [];
  reads: ReadState[] = [];
  lostReads: number[] = [];
  chunksWanted: ChunkWanted[] = [];
  chunksToStore: ChunkToStore[] = [];
  /** Reason why this member takes part no more: a leader's log contradicts what was committed here. Only two faults together can do that. */
  contradiction: string | undefined;
  /** Received snapshot that the caller is to install. */
  install: SnapshotMeta | undefined;

  constructor(options: RaftOptions) {
    const { hardState, snapshot, entries } = options.stored;
    assert(options.session >= 1, "a session is at least 1");
    this.options = options;
    this.id = options.id;
    this.session = options.session;
    this.limits = { ...raftLimits, ...options.limits };
    this.log = new RaftLog(snapshot, entries);
    this.term = Math.max(hardState.term, this.log.last.term);
    this.vote = this.term === hardState.term ? hardState.vote : undefined;
    this.durable = { term: hardState.term, vote: hardState.vote };
    this.commit = Math.min(Math.max(hardState.commit, snapshot.index, options.applied), this.log.last.index);
    this.applied = Math.max(options.applied, snapshot.index);
    this.full = options.trusted || !this.rule("raftReturningHasNoVote");
    this.drawTimeout();
  }

  rule(name: Parameters<Rules["on"]>[0]): boolean {
    return this.options.rules.on(name);
  }

  get isVoter(): boolean {
    return isVoter(this.log.members, this.id);
  }

  /**
   * This member may run for election: it is a voter of a configuration that decides. While its removal is not committed it may have to, for it may be
   * the only one with the whole log.
   */
  get mayLead(): boolean {
    return this.log.votersAt(this.commit).some((voters) => voters.includes(this.id));
  }

  drawTimeout(): void {
    const { electionTicks, random } = this.options;
    this.elapsed = 0;
    this.timeout = electionTicks + Math.floor(random() * electionTicks);
  }

  /** True if a leader was heard within the shortest election timeout, or this member is one. */
  get hearsLeader(): boolean {
    return this.leader !== undefined && this.elapsed < this.options.electionTicks;
  }

  /** Sends what nobody relies on this member to remember. */
  send(to: MemberId, body: MessageBody): void {
    this.messages.push(this.#message(to, body));
  }

  /** Sends what this member must not forget: it waits for the write of what it says. */
  sendAfterSync(to: MemberId, body: MessageBody): void {
    const rule = body.kind === "appendAnswer" || body.kind === "append" ? "raftAckAfterSync" : "raftVoteAfterSync";
    (this.rule(rule) ? this.messagesAfterSync : this.messages).push(this.#message(to, body));
  }

  #message(to: MemberId, body: MessageBody): Message {
    return { from: this.id, to, term: this.term, session: this.session, full: this.full, ...body };
  }

  /** Obeys a higher term, or stays in its own; the former role's work is dropped. */
  becomeFollower(term: number, leader: MemberId | undefined): void {
    assert(term >= this.term, "a term never falls");
    if (term > this.term) {
      this.term = term;
      this.vote = undefined;
    }
    if (this.leadership !== undefined) this.lostReads.push(...this.leadership.reads.drain());
    this.leadership = undefined;
    this.role = "follower";
    this.leader = leader;
    this.voices = new Map();
    this.drawTimeout();
    // Obeying a leader uses the vote of the term up. A member that forgot its vote for that leader must not give another.
    if (leader !== undefined) this.vote ??= leader;
  }

  /** Raises the commit index, and takes back its standing when its readmission is committed. */
  commitTo(index: number): void {
    const to = Math.min(index, this.log.last.index);
    for (let at = this.commit + 1; at <= to; at++) {
      const { body } = present(this.log.entry(at), "a committed entry");
      if (body.kind === "readmit" && body.member === this.id && body.session === this.session) this.full = true;
    }
    this.commit = Math.max(this.commit, to);
  }

  /** Takes a snapshot over: its entries are committed, and the log is replaced. */
  restore(snapshot: SnapshotMeta): void {
    this.log.restore(snapshot);
    this.commit = snapshot.index;
    this.applied = snapshot.index;
    this.install = snapshot;
    if (snapshot.sessions[this.id] === this.session) this.full = true;
  }
}
