/** Requests to a source outside of this stamp (for a blob or its pages), and the reading of its answers. */
import type { HttpHeaders } from "../../headers.ts";
import { type ContentProperties, parseDigest, parseMetadata } from "../../headers.ts";
import { type Parsed, parsed, type RestError, rejected, restError } from "../../rest-error.ts";
import { childText, parseXml } from "../../xml/xml.ts";

/**
 * Version of requests to sources: new enough for all that is asked there, and known to every service that may be asked.
 */
const sourceVersion = "2021-12-02";

/** Returns all headers of a request to a source. */
export function sourceRequestHeaders(headers: HttpHeaders): Record<string, string> {
  const sent: Record<string, string> = { "x-ms-version": sourceVersion, "accept-encoding": "identity" };
  for (const [from, to] of [
    ["x-ms-copy-source-authorization", "authorization"],
    ["x-ms-source-if-match", "if-match"],
    ["x-ms-source-if-none-match", "if-none-match"],
    ["x-ms-source-if-modified-since", "if-modified-since"],
    ["x-ms-source-if-unmodified-since", "if-unmodified-since"],
    ["x-ms-source-lease-id", "x-ms-lease-id"],
    ["x-ms-source-if-tags", "x-ms-if-tags"],
    ["x-ms-source-encryption-key", "x-ms-encryption-key"],
    ["x-ms-source-encryption-key-sha256", "x-ms-encryption-key-sha256"],
    ["x-ms-source-encryption-algorithm", "x-ms-encryption-algorithm"],
  ] as const) {
    const value = headers[from];
    if (value !== undefined) sent[to] = value;
  }
  return sent;
}

export interface SourceProperties {
  /** "" when the source tells none that says that nothing changed. */
  readonly etag: string;
  readonly headers: ContentProperties;
  readonly metadata: Readonly<Record<string, string>>;
  readonly blobType: "BlockBlob" | "AppendBlob" | "PageBlob";
  /** Length of the whole blob, in bytes. */
  readonly contentLengthBytes: number;
  readonly sequenceNumber: number;
  readonly committedBlockCount: number;
  readonly sealed: boolean;
}

export interface SourceAnswer {
  readonly properties: SourceProperties;
  /**
   * Encoding of the body that its server may have made for this answer, though `identity` was asked for; "" for none. The encoding that a blob
   * service tells is a property of the blob: its bytes are stored that way.
   */
  readonly transferEncoding: string;
  /** Start of the body within the blob, in bytes. */
  readonly startBytes: number;
  readonly lengthBytes: number;
}

/** Parses an answer with content, or to HEAD. `rawHeaders`: names and values in turn, as they came; undefined if nobody knows. */
export function parseSourceAnswer(status: number, headers: HttpHeaders, rawHeaders: readonly string[] | undefined): Parsed<SourceAnswer> {
  const error = sourceError(status, headers);
  if (error) return { ok: false, error };
  const length = countOf(headers["content-length"]);
  if (length === undefined) return unusable("It does not tell how long it is (Content-Length).");
  const range = status === 206 ? rangeOf(headers["content-range"]) : { startBytes: 0, endBytes: length, totalBytes: length };
  if (!range || range.endBytes - range.startBytes !== length) return unusable("Its Content-Range says nothing that can be understood.");
  const metadata = parseMetadata(headers, rawHeaders);
  const md5 = parseDigest(headers, status === 206 ? "x-ms-blob-content-md5" : "content-md5", "any");
  const blobType = headers["x-ms-blob-type"] ?? "BlockBlob";
  if (!metadata.ok || !md5.ok || (blobType !== "BlockBlob" && blobType !== "AppendBlob" && blobType !== "PageBlob")) {
    return unusable("Its headers are not those of a blob.");
  }
  const etag = headers.etag ?? "";
  const text = (name: string): string => headers[name] ?? "";
  const properties: SourceProperties = {
    etag: /^"[^"]*"$/.test(etag) ? etag : "",
    headers: {
      contentType: text("content-type"),
      contentEncoding: text("content-encoding"),
      contentLanguage: text("content-language"),
      contentMd5: md5.value ?? new Uint8Array(0),
      cacheControl: text("cache-control"),
      contentDisposition: text("content-disposition"),
    },
    metadata: metadata.value,
    blobType,
    contentLengthBytes: range.totalBytes,
    sequenceNumber: countOf(headers["x-ms-blob-sequence-number"]) ?? 0,
    committedBlockCount: countOf(headers["x-ms-blob-committed-block-count"]) ?? 0,
    sealed: headers["x-ms-blob-sealed"]?.toLowerCase() === "true",
  };
  const encoding = text("content-encoding").trim().toLowerCase();
  const transferEncoding = headers["x-ms-blob-type"] !== undefined || encoding === "identity" ? "" : encoding;
  return parsed({ properties, transferEncoding, startBytes: range.startBytes, lengthBytes: length });
}

