/**
 * A partition server's needs of a loaded range partition; @stamp/range-partition gives it (range-engine.ts), tests give
 * another.
 */
import type { Outcome } from "@stamp/base";
import type { Decision, Place, ScanAnswer, ScanLimits, VisitRow } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { DataExtent, RangePartition, StorageCounts, StorageTimes, TransactOptions } from "@stamp/range-partition";
import type { AppendOptions, HedgeFigures } from "@stamp/stream-client";
import type { ExtentLocation } from "@stamp/wire";

/** Rows of a range at one moment. */
export interface RowView {
  get(key: Uint8Array): Promise<Outcome<Uint8Array | undefined>>;
  scan(low: Uint8Array, high: Uint8Array, limits: ScanLimits): Promise<Outcome<ScanAnswer>>;
  /** Walks row after row; `visit` says where to look next, or undefined to stop. What lies between is not read. */
  walk(low: Uint8Array, high: Uint8Array, visit: VisitRow, options?: WalkOptions): Promise<Outcome<void>>;
}

export interface WalkOptions {
  /** True to see hidden rows, too (markers, seed marks and report rows). */
  readonly hidden: boolean;
}

export interface EngineFacts {
  readonly sequence: number;
  readonly memoryTableBytes: number;
  readonly checkpointCount: number;
  readonly checkpointBytes: number;
  /** Commits and checkpoints that the range lacks since a restore of the metadata; undefined: none. */
  readonly losses?: { readonly commits: number; readonly checkpoints: number } | undefined;
  /** Counts since the range was loaded; absent from engines without checkpoints. */
  readonly storage?: StorageCounts;
}

export interface RangeEngine {
  /** Reads rows at the newest commit. `background`: what it walks over is not kept in the cache. */
  read<T>(work: (view: RowView) => Promise<Outcome<T>>, options?: { readonly background: boolean }): Promise<Outcome<T>>;
  /**
   * Decides in the order of these keys and commits what was decided; the answer comes when it is durable and applied. Pipelined: the next
   * one of the same (one) key is decided before that.
   */
  transact(
    lockKeys: readonly Uint8Array[],
    decide: (view: RowView, sequence: number) => Promise<Outcome<Decision>>,
    options: TransactOptions,
  ): Promise<Outcome<Decision>>;
  /** Appends to the blob data stream, in one piece. */
  appendData(payload: Uint8Array, options: AppendOptions): Promise<Outcome<Place>>;
  /** True if a row may refer to the place. Asked in row order. */
  mayReferTo(place: Place): boolean;
  readonly facts: EngineFacts;
  /** Returns the sealed extents of blob data, in order. */
  sealedDataExtents(): readonly DataExtent[];
  /** Returns the extents in which no upload in progress has bytes; they are recorded before. */
  settleExtents(): Promise<Outcome<readonly DataExtent[]>>;
  /**
   * Containers, tables and queues that were found deleted while rows here lie inside of them:
   * `account/name/incarnation` and the time of the first finding, in milliseconds since 1970.
   */
  goneSinceMs(): Readonly<Record<string, number>>;
  /** Records that, so that later owners count on. */
  recordGone(goneSinceMs: Readonly<Record<string, number>>): Promise<Outcome<void>>;
  /** Records that rows of this version are there, so that a release that does not know it refuses the load. Before the first one is written. */
  needRows(version: number): Promise<Outcome<void>>;
  /** Renews the pins of these extents; returns the extents that are gone. */
  pinData(extentIds: readonly number[]): Outcome<readonly number[]>;
  /** Appends the bytes of these places once more to the blob data stream. */
  copyData(places: readonly Place[], timeoutMs: number): Promise<Outcome<readonly Place[]>>;
  /** Lets no row begin to refer to these extents; resolves when every transaction that might have is over. */
  leaveExtents(extentIds: readonly number[]): Promise<void>;
  /** Takes those out of the blob data stream that nothing refers to; the others of `leaveExtents` may be referred to again. */
  dropExtents(unreferenced: ReadonlySet<number>, timeoutMs: number): Promise<Outcome<readonly number[]>>;
  /** Range partition behind the engine; absent from engines of tests. */
  readonly partition?: RangePartition;
  /** Writes out what is in memory. */
  checkpoint(): Promise<Outcome<void>>;
  /** Resolves when commits have a place to go to: nothing has to be asked for the first one. */
  begin(): Promise<void>;
  /** Returns the keys that divide what is written out into parts of about one size, in order. */
  keySamples(): readonly Uint8Array[];
  /** Takes no new write; resolves when no append is in flight. */
  close(): Promise<void>;
  /** Drops cached content after `close`, because the range is served elsewhere. */
  forgetCached(): Promise<void>;
}

/** Since when writes wait for the children of a split or merge; how long they waited for decisions, and for the last record. */
export interface LeaveTimes {
  readonly heldSinceMs: number;
  readonly drainMs: number;
  readonly writeMs: number;
}

/** A range that leaves or has left. */
export interface ParentRange {
  readonly range: Range;
  readonly engine: RangeEngine;
}

export interface StorageTotals extends StorageCounts {
  readonly rowCacheBytes: number;
  readonly indexCacheBytes: number;
  readonly memoryTableBytes: number;
}

/** All that a partition server needs of the stream layer. */
export interface Engines {
  readonly load: LoadEngine;
  /** Returns counts of all ranges since the process started, with the content of their caches. */
  readonly storage?: () => StorageTotals;
  /** Returns counts of reads of coded extents and of their hedges since the process started. */
  readonly hedges?: () => HedgeFigures;
  /** Times of all ranges together, by what they were spent on. */
  readonly times?: StorageTimes;
  /** Returns the locations of these extents, without unknown ones. */
  locate(extentIds: readonly number[], timeoutMs: number): Promise<ExtentLocation[]>;
  /** Begins a split or merge: one parent, or two neighbours in order. */
  handoff(parents: readonly ParentRange[], children: readonly Range[]): Handoff;
}

/**
 * One split or merge; its steps in their order. Until `holdData` the parents are served as before. Afterwards the caller
 * closes them, also if the handoff fails.
 */
export interface Handoff {
  /** Does all that can be done before anything has to wait. `written`: somebody writes to the parents. */
  prepare(written: boolean): Promise<Outcome<void>>;
  /** Takes the departure back: parents that are still served go on. Only before `holdData`. */
  resume(isServed: (rangeId: string) => boolean): void;
  /** Takes no more blob data; resolves when bytes on their way are in, or after a bound. Rows are written meanwhile. */
  holdData(): Promise<void>;
  /** Takes no new write from `heldSinceMs` on; resolves when the children's state is in the first parent's metadata stream. Reads go on. */
  leave(): Promise<Outcome<LeaveTimes>>;
  /** Makes the streams of the parents those of the children in one change, or changes nothing. */
  handOver(timeoutMs: number): Promise<Outcome<void>>;
  /** Loads a child here, from what the parents left. */
  readonly load: LoadEngine;
}

/** Opens the range's streams under its owner epoch and replays its log. Refused with `staleOwnerEpoch` when a higher one did so before. */
export type LoadEngine = (range: Range, onFenced: (why: string) => void) => Promise<Outcome<RangeEngine>>;
