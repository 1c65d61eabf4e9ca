/** Stored access policies, from and to the wire. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SignedIdentifier, SignedIdentifierSchema } from "./gen/stamp/v1/common_pb.ts";

/** Stored access policy. What is undefined, the SAS has to say. Times in milliseconds since 1970. */
export interface StoredAccessPolicy {
  readonly id: string;
  readonly startMs?: number | undefined;
  readonly expiryMs?: number | undefined;
  readonly permissions?: string | undefined;
}

export const signedIdentifiersFromWire = (identifiers: readonly SignedIdentifier[]): StoredAccessPolicy[] =>
  identifiers.map(({ id, startMs, expiryMs, permissions }) => ({
    id,
    startMs: startMs === undefined ? undefined : Number(startMs),
    expiryMs: expiryMs === undefined ? undefined : Number(expiryMs),
    permissions,
  }));

export const signedIdentifiersToWire = (identifiers: readonly StoredAccessPolicy[]): MessageInitShape<typeof SignedIdentifierSchema>[] =>
  identifiers.map(({ id, startMs, expiryMs, permissions }) => ({
    id,
    ...(startMs === undefined ? {} : { startMs: BigInt(startMs) }),
    ...(expiryMs === undefined ? {} : { expiryMs: BigInt(expiryMs) }),
    ...(permissions === undefined ? {} : { permissions }),
  }));
