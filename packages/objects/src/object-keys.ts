/**
 * Where the objects of accounts are: keys of the Account and the Blob table.
 *
 *   table    AccountName  PartitionName                          ObjectName
 *   Account  (account)    ()                                     ()
 *   Blob     (account)    (0, container)                         ()                                    container row
 *   Blob     (account)    (1, container, incarnation, blob)      (snapshot, 0)                         head row
 *   Blob     "            "                                      (snapshot, 1)                         staging row
 *   Blob     "            "                                      (snapshot, 2, generation, piece)      content row
 *   Blob     "            "                                      (snapshot, 3, generation, block id)   block row (uncommitted)
 *   Blob     "            "                                      (snapshot, 4, generation, chunk, layer)  page row
 *
 * So an account's containers are neighbours, and the rows of one blob are too, head first. All rows of a blob have one PartitionName: they change
 * atomically and are never split. `snapshot` is "" for the blob itself. The incarnation is that of the container's row, so what was put
 * into a container that was deleted can't be reached through a later one of the same name (rule incarnationInKey).
 */
import { prefixEnd, present, type Rules } from "@stamp/base";
import { appendComponents, appendOpenComponent, encodeKey, encodeKeyPrefix, type KeyComponent } from "./rows/key.ts";

export interface BlobName {
  readonly account: string;
  readonly container: string;
  readonly containerIncarnation: number;
  readonly blob: string;
}

const containerKind = 0;
const blobKind = 1;
export const headRow = 0;
export const stagingRow = 1;
export const contentRow = 2;
export const blockRow = 3;
export const pageRow = 4;

const noSnapshot = "";

export const accountKey = (account: string): Uint8Array => encodeKey([[account], [], []]);

export const containerKey = (account: string, container: string): Uint8Array => encodeKey([[account], [containerKind, container], []]);

/** The key of every account starts so. */
export const accountsPrefix = (): Uint8Array => encodeKeyPrefix([], [], "");

/** Every account from this name on sorts here or behind. */
export const accountsFrom = (name: string): Uint8Array => (name === "" ? new Uint8Array(0) : accountKey(name));

/** Every container row of the account whose name begins with `prefix` starts so. */
export const containersPrefix = (account: string, prefix: string): Uint8Array => encodeKeyPrefix([[account]], [containerKind], prefix);

type ContainerOfBlobs = Omit<BlobName, "blob">;

const incarnationInKey = (rules: Rules, name: ContainerOfBlobs): number => (rules.on("incarnationInKey") ? name.containerIncarnation : 0);

/** Every row of this blob starts so. */
export const blobPrefix = (rules: Rules, name: BlobName): Uint8Array =>
  encodeKey([[name.account], [blobKind, name.container, incarnationInKey(rules, name), name.blob]]);

/** Every row of every blob of the container whose name begins with `prefix` starts so. */
export const blobsPrefix = (rules: Rules, container: ContainerOfBlobs, prefix: string): Uint8Array =>
  encodeKeyPrefix([[container.account]], [blobKind, container.container, incarnationInKey(rules, container)], prefix);

const rowOf = (blob: Uint8Array, objectName: KeyComponent): Uint8Array => appendComponents(blob, [[noSnapshot, ...objectName]]);

/** `blob` is what blobPrefix gave. */
export const headKey = (blob: Uint8Array): Uint8Array => rowOf(blob, [headRow]);
export const stagingKey = (blob: Uint8Array): Uint8Array => rowOf(blob, [stagingRow]);
export const contentKey = (blob: Uint8Array, generation: number, piece: number): Uint8Array => rowOf(blob, [contentRow, generation, piece]);
export const blockKey = (blob: Uint8Array, generation: number, blockId: Uint8Array): Uint8Array =>
  rowOf(blob, [blockRow, generation, blockId]);

/** Page rows of one chunk are neighbours, by layer. */
export const pageKey = (blob: Uint8Array, generation: number, chunk: number, layer: number): Uint8Array =>
  rowOf(blob, [pageRow, generation, chunk, layer]);

/** Page rows of this chunk and of those behind it come from here on. */
export const pagesFrom = (blob: Uint8Array, generation: number, chunk: number): Uint8Array =>
  appendOpenComponent(blob, [noSnapshot, pageRow, generation, chunk]);

/** Every uncommitted block row of this generation starts so. */
export const blocksPrefix = (blob: Uint8Array, generation: number): Uint8Array =>
  appendOpenComponent(blob, [noSnapshot, blockRow, generation]);

/** The first key after all that start with this prefix; our prefixes start with a tag, so there always is one. */
export const afterPrefix = (prefix: Uint8Array): Uint8Array => present(prefixEnd(prefix), "the end of a key prefix");
