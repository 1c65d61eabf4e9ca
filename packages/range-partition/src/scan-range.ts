/** Rows, and what a scan asks for. */
import type { Cursor } from "@stamp/lsm";

/** `gte` inclusive, `lt` exclusive, by unsigned byte order. */
export interface ScanRange {
  readonly gte?: Uint8Array;
  readonly lt?: Uint8Array;
  readonly reverse?: boolean;
  /** Position from which a forward scan goes on, set by its reader. */
  readonly cursor?: Cursor;
  /** True to keep the scanned blocks out of the cache, where they would displace others. */
  readonly background?: boolean;
  /** True if the scan gives hidden rows, too (shipping/marker.ts). */
  readonly hidden?: boolean;
  /** Counter of deleted rows that the scan steps over; it can end the scan. */
  readonly walk?: DeletedWalk;
}

/** Deleted rows cost a scan as much as rows do until checkpoints are merged, but it does not give them. Written by the scan. */
export interface DeletedWalk {
  /** Number of deleted rows after which the scan ends. */
  readonly deletedMax: number;
  deleted: number;
  /** Key of the deleted row at which the walk ended the scan. */
  stoppedAt: Uint8Array | undefined;
}

/** Key and value, both owned by the partition: never change them, copy when keeping them for long. */
export type Row = readonly [key: Uint8Array, value: Uint8Array];
