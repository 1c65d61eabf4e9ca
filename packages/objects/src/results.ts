/** Results of operations on objects: the same as in proto/stamp/v1/objects.proto, with safe-integer numbers and without absent parts. */
import type { Account } from "./accounts/operation.ts";
import type { LeaseView } from "./blobs/protect/leases.ts";
import type { ServiceError } from "./errors.ts";
import type { HandlesAnswer } from "./handles/operation.ts";
import type { Metadata } from "./object-keys.ts";
import type { BlobHeaders, BlobType, ContainerEncryption, CopyPart, CopyState } from "./operation.ts";
import type { QueueResult } from "./queues/operation.ts";
import type { Place } from "./rows/row.ts";
import type { SignedIdentifier } from "./signed-identifiers.ts";
import type { TableResult } from "./tables/operation.ts";
import type { StepAnswer } from "./tree/operation.ts";

export interface Container extends ContainerEncryption {
  readonly name: string;
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly metadata: Metadata;
  readonly incarnation: number;
  readonly publicAccess: string;
  readonly signedIdentifiers: readonly SignedIdentifier[];
  readonly lease: LeaseView;
  /** Whether something inside was ever protected by an immutability policy or a legal hold. */
  readonly hasProtected: boolean;
  /** Sequence of the commit in which a deletion began to look through the container; 0: none stands. */
  readonly deletionBegun: number;
  /** Deleted softly, and not restored. */
  readonly deletedMs?: number | undefined;
  readonly remainingRetentionDays?: number | undefined;
}

export interface Blob {
  readonly name: string;
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly createdMs: number;
  readonly contentLengthBytes: number;
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
  readonly blobType: BlobType;
  readonly uncommitted: boolean;
  /** Number of committed blocks of an append blob. */
  readonly committedBlockCount: number;
  readonly sealed: boolean;
  /** Sequence number of a page blob. */
  readonly sequenceNumber: number;
  readonly copy?: CopyState | undefined;
  /** Microseconds since 1970. 0: not a snapshot; written without versioning. */
  readonly snapshotStamp: number;
  readonly versionStamp: number;
  readonly isCurrentVersion: boolean;
  readonly lease: LeaseView;
  /** Tags of the blob; empty in lists that do not include tags. */
  readonly tags: Metadata;
  readonly tagCount: number;
  readonly accessTier: string;
  readonly accessTierInferred: boolean;
  readonly accessTierChangedMs?: number | undefined;
  readonly expiresMs?: number | undefined;
  readonly immutableUntilMs?: number | undefined;
  readonly immutabilityMode?: string | undefined;
  readonly legalHold: boolean;
  /** Time of the soft deletion, in milliseconds since 1970; undefined: the blob is not deleted. */
  readonly deletedMs?: number | undefined;
  readonly remainingRetentionDays?: number | undefined;
  /** True if the blob itself does not exist and is listed because it has versions. */
  readonly versionsOnly?: boolean | undefined;
  /** SHA-256 of the customer's key that the content is encrypted under. */
  readonly encryptionKeySha256?: Uint8Array | undefined;
  /** Name of the encryption scope of the blob's content. */
  readonly encryptionScope?: string | undefined;
  /** Owner and access control of a file or directory, if it has any of its own (docs/formats/tree.md). */
  readonly pathAccess?: string | undefined;
}

export interface BlobContent {
  readonly blob: Blob;
  readonly startBytes: number;
  /** Number of bytes that follow. Less than asked for when they lie in more than `contentPlacesMax` places. */
  readonly lengthBytes: number;
  readonly inline: Uint8Array;
  /** Places in order; those of extent 0 (`zeroExtentId`) stand for zeros. */
  readonly places: readonly Place[];
}

export interface BlockSize {
  readonly blockId: Uint8Array;
  readonly sizeBytes: number;
}

export type ListedBlob = { readonly case: "blob"; readonly value: Blob } | { readonly case: "prefix"; readonly value: string };

export type OperationResult =
  | { readonly case: "error"; readonly value: ServiceError }
  | { readonly case: "account"; readonly value: Account }
  | {
      readonly case: "accounts";
      readonly value: { readonly accounts: readonly Account[]; readonly nextMarker: string; readonly rangeEnded: boolean };
    }
  | { readonly case: "container"; readonly value: Container }
  | {
      readonly case: "containers";
      readonly value: {
        readonly containers: readonly Container[];
        readonly nextMarker: string;
        readonly nextMarkerStamp: number;
        readonly rangeEnded: boolean;
      };
    }
  | { readonly case: "blob"; readonly value: Blob }
  | { readonly case: "content"; readonly value: BlobContent }
  | {
      readonly case: "blobs";
      readonly value: {
        readonly entries: readonly ListedBlob[];
        /** Entries in packed form, in place of `entries`, for a caller that takes it. */
        readonly packed?: Uint8Array | undefined;
        readonly nextMarker: string;
        readonly nextMarkerStamp: number;
        readonly rangeEnded: boolean;
      };
    }
  | {
      readonly case: "blockList";
      readonly value: {
        readonly blob: Blob | undefined;
        readonly committed: readonly BlockSize[];
        readonly uncommitted: readonly BlockSize[];
      };
    }
  | {
      readonly case: "leased";
      readonly value: {
        readonly etag: string;
        readonly lastModifiedMs: number;
        readonly leaseId: string;
        /** Time until a broken lease ends, in seconds. */
        readonly leftSeconds: number;
      };
    }
  /** Answer of a deletion. `permanent`: nothing is kept. `more`: not all is done, ask the same again. */
  | { readonly case: "deleted"; readonly value: { readonly permanent: boolean; readonly more: boolean } }
  | { readonly case: "table"; readonly value: TableResult }
  | { readonly case: "queue"; readonly value: QueueResult }
  | { readonly case: "tree"; readonly value: StepAnswer }
  | { readonly case: "handles"; readonly value: HandlesAnswer }
  | { readonly case: "done" }
  | {
      readonly case: "copyParts";
      /** `next` undefined: there are no more. */
      readonly value: { readonly blob: Blob; readonly parts: readonly CopyPart[]; readonly next: number | undefined };
    }
  | { readonly case: "appended"; readonly value: { readonly blob: Blob; readonly offsetBytes: number } }
  | {
      readonly case: "pageRanges";
      readonly value: { readonly blob: Blob; readonly ranges: readonly PageRange[]; readonly nextBytes: number };
    }
  /** Clearing of pages; `nextBytes`: offset at which to go on, 0 if all is done. */
  | { readonly case: "cleared"; readonly value: { readonly blob: Blob; readonly nextBytes: number } };

export interface PageRange {
  readonly startBytes: number;
  /** End of the range in bytes, exclusive. */
  readonly endBytes: number;
  /** True if the range has zeros now and had content in the previous snapshot. */
  readonly cleared: boolean;
}
