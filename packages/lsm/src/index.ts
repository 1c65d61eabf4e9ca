/**
 * Log-structured tables, pure: memory table, commit records, checkpoint files with their index and filter, and the plan
 * of merges. Fetching blocks is the caller's part.
 */
export {
  Block,
  type BlockWalk,
  type CheckpointIndex,
  CheckpointWriter,
  decodeBlock,
  decodeIndex,
  hashKey,
  type KeyHash,
  type StoredPlace,
  withoutPause,
} from "./checkpoint.ts";
export { type CommitRecord, decodeCommit, encodeCommit, type Write, writesBytes } from "./commit-record.ts";
export { type Cursor, compareEntries, type Entry, type KeyRange } from "./entry.ts";
export { holdsKey, intersect, type KeyBounds, type LogPlace } from "./key-bounds.ts";
export { coveredByRest, type FollowerCursors, followersFor, type StoredFollower, type StoredFollowers } from "./log-followers.ts";
export { type LogLineage, lineageAtLoad } from "./log-lineage.ts";
export { MemoryTable } from "./memory-table.ts";
export { mergeDefaults, mergePlan, type PlannedCheckpoint } from "./merge-plan.ts";
export { Merger } from "./merger.ts";
export {
  boundsOf,
  decodeState,
  encodeState,
  joinedLosses,
  joinedState,
  type PartitionState,
  type RangeLosses,
  type StoredCheckpoint,
  withRestOf,
} from "./partition-state.ts";
