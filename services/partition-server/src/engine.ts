/** What a partition server needs of a loaded range partition; @stamp/range-partition gives it (range-engine.ts), tests give another. */
import type { Outcome } from "@stamp/base";
import type { Decision, Place, ScanAnswer, ScanLimits, VisitRow } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { ExtentLocation } from "@stamp/wire";

/** Rows as of one moment. */
export interface RowView {
  get(key: Uint8Array): Promise<Outcome<Uint8Array | undefined>>;
  scan(low: Uint8Array, high: Uint8Array, limits: ScanLimits): Promise<Outcome<ScanAnswer>>;
  /** Row after row; `visit` says where to look next, or undefined to stop. What lies between is not read. */
  walk(low: Uint8Array, high: Uint8Array, visit: VisitRow): Promise<Outcome<void>>;
}

export interface EngineFacts {
  readonly sequence: number;
  readonly memoryTableBytes: number;
  readonly checkpointCount: number;
  readonly checkpointBytes: number;
}

export interface RangeEngine {
  /** Rows at the newest commit. */
  read<T>(work: (view: RowView) => Promise<Outcome<T>>): Promise<Outcome<T>>;
  /**
   * Decides in the order of these keys and commits what was decided; the answer comes when it is durable and applied. Pipelined: the next
   * one of the same (one) key is decided before that.
   */
  transact(
    lockKeys: readonly Uint8Array[],
    decide: (view: RowView, sequence: number) => Promise<Outcome<Decision>>,
    options: { readonly timeoutMs: number; readonly pipelined: boolean },
  ): Promise<Outcome<Decision>>;
  /** To the blob data stream, in one piece. */
  appendData(payload: Uint8Array, timeoutMs: number): Promise<Outcome<Place>>;
  /** Whether a row may refer to it. Asked in row order. */
  mayReferTo(place: Place): boolean;
  readonly facts: EngineFacts;
  /** No new write; resolves when no append is in flight. */
  close(): Promise<void>;
}

/** All that a partition server needs of the stream layer. */
export interface Engines {
  readonly load: LoadEngine;
  /** Where these extents are; those that nobody knows are left out. */
  locate(extentIds: readonly number[], timeoutMs: number): Promise<ExtentLocation[]>;
}

/** Opens the range's streams under its owner epoch and replays its log. Refused with `staleOwnerEpoch` when a higher one did so before. */
export type LoadEngine = (range: Range, onFenced: (why: string) => void) => Promise<Outcome<RangeEngine>>;
