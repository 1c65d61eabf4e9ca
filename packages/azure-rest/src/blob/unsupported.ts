/**
 * Headers that would change what a request means and whose meaning we don't have: 501 with the feature's name. Headers that the service
 * itself ignores are not here. A value that asks for what happens anyway (e.g. deleting snapshots, where there can't be any) is fine.
 */
import type { HttpHeaders } from "../headers.ts";
import { badHeader, notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import { checkConditions } from "./conditions.ts";
import type { BlobOperationName } from "./operations.ts";

/** By exact name, or by beginning where the name ends with "*". */
const features: readonly (readonly [string, string])[] = [
  ["x-ms-structured-*", "Structured message bodies"],
  ["x-ms-file-request-intent", "Copies from Azure Files"],
  ["x-ms-access-tier-if-*", "Conditions on the time of the access tier"],
];
const exact: ReadonlyMap<string, string> = new Map(features.filter(([name]) => !name.endsWith("*")));
const beginnings = features.filter(([name]) => name.endsWith("*")).map(([name, feature]) => [name.slice(0, -1), feature] as const);

const leases: readonly BlobOperationName[] = ["LeaseBlob", "LeaseContainer"];
const makesBlob: readonly BlobOperationName[] = ["PutBlob", "PutBlockList", "CopyBlob", "CopyBlobFromUrl", "PutBlobFromUrl"];
const ofRanges: readonly BlobOperationName[] = ["PutBlockFromUrl", "AppendBlockFromUrl", "PutPageFromUrl"];

const ofContent: readonly BlobOperationName[] = [
  "PutBlob",
  "PutBlobFromUrl",
  "PutBlock",
  "PutBlockList",
  "AppendBlock",
  "PutPage",
  ...ofRanges,
  "GetBlob",
  "GetBlobProperties",
  "GetBlobMetadata",
  "SetBlobMetadata",
  "SetBlobHeaders",
  "SnapshotBlob",
];

/** Writes that may name an encryption scope for their content. */
const underScope: readonly BlobOperationName[] = [
  "PutBlob",
  "PutBlobFromUrl",
  "CopyBlobFromUrl",
  "PutBlock",
  "PutBlockList",
  "AppendBlock",
  "PutPage",
  ...ofRanges,
  "SetBlobMetadata",
  "SnapshotBlob",
];

/** Headers that mean something to these operations only; elsewhere they are the client's mistake. */
const onlyWith: Readonly<Record<string, readonly BlobOperationName[]>> = {
  "x-ms-lease-action": leases,
  "x-ms-lease-duration": leases,
  "x-ms-lease-break-period": leases,
  "x-ms-proposed-lease-id": leases,
  "x-ms-tags": makesBlob,
  "x-ms-access-tier": [...makesBlob, "SetBlobTier"],
  "x-ms-rehydrate-priority": [...makesBlob, "SetBlobTier"],
  "x-ms-expiry-option": ["SetBlobExpiry"],
  "x-ms-expiry-time": ["SetBlobExpiry"],
  "x-ms-immutability-policy-until-date": [...makesBlob, "SetBlobImmutabilityPolicy"],
  "x-ms-immutability-policy-mode": [...makesBlob, "SetBlobImmutabilityPolicy"],
  "x-ms-legal-hold": [...makesBlob, "SetBlobLegalHold"],
  "x-ms-page-write": ["PutPage", "PutPageFromUrl"],
  "x-ms-blob-sequence-number": ["PutBlob", "SetBlobHeaders"],
  "x-ms-sequence-number-action": ["SetBlobHeaders"],
  "x-ms-blob-content-length": ["PutBlob", "SetBlobHeaders"],
  "x-ms-requires-sync": ["CopyBlob", "CopyBlobFromUrl"],
  "x-ms-seal-blob": ["CopyBlob"],
  "x-ms-copy-action": ["AbortCopyBlob"],
  "x-ms-copy-source-blob-properties": ["PutBlobFromUrl"],
  "x-ms-copy-source-tag-option": ["CopyBlob", "CopyBlobFromUrl", "PutBlobFromUrl"],
  "x-ms-encryption-scope": underScope,
  "x-ms-default-encryption-scope": ["CreateContainer"],
  "x-ms-deny-encryption-scope-override": ["CreateContainer"],
  // Not the algorithm: clients name it with every request.
  "x-ms-encryption-key": ofContent,
  "x-ms-encryption-key-sha256": ofContent,
  "x-ms-source-encryption-key": ["PutBlobFromUrl", ...ofRanges],
  "x-ms-source-encryption-key-sha256": ["PutBlobFromUrl", ...ofRanges],
  "x-ms-source-encryption-algorithm": ["PutBlobFromUrl", ...ofRanges],
  "x-ms-source-range": ofRanges,
  "x-ms-source-content-md5": ["CopyBlobFromUrl", "PutBlobFromUrl", ...ofRanges],
  "x-ms-source-content-crc64": ["CopyBlobFromUrl", "PutBlobFromUrl", ...ofRanges],
};

const copying: ReadonlySet<BlobOperationName> = new Set([
  "CopyBlob",
  "CopyBlobFromUrl",
  "PutBlobFromUrl",
  "PutBlockFromUrl",
  "AppendBlockFromUrl",
  "PutPageFromUrl",
]);
const isOfSource = (name: string): boolean => name.startsWith("x-ms-copy-source") || name.startsWith("x-ms-source-");

export function checkUnsupported(operation: BlobOperationName, headers: HttpHeaders): Parsed<void> {
  for (const name in headers) {
    if (!name.startsWith("x-ms-") || name.startsWith("x-ms-meta-")) continue;
    const feature = exact.get(name) ?? beginnings.find(([beginning]) => name.startsWith(beginning))?.[1];
    if (feature !== undefined) return notImplemented(`${feature} (${name})`);
    if (isOfSource(name) && !copying.has(operation)) return rejected("UnsupportedHeader", { HeaderName: name });
    if (Object.hasOwn(onlyWith, name) && !onlyWith[name]?.includes(operation)) return rejected("UnsupportedHeader", { HeaderName: name });
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
