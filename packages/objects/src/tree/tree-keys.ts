/**
 * Keys of a tree's rows, in the Blob table. Each entry, directory and file is a PartitionName of its own, so that a directory splits
 * anywhere between two names. They are inside of the container as blobs are: whatever goes with a container, or moves with it, takes its
 * tree along. A file or directory has the rows of a blob that has its id for a name, beside its node.
 *
 *   AccountName  PartitionName                                      ObjectName
 *   (account)    (1, filesystem, incarnation, file)                 (7)   node of a file, beside the rows that a blob has (0 to 6)
 *   "            (1, filesystem, incarnation, directory)            (8)   node of a directory, beside the same
 *   "            (1, filesystem, incarnation, directory "/" name)   (9)   entry
 *   "            (1, filesystem, incarnation, "lock")               (10)  move lock
 *
 * Ids have no slash, and none is "lock".
 */
import { FailureError } from "@stamp/base";
import { afterPrefix } from "../object-keys.ts";
import { insideKind } from "../parents.ts";
import { appendComponents, decodeKey, encodeKey, encodeKeyPrefix } from "../rows/key.ts";
import type { Address } from "./tree-row.ts";

export interface TreeName {
  readonly account: string;
  readonly filesystem: string;
  /** Incarnation of the filesystem's container row. */
  readonly incarnation: number;
}

export const fileNodeRow = 7;
export const directoryNodeRow = 8;
export const entryRow = 9;
export const lockRow = 10;

const rowOfKind: Readonly<Record<Address["kind"], number>> = {
  file: fileNodeRow,
  directory: directoryNodeRow,
  entry: entryRow,
  lock: lockRow,
};

const textOf = (at: Address): string => (at.kind === "entry" ? `${at.directory}/${at.name}` : at.kind === "lock" ? "lock" : at.id);

/** Returns the begin of all keys of the PartitionName that the row is in. Of a file or directory, those of its blob begin so, too. */
export const partitionOf = ({ account, filesystem, incarnation }: TreeName, at: Address): Uint8Array =>
  encodeKey([[account], [insideKind, filesystem, incarnation, textOf(at)]]);

export const treeKey = (tree: TreeName, at: Address): Uint8Array => appendComponents(partitionOf(tree, at), [[rowOfKind[at.kind]]]);

/** `partition`: what partitionOf gave for a file or directory. */
export const nodeKey = (partition: Uint8Array, kind: "file" | "directory"): Uint8Array => appendComponents(partition, [[rowOfKind[kind]]]);

/** Returns the first key behind the entries of a directory. */
export const entriesEnd = ({ account, filesystem, incarnation }: TreeName, directory: string): Uint8Array =>
  afterPrefix(encodeKeyPrefix([[account]], [insideKind, filesystem, incarnation], `${directory}/`));

/** Returns the name of the entry whose key this is. */
export function entryNameOf(key: Uint8Array): string {
  const components = decodeKey(key, 2);
  if (!components.ok) throw new FailureError(components.failure);
  const text = String(components.value[1]?.[3]);
  return text.slice(text.indexOf("/") + 1);
}
