/**
 * Branded numbers: offsets, lengths, epochs and ids are safe-integer `number`s inside; a brand keeps two of them from being swapped.
 * They become bigint only on the wire (`@stamp/wire`).
 */
import { assert } from "./assert.ts";

declare const brand: unique symbol;
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** Names an extent for ever; never reused. Minted by the stream manager. */
export type ExtentId = Brand<number, "ExtentId">;
/** Raised whenever a stream gets a new owner (a range partition is assigned, a partition manager leads). */
export type OwnerEpoch = Brand<number, "OwnerEpoch">;
/** Leadership term of the stream manager; the lease epoch of lease `stream-manager`. */
export type SmTerm = Brand<number, "SmTerm">;
/** Leadership term of the partition manager; the lease epoch of lease `partition-manager`. */
export type PmTerm = Brand<number, "PmTerm">;
/** Raised each time a lease of one name is granted. */
export type LeaseEpoch = Brand<number, "LeaseEpoch">;
/** Raised by seal, repair and coding change of an extent. */
export type ExtentVersion = Brand<number, "ExtentVersion">;
/** Raised by split, merge and move of a range partition. */
export type RangeVersion = Brand<number, "RangeVersion">;
/** Order of commits within one range partition. Starts at 1; 0 means "before everything". */
export type Sequence = Brand<number, "Sequence">;

export const extentId = (value: number): ExtentId => safeInteger(value) as ExtentId;
export const ownerEpoch = (value: number): OwnerEpoch => safeInteger(value) as OwnerEpoch;
export const smTerm = (value: number): SmTerm => safeInteger(value) as SmTerm;
export const pmTerm = (value: number): PmTerm => safeInteger(value) as PmTerm;
export const leaseEpoch = (value: number): LeaseEpoch => safeInteger(value) as LeaseEpoch;
export const extentVersion = (value: number): ExtentVersion => safeInteger(value) as ExtentVersion;
export const rangeVersion = (value: number): RangeVersion => safeInteger(value) as RangeVersion;
export const sequence = (value: number): Sequence => safeInteger(value) as Sequence;

export function safeInteger(value: number): number {
  assert(Number.isSafeInteger(value) && value >= 0, `not a safe non-negative integer: ${value}`);
  return value;
}
