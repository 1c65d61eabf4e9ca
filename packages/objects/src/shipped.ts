/** Rows of accounts that go to another stamp (docs/design/geo.md "Shipping"). */
import { prefixEnd, present, startsWith } from "@stamp/base";
import { encodeKey, partitionStart } from "./rows/key.ts";

/** Tables whose rows are shipped. Rows of blobs are not yet: their bytes would have to go, too. */
export const shippedTables = ["Entity"] as const;
export type ShippedTable = (typeof shippedTables)[number];

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
