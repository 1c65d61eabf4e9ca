/**
 * Operations on objects: the same as in proto/stamp/v1/objects.proto, with safe-integer numbers and without absent
 * parts. What arrives here was checked for form (names, header syntax, sizes) by the front-end; what depends on the state of an object
 * is decided here.
 */

import type { BlobHeaders, ContainerScope, ShownCopy } from "@stamp/base";
import type { ChangeAccount, ListAccounts, PutAccount } from "./accounts/operation.ts";
import type { Conditions } from "./asked-conditions.ts";
import type { LeaseAction } from "./blobs/protect/leases.ts";
import type { HandleStep } from "./handles/operation.ts";
import type { BlobName, BlobReference, Metadata } from "./object-keys.ts";
import type { QueueOperation } from "./queues/operation.ts";
import type { Place } from "./rows/row.ts";
import type { SignedIdentifier } from "./signed-identifiers.ts";
import type { TableOperation } from "./tables/operation.ts";
import type { TreeStep } from "./tree/operation.ts";

export type { Conditions };

/** Features that the service properties of an account switch on. They come with every operation. */
export interface BlobPolicy {
  readonly versioning: boolean;
  /** How long deleted and overwritten blobs are kept; 0: not at all. */
  readonly deleteRetentionDays: number;
  readonly containerDeleteRetentionDays: number;
  /** True if kept states may be deleted for good before their time. */
  readonly permanentDelete: boolean;
  /** True if blobs are files of a tree, named by their ids; undefined: they are not. */
  readonly hierarchical?: boolean | undefined;
}

export const noPolicy: BlobPolicy = { versioning: false, deleteRetentionDays: 0, containerDeleteRetentionDays: 0, permanentDelete: false };

/** Content: either bytes in the message or places where they were put. */
export interface Body {
  readonly inline: Uint8Array;
  readonly places: readonly Place[];
}

export interface ContainerName {
  readonly account: string;
  readonly container: string;
}

export interface CreateContainer extends ContainerName, Partial<ContainerScope> {
  readonly metadata: Metadata;
  readonly publicAccess: string;
}

export type BlockSource = "committed" | "uncommitted" | "latest";

export interface BlockReference {
  readonly blockId: Uint8Array;
  readonly source: BlockSource;
}

interface OnBlob {
  readonly name: BlobName;
  readonly conditions: Conditions;
}

/** Name of a blob, or of one of its snapshots or versions. */
interface OnBlobState {
  readonly name: BlobReference;
  readonly conditions: Conditions;
}

/** State that a write may set on the blob that it makes. */
export interface NewBlobState {
  readonly tags: Metadata;
  /** Access tier; empty: the account's default. */
  readonly accessTier: string;
  readonly immutableUntilMs?: number | undefined;
  readonly immutabilityMode: string;
  readonly legalHold: boolean;
}

export const plainState: NewBlobState = { tags: {}, accessTier: "", immutabilityMode: "", legalHold: false };

export interface GetBlob extends OnBlobState {
  /** First byte of the range, inclusive. */
  readonly startBytes?: number | undefined;
  /** End of the range, exclusive. */
  readonly endBytes?: number | undefined;
  readonly withoutContent: boolean;
  /** True if nothing of the answer is told that the blob's key protects: the key is not asked for. */
  readonly withoutKey?: boolean | undefined;
}

export const blobTypes = ["BlockBlob", "PageBlob", "AppendBlob"] as const;
export type BlobType = (typeof blobTypes)[number];

export interface PutBlob extends OnBlob {
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
  readonly body: Body;
  /** Type of the blob; undefined: a block blob. Append and page blobs are made without a body. */
  readonly blobType?: BlobType | undefined;
  /** Size of a page blob, in bytes. */
  readonly pageBlobBytes?: number | undefined;
  readonly sequenceNumber?: number | undefined;
  /** Tags, tier, policy and hold of the new blob; undefined: none are given. */
  readonly state?: NewBlobState | undefined;
  /** Owner and access control of a file or directory (docs/formats/tree.md). Undefined: the blob keeps what it has. */
  readonly pathAccess?: string | undefined;
}

