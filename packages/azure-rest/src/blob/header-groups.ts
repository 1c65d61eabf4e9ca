/** Names of headers of the Blob service, in groups that the rows of operations (operation-rows.ts) take together. */

export const times: readonly string[] = ["if-modified-since", "if-unmodified-since"];
export const etags: readonly string[] = ["if-match", "if-none-match"];
export const sourceState: readonly string[] = [
  ...["x-ms-source-if-match", "x-ms-source-if-none-match", "x-ms-source-if-modified-since", "x-ms-source-if-unmodified-since"],
  "x-ms-source-lease-id",
];
export const sequence: readonly string[] = ["x-ms-if-sequence-number-le", "x-ms-if-sequence-number-lt", "x-ms-if-sequence-number-eq"];
export const position: readonly string[] = ["x-ms-blob-condition-appendpos"];
export const appending: readonly string[] = [...position, "x-ms-blob-condition-maxsize"];
const ofTheBlob: readonly string[] = [
  "x-ms-blob-if-match",
  "x-ms-blob-if-none-match",
  "x-ms-blob-if-modified-since",
  "x-ms-blob-if-unmodified-since",
];
export const lease: readonly string[] = ["x-ms-lease-id"];
export const tagsAndLease: readonly string[] = ["x-ms-if-tags", ...lease];
export const state: readonly string[] = [...etags, ...times, ...tagsAndLease];
export const onTags: readonly string[] = [...ofTheBlob, ...tagsAndLease];

/** Every header that is a condition, in lower case. */
export const conditionHeaders: readonly string[] = [
  ...state,
  ...sourceState,
  "x-ms-source-if-tags",
  ...sequence,
  ...appending,
  ...ofTheBlob,
];

export const leasing: readonly string[] = ["x-ms-lease-action", "x-ms-lease-duration", "x-ms-lease-break-period", "x-ms-proposed-lease-id"];
export const tier: readonly string[] = ["x-ms-access-tier", "x-ms-rehydrate-priority"];
export const policy: readonly string[] = ["x-ms-immutability-policy-until-date", "x-ms-immutability-policy-mode"];
export const expiry: readonly string[] = ["x-ms-expiry-option", "x-ms-expiry-time"];
/** Headers with state that a write which makes a blob may set. */
export const newState: readonly string[] = ["x-ms-tags", ...tier, ...policy, "x-ms-legal-hold"];
/** Headers of a customer's key, without the algorithm: clients name it with every request. */
export const customerKey: readonly string[] = ["x-ms-encryption-key", "x-ms-encryption-key-sha256"];
export const defaultScope: readonly string[] = ["x-ms-default-encryption-scope", "x-ms-deny-encryption-scope-override"];
export const sourceKey: readonly string[] = [
  "x-ms-source-encryption-key",
  "x-ms-source-encryption-key-sha256",
  "x-ms-source-encryption-algorithm",
];
export const sourceHashes: readonly string[] = ["x-ms-source-content-md5", "x-ms-source-content-crc64"];
