/**
 * Where the objects of accounts are: keys of the Account and the Blob table.
 *
 *   table    AccountName  PartitionName                          ObjectName
 *   Account  (account)    ()                                     ()
 *   Blob     (account)    (0, container)                         ()                          container row
 *   Blob     (account)    (0, container)                         (incarnation)               row of a container that was deleted softly
 *   Blob     (account)    (1, container, incarnation, blob)      (0)                         head row: the blob itself
 *   Blob     "            "                                      (1, stamp)                  kept row: a snapshot or version
 *   Blob     "            "                                      (2)                         staging row
 *   Blob     "            "                                      (3, generation, piece)      content row
 *   Blob     "            "                                      (4, generation, block id)   block row (uncommitted)
 *   Blob     "            "                                      (5, generation)             users row: how many heads share a content
 *   Blob     "            "                                      (6, generation, chunk, layer)  page row
 *
 * So an account's containers are neighbours, and the rows of one blob are too, head first, then what is listed with it. All rows of a blob
 * have one PartitionName: they change atomically and are never split. The incarnation is that of the container's row, so what was put
 * into a container that was deleted can't be reached through a later one of the same name (rule incarnationInKey).
 */
import { compareBytes, prefixEnd, present, type Rules } from "@stamp/base";
import { appendComponents, appendOpenComponent, encodeKey, encodeKeyPrefix, type KeyComponent } from "./rows/key.ts";

export interface BlobName {
  readonly account: string;
  readonly container: string;
  readonly containerIncarnation: number;
  readonly blob: string;
}

/** A blob, or one of its snapshots or versions, by stamp. */
export interface BlobReference extends BlobName {
  readonly snapshotStamp?: number | undefined;
  readonly versionStamp?: number | undefined;
}

/**
 * Shares of the Files service are containers under this prefix, which no name of a container begins with and every one sorts before. So what
 * knows containers knows shares, and no operation on containers reaches one by a client's name.
 */
const sharePrefix = "~";
export const shareContainer = (share: string): string => `${sharePrefix}${share}`;
export const isShareContainer = (container: string): boolean => container.startsWith(sharePrefix);
export const shareOfContainer = (container: string): string => container.slice(sharePrefix.length);

const containerKind = 0;
const blobKind = 1;
export const headRow = 0;
export const keptRow = 1;
export const stagingRow = 2;
export const contentRow = 3;
export const blockRow = 4;
export const usersRow = 5;
export const pageRow = 6;

export const accountKey = (account: string): Uint8Array => encodeKey([[account], [], []]);

export const containerKey = (account: string, container: string): Uint8Array => encodeKey([[account], [containerKind, container], []]);

/** Returns the prefix of the key of every account. */
export const accountsPrefix = (): Uint8Array => encodeKeyPrefix([], [], "");

/** Returns the key at or behind which every account from this name on sorts. */
export const accountsFrom = (name: string): Uint8Array => (name === "" ? new Uint8Array(0) : accountKey(name));
/** Returns the prefix of the rows of a container and of those deleted under its name. */
export const containerRowsPrefix = (account: string, container: string): Uint8Array => encodeKey([[account], [containerKind, container]]);

/** Returns the first key behind the container rows that a list with this prefix shows: shares need their own prefix. */
export function containersEnd(account: string, prefix: string): Uint8Array {
  if (isShareContainer(prefix)) return afterPrefix(containersPrefix(account, prefix));
  const [end, shares] = [afterPrefix(containersPrefix(account, prefix)), containersPrefix(account, sharePrefix)];
  return compareBytes(end, shares) < 0 ? end : shares;
}

/** Returns the key of a deleted container that is kept. */
export const deletedContainerKey = (account: string, container: string, incarnation: number): Uint8Array =>
  encodeKey([[account], [containerKind, container], [incarnation]]);

/** Returns the prefix of every container row of the account whose name begins with `prefix`. */
export const containersPrefix = (account: string, prefix: string): Uint8Array => encodeKeyPrefix([[account]], [containerKind], prefix);

type ContainerOfBlobs = Omit<BlobName, "blob">;

const incarnationInKey = (rules: Rules, name: ContainerOfBlobs): number => (rules.on("incarnationInKey") ? name.containerIncarnation : 0);

/** Returns the prefix of every row of this blob. */
export const blobPrefix = (rules: Rules, name: BlobName): Uint8Array =>
  encodeKey([[name.account], [blobKind, name.container, incarnationInKey(rules, name), name.blob]]);

/** Returns the prefix of every row of every blob of the container whose name begins with `prefix`. */
export const blobsPrefix = (rules: Rules, container: ContainerOfBlobs, prefix: string): Uint8Array =>
  encodeKeyPrefix([[container.account]], [blobKind, container.container, incarnationInKey(rules, container)], prefix);

/** Returns the prefix of every row of every blob whose container has this name, or one that begins with it, whatever its incarnation. */
export const blobsOfContainerName = (account: string, name: string): Uint8Array => encodeKeyPrefix([[account]], [blobKind], name);

const rowOf = (blob: Uint8Array, ...objectName: KeyComponent): Uint8Array => appendComponents(blob, [objectName]);

/** Returns the key of the head row. `blob` is what blobPrefix gave. */
export const headKey = (blob: Uint8Array): Uint8Array => rowOf(blob, headRow);
export const keptKey = (blob: Uint8Array, stamp: number): Uint8Array => rowOf(blob, keptRow, stamp);
export const stagingKey = (blob: Uint8Array): Uint8Array => rowOf(blob, stagingRow);
export const contentKey = (blob: Uint8Array, generation: number, piece: number): Uint8Array => rowOf(blob, contentRow, generation, piece);
export const blockKey = (blob: Uint8Array, generation: number, blockId: Uint8Array): Uint8Array =>
  rowOf(blob, blockRow, generation, blockId);
export const usersKey = (blob: Uint8Array, generation: number): Uint8Array => rowOf(blob, usersRow, generation);

/** Returns the key of a page row. Page rows of one chunk are neighbours, by layer. */
export const pageKey = (blob: Uint8Array, generation: number, chunk: number, layer: number): Uint8Array =>
  rowOf(blob, pageRow, generation, chunk, layer);

/** Returns the key from which on page rows of this chunk and of later chunks lie. */
export const pagesFrom = (blob: Uint8Array, generation: number, chunk: number): Uint8Array =>
  appendOpenComponent(blob, [pageRow, generation, chunk]);

/** Returns the prefix of every kept row. */
export const keptPrefix = (blob: Uint8Array): Uint8Array => appendOpenComponent(blob, [keptRow]);
/** Returns the prefix of every uncommitted block row of this generation. */
export const blocksPrefix = (blob: Uint8Array, generation: number): Uint8Array => appendOpenComponent(blob, [blockRow, generation]);

/** Returns the first key after all that start with this prefix; our prefixes start with a tag, so there always is one. */
export const afterPrefix = (prefix: Uint8Array): Uint8Array => present(prefixEnd(prefix), "the end of a key prefix");

/** Names and values that clients give an object: metadata, or tags. */
export type Metadata = Readonly<Record<string, string>>;

/** Entries of the metadata that belong to the door, not to clients: no client's name begins so. */
const doorEntry = ":";
export const doorEntriesOf = (metadata: Metadata): Metadata =>
  Object.fromEntries(Object.entries(metadata).filter(([name]) => name.startsWith(doorEntry)));
export const clientEntriesOf = (metadata: Metadata): Metadata =>
  Object.fromEntries(Object.entries(metadata).filter(([name]) => !name.startsWith(doorEntry)));
