/** Work on a range for an account that has a second stamp, what it tells of itself, and sizes of what it is about. */
import { compareBytes } from "@stamp/base";
import type { AccountRole, ShippingRates } from "@stamp/geo";
import { accountKeys } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { RangePartition } from "@stamp/range-partition";

/** State for people and for the manager. Sizes of a range of blobs include the bytes that its rows refer to. */
export interface ShippingFacts {
  readonly account: string;
  readonly rangeId: string;
  readonly table: string;
  readonly epoch: number;
  /** A range of a deposed primary is `reporting` or has `reported` (range-report.ts). */
  readonly state: "seeding" | "shipping" | "reporting" | "reported" | "ended";
  /** Commits that are not acknowledged. */
  readonly pending: number;
  /** Size of the pending commits' rows and blob bytes; an upper bound. */
  readonly pendingBytes: number;
  /** Size of the log that is kept for the commits, in bytes, without its open extent. */
  readonly backlogBytes: number;
  /** True if the receiver has every row that the range had when its scan ended. */
  readonly complete: boolean;
  /** Last Sync Time of the range, in milliseconds since 1970; undefined: not known. */
  readonly lastSyncMs: number | undefined;
  /** Time before which every transaction that began is acknowledged, or came to nothing; by this process's monotonic clock. Undefined: not known. */
  readonly passedMonotonicMs: number | undefined;
  /** Estimated size of the rows that are seeded, in bytes. */
  readonly seededBytes: number;
  /** Estimated size of all rows of the account in the range, in bytes. */
  readonly seedBytes: number;
  /** Rows that the scan brings to the receiver in a second, in bytes; 0: nothing is scanned. */
  readonly seedBytesPerSecond: number;
  /** Rates at which clients write and the other stamp acknowledges; undefined: nothing is shipped, or they are not known yet. */
  readonly rates?: ShippingRates | undefined;
  /** PartitionNames that were sent whole, because bytes of a logged commit had been collected. */
  readonly sentWhole: number;
  /** Reason why the last call failed; empty: it did not. */
  readonly failure: string;
  /** Lineage of the range's log, and lineage of the other stamp under which its rows were seeded; undefined: nothing is seeded. */
  readonly lineage?: number;
  readonly copyLineage?: number;
}

/** Facts of a range that may not have begun. */
export type Facts = Omit<ShippingFacts, "account" | "rangeId" | "table" | "epoch" | "state"> & {
  readonly state: ShippingFacts["state"] | "waiting";
};

/** The copy that somebody asks about. */
export interface AskedShipping {
  readonly account: string;
  readonly epoch: number;
  readonly paired: number;
  /** Time since the last front-end may have admitted a write of the drained account, in milliseconds; undefined if it is not drained. */
  readonly drainedMsAgo?: number | undefined;
  /** Lineage that the other stamp told last; undefined or 0: not known. */
  readonly copyLineage?: number | undefined;
}

/** Work on one range for an account that has a second stamp: shipping, or the report of a deposed primary. */
export interface RangeWork {
  readonly role: AccountRole;
  readonly facts: ShippingFacts;
  readonly isEnded: boolean;
  /** Resolves when nothing is done any more. */
  readonly ended: Promise<void>;
  /** Notes the lineage of the other stamp's metadata store. */
  heardCopyLineage?(lineage: number): void;
  stop(): void;
  /** Releases the log that is kept for the other stamp. */
  letGo(): Promise<void>;
}

/** Returns the keys of an account in a range. */
export function keysWithin(
  { low, high }: Pick<Range, "low" | "high">,
  account: string,
): { readonly low: Uint8Array; readonly high: Uint8Array } {
  const keys = accountKeys(account);
  return { low: later(keys.low, low), high: high.length === 0 ? keys.high : earlier(keys.high, high) };
}

export const later = (a: Uint8Array, b: Uint8Array): Uint8Array => (compareBytes(a, b) < 0 ? b : a);
const earlier = (a: Uint8Array, b: Uint8Array): Uint8Array => (compareBytes(a, b) < 0 ? a : b);

/** Returns the size of the rows and blob bytes that the range took since its load. */
export const acceptedBytes = ({ stats, data }: RangePartition): number => stats.storage.rowBytesAccepted + data.appendedBytes;

/**
 * Returns the size of the rows between two keys, and of the bytes that they refer to: the share of the keys that divide all rows into parts of
 * about one size. Bytes that no row refers to any more count until they are collected; those of the last extent do not count yet.
 */
export function estimatedBytes(partition: RangePartition, low: Uint8Array, high: Uint8Array): number {
  const { checkpointBytes, memoryTableBytes } = partition.stats;
  const dataBytes = partition.data.sealedExtents.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);
  const all = checkpointBytes + memoryTableBytes + dataBytes;
  const samples = partition.keySamples();
  const within = samples.filter((key) => compareBytes(key, low) >= 0 && compareBytes(key, high) < 0).length;
  if (samples.length === 0) return compareBytes(low, high) < 0 ? all : 0;
  return (all * within) / samples.length;
}
