/**
 * Messages between members. The network may lose, repeat, delay and reorder them. Every message says in its header who sends it, in which
 * term, since which start (`session`), and whether the sender has its standing (`full`).
 *
 * Paper (figure 2, figure 13, section 9.6)  | here
 * ------------------------------------------|-------------------------------------------------
 * RequestVote, its result                   | `vote`, `voteAnswer`; before them `preVote`, `preVoteAnswer`
 * AppendEntries, its result                 | `append`, `appendAnswer`; without entries `heartbeat`, `heartbeatAnswer`
 * InstallSnapshot                           | `snapshotOffer`, `snapshotChunk`, `snapshotAnswer`
 * TimeoutNow                                | `timeoutNow`
 */
import type { Entry, MemberId, SnapshotMeta } from "./types.ts";

export interface MessageHeader {
  readonly from: MemberId;
  readonly to: MemberId;
  readonly term: number;
  /** Start of the sender. Two starts of one member never share a session. */
  readonly session: number;
  /** True if the sender has its standing: its votes and acknowledgements count in a majority. */
  readonly full: boolean;
}

export type MessageBody =
  | { readonly kind: "preVote"; readonly nextTerm: number; readonly lastIndex: number; readonly lastTerm: number }
  /** Answer to a pre-vote; `candidate`: session of the candidate. A vote for an earlier start with a longer log does not count. */
  | { readonly kind: "preVoteAnswer"; readonly candidate: number; readonly nextTerm: number; readonly granted: boolean }
  /** Request for a vote; `transfer`: the leader asked for the election, so members that hear from the leader answer, too. */
  | { readonly kind: "vote"; readonly lastIndex: number; readonly lastTerm: number; readonly transfer: boolean }
  | { readonly kind: "voteAnswer"; readonly candidate: number; readonly granted: boolean }
  | {
      readonly kind: "append";
      readonly prevIndex: number;
      readonly prevTerm: number;
      readonly entries: readonly Entry[];
      readonly commit: number;
    }
  /** Answer to an append; `accepted`: the log equals the leader's up to `index`. */
  | { readonly kind: "appendAnswer"; readonly accepted: true; readonly index: number }
  /** Refused: the log has no entry `index` of the leader's term there; it may agree with the leader's at or below the hint. */
  | {
      readonly kind: "appendAnswer";
      readonly accepted: false;
      readonly index: number;
      readonly hintIndex: number;
      readonly hintTerm: number;
    }
  /** The follower believes in `commit` only if its entry there has this term: it may have forgotten what it acknowledged. */
  | { readonly kind: "heartbeat"; readonly round: number; readonly commit: number; readonly commitTerm: number }
  | { readonly kind: "heartbeatAnswer"; readonly round: number }
  | { readonly kind: "snapshotOffer"; readonly snapshot: SnapshotMeta }
  | {
      readonly kind: "snapshotChunk";
      readonly index: number;
      readonly offsetBytes: number;
      readonly bytes: Uint8Array;
      readonly last: boolean;
    }
  /** The receiver has the first `offsetBytes` bytes of the offered snapshot. */
  | { readonly kind: "snapshotAnswer"; readonly index: number; readonly offsetBytes: number }
  | { readonly kind: "timeoutNow" };

export type Message = MessageHeader & MessageBody;
export type MessageOf<K extends Message["kind"]> = Extract<Message, { readonly kind: K }>;
