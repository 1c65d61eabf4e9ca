/**
 * Machines and formats of an extent node, pure: `Replica`, `PrimaryWindow`, journal records and segments, block frames,
 * recovery. Events in, decisions out. The caller owes: making durable what a machine says before it reports it durable.
 */
export type { Decoded, Versioned } from "./binary.ts";
export * from "./block-frame.ts";
export * from "./block-index.ts";
export * from "./copy-pace.ts";
export * from "./crc.ts";
export * from "./disk-room.ts";
export * from "./extent-header.ts";
export * from "./fragment-file.ts";
export * from "./frame-feed.ts";
export * from "./io-scheduler.ts";
export * from "./journal-begun.ts";
export * from "./journal-queue.ts";
export * from "./journal-record.ts";
export * from "./journal-recovery.ts";
export * from "./journal-segment.ts";
export * from "./journal-segments.ts";
export * from "./node-identity.ts";
export * from "./pointed-data.ts";
export * from "./primary-window.ts";
export * from "./replay.ts";
export * from "./replica.ts";
export * from "./replica-meta.ts";
export * from "./scrub-pass.ts";
export * from "./slices.ts";
