/**
 * Keys that a customer sends with a request (`x-ms-encryption-*`, and of a source `x-ms-source-encryption-*`). The key stands in no error: of a
 * header that is refused the name is told, never the value.
 */
import { equalBytes } from "@stamp/base";
import { fromBase64, toBase64 } from "../base64.ts";
import type { HttpHeaders } from "../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";
import { behaves } from "../version.ts";
import type { BlobOperationName } from "./operations.ts";

/** A key of AES-256 that a request brings. Nobody stores it, and no log line has it. */
export interface CustomerKey {
  readonly bytes: Uint8Array;
  readonly sha256: Uint8Array;
}

export interface CustomerKeys {
  /** For the content of the blob that is written or read. */
  readonly key: CustomerKey | undefined;
  /** For the content of the blob that is copied from. */
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

/** They may leave out the algorithm. */
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
  if (!behaves(version, "customerKeys")) return badHeader(names.key, "", "Keys are taken by version 2019-02-02 and newer.");
  const bytes = fromBase64(text);
  if (bytes?.length !== keyBytes) return badHeader(names.key, "", `A key is ${keyBytes} bytes, in base64.`);
  const digest = fromBase64(digestText);
  const computed = sha256(bytes);
  if (!digest || !equalBytes(digest, computed)) return badHeader(names.digest, "", "It is not the SHA-256 of the key.");
  return parsed({ bytes, sha256: computed });
}

/** How an answer to a write says whether the request's content was encrypted, and under which key. */
export const requestEncryptedHeaders = (key: CustomerKey | undefined): Record<string, string> =>
  key === undefined
    ? { "x-ms-request-server-encrypted": "false" }
    : { "x-ms-request-server-encrypted": "true", "x-ms-encryption-key-sha256": toBase64(key.sha256) };
