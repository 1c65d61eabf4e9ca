/**
 * Stored access policies in a row of a container, queue or table: JSON text, at most five of them, each a list
 * [id, start, expiry, permissions] with null for what it leaves to the SAS. Times in milliseconds since 1970.
 */
import { FailureError } from "@stamp/base";

export interface SignedIdentifier {
  readonly id: string;
  readonly startMs?: number | undefined;
  readonly expiryMs?: number | undefined;
  readonly permissions?: string | undefined;
}

type Stored = readonly [string, number | null, number | null, string | null];

/** Returns undefined for none: the property is left out. */
export const encodeSignedIdentifiers = (identifiers: readonly SignedIdentifier[]): string | undefined =>
  identifiers.length === 0
    ? undefined
    : JSON.stringify(identifiers.map((one): Stored => [one.id, one.startMs ?? null, one.expiryMs ?? null, one.permissions ?? null]));

export function decodeSignedIdentifiers(text: string | undefined): SignedIdentifier[] {
  if (text === undefined) return [];
  try {
    return (JSON.parse(text) as Stored[]).map(([id, startMs, expiryMs, permissions]) => ({
      id,
      startMs: startMs ?? undefined,
      expiryMs: expiryMs ?? undefined,
      permissions: permissions ?? undefined,
    }));
  } catch {
    throw new FailureError({ code: "dataLoss", reason: "damaged", message: "a row's stored access policies can't be read", applied: "no" });
  }
}
