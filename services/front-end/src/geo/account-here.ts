/**
 * Says whether this stamp serves an account under a name (docs/design/geo.md "What a stamp serves"). Every door asks here: before a request
 * is served, and before a write is acknowledged.
 *
 * | role | account's own name | `-secondary` name |
 * |---|---|---|
 * | primary | reads and writes | refused |
 * | drained | reads; writes are 503 | refused |
 * | secondary | 503 | reads; writes are 403 |
 * | unseeded | 503 | statistics, once it has keys; everything else is 503 |
 *
 * Invariants:
 * - A write is acknowledged only if a row that was asked for less than its term ago says primary. The term's end is what `drain` and `demote`
 *   wait for (rule `geoCachedRolesEnd`).
 * - The account's own name never answers with a copy: a client with an old address would not find its own writes.
 */
import { type RestError, refuseSecondary, refuseWriteAtSecondary } from "@stamp/azure-rest";
import type { AccountRole } from "@stamp/geo";
import type { Accounts } from "../accounts/accounts.ts";
import { busyError, restErrorOf } from "../objects/failures.ts";
import type { CallLimits } from "../routing/router.ts";

/** Name by which a request calls an account. */
export interface Endpoint {
  readonly account: string;
  /** The name ends with `-secondary`. */
  readonly secondary?: true;
}

/**
 * Refuses a request that this stamp serves to nobody. Asked before authentication, so the answer tells no secret. `hasKeys` false: the copy here has
 * just begun, and its primary has not given it the account's keys yet, so no signature can be checked.
 */
export function refuseAt({ account, secondary }: Endpoint, role: AccountRole | undefined, hasKeys = true): RestError | undefined {
  const follows = role?.role === "secondary" || role?.role === "unseeded";
  if (!secondary) return follows ? elsewhere(role) : undefined;
  if (follows) return hasKeys ? undefined : filling();
  return role?.peer === undefined ? refuseSecondary(account).error : elsewhere(role);
}

/** Refuses an operation at an endpoint that this stamp serves. `copyServes`: the copy has heard of its primary lately. */
export function refuseOperation(
  endpoint: Endpoint,
  role: AccountRole | undefined,
  operation: string,
  copyServes = true,
): RestError | undefined {
  if (role?.role === "secondary" && !copyServes)
    return busyError(
      "The secondary location has not heard of the primary for too long to know that the account's keys and settings are in force.",
    );
  if (endpoint.secondary && changesSomething(operation)) return refuseWriteAtSecondary().error;
  if (role?.role === "unseeded" && !operation.endsWith("ServiceStats")) return filling();
  return role?.role === "drained" && changesSomething(operation) ? moving() : undefined;
}

/**
 * Returns an error if a write that was done must not be acknowledged: the account may have got another primary while the write was on its
 * way. It happened at this stamp, so that its client is told to ask again, as after any 503.
 */
export async function unacknowledged(accounts: Accounts, account: string, limits: CallLimits): Promise<RestError | undefined> {
  const known = accounts.roleKnown(account) ?? (await accounts.roleNow(account, limits));
  if (known === undefined) return busyError("The account was not read in time.");
  if (!known.ok) return restErrorOf(known.failure);
  return known.value === undefined || known.value.role === "primary" ? undefined : moving();
}

/** True for an operation that changes something; `operation` is a name of the REST reference. */
export function changesSomething(operation: string): boolean {
  const known = byName.get(operation);
  if (known !== undefined) return known;
  // Messages are hidden by it. A delegation key is made of a secret that is checked where it is written.
  const found = operation === "GetMessages" || !/^(Get|List|Query|Find|Peek|Preflight)/.test(operation);
  byName.set(operation, found);
  return found;
}

const byName = new Map<string, boolean>();

const filling = (): RestError => busyError("The secondary location is still filled from the primary.");

const moving = (): RestError => busyError("The account is being moved to its other stamp. Writes are refused until that is done.");

const elsewhere = ({ peer }: Pick<AccountRole, "peer"> = {}): RestError =>
  busyError(`The account is served by another stamp under this name${peer === undefined ? "" : `: ${peer}`}.`);