/** Returns the headers of an error: with what the source answered. */
export const toldBySource = (status: number, code: string | undefined): Record<string, string> => ({
  "x-ms-copy-source-status-code": String(status),
  ...(code !== undefined && /^\w{1,100}$/.test(code) ? { "x-ms-copy-source-error-code": code } : {}),
});

/** Returns undefined for an answer with content; else the service's error for it, with status and code of the source. */
export function sourceError(status: number, headers: HttpHeaders): RestError | undefined {
  if (status === 200 || status === 206) return undefined;
  const code = headers["x-ms-error-code"];
  const told = toldBySource(status, code);
  if (status === 304 || status === 412) return restError("SourceConditionNotMet", {}, { headers: told });
  if (status === 416) return restError("InvalidRange");
  if (code === "BlobArchived" || code === "PendingCopyOperation") return restError(code);
  if (status >= 500) return restError("CannotVerifyCopySource", {}, { headers: told });
  const isRedirect = status >= 300 && status < 400;
  const message = isRedirect
    ? "The source answers with a redirect; it is not followed."
    : `The source answers ${status}${code ? ` ${code}` : ""}.`;
  return restError("CannotVerifyCopySource", {}, { message, status: Math.max(status, 400), headers: told });
}

const unusable = (why: string): Parsed<never> =>
  rejected("CannotVerifyCopySource", {}, { message: `The source can't be copied. ${why}`, status: 400 });

function countOf(text: string | undefined): number | undefined {
  const value = text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

function rangeOf(text: string | undefined) {
  const match = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16})$/.exec(text ?? "");
  if (!match) return undefined;
  const [startBytes = 0, last = 0, totalBytes = 0] = match.slice(1).map(Number);
  return last >= startBytes && last < totalBytes ? { startBytes, endBytes: last + 1, totalBytes } : undefined;
}

export const sourcePageListBytesMax: number = 256 * 1024;
/** Fits into a document of that size, whatever the numbers. */
export const sourcePageRangesMax = 1_000;

export interface SourcePages {
  /** Ranges in order. Ends are exclusive. */
  readonly ranges: readonly { readonly startBytes: number; readonly endBytes: number }[];
  /** True if more ranges may follow. */
  readonly more: boolean;
}

/** Parses the answer to Get Page Ranges. */
export function parseSourcePages(body: Uint8Array): Parsed<SourcePages> {
  const root = parseXml(body, sourcePageListBytesMax);
  if (!root.ok || root.value.name !== "PageList") return unusable("Its list of pages can't be understood.");
  const ranges: { startBytes: number; endBytes: number }[] = [];
  for (const range of root.value.children.filter((child) => child.name === "PageRange")) {
    const startBytes = countOf(childText(range, "Start"));
    const last = countOf(childText(range, "End"));
    const isRange = startBytes !== undefined && last !== undefined && last >= startBytes && startBytes >= (ranges.at(-1)?.endBytes ?? 0);
    if (!isRange || startBytes % 512 !== 0 || (last + 1) % 512 !== 0) return unusable("Its list of pages can't be understood.");
    ranges.push({ startBytes, endBytes: last + 1 });
  }
  return parsed({ ranges, more: (childText(root.value, "NextMarker") ?? "") !== "" });
}
