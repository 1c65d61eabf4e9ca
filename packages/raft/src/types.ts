/**
 * Values of the protocol: entries, hard state, snapshots, and members. All are immutable; the bytes of an entry belong to the log from the
 * proposal on and are never changed.
 *
 * Figure 2 of the Raft paper | here
 * ---------------------------|---------------------------------------------
 * currentTerm, votedFor      | `HardState.term`, `HardState.vote`
 * log[]                      | `Entry`, held by `RaftLog`
 * commitIndex                | `HardState.commit` (durable only as a hint: a restart may find a lower one)
 * nextIndex[], matchIndex[]  | `Progress`
 */

/** Name of a member, unique in the cluster and never given to another member while the cluster lives. */
export type MemberId = string;

/** Configuration of the cluster. Learners receive the log and count in no quorum. */
export interface Members {
  readonly voters: readonly MemberId[];
  readonly learners: readonly MemberId[];
}

/**
 * Content of an entry.
 *
 * - `empty`: first entry of a leader, by which it commits what earlier leaders left (section 5.4.2).
 * - `data`: bytes of the caller.
 * - `members`: the whole new configuration. Each member uses the newest one in its log, committed or not (dissertation, section 4.1).
 * - `readmit`: gives a member that was started under `session` its standing back (`standing.ts`).
 */
export type EntryBody =
  | { readonly kind: "empty" }
  | { readonly kind: "data"; readonly data: Uint8Array }
  | { readonly kind: "members"; readonly members: Members }
  | { readonly kind: "readmit"; readonly member: MemberId; readonly session: number };

export interface Entry {
  /** Position in the log, from 1. */
  readonly index: number;
  readonly term: number;
  readonly body: EntryBody;
}

/** State that has to be durable before anybody hears of it. */
export interface HardState {
  readonly term: number;
  /** Candidate or leader that has this member's vote in `term`; undefined: none. */
  readonly vote: MemberId | undefined;
  readonly commit: number;
}

/** Description of a snapshot; the content is the caller's. */
export interface SnapshotMeta {
  /** Last entry that the content includes. */
  readonly index: number;
  readonly term: number;
  readonly members: Members;
  /** Session of each member's last readmission up to `index`. */
  readonly sessions: Readonly<Record<MemberId, number>>;
}

/**
 * Returns the content of the folder of a first voter as the cluster begins. It stands at index 1, so that a member without a folder needs it, and
 * learns by it who the members are. The caller's state begins empty.
 */
export const firstSnapshot = (voters: readonly MemberId[]): SnapshotMeta => ({
  index: 1,
  term: 0,
  members: { voters, learners: [] },
  sessions: {},
});

/** Content of the folder of a member that joins, or whose folder was lost. */
export const noSnapshot: SnapshotMeta = { index: 0, term: 0, members: { voters: [], learners: [] }, sessions: {} };

export type Role = "follower" | "preCandidate" | "candidate" | "leader";

/** Returns the size with which an entry counts in the bounds of windows, in bytes. */
export const entryBytes = ({ body }: Entry): number => (body.kind === "data" ? body.data.length : 64) + 32;
