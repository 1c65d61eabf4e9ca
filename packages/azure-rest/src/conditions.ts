/**
 * Conditional headers as values, and what refuses those that an operation does not have. Which operation has which: for blobs and
 * containers the table in blob/conditions.ts, for the other services `refuseConditions` below.
 *
 * Invariants:
 *
 * - A condition is looked at, or the request is refused by the header's name. It is never ignored, with two exceptions that HTTP makes:
 *   an `If-Modified-Since` or `If-Unmodified-Since` that is no date, and an `If-Range` beside no range.
 * - Dates come in any of the three forms of HTTP.
 */
import { parseHttpDate } from "./dates.ts";
import { canonicalGuid, type HttpHeaders } from "./headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "./rest-error.ts";

export interface ConditionHeaders {
  readonly ifMatch?: string;
  readonly ifNoneMatch?: string;
  readonly ifModifiedSinceMs?: number;
  readonly ifUnmodifiedSinceMs?: number;
  readonly leaseId?: string;
  /** Condition on the blob's tags: an expression. */
  readonly ifTags?: string;
}

/** Conditions of HTTP, which any client, cache or proxy may send. */
export const httpConditions = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"] as const;

/**
 * Reads the conditions of the object that the request names. `prefix` stands before the names of those on ETags and times (tags of blobs:
 * `x-ms-blob-if-match`).
 */
export function parseConditions(headers: HttpHeaders, prefix: "" | "x-ms-blob-" = ""): Parsed<ConditionHeaders> {
  const conditions: { -readonly [K in keyof ConditionHeaders]: ConditionHeaders[K] } = {};
  const ifMatch = headers[`${prefix}if-match`];
  const ifNoneMatch = headers[`${prefix}if-none-match`];
  if (ifMatch !== undefined) conditions.ifMatch = ifMatch.trim();
  if (ifNoneMatch !== undefined) conditions.ifNoneMatch = ifNoneMatch.trim();
  for (const [header, name] of [
    [`${prefix}if-modified-since`, "ifModifiedSinceMs"],
    [`${prefix}if-unmodified-since`, "ifUnmodifiedSinceMs"],
  ] as const) {
    const text = headers[header];
    if (text === undefined) continue;
    const ms = parseHttpDate(text.trim());
    if (ms !== undefined) conditions[name] = ms;
    else if (prefix !== "") return badHeader(header, text);
    else if (isSeveralDates(text)) return badHeader(header, text, "Only one date is supported.");
  }
  const leaseId = headers["x-ms-lease-id"];
  if (leaseId !== undefined) {
    const canonical = canonicalGuid(leaseId);
    if (canonical === undefined) return badHeader("x-ms-lease-id", leaseId);
    conditions.leaseId = canonical;
  }
  const ifTags = headers["x-ms-if-tags"];
  if (ifTags !== undefined) conditions.ifTags = ifTags;
  return parsed(conditions);
}

/** True for a header that was sent twice: a date, a comma and more. The reference answers it with 400. */
function isSeveralDates(text: string): boolean {
  const parts = text.split(",");
  return parts.some((_, i) => i > 0 && parseHttpDate(parts.slice(0, i).join(",").trim()) !== undefined);
}

/**
 * Returns whether the object is the one that `If-Range` names: by its ETag, which must be a strong one, or by the very date of its last
 * change (RFC 9110, 13.1.5). Then the range is read, else the whole object.
 */
export function fitsIfRange(text: string, object: { readonly etag: string; readonly lastModifiedMs: number }): boolean {
  const said = text.trim();
  return said === object.etag || parseHttpDate(said) === object.lastModifiedMs;
}

/**
 * Returns the conditions of a read in a version that does not combine them: one, with one ETag, or a pair of an ETag and a date, in which
 * the ETag decides.
 */
export function uncombined(conditions: ConditionHeaders): Parsed<ConditionHeaders> {
  const { ifModifiedSinceMs, ifUnmodifiedSinceMs, ...rest } = conditions;
  const { ifMatch, ifNoneMatch } = rest;
  const onMatch = ifMatch !== undefined || ifUnmodifiedSinceMs !== undefined;
  const onNoneMatch = ifNoneMatch !== undefined || ifModifiedSinceMs !== undefined;
  if (onMatch && onNoneMatch) return rejected("MultipleConditionHeadersNotSupported");
  if (ifMatch?.includes(",")) return badHeader("if-match", ifMatch, "Only one ETag is supported in this version.");
  if (ifNoneMatch?.includes(",")) return badHeader("if-none-match", ifNoneMatch, "Only one ETag is supported in this version.");
  if (ifMatch !== undefined || ifNoneMatch !== undefined) return parsed(rest);
  return parsed(conditions);
}

/** Refuses conditions of HTTP that the operation does not have. */
export function refuseConditions(headers: HttpHeaders, allowed: readonly string[]): Parsed<void> {
  const name = httpConditions.find((one) => headers[one] !== undefined && !allowed.includes(one));
  return name === undefined ? parsed(undefined) : rejected("ConditionHeadersNotSupported", { HeaderName: name });
}
