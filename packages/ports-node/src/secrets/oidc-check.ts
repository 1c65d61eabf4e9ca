/**
 * Bearer tokens of an OpenID Connect issuer, verified by the `jose` library: signature by the issuer's published keys (from its discovery
 * document, a URL, or a file that is read again when it changes), issuer, audience, times. Only signatures by asymmetric keys count.
 */
import { readFile, stat } from "node:fs/promises";
import type { TokenCheck } from "@stamp/ports";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import type { OidcOptions } from "./oidc.ts";

const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const clockToleranceSeconds = 60;
const fetchTimeoutMs = 5_000;
/** Shortest time between two reads of the issuer's keys, which an unknown key causes, in milliseconds. */
const rereadAfterMs = 10_000;
const documentBytesMax = 1024 * 1024;

/** Returns a check of tokens that keeps the issuer's keys. */
export function tokenCheck(options: OidcOptions): (token: string) => Promise<TokenCheck> {
  const keys = keySource(options);
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: options.issuer,
        audience: [...options.audiences],
        algorithms,
        clockTolerance: clockToleranceSeconds,
        currentDate: new Date(options.clock.wallMs()),
        requiredClaims: ["exp"],
      });
      return claimsOf(payload, options.rolesClaim);
    } catch (error) {
      return failed(error);
    }
  };
}

function claimsOf(payload: JWTPayload, rolesClaim: string): TokenCheck {
  const subject = typeof payload.oid === "string" ? payload.oid : payload.sub;
  if (subject === undefined || subject === "") return { kind: "invalid", reason: "The token does not say whose it is (oid or sub)." };
  const claim = payload[rolesClaim];
  const roles = typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim.filter((one) => typeof one === "string") : [];
  const groups = Array.isArray(payload.groups) ? payload.groups.filter((one) => typeof one === "string") : [];
  return { kind: "valid", claims: { subject, tenant: typeof payload.tid === "string" ? payload.tid : "", roles, groups } };
}

/** Keys that can't be had are no fault of the token. */
class KeysUnavailable extends Error {}

function failed(error: unknown): TokenCheck {
  if (error instanceof KeysUnavailable) return { kind: "unavailable", reason: error.message };
  if (error instanceof errors.JWKSTimeout) return { kind: "unavailable", reason: "the issuer's keys were not answered in time" };
  if (error instanceof errors.JWTExpired) return { kind: "invalid", reason: "The token has expired." };
  if (error instanceof errors.JWTClaimValidationFailed) return { kind: "invalid", reason: `The token's ${error.claim} is not right.` };
  if (error instanceof errors.JOSEError) return { kind: "invalid", reason: `The token is not valid: ${error.code}.` };
  return { kind: "unavailable", reason: `the issuer's keys can't be had: ${error instanceof Error ? error.message : String(error)}` };
}

function keySource(options: OidcOptions): JWTVerifyGetKey {
  if (/^https?:\/\//.test(options.jwks)) return remoteKeys(options, new URL(options.jwks));
  if (options.jwks !== "") return fileKeys(options.jwks);
  let found: Promise<JWTVerifyGetKey> | undefined;
  return async (header, token) => {
    found ??= discovered(options);
    try {
      return (await found)(header, token);
    } catch (error) {
      if (error instanceof KeysUnavailable) found = undefined;
      throw error;
    }
  };
}

function remoteKeys(options: OidcOptions, url: URL): JWTVerifyGetKey {
  const keys = createRemoteJWKSet(url, {
    timeoutDuration: fetchTimeoutMs,
    cooldownDuration: rereadAfterMs,
    [customFetch]: boundedFetch(options.fetch ?? fetch),
  });
  return async (header, token) => {
    if (!mayFetch(options, url)) throw new KeysUnavailable(notSecure(url));
    return keys(header, token);
  };
}

/** True if plain HTTP is allowed: for an issuer on this machine, and where the configuration says so. */
function mayFetch({ plainHttp }: OidcOptions, { protocol, hostname }: URL): boolean {
  return (
    protocol === "https:" || plainHttp === true || hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname)
  );
}

const notSecure = (url: URL): string =>
  `${url.origin} is not HTTPS: give an https:// URL, or set oidcPlainHttp if the network to it is safe`;

/** Counts an answer's bytes while it is read, after decompression, and gives it up when they are too many. */
const boundedFetch =
  (fetched: typeof fetch): ((url: string, options: RequestInit) => Promise<Response>) =>
  async (url, options) => {
    const answer = await fetched(url, options);
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let bytes = 0;
    // Leaving the loop cancels what is still to come.
    for await (const chunk of answer.body ?? []) {
      bytes += chunk.length;
      if (bytes > documentBytesMax) throw new KeysUnavailable(`${url} answers more than ${documentBytesMax} bytes`);
      chunks.push(chunk);
    }
    return new Response(answer.status === 200 ? new Blob(chunks) : null, { status: answer.status });
  };

async function discovered(options: OidcOptions): Promise<JWTVerifyGetKey> {
  const url = `${options.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  try {
    if (!mayFetch(options, new URL(url))) throw new Error(notSecure(new URL(url)));
    const get = boundedFetch(options.fetch ?? fetch);
    const answer = await get(url, { signal: AbortSignal.timeout(fetchTimeoutMs), redirect: "error" });
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
    const document = (await answer.json()) as { issuer?: unknown; jwks_uri?: unknown };
    if (document.issuer !== options.issuer || typeof document.jwks_uri !== "string") throw new Error(`${url} is of another issuer`);
    return remoteKeys(options, new URL(document.jwks_uri));
  } catch (error) {
    throw new KeysUnavailable(`the issuer's discovery document can't be had: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function fileKeys(path: string): JWTVerifyGetKey {
  let held: { readonly keys: JWTVerifyGetKey; readonly modifiedMs: number } | undefined;
  return async (header, token) => {
    try {
      const { mtimeMs } = await stat(path);
      if (held?.modifiedMs !== mtimeMs) {
        held = { keys: createLocalJWKSet(JSON.parse(await readFile(path, "utf8")) as JSONWebKeySet), modifiedMs: mtimeMs };
      }
    } catch (error) {
      if (!held) throw new KeysUnavailable(`${path} can't be read: ${error instanceof Error ? error.message : String(error)}`);
    }
    return (held as NonNullable<typeof held>).keys(header, token);
  };
}
