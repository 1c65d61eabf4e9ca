/**
 * Facts about rows for the collector of a partition server: owner, references, and when a row has no owner any more.
 *
 * In the tables Blob, Entity and Message the rows of a container, table or queue begin with (0, name), and what is inside with (1, name,
 * incarnation). What is inside an incarnation of which no row is left is unreachable for good: incarnations are never used again.
 */
import { purgeMarginMs } from "./blobs/blob-garbage.ts";
import { isPurged } from "./blobs/protect/retention.ts";
import { decodeContainer } from "./blobs/state/container-row.ts";
import { afterPrefix } from "./object-keys.ts";
import { insideKind, parentKind } from "./parents.ts";
import { intact } from "./plan.ts";
import { decodeKey, encodeKey, encodeKeyPrefix, type KeyComponent } from "./rows/key.ts";
import { decodeRow } from "./rows/row.ts";
import { blobSchema, entitySchema, messageSchema, type ObjectTable } from "./rows/schemas.ts";

/** Container, table or queue between one creation and its deletion. */
export interface Incarnation {
  readonly account: string;
  readonly name: string;
  readonly incarnation: number;
}

export type RowOwner =
  /** Something inside; `objectName`: the third component of its key. */
  | ({ readonly kind: "inside"; readonly objectName: KeyComponent } & Incarnation)
  /** The row of a container that was deleted and is kept. */
  | ({ readonly kind: "kept" } & Incarnation)
  | { readonly kind: "other" };

export function ownerOfRow(key: Uint8Array): RowOwner {
  const components = decodeKey(key);
  if (!components.ok) return { kind: "other" };
  const [[account] = [], [kind, name, incarnation] = [], objectName = []] = components.value;
  const [kept] = objectName;
  if (typeof account !== "string" || typeof name !== "string") return { kind: "other" };
  if (kind === insideKind && typeof incarnation === "number") return { kind: "inside", account, name, incarnation, objectName };
  if (kind === parentKind && typeof kept === "number") return { kind: "kept", account, name, incarnation: kept };
  return { kind: "other" };
}

interface Rows {
  readonly low: Uint8Array;
  readonly high: Uint8Array;
}

const below = (prefix: Uint8Array): Rows => ({ low: prefix, high: afterPrefix(prefix) });

/** Returns the rows of every incarnation of the name that is there or can come back. */
export const parentRows = ({ account, name }: Pick<Incarnation, "account" | "name">): Rows =>
  below(encodeKey([[account], [parentKind, name]]));

export const rowsInside = ({ account, name, incarnation }: Incarnation): Rows =>
  below(encodeKeyPrefix([[account]], [insideKind, name, incarnation]));

/** Returns the incarnation in a row that parentRows finds. Throws FailureError when the row is damaged. */
export function incarnationInRow(table: ObjectTable, value: Uint8Array): number {
  const schema = table === "Entity" ? entitySchema : table === "Message" ? messageSchema : blobSchema;
  return Number(intact(decodeRow(schema, value)).incarnation ?? 0n);
}

/** True if a deleted container's row, with all its content, may be purged. Throws FailureError if the row is damaged. */
export const mayBePurged = (value: Uint8Array, wallMs: number): boolean => isPurged(decodeContainer(value).deleted, wallMs - purgeMarginMs);