export interface PutBlock extends OnBlob {
  /** Id of the block, 1 to 64 bytes. */
  readonly blockId: Uint8Array;
  readonly body: Body;
}

export interface PutBlockList extends OnBlob {
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
  readonly blocks: readonly BlockReference[];
  /** Tags, tier, policy and hold of the new blob; undefined: none are given. */
  readonly state?: NewBlobState | undefined;
  /** Length that the blocks have together, in bytes; otherwise ConditionNotMet. Undefined: any. */
  readonly expectedBytes?: number | undefined;
  /** True: uncommitted blocks that the list does not name stay. It names at most 2,000 others than committed ones. */
  readonly keepsUnnamed?: boolean | undefined;
}

interface LeaseValue {
  readonly conditions: Conditions;
  readonly action: LeaseAction;
  /** Lease id for acquire and change, in lower case, with hyphens, as `conditions.leaseId`. */
  readonly proposedLeaseId: string;
  /** Duration of acquire, 15 to 60 seconds, or -1 for a lease without end. */
  readonly durationSeconds: number;
  /** Break period of break, 0 to 60 seconds. */
  readonly breakPeriodSeconds?: number | undefined;
}

export type DeleteSnapshots = "" | "include" | "only";

export interface DeleteBlob extends OnBlobState {
  readonly snapshots?: DeleteSnapshots | undefined;
  /** True to purge a soft-deleted state before its time. */
  readonly permanent?: boolean | undefined;
}

export type ExpiryOption = "never" | "relativeToCreation" | "relativeToNow" | "absolute";

export interface FindBlobs extends ContainerName {
  readonly containerIncarnation: number;
  /** An expression over tags (tags/where.ts). */
  readonly where: string;
  readonly marker: string;
  readonly maxResults: number;
}

export interface ListContainers {
  readonly account: string;
  readonly includeDeleted?: boolean | undefined;
  readonly prefix: string;
  /** The first name of the page; empty for the start. */
  readonly marker: string;
  /** Incarnation from which the first name goes on; 0 begins with the container itself. */
  readonly markerStamp?: number | undefined;
  readonly maxResults: number;
}

export interface ListBlobs {
  readonly account: string;
  readonly container: string;
  readonly containerIncarnation: number;
  readonly prefix: string;
  readonly delimiter: string;
  /** The first name of the page; empty for the start. */
  readonly marker: string;
  /** Snapshot or version from which the first name goes on; 0 begins with its first state. */
  readonly markerStamp?: number | undefined;
  readonly maxResults: number;
  readonly includeMetadata: boolean;
  readonly includeUncommitted: boolean;
  readonly includeSnapshots?: boolean | undefined;
  readonly includeVersions?: boolean | undefined;
  readonly includeDeleted?: boolean | undefined;
  /** True to list names that have versions only, and no blob. */
  readonly includeDeletedWithVersions?: boolean | undefined;
  readonly includeTags?: boolean | undefined;
  /** True if only what was deleted softly is listed. */
  readonly onlyDeleted?: boolean | undefined;
  /** The first state that is protected, and nothing else; nothing of the above counts but the name of the first blob. */
  readonly onlyProtected?: boolean | undefined;
  /** True if the asker takes entries in one field (blobs/packed-blobs.ts). Not with `onlyProtected`. */
  readonly packed?: boolean | undefined;
}

export interface AppendBlock extends OnBlob {
  readonly body: Body;
  readonly appendPosition?: number | undefined;
  readonly maxSize?: number | undefined;
}

export interface SequenceNumberConditions {
  readonly lessOrEqual?: number | undefined;
  readonly less?: number | undefined;
  readonly equal?: number | undefined;
}

/** Starts and ends are multiples of 512. */
/** A write that may set entries of the metadata; the others stay. */
interface SetsMetadata {
  readonly setMetadata?: Metadata | undefined;
}

export interface PutPages extends OnBlob, SetsMetadata {
  readonly sequence: SequenceNumberConditions;
  readonly startBytes: number;
  readonly body: Body;
  /** Places that the range has to have now, without zeros, for the write to happen; empty: any. */
  readonly replaces?: readonly Place[] | undefined;
}

