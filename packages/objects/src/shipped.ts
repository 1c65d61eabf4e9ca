/** Rows of accounts that go to another stamp (docs/design/geo.md "Shipping"). */
import { compareBytes, prefixEnd, present, startsWith } from "@stamp/base";
import { encodeKey, partitionStart } from "./rows/key.ts";

/** Tables whose rows are shipped. Without them a copy is not complete. Messages belong to one stamp, as in the service. */
export const shippedTables = ["Entity", "Blob"] as const;
export type ShippedTable = (typeof shippedTables)[number];

/** Table whose rows refer to bytes in extents, which go first. */
export const hasBytes = (table: string): boolean => table === "Blob";

export const isShippedTable = (table: string): table is ShippedTable => (shippedTables as readonly string[]).includes(table);

/** Keys of all rows of an account; `high` is exclusive. */
export function accountKeys(account: string): { readonly low: Uint8Array; readonly high: Uint8Array } {
  const low = encodeKey([[account]]);
  return { low, high: present(prefixEnd(low), "the end of an account's keys") };
}

/** Returns a function that gives the bytes with which the keys of a row's PartitionName begin; undefined for a row of another account. */
export function shippedNames(account: string): (key: Uint8Array) => Uint8Array | undefined {
  const { low } = accountKeys(account);
  return (key) => (startsWith(key, low) ? partitionStart(key) : undefined);
}

/** True if a range has keys of the account. `low` is inclusive; `high` is exclusive, and empty for the end of the table. */
export function holdsAccount({ low, high }: { readonly low: Uint8Array; readonly high: Uint8Array }, account: string): boolean {
  const keys = accountKeys(account);
  return compareBytes(low, keys.high) < 0 && (high.length === 0 || compareBytes(keys.low, high) < 0);
}
