/** Rows, and what a scan asks for. */
import type { Cursor } from "@stamp/lsm";

/** `gte` inclusive, `lt` exclusive, by unsigned byte order. */
export interface ScanRange {
  readonly gte?: Uint8Array;
  readonly lt?: Uint8Array;
  readonly reverse?: boolean;
  /** Position from which a forward scan goes on, set by its reader. */
  readonly cursor?: Cursor;
  /** True if blocks that it reads are not kept in the cache, where they would push out what others read. */
  readonly background?: boolean;
  /** True if the scan gives hidden rows, too (shipping/marker.ts). */
  readonly hidden?: boolean;
  /** Counts what the scan steps over, and can end it. */
  readonly walk?: DeletedWalk;
}

/** Deleted rows cost a scan as much as rows do until checkpoints are merged, but it does not give them. Written by the scan. */
export interface DeletedWalk {
  /** Number of deleted rows after which the scan ends. */
  readonly deletedMax: number;
  deleted: number;
  /** The key of the deleted row at which it ended for that reason. */
  stoppedAt: Uint8Array | undefined;
}

/** Key and value, both owned by the partition: never change them, copy when keeping them for long. */
export type Row = readonly [key: Uint8Array, value: Uint8Array];