export interface ClearPages extends OnBlob, SetsMetadata {
  readonly sequence: SequenceNumberConditions;
  readonly startBytes: number;
  /** End of the range, exclusive. */
  readonly endBytes: number;
}

export type SequenceNumberAction = "max" | "update" | "increment";

/** Changes of a page blob's properties. Undefined fields keep their values. */
export interface SetPageBlobProperties extends OnBlob, SetsMetadata {
  readonly headers?: BlobHeaders | undefined;
  readonly contentLengthBytes?: number | undefined;
  readonly action?: SequenceNumberAction | undefined;
  readonly sequenceNumber: number;
}

/** State of the copy that made a blob, or makes it. */
export interface CopyState extends ShownCopy {
  /** Work that is left, while the copy is pending. */
  readonly work?: CopyWork | undefined;
}

export interface CopyWork {
  /** Process that copies, with its last sign by the wall clock of the partition server. */
  readonly copier: string;
  readonly beatMs: number;
  /** The part of the source that comes next. */
  readonly next: number;
  /** A blob of this stamp; undefined: one elsewhere. */
  readonly from?: BlobReference | undefined;
  readonly fromEtag: string;
  /**
   * URL of a source elsewhere, with its secrets; empty for a blob of this stamp. Removed at the end of the copy, and
   * never shown.
   */
  readonly fromUrl: string;
}

export interface CopyBlock {
  readonly blockId: Uint8Array;
  /** Start of the part, in bytes; for pages, from the start of their chunk. */
  readonly startBytes: number;
  readonly sizeBytes: number;
  readonly places: readonly Place[];
}

/** Part of a copy, by number: a content row, or a chunk of pages. */
export interface CopyPart {
  readonly index: number;
  /** The bytes themselves; then there are no blocks. */
  readonly inline: Uint8Array;
  readonly blocks: readonly CopyBlock[];
}

export interface StartCopy extends OnBlob {
  readonly copy: CopyState;
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
  readonly blobType: BlobType;
  readonly pageBlobBytes: number;
  readonly sequenceNumber: number;
  readonly appendBlockCount: number;
  readonly sealed: boolean;
  readonly parts: readonly CopyPart[];
  readonly state?: NewBlobState | undefined;
}

export interface AddToCopy {
  readonly name: BlobName;
  readonly copyId: string;
  readonly copier: string;
  /** Position of the copy before the part, and behind it. */
  readonly position: number;
  readonly next: number;
  readonly parts: readonly CopyPart[];
}

export interface EndCopy {
  readonly name: BlobName;
  readonly copyId: string;
  readonly copier: string;
  /** Reason why the copy failed; empty: it succeeded. */
  readonly description: string;
  readonly appendBlockCount: number;
  readonly sealed: boolean;
}

export interface GetPageRanges extends OnBlobState {
  readonly startBytes: number;
  readonly endBytes?: number | undefined;
  readonly rangesMax: number;
  /** Snapshot from which only the differences are asked for. */
  readonly previousStamp?: number | undefined;
}

