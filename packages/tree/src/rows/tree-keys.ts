/**
 * Keys of a tree's rows, in the Blob table. Each entry, directory and file is a PartitionName of its own, so that a directory splits
 * anywhere between two names.
 *
 *   AccountName  PartitionName                                  ObjectName
 *   (account)    (5, filesystem, incarnation, directory, name)  ()    entry
 *   "            (6, filesystem, incarnation, directory)        ()    node of a directory
 *   "            (7, filesystem, incarnation, file)             (7)   node of a file, beside the rows that a blob has (0 to 6)
 *   "            (8, filesystem, incarnation)                   ()    move lock
 */
import { FailureError } from "@stamp/base";
import { decodeKey, encodeKey } from "@stamp/objects";
import type { Address } from "./tree-row.ts";

export interface TreeName {
  readonly account: string;
  readonly filesystem: string;
  /** Incarnation of the filesystem's container row. */
  readonly incarnation: number;
}

const entryKind = 5;
const directoryKind = 6;
const fileKind = 7;
const lockKind = 8;
const fileNodeRow = 7;

export function treeKey(tree: TreeName, at: Address): Uint8Array {
  const of = (kind: number, ...rest: string[]) => [kind, tree.filesystem, tree.incarnation, ...rest];
  if (at.kind === "entry") return encodeKey([[tree.account], of(entryKind, at.directory, at.name), []]);
  if (at.kind === "lock") return encodeKey([[tree.account], of(lockKind), []]);
  if (at.kind === "directory") return encodeKey([[tree.account], of(directoryKind, at.id), []]);
  return encodeKey([[tree.account], of(fileKind, at.id), [fileNodeRow]]);
}

/** First key behind the entries of a directory: tuples that go on with a number sort behind every text. */
export const entriesEnd = (tree: TreeName, directory: string): Uint8Array =>
  encodeKey([[tree.account], [entryKind, tree.filesystem, tree.incarnation, directory, 0]]);

/** Name of the entry whose key this is. */
export function entryNameOf(key: Uint8Array): string {
  const components = decodeKey(key, 2);
  if (!components.ok) throw new FailureError(components.failure);
  return String(components.value[1]?.[4]);
}
