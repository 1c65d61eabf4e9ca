/**
 * Answers to requests for the secondary location of an account. A stamp has one location only, and the primary is never served as a
 * secondary. The codes are the service's for an account without read access to its secondary (decision 0435). SDKs retry
 * neither of them.
 */
import { infoOf } from "./error-codes.ts";
import { isAccountName } from "./names.ts";
import { type RestError, rejected } from "./rest-error.ts";

type Refusal = { readonly ok: false; readonly error: RestError };

const suffix = "-secondary";
const statement = "This stamp has no secondary location: geo-replication is not supported here.";

/** True for the name of a valid account with `-secondary` behind it. */
export const isSecondaryName = (account: string): boolean => account.endsWith(suffix) && isAccountName(account.slice(0, -suffix.length));

/** Refuses any request that is sent to a secondary location. */
export const refuseSecondary = (account: string): Refusal =>
  rejected(
    "InsufficientAccountPermissions",
    { Account: account },
    { message: `${infoOf("InsufficientAccountPermissions").text} ${statement}` },
  );

/** Refuses Get Blob, Queue or Table Service Stats at the primary location: the operation exists at a secondary only. */
export const refuseStatistics = (): Refusal =>
  rejected(
    "InvalidQueryParameterValue",
    { QueryParameterName: "comp", QueryParameterValue: "stats", Reason: statement },
    { message: `${infoOf("InvalidQueryParameterValue").text} Statistics are those of a secondary location. ${statement}` },
  );
