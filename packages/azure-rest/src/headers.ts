/**
 * Request headers as values: metadata, ranges, properties of content, checksums, lengths (conditions: conditions.ts). Names come in lower case, as Node
 * gives them. Everything a client may get wrong is an error of the service.
 */
import type { BlobHeaders } from "@stamp/base";
import { fromBase64 } from "./base64.ts";
import { badHeader, badQuery, type Parsed, parsed, rejected } from "./rest-error.ts";
import { type Query, queryValue } from "./target.ts";
import { behavesAs, newestVersion } from "./version.ts";

export type HttpHeaders = Readonly<Record<string, string>>;

export const metadataBytesMax = 8192;
const metadataPrefix = "x-ms-meta-";

/**
 * Parses the metadata of a request, or of the answer of a copy's source. Names are identifiers of C#. They keep the case in which they were
 * sent, and do not differ by case alone: a name that was sent twice is refused. `rawHeaders` tells both (names and values in turn);
 * undefined if nobody knows.
 */
export function parseMetadata(headers: HttpHeaders, rawHeaders: readonly string[] | undefined): Parsed<Record<string, string>> {
  const metadata: Record<string, string> = Object.create(null);
  let bytes = 0;
  for (const header in headers) {
    if (!header.startsWith(metadataPrefix)) continue;
    const sent = headers[header] as string;
    const [sentName = header, ...more] = sentNames(header, rawHeaders);
    if (more.length > 0)
      return rejected("InvalidMetadata", { HeaderName: header, HeaderValue: sent, Reason: "It was sent more than once." });
    const name = sentName.slice(metadataPrefix.length);
    if (name === "") return rejected("EmptyMetadataKey");
    // Looked at before it is trimmed: a blank that is not one of HTTP's, as U+00A0, would be dropped unseen.
    if (!/^[a-z_][a-z0-9_]*$/i.test(name) || !/^[\t\x20-\x7e]*$/.test(sent)) {
      return rejected("InvalidMetadata", { HeaderName: header, HeaderValue: sent });
    }
    const value = sent.trim();
    bytes += name.length + value.length;
    metadata[name] = value;
  }
  return bytes > metadataBytesMax ? rejected("MetadataTooLarge") : parsed(metadata);
}

/** Returns the name of a header as the client wrote it, once for each time that the client sent it. */
function sentNames(header: string, rawHeaders: readonly string[] = []): string[] {
  const names: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i] as string;
    if (sent.length === header.length && sent.toLowerCase() === header) names.push(sent);
  }
  return names;
}

/** Range of bytes: inclusive start, exclusive end; without an end, to the end of the blob. */
export interface ByteRange {
  readonly startBytes: number;
  readonly endBytes?: number;
}

/** Returns the range of the form `bytes=first-last` or `bytes=first-`; undefined for anything else, also when it ends before it begins. */
export function byteRangeOf(text: string): ByteRange | undefined {
  const [match, first, last] = /^bytes=(\d+)-(\d*)$/i.exec(text.trim()) ?? [];
  if (match === undefined) return undefined;
  // No blob reaches such an offset. A range that begins there begins behind the blob; a range that ends there ends with the blob.
  const startBytes = Math.min(Number(first), Number.MAX_SAFE_INTEGER);
  const endBytes = Number(last) + 1;
  if (last === "" || !Number.isSafeInteger(endBytes)) return { startBytes };
  return endBytes > startBytes ? { startBytes, endBytes } : undefined;
}

/** Returns the header that names the range: `x-ms-range` if the request has it, else `Range`. */
export const rangeHeaderOf = (headers: HttpHeaders): "range" | "x-ms-range" =>
  headers["x-ms-range"] === undefined ? "range" : "x-ms-range";

/**
 * Returns the range that a read asks for; undefined for all of it. What is no range of this service is ignored, as HTTP has it (RFC 9110,
 * 14.2): other units, suffixes, lists of ranges, and before 2011-08-18 ranges without an end.
 */
export function parseRange(headers: HttpHeaders, version: string = newestVersion): ByteRange | undefined {
  const text = headers[rangeHeaderOf(headers)];
  const range = text === undefined ? undefined : byteRangeOf(text);
  return range?.endBytes === undefined && !behavesAs(version, "openRanges") ? undefined : range;
}

