/** The messages of the console about data: what the view "Data" shows. Times are in milliseconds since 1970; null if the service told none. */
import type { Page, PieceRow } from "../model.ts";

export interface AccountRow {
  readonly name: string;
  readonly createdMs: number;
}

export interface AccountDetails {
  readonly name: string;
  readonly createdMs: number;
  readonly versioning: boolean;
  readonly publicAccess: boolean;
  /** Days for which deleted containers and deleted blobs are kept; 0: not at all. */
  readonly containerDays: number;
  readonly blobDays: number;
  /** Version of requests that name none; empty: the service's own. */
  readonly defaultServiceVersion: string;
  /** Encryption scopes with their states. */
  readonly scopes: readonly Named[];
  /** Rules for pages of other sites, by service, in words. */
  readonly cors: readonly Named[];
}

export interface Named {
  readonly name: string;
  readonly value: string;
}

export interface ContainerRow {
  readonly name: string;
  readonly modifiedMs: number | null;
  /** container, blob; empty for none. */
  readonly publicAccess: string;
  readonly lease: string;
  readonly metadata: readonly Named[];
}

export interface BlobRow {
  /** Whole name; that of a folder ends with the delimiter. */
  readonly name: string;
  /** True for all blobs whose names have this beginning. */
  readonly isFolder: boolean;
  /** True for a blob that was deleted and can be had back. */
  readonly isDeleted: boolean;
  readonly bytes: number | null;
  readonly type: string;
  readonly contentType: string;
  readonly modifiedMs: number | null;
}

export interface BlobDetails {
  readonly etag: string;
  readonly bytes: number;
  readonly modifiedMs: number | null;
  readonly createdMs: number | null;
  readonly properties: readonly Named[];
  readonly metadata: readonly Named[];
  readonly tags: readonly Named[];
}

/** A version or snapshot of a blob. */
export interface BlobPast {
  readonly kind: "version" | "snapshot";
  /** Identifier of the version, or time of the snapshot, as the service gives them. */
  readonly id: string;
  readonly bytes: number | null;
  readonly modifiedMs: number | null;
}

/** Sums over a container, or a part of one. */
export interface Usage {
  readonly blobs: number;
  /** Bytes of the contents of these blobs. */
  readonly bytes: number;
  /** Number of versions, snapshots and deleted blobs that are kept. */
  readonly kept: number;
  readonly keptBytes: number;
}

export interface UsagePage extends Usage {
  /** Mark of the next page; null behind the last. */
  readonly next: string | null;
}

/** Value of a property with its type in the notation of the service, e.g. Int64. */
export interface Value {
  readonly type: string;
  readonly value: string;
}

export interface EntityRow {
  readonly partitionKey: string;
  readonly rowKey: string;
  readonly timestamp: string;
  readonly etag: string;
  readonly properties: readonly (Value & { readonly name: string })[];
}

export interface QueueRow {
  readonly name: string;
  readonly metadata: readonly Named[];
}

export interface MessageRow {
  readonly id: string;
  readonly text: string;
  readonly dequeueCount: number;
  readonly insertedMs: number;
  readonly expiresMs: number;
}

/** Beginning of a blob: an image as a file of the browser, or text; null for neither. */
export type Preview = { readonly image: Blob } | { readonly text: string | null; readonly isWhole: boolean };

export interface BlobPath {
  readonly account: string;
  readonly container: string;
  readonly name: string;
}

/** A block of a file: its place, counted from 0, and the first 24 hexadecimal digits of the SHA-256 digest of its bytes. */
export interface Block {
  readonly number: number;
  readonly digest: string;
}

/** Questions about data. `data-source.ts` asks over HTTP. */
export interface DataSource {
  accounts(after: string): Promise<Page<AccountRow>>;
  account(account: string): Promise<AccountDetails>;
  containers(account: string, after: string): Promise<Page<ContainerRow>>;
  blobs(account: string, container: string, prefix: string, withDeleted: boolean, after: string): Promise<Page<BlobRow>>;
  blob(path: BlobPath): Promise<BlobDetails>;
  /** Counts a page of what a container holds. */
  usage(account: string, container: string, after: string): Promise<UsagePage>;
  preview(path: BlobPath): Promise<Preview>;
  /** Versions and snapshots of a blob. */
  past(path: BlobPath, after: string): Promise<Page<BlobPast>>;
  /** Where the bytes of a blob are, from its first byte on. */
  places(path: BlobPath, after: string): Promise<Page<PieceRow>>;
  /** Lets the browser save the blob, or one of its versions and snapshots. */
  download(path: BlobPath | (BlobPath & Pick<BlobPast, "kind" | "id">)): Promise<void>;
  tables(account: string, after: string): Promise<Page<{ readonly name: string }>>;
  entities(account: string, table: string, filter: string, after: string): Promise<Page<EntityRow>>;
  /** Lets the browser save the entities that a filter leaves, all of them if it is empty. */
  exportTable(account: string, table: string, filter: string, format: "csv" | "jsonl"): Promise<void>;
  queues(account: string, after: string): Promise<Page<QueueRow>>;
  messages(account: string, queue: string): Promise<Page<MessageRow>>;
  /** Changes something. Returns what the service told, by name. */
  change(what: Change, fields: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>;
  /** Blocks of an upload that have arrived. */
  blocks(path: BlobPath, upload: string): Promise<readonly Block[]>;
  /** Sends one block. */
  putBlock(path: BlobPath, upload: string, block: Block, bytes: Blob, signal: AbortSignal): Promise<void>;
}

export type Change =
  | "delete-blob"
  | "undelete-blob"
  | "set-metadata"
  | "set-tags"
  | "commit-blob"
  | "put-entity"
  | "delete-entity"
  | "import-entities"
  | "put-message"
  | "take-message"
  | "clear-queue"
  | "make-sas"
  | "create-account"
  | "show-keys"
  | "rotate-key"
  | "revoke-delegation"
  | "set-account"
  | "add-node"
  | "drain-node"
  | "undrain-node"
  | "remove-node"
  | "split-range"
  | "merge-range"
  | "move-range"
  | "start-drill"
  | "add-fault"
  | "remove-fault"
  | "fail-over"
  | "give-up"
  | "make-snapshot"
  | "restore-blob"
  | "delete-past"
  | "create-container"
  | "delete-container"
  | "create-table"
  | "delete-table"
  | "create-queue"
  | "delete-queue";

/** An account, and whom to ask about it. */
export interface AccountPlace {
  readonly source: DataSource;
  readonly account: string;
}
