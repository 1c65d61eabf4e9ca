/**
 * Tokens for the gRPC door (`authorization: Bearer <token>`): base64url(JSON {account, expiresMs}) "." base64url(HMAC-SHA256 over the first
 * part's text by an account key). Made by `stamp token`.
 */
import { utf8 } from "@stamp/base";
import { fromBase64Url, toBase64Url } from "../base64.ts";
import { decodeUtf8 } from "../target.ts";
import type { EqualBytes, HmacSha256 } from "./shared-key.ts";

export interface TokenClaims {
  readonly account: string;
  /** Wall time, milliseconds since 1970. */
  readonly expiresMs: number;
}

export const tokenCharactersMax = 1024;
/** Begin of the signed text, so that no other signature by the key can serve as a token. */
const purpose = "stamp token v1\n";

export function makeToken(claims: TokenClaims, key: Uint8Array, hmacSha256: HmacSha256): string {
  const body = toBase64Url(utf8(JSON.stringify({ account: claims.account, expiresMs: claims.expiresMs })));
  return `${body}.${toBase64Url(hmacSha256(key, utf8(purpose + body)))}`;
}

/** Returns the claims of a token, not verified yet: they say whose keys to look up. Undefined if it is not a token. */
export function claimsOfToken(token: string): TokenClaims | undefined {
  if (token.length > tokenCharactersMax) return undefined;
  const bytes = fromBase64Url(token.split(".")[0] ?? "");
  const text = bytes && decodeUtf8(bytes);
  if (text === undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(text);
    if (typeof claims !== "object" || claims === null) return undefined;
    const { account, expiresMs } = claims as Record<string, unknown>;
    if (typeof account !== "string" || typeof expiresMs !== "number" || !Number.isSafeInteger(expiresMs)) return undefined;
    return { account, expiresMs };
  } catch {
    return undefined;
  }
}

export type TokenCheck = { readonly kind: "valid"; readonly account: string } | { readonly kind: "malformed" | "expired" | "forged" };

/** Verifies a token; `keys` are the keys of the account that `claimsOfToken` named. */
export function verifyToken(
  token: string,
  keys: readonly Uint8Array[],
  nowMs: number,
  digests: { readonly hmacSha256: HmacSha256; readonly equal: EqualBytes },
): TokenCheck {
  const claims = claimsOfToken(token);
  const parts = token.split(".");
  const signature = fromBase64Url(parts[1] ?? "");
  if (!claims || !signature || parts.length !== 2) return { kind: "malformed" };
  const signed = utf8(purpose + parts[0]);
  let genuine = false;
  for (const key of keys) if (digests.equal(digests.hmacSha256(key, signed), signature)) genuine = true;
  if (!genuine) return { kind: "forged" };
  return claims.expiresMs <= nowMs ? { kind: "expired" } : { kind: "valid", account: claims.account };
}
