/**
 * Machines and formats of an extent node, pure: `Replica`, `PrimaryWindow`, journal records and segments, block frames,
 * recovery. Events in, decisions out. The caller owes: making durable what a machine says before it reports it durable.
 */

export * from "./disk/copy-pace.ts";
export * from "./disk/disk-room.ts";
export * from "./disk/io-scheduler.ts";
export * from "./disk/node-identity.ts";
export * from "./disk/scrub-pass.ts";
export type { Decoded, Versioned } from "./format/binary.ts";
export * from "./format/block-frame.ts";
export * from "./format/block-index.ts";
export * from "./format/crc.ts";
export * from "./format/extent-header.ts";
export * from "./format/fragment-file.ts";
export * from "./format/frame-feed.ts";
export * from "./format/slices.ts";
export * from "./journal/journal-begun.ts";
export * from "./journal/journal-queue.ts";
export * from "./journal/journal-record.ts";
export * from "./journal/journal-recovery.ts";
export * from "./journal/journal-segment.ts";
export * from "./journal/journal-segments.ts";
export * from "./journal/pointed-data.ts";
export * from "./journal/replay.ts";
export * from "./replica/primary-window.ts";
export * from "./replica/replica.ts";
export * from "./replica/replica-meta.ts";
