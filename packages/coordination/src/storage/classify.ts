/**
 * Meaning of the storage SDKs' errors for the caller. The codes are those of the REST reference ("Blob service error
 * codes", "Table service error codes", "Queue service error codes"; status and conditions of "Lease Blob").
 */

/** Status and code of an SDK's RestError. Undefined where the request got no answer. */
interface Refusal {
  readonly status: number | undefined;
  readonly code: string | undefined;
}

export function refusalOf(error: unknown): Refusal {
  if (typeof error !== "object" || error === null) return { status: undefined, code: undefined };
  const { statusCode, code, details } = error as { statusCode?: unknown; code?: unknown; details?: { errorCode?: unknown } };
  const named = typeof details?.errorCode === "string" ? details.errorCode : code;
  return {
    status: typeof statusCode === "number" ? statusCode : undefined,
    code: typeof named === "string" ? named : undefined,
  };
}

const leaseLost: ReadonlySet<string> = new Set([
  "LeaseIdMismatchWithLeaseOperation",
  "LeaseIdMismatchWithBlobOperation",
  "LeaseNotPresentWithLeaseOperation",
  "LeaseNotPresentWithBlobOperation",
  "LeaseIsBrokenAndCannotBeRenewed",
  "LeaseIsBreakingAndCannotBeChanged",
  "LeaseAlreadyBroken",
  "LeaseLost",
]);

/** True if the answer proves that the lease can't be renewed any more. Anything else, no answer included, says nothing of it. */
export function provesLeaseLost(error: unknown): boolean {
  const { status, code } = refusalOf(error);
  if (status === 404 || isBeingDeleted(error)) return true;
  return (status === 409 || status === 412) && code !== undefined && leaseLost.has(code);
}

/** True if somebody else holds the lease. */
export const isLeaseHeld = (error: unknown): boolean => {
  const { status, code } = refusalOf(error);
  return status === 409 && (code === "LeaseAlreadyPresent" || code === "LeaseIsBreakingAndCannotBeAcquired");
};

/** True if the blob, container, table, queue or entity is not there. */
export const isMissing = (error: unknown): boolean => refusalOf(error).status === 404;

/** True if the container, table or queue is being deleted: it can be created again in a while. */
export const isBeingDeleted = (error: unknown): boolean => /BeingDeleted$/.test(refusalOf(error).code ?? "");

/** True if another writer was first: a condition did not hold, or what was to be created exists. */
export function isConflict(error: unknown): boolean {
  const { status, code } = refusalOf(error);
  if (status === 412) return code === undefined || !leaseLost.has(code);
  return status === 409 && (code === "BlobAlreadyExists" || code === "EntityAlreadyExists" || code === "UpdateConditionNotSatisfied");
}

/** True if the request was refused for good: repeating it unchanged gives the same answer. */
export function isPermanent(error: unknown): boolean {
  const { status, code } = refusalOf(error);
  if (status === undefined || isBeingDeleted(error)) return false;
  if (status === 409) return !isLeaseHeld(error) && !isConflict(error) && !(code !== undefined && leaseLost.has(code));
  return status >= 400 && status < 500 && ![404, 408, 412, 429].includes(status);
}
