/** Conversions that rows of containers and blobs share: between stored types and those of operations. */
import { fromHex, present, toHex } from "@stamp/base";
import type { Metadata } from "../../object-keys.ts";
import { type DictionaryEntry, dateTimeOfMs, msOfDateTime, type RowOf } from "../../rows/row.ts";
import type { blobSchema } from "../../rows/schemas.ts";
import type { Lease } from "../protect/leases.ts";

export type BlobRow = RowOf<typeof blobSchema>;

export const int = (value: bigint | undefined): number => Number(value ?? 0n);
export const ms = (value: bigint | undefined): number => (value === undefined ? 0 : msOfDateTime(value));
export const optionalMs = (value: bigint | undefined): number | undefined => (value === undefined ? undefined : msOfDateTime(value));
export const optionalTime = (valueMs: number | undefined): bigint | undefined =>
  valueMs === undefined ? undefined : dateTimeOfMs(valueMs);
/** Functions that leave empty, zero and false values out of a row. */
export const text = (value: string): string | undefined => (value === "" ? undefined : value);
export const count = (value: number): number | undefined => (value === 0 ? undefined : value);
export const bigCount = (value: number): bigint | undefined => (value === 0 ? undefined : BigInt(value));
export const flag = (value: boolean): boolean | undefined => (value ? true : undefined);

export function dictionaryOf(metadata: Metadata): DictionaryEntry[] | undefined {
  const entries = Object.entries(metadata).map(([name, value]): DictionaryEntry => ({ name, type: "string", value }));
  return entries.length > 0 ? entries : undefined;
}

/** Metadata or tags of an object that has none. */
export const noTexts: Metadata = Object.freeze(Object.create(null));

/** Returns metadata as an object without a prototype, because a name may be anything. */
export function metadataOf(entries: readonly DictionaryEntry[] | undefined): Metadata {
  if (entries === undefined) return noTexts;
  const metadata: Record<string, string> = Object.create(null);
  for (const entry of entries) metadata[entry.name] = String(entry.value);
  return metadata;
}

const leaseStates = ["leased", "breaking", "broken"] as const;

/** Returns the fields of a lease in the row of the leased object. */
export const encodeLease = (lease: Lease | undefined): Pick<BlobRow, "leaseState" | "leaseId" | "leaseDurationMs" | "leaseGrant"> =>
  lease === undefined
    ? {}
    : {
        leaseState: leaseStates.indexOf(lease.state) + 1,
        leaseId: present(fromHex(lease.id.replaceAll("-", "")), "a lease id in its canonical form"),
        leaseDurationMs: BigInt(lease.durationMs),
        leaseGrant: BigInt(lease.grant),
      };

export function decodeLease(row: BlobRow): Lease | undefined {
  const state = leaseStates[(row.leaseState ?? 0) - 1];
  if (state === undefined || row.leaseId === undefined) return undefined;
  return { state, id: guidText(row.leaseId), durationMs: int(row.leaseDurationMs), grant: int(row.leaseGrant) };
}

function guidText(bytes: Uint8Array): string {
  const hex = toHex(bytes);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
