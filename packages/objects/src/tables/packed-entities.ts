/**
 * Entities of a page as they are stored, in one field of bytes. As messages, a thousand entities would be tens of thousands of objects in
 * the process that answers and in the process that asks. Entries follow one another without a count.
 *
 *      0                  4                  8
 *      +------------------+------------------+---------------+---------------+
 *      | key, u32 LE      | row, u32 LE      | bytes of key  | bytes of row  |
 *      +------------------+------------------+---------------+---------------+
 *
 * The first two are lengths in bytes. Key: keys.ts. Row: entity-rows.ts.
 */

import { FailureError } from "@stamp/base";
import type { PlanContext, RowEntry } from "../plan.ts";
import { damagedRow } from "../rows/row.ts";
import { entityOf } from "./entities.ts";
import { decodeEntity } from "./entity-rows.ts";
import { entityKeyOf } from "./keys.ts";
import type { Entity } from "./operation.ts";

/** Bytes of the two lengths. */
export const lengthsBytes = 8;

/** Packs rows; `memory`: memory for the bytes, unless it is full. */
export function packRows(rows: readonly RowEntry[], memory?: PlanContext["pageMemory"]): Uint8Array<ArrayBuffer> {
  const packedBytes = rows.reduce((sum, { key, value }) => sum + lengthsBytes + key.length + value.length, 0);
  const packed = memory?.(packedBytes) ?? new Uint8Array(packedBytes);
  const view = new DataView(packed.buffer, packed.byteOffset);
  let at = 0;
  for (const { key, value } of rows) {
    view.setUint32(at, key.length, true);
    view.setUint32(at + 4, value.length, true);
    packed.set(key, at + lengthsBytes);
    packed.set(value, at + lengthsBytes + key.length);
    at += lengthsBytes + key.length + value.length;
  }
  return packed;
}

/** Yields entities; binary values are views of `packed`. Throws FailureError for other bytes and for a newer row format. */
export function* unpackEntities(packed: Uint8Array): Generator<Entity, void> {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  for (let at = 0; at < packed.length; ) {
    const row = at + lengthsBytes <= packed.length ? at + lengthsBytes + view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    const end = row <= packed.length ? row + view.getUint32(at + 4, true) : row;
    if (end > packed.length) throw new FailureError(damagedRow("packed rows are cut off").failure);
    yield entityOf(entityKeyOf(packed.subarray(at + lengthsBytes, row)), decodeEntity(packed.subarray(row, end)), []);
    at = end;
  }
}
