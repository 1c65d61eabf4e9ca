/**
 * Raft as Ongaro's dissertation has it, as a machine: `Raft` takes messages, ticks and requests, and says by `Ready` what is to be written, sent and
 * applied. The caller owes: writes in order and durable before `persisted`, one unique session for each start, and `trusted` only for a folder
 * that forgot nothing.
 */
export { type RaftLimits, type RaftOptions, raftLimits } from "./core.ts";
export { decidingVoters, type Position } from "./log.ts";
export { isMember, isVoter, type MemberChange, membersMax } from "./members.ts";
export type { Message, MessageBody, MessageHeader } from "./messages.ts";
export { majorityOf, wideOf } from "./quorum.ts";
export { Raft } from "./raft.ts";
export type { ChunkToStore, ChunkWanted, RaftStatus, ReadState, Ready } from "./ready.ts";
export type { Chunk } from "./snapshot-stream.ts";
export {
  type Entry,
  type EntryBody,
  firstSnapshot,
  type HardState,
  type MemberId,
  type Members,
  noSnapshot,
  type Role,
  type SnapshotMeta,
} from "./types.ts";
