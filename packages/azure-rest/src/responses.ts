/** Response headers of blobs and containers, under the names that the service uses. */
import type { ShownContainer, ShownCopy, ShownLease } from "@stamp/base";
import { toBase64 } from "./base64.ts";
import { accountEncryptionKey, encryptedUnderHeaders } from "./blob/encryption-headers.ts";
import { contentTypeOf, type ListedBlobProperties } from "./blob/lists-xml.ts";
import { formatIsoMicros, formatRfc1123 } from "./dates.ts";
import { behavesAs, etagHeader } from "./version.ts";

export type ResponseHeaders = Record<string, string>;

export const etagAndTime = (version: string, object: { readonly etag: string; readonly lastModifiedMs: number }): ResponseHeaders => ({
  ETag: etagHeader(version, object.etag),
  "Last-Modified": formatRfc1123(object.lastModifiedMs),
});

export function metadataHeaders(metadata: Readonly<Record<string, string>>): ResponseHeaders {
  const headers: ResponseHeaders = {};
  for (const name in metadata) headers[`x-ms-meta-${name}`] = metadata[name] as string;
  return headers;
}

/** Returns the headers of the answer to a write. */
export const writtenHeaders = (version: string, blob: ListedBlobProperties): ResponseHeaders => ({
  ...etagAndTime(version, blob),
  ...(blob.versionStamp > 0 ? { "x-ms-version-id": formatIsoMicros(blob.versionStamp) } : {}),
});

const leaseHeaders = ({ status, state, duration }: ShownLease): ResponseHeaders => ({
  "x-ms-lease-status": status,
  "x-ms-lease-state": state,
  ...(duration === "" ? {} : { "x-ms-lease-duration": duration }),
});

export function containerHeaders(version: string, container: ShownContainer): ResponseHeaders {
  return {
    ...etagAndTime(version, container),
    ...metadataHeaders(container.metadata),
    ...leaseHeaders(container.lease),
    ...(container.publicAccess === "" ? {} : { "x-ms-blob-public-access": container.publicAccess }),
    "x-ms-has-immutability-policy": "false",
    "x-ms-has-legal-hold": "false",
    ...(behavesAs(version, "containerEncryptionScopes") ? containerScopeHeaders(container) : {}),
  };
}

const containerScopeHeaders = ({ defaultEncryptionScope: scope, denyEncryptionScopeOverride: deny }: ShownContainer): ResponseHeaders => ({
  "x-ms-default-encryption-scope": scope === "" ? accountEncryptionKey : scope,
  "x-ms-deny-encryption-scope-override": String(deny),
});

/** Returns the headers of a blob, snapshot or version apart from its content. */
function stateHeaders(blob: ListedBlobProperties): ResponseHeaders {
  const isBase = blob.snapshotStamp === 0 && (blob.versionStamp === 0 || blob.isCurrentVersion);
  const result: ResponseHeaders = isBase ? leaseHeaders(blob.lease) : {};
  if (blob.versionStamp > 0) result["x-ms-version-id"] = formatIsoMicros(blob.versionStamp);
  if (blob.isCurrentVersion) result["x-ms-is-current-version"] = "true";
  if (blob.tagCount > 0) result["x-ms-tag-count"] = String(blob.tagCount);
  if (blob.blobType === "BlockBlob") {
    result["x-ms-access-tier"] = blob.accessTier;
    if (blob.accessTierInferred) result["x-ms-access-tier-inferred"] = "true";
    if (blob.accessTierChangedMs !== undefined) result["x-ms-access-tier-change-time"] = formatRfc1123(blob.accessTierChangedMs);
  }
  if (blob.expiresMs !== undefined) result["x-ms-expiry-time"] = formatRfc1123(blob.expiresMs);
  if (blob.immutableUntilMs !== undefined) {
    result["x-ms-immutability-policy-until-date"] = formatRfc1123(blob.immutableUntilMs);
    result["x-ms-immutability-policy-mode"] = (blob.immutabilityMode ?? "").toLowerCase();
  }
  if (blob.legalHold) result["x-ms-legal-hold"] = "true";
  return result;
}

/** Returns the headers of Get Blob and Get Blob Properties, without those of the range. Content-MD5 is the whole blob's. */
export function blobHeaders(version: string, blob: ListedBlobProperties): ResponseHeaders {
  const { headers } = blob;
  const result: ResponseHeaders = {
    ...etagAndTime(version, blob),
    ...metadataHeaders(blob.metadata),
    ...stateHeaders(blob),
    ...(behavesAs(version, "acceptRanges") ? { "Accept-Ranges": "bytes" } : {}),
    // Content of strangers runs as what it says that it is, or not at all.
    "X-Content-Type-Options": "nosniff",
    "x-ms-creation-time": formatRfc1123(blob.createdMs),
    "x-ms-blob-type": blob.blobType,
    "x-ms-server-encrypted": String(blob.encryptionKeySha256 !== undefined || blob.encryptionScope !== undefined),
  };
  if (blob.blobType === "AppendBlob") result["x-ms-blob-committed-block-count"] = String(blob.committedBlockCount);
  Object.assign(result, encryptedUnderHeaders({ sha256: blob.encryptionKeySha256, scope: blob.encryptionScope }));
  if (blob.sealed) result["x-ms-blob-sealed"] = "true";
  if (blob.blobType === "PageBlob") result["x-ms-blob-sequence-number"] = String(blob.sequenceNumber);
  if (blob.copy) Object.assign(result, copyHeaders(blob.copy));
  const contentType = contentTypeOf(headers);
  if (contentType !== "") result["Content-Type"] = contentType;
  if (headers.contentEncoding !== "") result["Content-Encoding"] = headers.contentEncoding;
  if (headers.contentLanguage !== "") result["Content-Language"] = headers.contentLanguage;
  if (headers.cacheControl !== "") result["Cache-Control"] = headers.cacheControl;
  if (headers.contentDisposition !== "") result["Content-Disposition"] = headers.contentDisposition;
  if (headers.contentMd5.length > 0) result["Content-MD5"] = toBase64(headers.contentMd5);
  return result;
}

function copyHeaders(copy: ShownCopy): ResponseHeaders {
  return {
    "x-ms-copy-id": copy.copyId,
    "x-ms-copy-source": copy.source,
    "x-ms-copy-status": copy.status,
    "x-ms-copy-progress": `${copy.copiedBytes}/${copy.totalBytes}`,
    ...(copy.completedMs === undefined ? {} : { "x-ms-copy-completion-time": formatRfc1123(copy.completedMs) }),
    ...(copy.description === "" ? {} : { "x-ms-copy-status-description": copy.description }),
  };
}

/** Returns eight bytes, the least significant first, in base64. */
export function crc64Text(value: bigint): string {
  const bytes = new Uint8Array(8);
  for (let i = 0; i < 8; i++) bytes[i] = Number((value >> BigInt(8 * i)) & 0xffn);
  return toBase64(bytes);
}
