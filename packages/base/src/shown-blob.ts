/** Properties that a blob or container shows: partition servers answer with them (objects), the REST API writes them (azure-rest). */

/** Lease of a blob or container. */
export interface ShownLease {
  readonly state: string;
  readonly status: string;
  /** Kind of duration of a held lease: infinite or fixed; empty if none is held. */
  readonly duration: string;
}

/** Encryption scopes of new blobs in a container. */
export interface ContainerScope {
  /** Encryption scope of blobs that are written without one; empty: none. */
  readonly defaultEncryptionScope: string;
  /** True if no write may name another. */
  readonly denyEncryptionScopeOverride: boolean;
}

/** Copy that made a blob, or makes it. */
export interface ShownCopy {
  readonly copyId: string;
  /** URL of the source, without secrets. */
  readonly source: string;
  /** pending, success, aborted or failed. */
  readonly status: string;
  /** Reason why the copy failed; empty: it did not. */
  readonly description: string;
  readonly copiedBytes: number;
  readonly totalBytes: number;
  readonly completedMs?: number | undefined;
}

export interface BlobHeaders {
  /** Content type; empty: application/octet-stream, unless the type was cleared. */
  readonly contentType: string;
  readonly contentEncoding: string;
  readonly contentLanguage: string;
  /** 16 bytes, or empty; of any length if a client set it without the bytes. */
  readonly contentMd5: Uint8Array;
  readonly cacheControl: string;
  readonly contentDisposition: string;
  /** True if the blob has no type at all, because Set Blob Properties left it out. Means nothing beside a type. */
  readonly contentTypeCleared?: boolean | undefined;
}

/** State that may be deleted softly, and not restored. */
interface SoftlyDeleted {
  /** Time of the soft deletion, in milliseconds since 1970; undefined: not deleted. */
  readonly deletedMs?: number | undefined;
  readonly remainingRetentionDays?: number | undefined;
}

export interface ShownContainer extends ContainerScope, SoftlyDeleted {
  readonly name: string;
  /** ETag of the container, in quotes. */
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly publicAccess: string;
  readonly incarnation: number;
  readonly lease: ShownLease;
}

export interface ShownBlob extends SoftlyDeleted {
  readonly name: string;
  /** ETag of the blob, in quotes. */
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly createdMs: number;
  readonly contentLengthBytes: number;
  readonly headers: BlobHeaders;
  readonly metadata: Readonly<Record<string, string>>;
  readonly blobType: string;
  /** True if the blob has no committed content yet, and so no ETag and no times. */
  readonly uncommitted: boolean;
  /** Number of committed blocks of an append blob. */
  readonly committedBlockCount: number;
  readonly sealed: boolean;
  /** Sequence number of a page blob. */
  readonly sequenceNumber: number;
  /** Microseconds since 1970. 0: not a snapshot; written without versioning. */
  readonly snapshotStamp: number;
  readonly versionStamp: number;
  readonly isCurrentVersion: boolean;
  readonly lease: ShownLease;
  /** Tags of the blob; empty in lists that do not include tags. */
  readonly tags: Readonly<Record<string, string>>;
  readonly tagCount: number;
  readonly accessTier: string;
  readonly accessTierInferred: boolean;
  readonly accessTierChangedMs?: number | undefined;
  readonly expiresMs?: number | undefined;
  readonly immutableUntilMs?: number | undefined;
  readonly immutabilityMode?: string | undefined;
  readonly legalHold: boolean;
  /** True if the blob itself does not exist and is listed because it has versions. */
  readonly versionsOnly?: boolean | undefined;
  /** SHA-256 of the customer's key that the content is encrypted under. */
  readonly encryptionKeySha256?: Uint8Array | undefined;
  /** Encryption scope of the blob's content; undefined: none. */
  readonly encryptionScope?: string | undefined;
  /** Owner and access control of a file or directory, if it has any of its own (docs/formats/tree.md). */
  readonly pathAccess?: string | undefined;
  readonly copy?: ShownCopy | undefined;
}
