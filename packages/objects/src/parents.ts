/**
 * Rows of containers, tables and queues, and rows of what is inside them: in the tables Blob, Entity and Message the PartitionName of the
 * first is (0, name), that of the second (1, name, incarnation, …).
 */
import { decodeKey } from "./rows/key.ts";

export const parentKind = 0;
export const insideKind = 1;

/** The container, table or queue that a row belongs to. */
export interface RowParent {
  readonly account: string;
  readonly name: string;
  /** True for an object inside of a container; false for the container's own row. */
  readonly inside: boolean;
}

/** Returns the container, table or queue that the row with this key belongs to; undefined for rows of other kinds and tables. */
export function belongingOf(key: Uint8Array): RowParent | undefined {
  const components = decodeKey(key, 2);
  if (!components.ok) return undefined;
  const [[account] = [], [kind, name] = []] = components.value;
  if (typeof account !== "string" || typeof name !== "string" || (kind !== parentKind && kind !== insideKind)) return undefined;
  return { account, name, inside: kind === insideKind };
}
