/** Interface of a range partition: reads at a snapshot, writes under a row's order. */

import type { OwnerEpoch } from "@stamp/base";
import type { Cursor, RangeLosses } from "@stamp/lsm";
import type { Cause } from "@stamp/ports";
import type { Place } from "@stamp/stream-client";
import type { Caches } from "./cache/caches.ts";
import type { MemoryBudget } from "./cache/memory-budget.ts";
import type { ScanRange } from "./scan-range.ts";
import type { StorageCounts, StorageFigures } from "./storage-figures.ts";
import type { StorageTimes } from "./storage-times.ts";
import type { RowScan } from "./tables.ts";

export type { Cursor };

export type RowWrite =
  | { readonly kind: "put"; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly kind: "delete"; readonly key: Uint8Array };

/** Rows as of one commit. Close it: what it can see is kept until then. */
export interface Snapshot {
  readonly sequence: number;
  close(): void;
}

/** View that a transaction has while it decides. Nobody else writes under its lock key meanwhile. */
export interface Transaction {
  /** A ticket: larger than every one given before that was committed, also by earlier owners. Not the place in the log. */
  readonly nextSequence: number;
  /** Makes every later ticket higher than this one, which another stamp used for rows that are written here. */
  raiseTicket(ticket: number): void;
  /**
   * Returns the committed row; in a pipelined transaction, the row that was decided last under its lock key. Throws FailureError if storage can't
   * be read.
   */
  get(key: Uint8Array): Promise<Uint8Array | undefined>;
  scan(range: ScanRange): RowScan;
  /** True if a row may refer to the place: its extent is in this partition's blob data stream and stays there. */
  ownsPlace(place: Place): boolean;
}

export interface DecidedWrites<T> {
  /** Atomic. All keys inside the partition's range; later ones of the same key win. Owned by the partition from here on. */
  readonly writes: readonly RowWrite[];
  readonly result: T;
}

export interface TransactOptions {
  readonly timeoutMs: number;
  /** Client's request that the transaction is for, if there is one. */
  readonly cause?: Cause | undefined;
  /**
   * The lock key is free again when the transaction is decided, not when it is durable: the next one sees what this one writes, and
   * cannot become durable before it. For rows that are written under this lock key only. A transaction of this lock key that is not
   * pipelined waits until the pipelined ones before it are durable.
   */
  readonly pipelined?: boolean;
}

/** A sealed extent of the blob data stream. */
export interface DataExtent {
  readonly extentId: number;
  readonly lengthBytes: number;
}

export interface PartitionStreamNames {
  readonly metadata: string;
  readonly commitLog: string;
  readonly rowData: string;
  /** Name of the blob data stream; only ranges of the Blob table have one. */
  readonly blobData?: string;
}

export interface PartitionLimits {
  /** Size of the memory table beyond which a checkpoint is written, in bytes. Default 64 MiB. */
  readonly memoryTableBytesMax?: number;
  /** A checkpoint is written when the log since the last one is longer. Default 256 MiB. */
  readonly logBytesMax?: number;
  /** Blocks of checkpoints in memory, where no caches are given. Default 32 MiB. */
  readonly rowCacheBytesMax?: number;
  /** Indexes of checkpoints in memory, where no caches are given. Default 32 MiB. */
  readonly indexCacheBytesMax?: number;
  /** Size of a commit record, in bytes. Default 4 MiB, which is one block and holds what a transaction of the largest body writes. */
  readonly groupBytesMax?: number;
  /**
   * Size of the commits whose callers were told `unknown` at their deadline and that are not durable, in bytes. From there on more commits are
   * refused as `overloaded`. Default 14 MiB.
   */
  readonly overdueBytesMax?: number;
  /** Transactions that wait or run. More are refused as `overloaded`. Default 10,000. */
  readonly transactionsMax?: number;
  /** Number of checkpoints that a read may meet before they are merged. Default 8. */
  readonly checkpointsMax?: number;
  /** Recent commits kept in memory for followers of the log, in bytes, while there is a follower. Default 4 MiB. */
  readonly followedBytesMax?: number;
}

export interface PartitionOptions {
  readonly rangeId: string;
  readonly streams: PartitionStreamNames;
  readonly ownerEpoch: OwnerEpoch;
  /** True to make streams that do not exist (default). */
  readonly create?: boolean;
  /** First key of the range, inclusive; empty: from the start. */
  readonly lowKey: Uint8Array;
  /** End of the range, exclusive; empty: to the end. */
  readonly highKey: Uint8Array;
  readonly limits?: PartitionLimits;
  /** Shared with other partitions. */
  readonly caches?: Caches;
  /** Budget of the memory tables, shared with other partitions. */
  readonly memory?: MemoryBudget;
  /** Counts what all partitions together do. */
  readonly figures?: StorageFigures;
  /** Times of all partitions together. */
  readonly times?: StorageTimes;
  /** Runs once when another owner took the streams over, or the partition can't go on. It serves nothing from then on. */
  readonly onLost?: (why: string) => void;
  /** How long bytes of blob data pin their extent, in milliseconds, unless their writer renews the pin. Default: 0. */
  readonly pinTermMs?: number;
}

export interface PartitionStats {
  readonly sequence: number;
  /** Losses by restores of the metadata; undefined: none. */
  readonly losses: RangeLosses | undefined;
  readonly memoryTableBytes: number;
  readonly memoryTableEntries: number;
  /**
   * Sequence of the oldest commit in memory, 0 when there is none: nothing is held in memory that a recorded checkpoint
   * has.
   */
  readonly memoryTableFirstSequence: number;
  /** Last sequence that the recorded checkpoints hold. */
  readonly checkpointedSequence: number;
  readonly logBytes: number;
  readonly checkpoints: number;
  readonly checkpointBytes: number;
  /** Bytes of caches that the range may share with others. */
  readonly cacheBytes: number;
  readonly indexCacheBytes: number;
  readonly storage: StorageCounts;
  readonly transactionsInProgress: number;
  /**
   * Every transaction that began before this time (wall clock, milliseconds since 1970) is committed at or below `sequence`, or came to
   * nothing.
   */
  readonly overBeforeMs: number;
  /** Same moment by the monotonic clock of this process, in milliseconds. */
  readonly overBeforeMonotonicMs: number;
  readonly commits: number;
  readonly groups: number;
  readonly lost: boolean;
}
