/**
 * Rows that another stamp has made: each is read as this stamp's own code reads it, before it is written.
 *
 * Invariants:
 * - A row whose key is of no kind of this release, or whose value is not of its table's schema, is refused: wrong types, bytes behind the last
 *   property, what the state of its kind can't be. The collector walks over the rows of all accounts of a range, and stops for all of them at a
 *   damaged one.
 * - A key in a row lies in the row's own PartitionName: rows are deleted from there on.
 */
import { allRules, FailureError, type Outcome, ok, refused, startsWith } from "@stamp/base";
import { BlobGarbage } from "./blobs/blob-garbage.ts";
import { mayBePurged } from "./garbage.ts";
import { blockRow, contentRow, headRow, keptRow, pageRow, stagingRow, usersRow } from "./object-keys.ts";
import { insideKind, parentKind } from "./parents.ts";
import { expiryRow, generations, orderRow, stateRow, textRow } from "./queues/queue-keys.ts";
import { decodeOrder, decodeQueue, decodeState, decodeText } from "./queues/queue-rows.ts";
import { decodeKey, type KeyComponent, partitionStart } from "./rows/key.ts";
import { decodeRow, placesOfRow } from "./rows/row.ts";
import { blobSchema, entitySchema, messageSchema } from "./rows/schemas.ts";
import type { ShippedTable } from "./shipped.ts";
import { decodeEntity } from "./tables/entity-rows.ts";
import { decodeTable } from "./tables/tables.ts";

/** Reads a value of one kind of row. Throws FailureError if it is unreadable. */
type Read = (value: Uint8Array) => unknown;

const schemas = { Blob: blobSchema, Entity: entitySchema, Message: messageSchema } as const;
const schemaSays: Read = () => undefined;

/** Refuses a row of a table that comes from another stamp and that this release has no kind for, or can't read. */
export function shippedRow(table: ShippedTable, key: Uint8Array, value: Uint8Array): Outcome<void> {
  const components = decodeKey(key);
  const name = partitionStart(key);
  if (!components.ok || name === undefined || components.value.length !== 3) return refused("dataLoss", "damaged", "key: it is of no row");
  const [, partition = [], object = []] = components.value;
  const read = readerOf(table, { key, name, partition, object });
  if (read === undefined) return refused("dataLoss", "damaged", `key: ${table} has no such kind of row`);
  const bySchema = decodeRow(schemas[table], value);
  if (!bySchema.ok) return bySchema;
  const places = placesOfRow(value);
  if (!places.ok) return places;
  try {
    read(value);
    return ok();
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

interface Named {
  readonly key: Uint8Array;
  /** Bytes of the PartitionName, with the account. */
  readonly name: Uint8Array;
  readonly partition: KeyComponent;
  readonly object: KeyComponent;
}

const isNumber = (element: unknown): boolean => typeof element === "number";
const isText = (element: unknown): boolean => typeof element === "string";

/** Returns undefined if no row has such a key. */
function readerOf(table: ShippedTable, named: Named): Read | undefined {
  const { partition, object } = named;
  const [kind, name, incarnation, inner] = partition;
  if (!isText(name)) return undefined;
  if (kind === parentKind && partition.length === 2) return parentReader(table, object);
  if (kind !== insideKind || !isNumber(incarnation)) return undefined;
  if (table === "Message") return partition.length === 3 ? messageReader(named) : undefined;
  if (partition.length !== 4 || !isText(inner)) return undefined;
  if (table === "Entity") return object.length === 1 && isText(object[0]) ? decodeEntity : undefined;
  return blobReader(named);
}

function parentReader(table: ShippedTable, object: KeyComponent): Read | undefined {
  const isKept = table === "Blob" && object.length === 1 && isNumber(object[0]);
  if (object.length > 0 && !isKept) return undefined;
  if (table === "Blob") return (value) => mayBePurged(value, 0);
  return table === "Entity" ? decodeTable : decodeQueue;
}

function messageReader({ name, object }: Named): Read | undefined {
  const [group, generation, row] = object;
  if (group === stateRow && object.length === 1)
    return (value) => {
      const { garbage } = decodeState(value);
      if (garbage === undefined || startsWith(garbage, name)) return;
      const message = "row: what is cleared of a queue begins outside of it";
      throw new FailureError({ code: "dataLoss", reason: "damaged", message, applied: "no" });
    };
  if (group !== generations || !isNumber(generation) || !object.every(isNumber)) return undefined;
  if (row === orderRow) return object.length === 6 ? decodeOrder : undefined;
  if (row === textRow) return object.length === 4 ? decodeText : undefined;
  return row === expiryRow && object.length === 5 ? schemaSays : undefined;
}

/** Number of elements of a blob row's ObjectName, by its first one (object-keys.ts). */
const blobRowElements: Readonly<Record<number, number>> = {
  [headRow]: 1,
  [keptRow]: 2,
  [stagingRow]: 1,
  [contentRow]: 3,
  [blockRow]: 3,
  [usersRow]: 2,
  [pageRow]: 4,
};

/** Returns a reader of blob rows: their garbage is found by reading every row that names others. */
function blobReader({ key, name, object }: Named): Read | undefined {
  const [row] = object;
  if (typeof row !== "number" || blobRowElements[row] !== object.length) return undefined;
  return (value) => new BlobGarbage({ rules: allRules, wallMs: 0 }).see(name, object, { key, value });
}
