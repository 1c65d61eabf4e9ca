/**
 * Names and answers of the secondary location of an account. The primary is never served as a secondary. The codes are the service's: for an
 * account without read access to its secondary, and for a write at one. SDKs retry none of them.
 */
import { formatRfc1123 } from "./dates.ts";
import { infoOf } from "./error-codes.ts";
import { isAccountName } from "./names.ts";
import { type RestError, rejected } from "./rest-error.ts";
import { element } from "./xml/xml-text.ts";

type Refusal = { readonly ok: false; readonly error: RestError };

const suffix = "-secondary";
const statement = "The account has no secondary location at this stamp.";

/** Returns the name of the account whose secondary location has this name; undefined for any other name. */
export function accountOfSecondary(name: string): string | undefined {
  const account = name.endsWith(suffix) ? name.slice(0, -suffix.length) : "";
  return isAccountName(account) ? account : undefined;
}

/** Returns the name of the secondary location of an account. */
export const secondaryName = (account: string): string => account + suffix;

/** Refuses any request to the secondary location of an account that has none. */
export const refuseSecondary = (account: string): Refusal =>
  rejected(
    "InsufficientAccountPermissions",
    { Account: secondaryName(account) },
    { message: `${infoOf("InsufficientAccountPermissions").text} ${statement}` },
  );

/** Refuses a write at a secondary location. */
export const refuseWriteAtSecondary = (): Refusal =>
  rejected("InsufficientAccountPermissions", {}, { message: "Write operations are not allowed." });

/** Refuses Get Blob, Queue or Table Service Stats at the primary location: the operation exists at a secondary only. */
export const refuseStatistics = (): Refusal =>
  rejected(
    "InvalidQueryParameterValue",
    { QueryParameterName: "comp", QueryParameterValue: "stats", Reason: statement },
    { message: `${infoOf("InvalidQueryParameterValue").text} Statistics are those of a secondary location. ${statement}` },
  );

/** State of the copy at a secondary location; `bootstrap`: it is being filled. */
export type ReplicationStatus = "live" | "bootstrap" | "unavailable";

/**
 * Returns the body of Get Blob, Queue and Table Service Stats. `lastSyncMs`: every write up to it is at the secondary location, in milliseconds
 * since 1970; undefined: it is not known, and the element is empty, as the reference has it. It is told in whole seconds, rounded down.
 */
export function serviceStatisticsXml(status: ReplicationStatus, lastSyncMs: number | undefined): string {
  const lastSync = element("LastSyncTime", lastSyncMs === undefined ? "" : formatRfc1123(lastSyncMs));
  return (
    '<?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication>' +
    `${element("Status", status)}${lastSync}</GeoReplication></StorageServiceStats>`
  );
}
