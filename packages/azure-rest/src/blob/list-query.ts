/** Query parameters of lists. Markers are opaque to clients: they hold the first name of the next page, and what of it comes first. */
import { utf8 } from "@stamp/base";
import { fromBase64Url, toBase64Url } from "../base64.ts";
import { badQuery, notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodeUtf8, type Query, queryValue } from "../target.ts";
import { behavesAs } from "../version.ts";
import { needsEncoding } from "../xml/xml-text.ts";

export const listResultsMax = 5000;

export interface ListQuery {
  readonly prefix: string;
  /** Delimiter between levels of names; empty: the list is flat. */
  readonly delimiter: string;
  /** The first name of the page; empty for the start. */
  readonly marker: string;
  /** True if the marker continues an earlier page; false: it is a name to start from, unless it is empty. */
  readonly isContinued: boolean;
  /** Snapshot, version or incarnation from which the first name goes on; 0 begins with its first. */
  readonly markerStamp: number;
  readonly maxResults: number;
  /** True if only soft-deleted blobs are listed. */
  readonly onlyDeleted: boolean;
  readonly include: ReadonlySet<string>;
  /** Parameters of the request, unchanged, which the answer repeats. */
  readonly echo: { prefix?: string; delimiter?: string; marker?: string; maxResults?: number };
}

/** Values that `include` may have. */
const blobIncludes: ReadonlySet<string> = new Set([
  "copy",
  "deleted",
  "deletedwithversions",
  "immutabilitypolicy",
  "legalhold",
  "metadata",
  "snapshots",
  "tags",
  "uncommittedblobs",
  "versions",
]);
const containerIncludes: ReadonlySet<string> = new Set(["metadata", "deleted", "system"]);
const queueIncludes: ReadonlySet<string> = new Set(["metadata"]);

const markerStart = "2!";

export const encodeMarker = (name: string): string => (name === "" ? "" : markerStart + toBase64Url(utf8(name)));

/** Returns the marker of a page that starts among the states of one name. */
export const encodeMarkerWithin = (name: string, stamp: number): string =>
  stamp === 0 ? encodeMarker(name) : `${encodeMarker(name)}!${stamp}`;

interface Marker {
  readonly name: string;
  readonly stamp: number;
}

function decodeMarkerWithin(marker: string): Marker | undefined {
  const match = /^(2![^!]*)!(\d{1,16})$/.exec(marker);
  const name = decodeMarker(match?.[1] ?? marker);
  const stamp = Number(match?.[2] ?? "0");
  return name === undefined || !Number.isSafeInteger(stamp) ? undefined : { name, stamp };
}

export function decodeMarker(marker: string): string | undefined {
  if (marker === "") return "";
  const bytes = marker.startsWith(markerStart) ? fromBase64Url(marker.slice(markerStart.length)) : undefined;
  return bytes && decodeUtf8(bytes);
}

/** Returns the marker for XML, which the answer repeats. A blob's is encoded like names; others can't have such characters. */
function uncarried(
  of: string,
  version: string,
  values: Readonly<Record<string, string | undefined>>,
): ReturnType<typeof badQuery> | undefined {
  if (of === "blobs" && behavesAs(version, "encodedNames")) return undefined;
  const since = of === "blobs" ? " The list can be asked for in version 2021-02-12 or newer." : "";
  for (const [name, value = ""] of Object.entries(values))
    if (needsEncoding(value)) return badQuery(name, value, `It has characters that XML 1.0 can't carry.${since}`);
  return undefined;
}

export function parseListQuery(query: Query, of: "blobs" | "containers" | "queues", version: string): Parsed<ListQuery> {
  const echo: ListQuery["echo"] = {};
  const prefix = queryValue(query, "prefix");
  const delimiter = of === "blobs" ? queryValue(query, "delimiter") : undefined;
  const marker = queryValue(query, "marker");
  const maxText = queryValue(query, "maxresults");
  const wrong = uncarried(of, version, { prefix, delimiter });
  if (wrong) return wrong;
  if (prefix !== undefined) echo.prefix = prefix;
  if (delimiter !== undefined) echo.delimiter = delimiter;
  const start = decodeMarkerWithin(marker ?? "");
  if (start === undefined) return badQuery("marker", marker ?? "", "Not a marker of this service.");
  if (marker !== undefined) echo.marker = marker;
  let maxResults = listResultsMax;
  if (maxText !== undefined && maxText !== "") {
    if (!/^\d{1,9}$/.test(maxText)) return badQuery("maxresults", maxText, "Not a number.");
    if (Number(maxText) < 1) {
      const details = { QueryParameterName: "maxresults", QueryParameterValue: maxText, MinimumAllowed: "1", MaximumAllowed: "5000" };
      return rejected("OutOfRangeQueryParameterValue", details);
    }
    maxResults = Math.min(Number(maxText), listResultsMax);
    echo.maxResults = maxResults;
  }
  const include = new Set<string>();
  const known = of === "blobs" ? blobIncludes : of === "containers" ? containerIncludes : queueIncludes;
  for (const item of (query.get("include") ?? []).join(",").split(",")) {
    const name = item.trim().toLowerCase();
    if (name === "") continue;
    if (name === "permissions" && of === "blobs") return notImplemented("Listing permissions (hierarchical namespaces)");
    if (!known.has(name)) return badQuery("include", item, "Not something this list can include.");
    include.add(name);
  }
  const showOnly = of === "blobs" ? queryValue(query, "showonly")?.toLowerCase() : undefined;
  if (showOnly !== undefined && showOnly !== "deleted")
    return notImplemented("Listing files or directories only (hierarchical namespaces)");
  const from = of === "blobs" ? (queryValue(query, "startfrom") ?? "") : "";
  return parsed({
    prefix: prefix ?? "",
    delimiter: delimiter ?? "",
    marker: start.name === "" ? from : start.name,
    isContinued: start.name !== "",
    markerStamp: start.stamp,
    maxResults,
    onlyDeleted: showOnly === "deleted",
    include,
    echo,
  });
}
