/**
 * Holders of leases, against the names that certificates prove: only the process that a lease was granted to renews it, ends it, and writes
 * records under it. Which leases and records are for which roles: `packages/wire/src/request-callers.ts`.
 */
import { type Failed, refused } from "@stamp/base";
import type { LeaseTable } from "@stamp/lease";
import type { CallContext } from "@stamp/ports";

/**
 * Refuses a caller whose certificate proves another name than the holder of the lease has. Without a certificate nothing is compared. An epoch
 * that is not the newest is refused elsewhere, in the way that tells a former holder that its lease has ended.
 */
export function otherHolder(
  leases: Pick<LeaseTable, "holderOf">,
  { name, epoch }: { readonly name: string; readonly epoch: number },
  { callerName }: Pick<CallContext, "callerName">,
): Failed | undefined {
  const holder = callerName === undefined ? undefined : leases.holderOf(name, epoch);
  if (holder === undefined || holder === callerName) return undefined;
  const message = `the lease ${name} was granted to ${holder}, and the caller's certificate is of ${callerName}`;
  return refused("permissionDenied", "unauthorized", message);
}