export type Operation =
  | { readonly case: "getAccount"; readonly value: { readonly account: string } }
  | { readonly case: "putAccount"; readonly value: PutAccount }
  | { readonly case: "listAccounts"; readonly value: ListAccounts }
  | { readonly case: "changeAccount"; readonly value: ChangeAccount }
  | { readonly case: "createContainer"; readonly value: CreateContainer }
  | { readonly case: "getContainer"; readonly value: ContainerName & { readonly conditions: Conditions } }
  | {
      readonly case: "setContainerMetadata";
      readonly value: ContainerName & { readonly metadata: Metadata; readonly conditions: Conditions };
    }
  | {
      readonly case: "setContainerAcl";
      readonly value: ContainerName & {
        readonly publicAccess: string;
        readonly signedIdentifiers: readonly SignedIdentifier[];
        readonly conditions: Conditions;
      };
    }
  /** Deletion of a container. `begun`: answer of beginDeletion if something in it was protected once; else 0. */
  | {
      readonly case: "deleteContainer";
      readonly value: ContainerName & { readonly conditions: Conditions; readonly begun?: number | undefined };
    }
  | { readonly case: "beginDeletion"; readonly value: ContainerName & { readonly incarnation: number } }
  | { readonly case: "listContainers"; readonly value: ListContainers }
  | { readonly case: "putBlob"; readonly value: PutBlob }
  | { readonly case: "getBlob"; readonly value: GetBlob }
  | { readonly case: "setBlobMetadata"; readonly value: OnBlob & { readonly metadata: Metadata } }
  | { readonly case: "setBlobHeaders"; readonly value: OnBlob & { readonly headers: BlobHeaders } }
  | { readonly case: "deleteBlob"; readonly value: DeleteBlob }
  | { readonly case: "listBlobs"; readonly value: ListBlobs }
  | { readonly case: "putBlock"; readonly value: PutBlock }
  | { readonly case: "putBlockList"; readonly value: PutBlockList }
  | { readonly case: "getBlockList"; readonly value: OnBlobState & { readonly committed: boolean; readonly uncommitted: boolean } }
  | { readonly case: "table"; readonly value: TableOperation }
  | { readonly case: "queue"; readonly value: QueueOperation }
  | { readonly case: "tree"; readonly value: TreeStep }
  | { readonly case: "handles"; readonly value: HandleStep }
  | { readonly case: "appendBlock"; readonly value: AppendBlock }
  | { readonly case: "sealBlob"; readonly value: OnBlob & { readonly appendPosition?: number | undefined } }
  | { readonly case: "putPages"; readonly value: PutPages }
  | { readonly case: "clearPages"; readonly value: ClearPages }
  | { readonly case: "setPageBlobProperties"; readonly value: SetPageBlobProperties }
  | { readonly case: "getPageRanges"; readonly value: GetPageRanges }
  | { readonly case: "readParts"; readonly value: OnBlobState & { readonly first: number; readonly archivedToo?: boolean | undefined } }
  | { readonly case: "startCopy"; readonly value: StartCopy }
  | { readonly case: "addToCopy"; readonly value: AddToCopy }
  | { readonly case: "endCopy"; readonly value: EndCopy }
  | { readonly case: "abortCopy"; readonly value: OnBlob & { readonly copyId: string } }
  | { readonly case: "claimCopy"; readonly value: { readonly name: BlobName; readonly copyId: string; readonly copier: string } }
  | { readonly case: "leaseContainer"; readonly value: ContainerName & LeaseValue }
  | { readonly case: "restoreContainer"; readonly value: ContainerName & { readonly incarnation: number } }
  | { readonly case: "markProtected"; readonly value: ContainerName & { readonly incarnation: number } }
  | { readonly case: "leaseBlob"; readonly value: OnBlob & LeaseValue }
  /** `metadata` undefined: that of the blob. */
  | { readonly case: "snapshotBlob"; readonly value: OnBlob & { readonly metadata?: Metadata | undefined } }
  | { readonly case: "undeleteBlob"; readonly value: { readonly name: BlobName } }
  | { readonly case: "setBlobTags"; readonly value: OnBlobState & { readonly tags: Metadata } }
  | { readonly case: "setBlobTier"; readonly value: OnBlobState & { readonly tier: string } }
  | { readonly case: "setBlobExpiry"; readonly value: OnBlob & { readonly option: ExpiryOption; readonly timeMs: number } }
  | { readonly case: "setImmutabilityPolicy"; readonly value: OnBlobState & { readonly untilMs: number; readonly mode: string } }
  | { readonly case: "deleteImmutabilityPolicy"; readonly value: OnBlobState }
  | { readonly case: "setPathAccess"; readonly value: OnBlob & { readonly pathAccess: string } }
  | { readonly case: "setLegalHold"; readonly value: OnBlobState & { readonly hold: boolean } }
  | { readonly case: "findBlobs"; readonly value: FindBlobs };

export type OperationKind = Operation["case"];
export type OperationValue<K extends OperationKind> = Extract<Operation, { case: K }>["value"];
