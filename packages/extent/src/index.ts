/**
 * Machines and formats of an extent node, pure: `Replica`, `PrimaryWindow`, journal records and segments, block frames,
 * recovery. Events in, decisions out. The caller owes: making durable what a machine says before it reports it durable.
 */
export { CopyPace, type CopyProgress } from "./disk/copy-pace.ts";
export { type DiskRoom, hasFiles, missingFilesForExtents, missingForExtents, takesBytes, takesExtents } from "./disk/disk-room.ts";
export { type IoClass, type IoEffect, type IoLimits, IoScheduler } from "./disk/io-scheduler.ts";
export { decodeNodeIdentity, encodeNodeIdentity, type NodeIdentity } from "./disk/node-identity.ts";
export {
  beginScrubPass,
  decodeScrubState,
  encodeScrubState,
  endScrubPass,
  noteScrubbed,
  type ScrubState,
  scrubOrder,
} from "./disk/scrub-pass.ts";
export type { Versioned } from "./format/binary.ts";
export {
  appendBlocksMax,
  appendHeadersBytesMax,
  appendPayloadBytesMax,
  blockPayloadBytesMax,
  chunkBytes,
  chunksIntact,
  encodeFrameHeader,
  type FrameAt,
  type FrameHeader,
  frameBytes,
  frameFixedBytes,
  frameHeaderBytes,
  parseFrameHeader,
  payloadBytesOf,
  walkFrames,
} from "./format/block-frame.ts";
export { BlockIndex, encodeFrameRun, type IndexedFrame, indexFromRuns } from "./format/block-index.ts";
export { type Crc32c, combineCrc32c, crc32cOf } from "./format/crc.ts";
export {
  decodeExtentHeader,
  type ExtentHeader,
  encodeExtentHeader,
  extentContentOffset,
  extentSlotOffset,
} from "./format/extent-header.ts";
export {
  badFragmentChunk,
  decodeFragmentHead,
  decodeFragmentTable,
  encodeFragmentHead,
  encodeFragmentTable,
  type FragmentHead,
  type FragmentName,
  type FragmentSpec,
  fragmentBytesMax,
  fragmentBytesOf,
  fragmentChunkBytes,
  fragmentChunkChecksum,
  fragmentContentChecksum,
  fragmentContentOffset,
  fragmentHeadBytes,
  fragmentTableBytes,
  isContentOf,
  isFragmentSpec,
} from "./format/fragment-file.ts";
export { FrameFeed } from "./format/frame-feed.ts";
export { Slices } from "./format/slices.ts";
export { decodeJournalBegun, encodeJournalBegun, journalBegunBytes, journalBegunOffset } from "./journal/journal-begun.ts";
export { type FailedRecord, JournalQueue } from "./journal/journal-queue.ts";
export {
  encodeJournalHeader,
  encodePointerBody,
  encodeSealBody,
  type JournalRecord,
  type JournalType,
  journalHeaderBytes,
} from "./journal/journal-record.ts";
export { judgeSegment, type SegmentJudgement } from "./journal/journal-recovery.ts";
export {
  decodeSegmentHeader,
  encodeSegmentHeader,
  pageAligned,
  type ScannedRecord,
  type SegmentHeader,
  scanSegment,
  segmentRecordsOffset,
} from "./journal/journal-segment.ts";
export { type FoundSegment, planSegments } from "./journal/journal-segments.ts";
export { type PointedBytes, PointedData } from "./journal/pointed-data.ts";
export { type ObeyedTerm, Replay, type ReplayEffect } from "./journal/replay.ts";
export { PrimaryWindow, type WindowEffects } from "./replica/primary-window.ts";
export { Replica } from "./replica/replica.ts";
export {
  type Creation,
  decodeMeta,
  encodeMeta,
  isUnreadable,
  type ReplicaMeta,
  type ReplicaState,
  unreadableMeta,
} from "./replica/replica-meta.ts";
