/** Conditions of a request in the form that partition servers take. */
import type { ConditionHeaders } from "@stamp/azure-rest";

export interface WireConditions {
  readonly ifMatch?: string;
  readonly ifNoneMatch?: string;
  readonly ifModifiedSinceMs?: bigint;
  readonly ifUnmodifiedSinceMs?: bigint;
  readonly leaseId?: string;
  readonly createOnly?: boolean;
  readonly encryptionKeySha256?: Uint8Array;
  readonly encryptionScope?: string;
  readonly encryptionAsFound?: boolean;
  readonly handleId?: string;
  readonly usesRights?: number;
}

/** Returns the conditions for the wire. With `access`, for a write that makes or replaces an object: whoever may only create is told if it exists. */
export function conditionsToWire(conditions: ConditionHeaders, access?: { may(permission: string): boolean }): WireConditions {
  const { ifModifiedSinceMs, ifUnmodifiedSinceMs, ...rest } = conditions;
  return {
    ...rest,
    ...(access && !access.may("w") ? { createOnly: true } : {}),
    ...(ifModifiedSinceMs === undefined ? {} : { ifModifiedSinceMs: BigInt(ifModifiedSinceMs) }),
    ...(ifUnmodifiedSinceMs === undefined ? {} : { ifUnmodifiedSinceMs: BigInt(ifUnmodifiedSinceMs) }),
  };
}
