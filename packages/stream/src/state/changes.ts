/** Changes of the stream manager's records, and the keys of the metadata store that they write or depend on. */
import type { ExtentId } from "@stamp/base";
import { extentKey, recordKey, type StoredRecord, segmentKey, streamKey } from "../codec.ts";

export type Removal =
  | { readonly kind: "removeStream"; readonly name: string }
  | { readonly kind: "removeExtent"; readonly id: ExtentId }
  | { readonly kind: "removeSegment"; readonly id: number };

/** A record that is written, or one that is removed. */
export type RecordChange = StoredRecord | Removal;

export interface TransactionPlan {
  readonly changes: readonly RecordChange[];
  /** Keys that were only read; those that are changed are conditions anyway. */
  readonly reads: readonly string[];
}

export interface PlannedTransaction {
  readonly conditions: { readonly key: string; readonly version: number }[];
  readonly writes: { readonly key: string; readonly value?: Uint8Array }[];
}

/** A key of the metadata store; version 0: it was deleted. */
export interface StoredEntry {
  readonly key: string;
  readonly value: Uint8Array;
  readonly version: number;
}

export function changedKey(change: RecordChange): string {
  switch (change.kind) {
    case "removeStream":
      return streamKey(change.name);
    case "removeExtent":
      return extentKey(change.id);
    case "removeSegment":
      return segmentKey(change.id);
    default:
      return recordKey(change);
  }
}

/** Returns what a deleted key removes; undefined if a record under it is never removed alone. */
export function removalOf(key: string): Removal | undefined {
  const id = extentOfKey(key);
  if (id !== undefined) return { kind: "removeExtent", id };
  if (key.startsWith(segmentKeyPrefix)) return { kind: "removeSegment", id: Number(key.slice(segmentKeyPrefix.length)) };
  if (key.startsWith(streamKey(""))) return { kind: "removeStream", name: key.slice(streamKey("").length) };
  return undefined;
}

export const isRemoval = (change: RecordChange): change is Removal =>
  change.kind === "removeStream" || change.kind === "removeExtent" || change.kind === "removeSegment";

/** Returns the keys whose versions are conditions of the plan's transaction. */
export const keysOf = (plan: TransactionPlan): string[] => [...plan.changes.map(changedKey), ...plan.reads];

const segmentKeyPrefix = segmentKey(0).replace(/\d+$/, "");
const extentKeyPrefix = extentKey(0 as ExtentId).replace(/\d+$/, "");
export const extentOfKey = (key: string): ExtentId | undefined =>
  key.startsWith(extentKeyPrefix) ? (Number(key.slice(extentKeyPrefix.length)) as ExtentId) : undefined;
