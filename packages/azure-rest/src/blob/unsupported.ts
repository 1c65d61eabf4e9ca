/**
 * Headers that would change what a request means and whose meaning we don't have: 501 with the feature's name. Headers that the service
 * itself ignores are not here. A value that asks for what happens anyway (e.g. deleting snapshots, where there can't be any) is fine.
 */
import type { HttpHeaders } from "../headers.ts";
import { badHeader, notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import { checkConditions } from "./conditions.ts";
import { type BlobOperationName, blobOperations } from "./operation-rows.ts";

/** Header names, exact or with "*" for the rest, each with its feature. */
const features: readonly (readonly [string, string])[] = [
  ["x-ms-structured-*", "Structured message bodies"],
  ["x-ms-file-request-intent", "Copies from Azure Files"],
  ["x-ms-access-tier-if-*", "Conditions on the time of the access tier"],
];
const exact: ReadonlyMap<string, string> = new Map(features.filter(([name]) => !name.endsWith("*")));
const beginnings = features.filter(([name]) => name.endsWith("*")).map(([name, feature]) => [name.slice(0, -1), feature] as const);

/** Names that only some operations take: those of all rows. */
export const specialBlobHeaders: ReadonlySet<string> = new Set(Object.values(blobOperations).flatMap(({ headers = [] }) => headers));
const isOfSource = (name: string): boolean => name.startsWith("x-ms-copy-source") || name.startsWith("x-ms-source-");

export function checkUnsupported(operation: BlobOperationName, headers: HttpHeaders): Parsed<void> {
  const { headers: taken = [], copies } = blobOperations[operation];
  for (const name in headers) {
    if (!name.startsWith("x-ms-") || name.startsWith("x-ms-meta-")) continue;
    const feature = exact.get(name) ?? beginnings.find(([beginning]) => name.startsWith(beginning))?.[1];
    if (feature !== undefined) return notImplemented(`${feature} (${name})`);
    if (isOfSource(name) && !copies) return rejected("UnsupportedHeader", { HeaderName: name });
    if (specialBlobHeaders.has(name) && !taken.includes(name)) return rejected("UnsupportedHeader", { HeaderName: name });
  }
  const conditions = checkConditions(operation, headers);
  if (!conditions.ok) return conditions;
  return operation === "PutBlob" ? checkBlobType(headers) : operation === "DeleteBlob" ? checkDelete(headers) : parsed(undefined);
}

function checkBlobType(headers: HttpHeaders): Parsed<void> {
  const type = headers["x-ms-blob-type"];
  if (type === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-blob-type" });
  if (type === "BlockBlob" || type === "AppendBlob" || type === "PageBlob") return parsed(undefined);
  return badHeader("x-ms-blob-type", type);
}

function checkDelete(headers: HttpHeaders): Parsed<void> {
  const snapshots = headers["x-ms-delete-snapshots"];
  if (snapshots === undefined || snapshots === "include" || snapshots === "only") return parsed(undefined);
  return badHeader("x-ms-delete-snapshots", snapshots);
}
