/**
 * Conditions that each operation of the Blob service evaluates. Sources: the table in "Specifying conditional headers
 * for Blob service operations" of the REST reference, and for operations that it does not have, the parameters of each
 * operation in `@azure/storage-blob` 12.34. Where both are silent the condition is refused, with one exception: Get
 * Block List, whose own page says that it takes them.
 */
import type { HttpHeaders } from "../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";
import type { BlobOperationName } from "./operations.ts";

const times = ["if-modified-since", "if-unmodified-since"] as const;
const etags = ["if-match", "if-none-match"] as const;
const sourceState = [
  ...["x-ms-source-if-match", "x-ms-source-if-none-match", "x-ms-source-if-modified-since", "x-ms-source-if-unmodified-since"],
  "x-ms-source-lease-id",
] as const;
const sequence = ["x-ms-if-sequence-number-le", "x-ms-if-sequence-number-lt", "x-ms-if-sequence-number-eq"] as const;
const position = ["x-ms-blob-condition-appendpos"] as const;
const appending = [...position, "x-ms-blob-condition-maxsize"] as const;
const ofTheBlob = [
  "x-ms-blob-if-match",
  "x-ms-blob-if-none-match",
  "x-ms-blob-if-modified-since",
  "x-ms-blob-if-unmodified-since",
] as const;
const lease = ["x-ms-lease-id"] as const;
const tagsAndLease = ["x-ms-if-tags", ...lease] as const;
const state = [...etags, ...times, ...tagsAndLease] as const;
const onTags = [...ofTheBlob, ...tagsAndLease] as const;

/** Every header that is a condition, in lower case. */
export const conditionHeaders: readonly string[] = [
  ...state,
  ...sourceState,
  "x-ms-source-if-tags",
  ...sequence,
  ...appending,
  ...ofTheBlob,
];

/** An operation that is not here looks at no condition. */
export const allowedConditions: Partial<Readonly<Record<BlobOperationName, readonly string[]>>> = {
  GetContainerProperties: lease,
  GetContainerMetadata: lease,
  GetContainerAcl: lease,
  SetContainerMetadata: ["if-modified-since", ...lease],
  SetContainerAcl: [...times, ...lease],
  DeleteContainer: [...times, ...lease],
  LeaseContainer: [...times, ...lease],
  GetBlob: state,
  GetBlobProperties: state,
  GetBlobMetadata: state,
  GetBlockList: state,
  GetPageRanges: state,
  GetBlobTags: onTags,
  SetBlobTags: onTags,
  PutBlob: state,
  PutBlockList: state,
  PutBlock: lease,
  AppendBlock: [...state, ...appending],
  SealAppendBlob: [...etags, ...times, ...lease, ...position],
  PutPage: [...state, ...sequence],
  SetBlobMetadata: state,
  SetBlobHeaders: state,
  DeleteBlob: state,
  SnapshotBlob: state,
  LeaseBlob: state,
  SetBlobTier: tagsAndLease,
  SetBlobExpiry: lease,
  SetBlobImmutabilityPolicy: ["if-unmodified-since"],
  CopyBlob: [...state, ...sourceState, "x-ms-source-if-tags"],
  CopyBlobFromUrl: [...state, ...sourceState],
  AbortCopyBlob: lease,
  PutBlobFromUrl: [...state, ...sourceState, "x-ms-source-if-tags"],
  PutBlockFromUrl: [...lease, ...sourceState],
  AppendBlockFromUrl: [...state, ...sourceState, ...appending],
  PutPageFromUrl: [...state, ...sourceState, ...sequence],
};

/** Reads may name several ETags; the reference answers a write that does with 400. */
const reads: ReadonlySet<BlobOperationName> = new Set([
  ...(["GetBlob", "GetBlobProperties", "GetBlobMetadata", "GetBlockList", "GetPageRanges", "GetBlobTags"] as const),
]);

export function checkConditions(operation: BlobOperationName, headers: HttpHeaders): Parsed<void> {
  const allowed = allowedConditions[operation] ?? [];
  for (const name of conditionHeaders) {
    const value = headers[name];
    if (value === undefined) continue;
    if (!allowed.includes(name)) {
      const code = name.startsWith("if-") || name === "x-ms-if-tags" ? "ConditionHeadersNotSupported" : "UnsupportedHeader";
      return rejected(code, { HeaderName: name });
    }
    if (name.endsWith("match") && !reads.has(operation) && value.includes(",")) return badHeader(name, value, "A write names one ETag.");
  }
  if (headers["if-range"] !== undefined && operation === "GetPageRanges" && (headers.range ?? headers["x-ms-range"]) !== undefined) {
    return rejected("ConditionHeadersNotSupported", { HeaderName: "if-range" });
  }
  return parsed(undefined);
}
