/** Headers of requests that copy: the source, conditions and checksums of it, and its range. */
import { urlWithoutSignature } from "@stamp/base";
import type { ConditionHeaders } from "../../conditions.ts";
import { parseHttpDate } from "../../dates.ts";
import { type ByteRange, byteRangeOf, canonicalGuid, type HttpHeaders, parseDigest } from "../../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../../rest-error.ts";

export const copySourceCharactersMax = 2048;
export const copyFromUrlBytesMax: number = 256 * 1024 * 1024;

export interface CopySourceUrl {
  readonly secure: boolean;
  /** Host of the URL, with the port when it has one. */
  readonly host: string;
  /** Path and query of the source, as the client wrote them. */
  readonly target: string;
  /** URL of the source without the secrets of its query. */
  readonly shown: string;
}

export function parseCopySource(headers: HttpHeaders): Parsed<CopySourceUrl> {
  const text = headers["x-ms-copy-source"];
  if (text === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-copy-source" });
  const match = /^(https?):\/\/([^/?#@\s]+)(\/[^?#\s]*)(?:\?([^#\s]*))?$/i.exec(text.trim());
  if (!match || text.length > copySourceCharactersMax) {
    return badHeader("x-ms-copy-source", urlWithoutSignature(text), "An absolute URL, at most 2 KiB.");
  }
  const [, scheme = "", host = "", path = "", query] = match;
  return parsed({
    secure: scheme.toLowerCase() === "https",
    host: host.toLowerCase(),
    target: query === undefined ? path : `${path}?${query}`,
    shown: urlWithoutSignature(`${scheme}://${host}${path}${query === undefined ? "" : `?${query}`}`),
  });
}

/** Returns the URL of the source, secrets and all; `parseCopySource` takes it again. */
export const urlOf = ({ secure, host, target }: CopySourceUrl): string => `${secure ? "https" : "http"}://${host}${target}`;

export function parseSourceConditions(headers: HttpHeaders): Parsed<ConditionHeaders> {
  const conditions: { -readonly [K in keyof ConditionHeaders]: ConditionHeaders[K] } = {};
  const ifMatch = headers["x-ms-source-if-match"];
  const ifNoneMatch = headers["x-ms-source-if-none-match"];
  if (ifMatch !== undefined) conditions.ifMatch = ifMatch.trim();
  if (ifNoneMatch !== undefined) conditions.ifNoneMatch = ifNoneMatch.trim();
  const leaseId = headers["x-ms-source-lease-id"];
  if (leaseId !== undefined) {
    const canonical = canonicalGuid(leaseId);
    if (canonical === undefined) return badHeader("x-ms-source-lease-id", leaseId);
    conditions.leaseId = canonical;
  }
  const ifTags = headers["x-ms-source-if-tags"];
  if (ifTags !== undefined) conditions.ifTags = ifTags;
  for (const [header, name] of [
    ["x-ms-source-if-modified-since", "ifModifiedSinceMs"],
    ["x-ms-source-if-unmodified-since", "ifUnmodifiedSinceMs"],
  ] as const) {
    const text = headers[header];
    if (text === undefined) continue;
    const ms = parseHttpDate(text.trim());
    if (ms === undefined) return badHeader(header, text);
    conditions[name] = ms;
  }
  return parsed(conditions);
}

export function parseSourceRange(headers: HttpHeaders): Parsed<ByteRange | undefined> {
  const text = headers["x-ms-source-range"];
  if (text === undefined) return parsed(undefined);
  const range = byteRangeOf(text);
  return range ? parsed(range) : badHeader("x-ms-source-range", text);
}

export interface SourceDigests {
  readonly md5: Uint8Array | undefined;
  /** CRC-64 of the source's content, as in the header. */
  readonly crc64: Uint8Array | undefined;
}

export function parseSourceDigests(headers: HttpHeaders): Parsed<SourceDigests> {
  const md5 = parseDigest(headers, "x-ms-source-content-md5", 16);
  if (!md5.ok) return md5;
  const crc64 = parseDigest(headers, "x-ms-source-content-crc64", 8);
  if (!crc64.ok) return crc64;
  if (md5.value && crc64.value) return rejected("BothCrc64AndMd5HeaderPresent");
  return parsed({ md5: md5.value, crc64: crc64.value });
}
