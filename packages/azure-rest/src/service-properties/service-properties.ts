/**
 * Properties of an account's services: what Set Blob (Queue, Table) Service Properties says, and the settings of the blob service that
 * only the operator changes (versioning, retention of deleted containers). Stored as JSON text in the account's row, one text for each
 * service (`docs/formats/account.md`).
 */
import { type Failed, newerFormat, refused } from "@stamp/base";

export interface RetentionPolicy {
  readonly enabled: boolean;
  /** Number of days, 1 to 365; only if the policy is enabled. */
  readonly days?: number;
}

export interface Logging {
  readonly version: string;
  readonly delete: boolean;
  readonly read: boolean;
  readonly write: boolean;
  readonly retention: RetentionPolicy;
}

export interface Metrics {
  readonly version: string;
  readonly enabled: boolean;
  /** Present only when metrics are enabled. */
  readonly includeApis?: boolean;
  readonly retention: RetentionPolicy;
}

/** Lists as they were written; `*` stands for everything, a trailing `*` in a header name for its beginning. */
export interface CorsRule {
  readonly allowedOrigins: readonly string[];
  readonly allowedMethods: readonly string[];
  readonly allowedHeaders: readonly string[];
  readonly exposedHeaders: readonly string[];
  readonly maxAgeSeconds: number;
}

export interface StaticWebsite {
  readonly enabled: boolean;
  readonly indexDocument?: string;
  readonly errorDocument404Path?: string;
  readonly defaultIndexDocumentPath?: string;
}

export interface ServiceProperties {
  readonly logging: Logging;
  readonly hourMetrics: Metrics;
  readonly minuteMetrics: Metrics;
  readonly cors: readonly CorsRule[];
  /** Blob: the version of requests that name none. */
  readonly defaultServiceVersion?: string;
  /** Time for which deleted blobs, snapshots and versions are kept. */
  readonly deleteRetention: RetentionPolicy & { readonly allowPermanentDelete?: boolean };
  readonly staticWebsite: StaticWebsite;
  /** Time for which the operator keeps deleted containers. */
  readonly containerDeleteRetention: RetentionPolicy;
  /** True if every write of a blob keeps what was there as a version; set by the operator. */
  readonly versioning: boolean;
  /** True if no container is read without authorization, and none can be made public; set by the operator. */
  readonly publicAccessForbidden: boolean;
  /** True if containers are filesystems with trees of directories; set by the operator when the account is made, for good. */
  readonly hierarchicalNamespace: boolean;
}

export const serviceNames = ["blob", "queue", "table", "file"] as const;
export type ServiceName = (typeof serviceNames)[number];

const off: RetentionPolicy = { enabled: false };
const noMetrics: Metrics = { version: "1.0", enabled: false, retention: off };

/** Properties of an account for which nobody set any. */
export const defaultServiceProperties: ServiceProperties = {
  logging: { version: "1.0", delete: false, read: false, write: false, retention: off },
  hourMetrics: noMetrics,
  minuteMetrics: noMetrics,
  cors: [],
  deleteRetention: off,
  staticWebsite: { enabled: false },
  containerDeleteRetention: off,
  versioning: false,
  publicAccessForbidden: false,
  hierarchicalNamespace: false,
};

/** Encodes the properties, in a later version only where an earlier build would ignore a switch: that build then refuses the account. */
export function encodeServiceProperties({ publicAccessForbidden, hierarchicalNamespace, ...properties }: ServiceProperties): string {
  if (hierarchicalNamespace) return JSON.stringify({ v: 3, ...properties, publicAccessForbidden, hierarchicalNamespace });
  return JSON.stringify(publicAccessForbidden ? { v: 2, ...properties, publicAccessForbidden } : { v: 1, ...properties });
}

const newestVersion = 3;

/** `""` is the default. Undefined for what this code did not write; `unreadableProperties` tells a newer format from damage. */
export function decodeServiceProperties(text: string): ServiceProperties | undefined {
  if (text === "") return defaultServiceProperties;
  try {
    const { v, ...held } = JSON.parse(text) as { v: unknown } & ServiceProperties;
    return v === 1 || v === 2 || v === 3 ? { ...defaultServiceProperties, ...held } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the refusal of a text that `decodeServiceProperties` can't read: `newerFormat`, or `damaged`. `where` names the account. */
export function unreadableProperties(where: string, text: string): Failed {
  try {
    const { v } = JSON.parse(text) as { readonly v?: unknown };
    if (typeof v === "number" && v > newestVersion) return newerFormat(where, { format: "service-properties", version: v });
  } catch {
    // Damaged, as below.
  }
  return refused("dataLoss", "damaged", `${where} can't be read`);
}
