/**
 * Keys that a customer sends with a request (`x-ms-encryption-*`, and of a source `x-ms-source-encryption-*`), and encryption scopes, keys of
 * the stamp that a request names. A key stands in no error: of a header that is refused the name is told, never the value.
 */
import type { ContainerScope } from "@stamp/base";
import { equalBytes } from "@stamp/base";
import { fromBase64, toBase64 } from "../base64.ts";
import { type HttpHeaders, parseBoolean } from "../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";
import { behavesAs } from "../version.ts";
import type { BlobOperationName } from "./operation-rows.ts";

/** A key of AES-256 that a request brings. Nobody stores it, and no log line has it. */
export interface CustomerKey {
  readonly bytes: Uint8Array;
  readonly sha256: Uint8Array;
}

export interface CustomerKeys {
  /** Key for the content of the blob that is written or read. */
  readonly key: CustomerKey | undefined;
  /** Key for the content of the blob that is copied from. */
  readonly sourceKey: CustomerKey | undefined;
}

export interface KeyedRequest {
  readonly operation: BlobOperationName;
  readonly headers: HttpHeaders;
  readonly version: string;
  /** True if the request came over HTTPS. */
  readonly secure: boolean;
}

const keyBytes = 32;
const algorithm = "AES256";

/** Operations that may leave out the algorithm. */
const reads: ReadonlySet<BlobOperationName> = new Set(["GetBlob", "GetBlobProperties", "GetBlobMetadata"]);

export function parseCustomerKeys(request: KeyedRequest, sha256: (bytes: Uint8Array) => Uint8Array): Parsed<CustomerKeys> {
  const key = parseKey(request, "x-ms-encryption", !reads.has(request.operation), sha256);
  if (!key.ok) return key;
  const sourceKey = parseKey(request, "x-ms-source-encryption", false, sha256);
  return sourceKey.ok ? parsed({ key: key.value, sourceKey: sourceKey.value }) : sourceKey;
}

function parseKey(
  { headers, version, secure }: KeyedRequest,
  prefix: "x-ms-encryption" | "x-ms-source-encryption",
  needsAlgorithm: boolean,
  sha256: (bytes: Uint8Array) => Uint8Array,
): Parsed<CustomerKey | undefined> {
  const names = { key: `${prefix}-key`, digest: `${prefix}-key-sha256`, algorithm: `${prefix}-algorithm` };
  const named = headers[names.algorithm];
  if (named !== undefined && named !== algorithm) return badHeader(names.algorithm, named, `The only algorithm is ${algorithm}.`);
  const text = headers[names.key];
  const digestText = headers[names.digest];
  // Clients name the algorithm with each request, whether they have a key or not.
  if (text === undefined && digestText === undefined) return parsed(undefined);
  if (text === undefined) return rejected("MissingRequiredHeader", { HeaderName: names.key });
  if (!secure) return badHeader(names.key, "", "A key is taken over HTTPS only.");
  if (digestText === undefined) return rejected("MissingRequiredHeader", { HeaderName: names.digest });
  if (named === undefined && needsAlgorithm) return rejected("MissingRequiredHeader", { HeaderName: names.algorithm });
  if (!behavesAs(version, "customerKeys")) return badHeader(names.key, "", "Keys are taken by version 2019-02-02 and newer.");
  const bytes = fromBase64(text);
  if (bytes?.length !== keyBytes) return badHeader(names.key, "", `A key is ${keyBytes} bytes, in base64.`);
  const digest = fromBase64(digestText);
  const computed = sha256(bytes);
  if (!digest || !equalBytes(digest, computed)) return badHeader(names.digest, "", "It is not the SHA-256 of the key.");
  return parsed({ bytes, sha256: computed });
}

/** Names the key that content is encrypted under: the SHA-256 of a customer's key, or the scope. */
export interface EncryptedUnder {
  readonly sha256?: Uint8Array | undefined;
  readonly scope?: string | undefined;
}

/** Returns how an answer to a write says whether the request's content was encrypted, and under which key. */
export const requestEncryptedHeaders = (key: EncryptedUnder | undefined): Record<string, string> =>
  key === undefined
    ? { "x-ms-request-server-encrypted": "false" }
    : { "x-ms-request-server-encrypted": "true", ...encryptedUnderHeaders(key) };

/** Returns the headers that name the key that content is encrypted under; none for content that is not encrypted. */
export const encryptedUnderHeaders = ({ sha256, scope }: EncryptedUnder): Record<string, string> => ({
  ...(sha256 === undefined ? {} : { "x-ms-encryption-key-sha256": toBase64(sha256) }),
  ...(scope === undefined ? {} : { "x-ms-encryption-scope": scope }),
});

/** True for 3 to 63 lower-case letters, digits and hyphens, each hyphen between two others. */
export const isScopeName = (text: string): boolean => text.length >= 3 && text.length <= 63 && /^[a-z0-9]+(-[a-z0-9]+)*$/.test(text);

/** Scope name that containers show if they have no scope of their own. */
export const accountEncryptionKey = "$account-encryption-key";

const scopeHeader = "x-ms-encryption-scope";

/** Returns the encryption scope that the request names for its content. */
export function parseScope(headers: HttpHeaders, version: string): Parsed<string | undefined> {
  const name = headers[scopeHeader];
  if (name === undefined) return parsed(undefined);
  if (!behavesAs(version, "encryptionScopes")) return badHeader(scopeHeader, name, tooOld);
  return isScopeName(name) ? parsed(name) : badHeader(scopeHeader, name, "Not a name of an encryption scope.");
}

const tooOld = "Encryption scopes are taken by version 2019-07-07 and newer.";

/** Parses the encryption of a new container's blobs. The headers come both or not at all. */
export function parseContainerScope(headers: HttpHeaders, version: string): Parsed<ContainerScope> {
  const names = { scope: "x-ms-default-encryption-scope", deny: "x-ms-deny-encryption-scope-override" } as const;
  const { [names.scope]: scope, [names.deny]: denied } = headers;
  if (scope === undefined && denied === undefined) return parsed({ defaultEncryptionScope: "", denyEncryptionScopeOverride: false });
  if (scope === undefined) return rejected("MissingRequiredHeader", { HeaderName: names.scope });
  if (denied === undefined) return rejected("MissingRequiredHeader", { HeaderName: names.deny });
  if (!behavesAs(version, "encryptionScopes")) return badHeader(names.scope, scope, tooOld);
  const deny = parseBoolean(headers, names.deny);
  if (!deny.ok) return deny;
  const isAccounts = scope === accountEncryptionKey;
  if (!isAccounts && !isScopeName(scope)) return badHeader(names.scope, scope, "Not a name of an encryption scope.");
  return parsed({ defaultEncryptionScope: isAccounts ? "" : scope, denyEncryptionScopeOverride: deny.value });
}
