/**
 * Accounts as front-ends see and change them. A front-end gets what it checks signatures and encrypts content with, and no more; in the properties
 * of services it leaves what the operator has set. Which operations a front-end may ask for at all: `packages/wire/src/request-callers.ts`.
 */
import { emptyBytes } from "@stamp/base";
import type { Operation, OperationResult } from "@stamp/objects";

const frontEnd = "front-end";

export const askedBy = (caller: string | undefined, operation: Operation): Operation =>
  caller === frontEnd && operation.case === "changeAccount"
    ? { ...operation, value: { ...operation.value, keepsOperatorSettings: true } }
    : operation;

/** Takes out of an account what a front-end has no use for: the digest of configured keys, the master key's id, keys of disabled scopes. */
export function answeredTo(caller: string | undefined, result: OperationResult): OperationResult {
  if (caller !== frontEnd || result.case !== "account") return result;
  const { sealedBy: _sealedBy, ...account } = result.value;
  const encryptionScopes = account.encryptionScopes.map((scope) => (scope.disabled ? { ...scope, key: emptyBytes } : scope));
  return { case: "account", value: { ...account, configuredDigest: emptyBytes, encryptionScopes } };
}
