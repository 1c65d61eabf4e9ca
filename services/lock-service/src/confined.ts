/**
 * Bounds of a location service at a lock service. It holds the lease `location-service` and writes records below `location/`, in the store of
 * the location's own lock service. It also calls the lock services of stamps, to find their leaders. There, the same bounds keep it from the
 * leases and the metadata of the stamp, also if the process was taken over.
 *
 * Other callers are bounded by the table of methods alone (packages/wire/src/callers.ts).
 */
import { type Failed, refused } from "@stamp/base";
import type { TransactionInput } from "./judge.ts";

const confined = "location-service";
const itsLease = "location-service";
const itsKeys = "location/";

/** Returns a refusal if the caller is confined and the lease is another one than its own. */
export const otherLease = (caller: string | undefined, name: string): Failed | undefined =>
  caller !== confined || name === itsLease ? undefined : notIts(`the lease ${name}`);

/** Returns a refusal if the caller is confined and the key, or prefix, is none of its records. */
export const otherKey = (caller: string | undefined, key: string): Failed | undefined =>
  caller !== confined || key.startsWith(itsKeys) ? undefined : notIts(`the key ${key}`);

/** Returns a refusal if the caller is confined and the transaction is not one of its own lease about its own records. */
export function otherTransaction(caller: string | undefined, { fence, conditions, writes }: TransactionInput): Failed | undefined {
  if (caller !== confined) return undefined;
  const key = [...conditions, ...writes].find((each) => !each.key.startsWith(itsKeys))?.key;
  return otherLease(caller, fence.leaseName) ?? (key === undefined ? undefined : otherKey(caller, key));
}

const notIts = (what: string): Failed =>
  refused("permissionDenied", "unauthorized", `a location service has its own lease and its own records, and not ${what}`);
