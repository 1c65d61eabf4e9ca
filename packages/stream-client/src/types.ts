/** Types of the stream client: places, extents of a stream, bounds. */
import type { Address, Cause } from "@stamp/ports";

/** Bytes of one block (or a part of it) inside an extent. */
export interface Place {
  readonly extentId: number;
  /** Offset of the first payload byte in the extent's address space, block headers included. */
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

/** One extent of an owned stream. The last one may be open; all others are sealed. */
export interface StreamExtent {
  readonly extentId: number;
  /** Sealed length in bytes; undefined while the extent is open. */
  readonly sealedLengthBytes: number | undefined;
}

export interface StoredBlock {
  readonly place: Place;
  /** Bytes of the block, borrowed from the message: copy to keep a small part. */
  readonly payload: Uint8Array;
}

/** A stream went from one extent to the next. */
export interface ExtentChange {
  readonly stream: string;
  /** Number of the extent that the stream left; 0: the stream had none. */
  readonly fromExtentId: number;
  readonly toExtentId: number;
  readonly why: "first" | "full" | "failed";
  /** Time from the moment when the change was necessary until the next append was sent, in milliseconds. */
  readonly tookMs: number;
}

export interface StreamClientOptions {
  /** Called at changes of the extent, for measurements. */
  readonly onExtentChange?: (change: ExtentChange) => void;
  readonly lockService: Address;
  /** Length beyond which an extent is left for the next one, in bytes. Default 64 MiB. */
  readonly extentTargetBytes?: number;
  /** Deadline of one append at an extent node, in milliseconds. Default 800. */
  readonly appendTimeoutMs?: number;
  /** Payload and headers of appends that were sent and not yet acknowledged, for one stream; less while the primary is slow. Default 16 MiB. */
  readonly inFlightBytesMax?: number;
  /** Bound of appends in flight for one stream (default 256). */
  readonly inFlightAppendsMax?: number;
  /** Payload of appends that wait for room in the window, for one stream. Default 48 MiB, above what one connection hands over; more is refused as `overloaded`. */
  readonly waitingBytesMax?: number;
  /** Extents whose location is remembered. Default 10,000. */
  readonly locationsMax?: number;
}

export interface AppendOptions {
  /** Deadline of the caller, in milliseconds. `Infinity`: none; the append also waits for room on the disks, unless `refusedWithoutRoom`. */
  readonly timeoutMs: number;
  /** True: an append without a deadline is refused with `noPlacement`, as certainly not done, while no extent node has room. */
  readonly refusedWithoutRoom?: boolean;
  /** Called once, or never, when the append is acknowledged and no connection sends its blocks any more; perhaps after the result. */
  readonly whenFree?: (() => void) | undefined;
  /** Client's request for which this is appended, if there is one. */
  readonly cause?: Cause | undefined;
}

export interface ReadOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Client's request for which this is read, if there is one. */
  readonly cause?: Cause | undefined;
}

export interface ReadPlacesOptions {
  /** Bytes that are asked for ahead of the reader. Default and at most 4 MiB. */
  readonly windowBytes?: number;
  /** Deadline of each single read, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Client's request for which this is read, if there is one. */
  readonly cause?: Cause | undefined;
  /** True: each chunk is borrowed until the next one is asked for or the reader is left, and its memory is then used again. */
  readonly isBorrowed?: boolean;
}

/** Offset in an extent, in bytes, at which the header of a block begins or the blocks end. */
export type StreamPlace = Pick<Place, "extentId" | "offsetBytes">;
