/**
 * Empty headers and query parameters. An empty optional one says what an absent one says: clients send fields that they were not given a
 * value for (restic: `x-ms-access-tier:` with every block list). The door (front-end, http/door.ts) drops them when the signature, which
 * covers them, was checked, and before the operation is recognized. So no parser behind the door sees an empty value.
 *
 * Invariants:
 *
 * - A request never does more without its empty value than its client asked for. What would (no condition, another operation, another
 *   object, plain bytes instead of encrypted ones) is refused: `refusedEmptyHeaders`, `refusedEmptyParameters`, each with its reason.
 * - Values that mean something when they are empty stay: metadata, and what a list repeats in its answer.
 * - A required one that is empty is missing: its parser says so.
 */
import type { HttpHeaders } from "./headers.ts";
import { badHeader, badQuery, type Parsed, parsed } from "./rest-error.ts";
import type { Query, Target } from "./target.ts";

const noETag = "A condition without an ETag. Without the condition the request would be done whatever state the object is in.";
const noNumber = "A condition without a number. Without the condition the request would be done whatever state the blob is in.";
const noDate = "A condition without a date. Without the condition the request would be done whatever state the blob is in.";
const noKey = "Without the key the content would be stored as it is.";
const noTunnelled = "Without it the request would insert.";

/**
 * Headers whose empty value is 400 InvalidHeaderValue, and why. `if-modified-since` and `if-unmodified-since` are not here: HTTP ignores
 * what is no date (RFC 9110, 13.1.3 and 13.1.4). Nor is `x-ms-if-tags`: an expression without comparisons fits every blob.
 */
export const refusedEmptyHeaders: Readonly<Record<string, string>> = {
  "if-match": noETag,
  "if-none-match": noETag,
  "x-ms-blob-if-match": noETag,
  "x-ms-blob-if-none-match": noETag,
  "x-ms-source-if-match": noETag,
  "x-ms-source-if-none-match": noETag,
  "x-ms-blob-if-modified-since": noDate,
  "x-ms-blob-if-unmodified-since": noDate,
  "x-ms-source-if-modified-since": noDate,
  "x-ms-source-if-unmodified-since": noDate,
  "x-ms-access-tier-if-modified-since": noDate,
  "x-ms-access-tier-if-unmodified-since": noDate,
  "x-ms-if-sequence-number-le": noNumber,
  "x-ms-if-sequence-number-lt": noNumber,
  "x-ms-if-sequence-number-eq": noNumber,
  "x-ms-blob-condition-appendpos": noNumber,
  "x-ms-blob-condition-maxsize": noNumber,
  "x-ms-copy-source": "Without a source a copy would be an upload of an empty blob.",
  "x-ms-rename-source": "Without a source a rename would be the creation of an empty file.",
  "x-ms-source-range": "Without the range all of the source would be copied.",
  "x-ms-previous-snapshot-url": "Without the snapshot all ranges would be told instead of the changed ones.",
  "x-ms-blob-type": "It tells Put Blob From URL from Copy Blob.",
  "x-ms-encryption-key": noKey,
  "x-ms-encryption-key-sha256": noKey,
  "x-ms-encryption-algorithm": noKey,
  "x-ms-source-encryption-key": noKey,
  "x-ms-source-encryption-key-sha256": noKey,
  "x-ms-source-encryption-algorithm": noKey,
  "x-http-method": noTunnelled,
  "x-http-method-override": noTunnelled,
};

/** Query parameters whose empty value is 400 InvalidQueryParameterValue, and why. */
export const refusedEmptyParameters: Readonly<Record<string, string>> = {
  comp: "It names the operation.",
  restype: "It names the resource.",
  snapshot: "Without it the request would be about the blob itself.",
  versionid: "Without it the request would be about the blob itself.",
  prevsnapshot: "Without the snapshot all ranges would be told instead of the changed ones.",
  peekonly: "Without it the messages would be taken.",
};

/** Query parameters that stay when they are empty: lists repeat them in their answer. */
const keptParameters: ReadonlySet<string> = new Set(["prefix", "delimiter", "marker"]);

/** Returns the request headers without the empty ones. Names are in lower case. */
export function withoutEmptyHeaders(headers: HttpHeaders): Parsed<HttpHeaders> {
  let rest: Record<string, string> | undefined;
  for (const name in headers) {
    if (headers[name] !== "" || name.startsWith("x-ms-meta-")) continue;
    if (Object.hasOwn(refusedEmptyHeaders, name)) return badHeader(name, "", refusedEmptyHeaders[name]);
    rest ??= { ...headers };
    delete rest[name];
  }
  return parsed(rest ?? headers);
}

/** Returns a query without the parameters that have empty values only. */
export function withoutEmptyParameters(query: Query): Parsed<Query> {
  let rest: Map<string, readonly string[]> | undefined;
  for (const [name, values] of query) {
    if (keptParameters.has(name) || values.some((value) => value !== "")) continue;
    const reason = Object.hasOwn(refusedEmptyParameters, name) ? refusedEmptyParameters[name] : undefined;
    if (reason !== undefined) return badQuery(name, "", reason);
    rest ??= new Map(query);
    rest.delete(name);
  }
  return parsed(rest ?? query);
}

/** Returns the target and headers of a request without empty values. */
export function withoutEmptyValues(
  target: Target,
  headers: HttpHeaders,
): Parsed<{ readonly target: Target; readonly headers: HttpHeaders }> {
  const kept = withoutEmptyHeaders(headers);
  if (!kept.ok) return kept;
  const query = withoutEmptyParameters(target.query);
  if (!query.ok) return query;
  return parsed({ target: query.value === target.query ? target : { ...target, query: query.value }, headers: kept.value });
}