const guid =
  /^(\{[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}|\([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/i;

/** Returns a GUID of any form that .NET takes in lower case, with hyphens. Undefined if the text is none. */
export function canonicalGuid(text: string): string | undefined {
  if (!guid.test(text)) return undefined;
  const hex = text.replace(/[{}()-]/g, "").toLowerCase();
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Properties that are stored with a blob and told with it. */
export type ContentProperties = Omit<BlobHeaders, "contentTypeCleared">;

/** Returns the properties of Set Blob Properties: it clears the ones that its headers leave out. */
export const withTypeCleared = (properties: ContentProperties): ContentProperties & { readonly contentTypeCleared: boolean } => ({
  ...properties,
  contentTypeCleared: properties.contentType === "",
});

const noBytes = new Uint8Array(0);

export interface PropertyRules {
  /** True if the standard headers count where the `x-ms-blob-*` header is absent (Put Blob). */
  readonly standardToo?: boolean;
  /** True if the MD5 is compared with bytes of the request or of its source. Else it is kept as it is, whatever its length. */
  readonly md5Compared?: boolean;
}

/** Parses the headers `x-ms-blob-*` that are stored with a blob. */
export function parseContentProperties(headers: HttpHeaders, rules: PropertyRules = {}): Parsed<ContentProperties> {
  const md5 = parseDigest(headers, "x-ms-blob-content-md5", rules.md5Compared === true ? 16 : "any");
  if (!md5.ok) return md5;
  const of = (name: string): string => headers[`x-ms-blob-${name}`] ?? (rules.standardToo === true ? headers[name] : undefined) ?? "";
  return parsed({
    contentType: of("content-type"),
    contentEncoding: of("content-encoding"),
    contentLanguage: of("content-language"),
    contentMd5: md5.value ?? noBytes,
    cacheControl: of("cache-control"),
    contentDisposition: of("content-disposition"),
  });
}

/** Parses a checksum in base64: a CRC64 of 8 bytes, an MD5 of 16 or of any length. Undefined if the header is absent. */
export function parseDigest(headers: HttpHeaders, name: string, lengthBytes: 8 | 16 | "any"): Parsed<Uint8Array | undefined> {
  const text = headers[name];
  if (text === undefined) return parsed(undefined);
  const bytes = fromBase64(text.trim());
  if (bytes === undefined || (lengthBytes !== "any" && bytes.length !== lengthBytes)) {
    return lengthBytes === 8 ? badHeader(name, text) : rejected("InvalidMd5", { HeaderName: name, HeaderValue: text });
  }
  return parsed(bytes);
}

/** Parses Content-Length, which requests with a body need. */
export function parseContentLength(headers: HttpHeaders): Parsed<number> {
  const text = headers["content-length"];
  if (text === undefined) return rejected("MissingContentLengthHeader");
  const length = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(length) ? parsed(length) : badHeader("Content-Length", text);
}

export function parseBoolean(headers: HttpHeaders, name: string): Parsed<boolean> {
  const text = headers[name]?.toLowerCase();
  if (text === undefined || text === "false") return parsed(false);
  return text === "true" ? parsed(true) : badHeader(name, text);
}

/** Parses the id of a block, which has 1 to 64 bytes. */
export function parseBlockId(query: Query): Parsed<Uint8Array> {
  const text = queryValue(query, "blockid");
  if (text === undefined) return rejected("MissingRequiredQueryParameter", { QueryParameterName: "blockid" });
  const bytes = fromBase64(text);
  if (!bytes || bytes.length === 0) return badQuery("blockid", text, "Not a valid base64 string.");
  if (bytes.length > 64) return rejected("OutOfRangeInput", {}, { message: "The block ID is longer than 64 bytes." });
  return parsed(bytes);
}

const timeoutSecondsMax = 3600;

/** Parses the timeout of a request, in milliseconds; undefined when the request does not say. */
export function parseTimeout(query: Query): Parsed<number | undefined> {
  const text = queryValue(query, "timeout");
  // It is read before empty parameters are dropped.
  if (text === undefined || text === "") return parsed(undefined);
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(seconds) || seconds < 1) return badQuery("timeout", text, "Not a positive number of seconds.");
  return parsed(Math.min(seconds, timeoutSecondsMax) * 1000);
}

export const publicAccessLevels = ["", "blob", "container"] as const;
export type PublicAccess = (typeof publicAccessLevels)[number];

export function parsePublicAccess(headers: HttpHeaders): Parsed<PublicAccess> {
  const text = headers["x-ms-blob-public-access"] ?? "";
  const level = publicAccessLevels.find((known) => known === text);
  return level === undefined ? badHeader("x-ms-blob-public-access", text) : parsed(level);
}
