/** Tokens of accounts on gRPC calls: `authorization: Bearer <token>` (`stamp token`). */
import { claimsOfToken, type RestError, verifyToken } from "@stamp/azure-rest";
import { type Outcome, ok, refused } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import type { BlobPolicy } from "@stamp/objects";
import type { CallContext, World } from "@stamp/ports";
import type { CallLimits } from "../routing/router.ts";
import type { Accounts } from "./accounts.ts";
import { blobPolicyOf } from "./blob-policy.ts";

export interface TokenParts {
  readonly world: World;
  readonly accounts: Accounts;
  /** True if the well-known key counts for a call. Undefined: for all calls, because they prove that they come from the stamp itself. */
  readonly takesWellKnownKey?: ((call: CallContext) => boolean) | undefined;
}

/**
 * Checks that the call carries a token of the account, and returns the policy of the account. `serves`: refuses an account whose primary is
 * another stamp, and a write to one that is being moved.
 */
export async function checkToken(
  { world, accounts, takesWellKnownKey = () => true }: TokenParts,
  account: string,
  context: CallContext,
  limits: CallLimits,
  serves: (role: AccountRole | undefined) => RestError | undefined = () => undefined,
): Promise<Outcome<BlobPolicy>> {
  const match = /^bearer\s+(\S+)$/i.exec((context.metadata.authorization ?? "").trim());
  const token = match?.[1];
  const claims = token === undefined ? undefined : claimsOfToken(token);
  if (token === undefined || !claims)
    return refused("unauthenticated", "unauthorized", "metadata authorization: Bearer <token> (`stamp token`)");
  if (claims.account !== account) return refused("permissionDenied", "unauthorized", "the token is for another account");
  const found = await accounts.find(account, limits);
  if (!found) return refused("deadlineExceeded", "timeout", "the account was not read in time");
  if (!found.ok) return found;
  const known = found.value;
  const keys = known.kind === "known" ? [...known.keys, ...(takesWellKnownKey(context) ? known.wellKnownKeys : [])] : [];
  const { hmacSha256, equal } = world.digest;
  const check = verifyToken(token, keys, world.clock.wallMs(), {
    hmacSha256: (key, message) => hmacSha256.call(world.digest, key, message),
    equal: (a, b) => equal.call(world.digest, a, b),
  });
  if (check.kind !== "valid" || known.kind !== "known") return refused("unauthenticated", "unauthorized", `the token is ${check.kind}`);
  context.authorized?.();
  const elsewhere = serves(known.role);
  if (elsewhere) return refused("unavailable", "notReady", elsewhere.message, { "x-ms-error-code": elsewhere.code });
  return ok(blobPolicyOf(known.serviceProperties.blob));
}
