/** Rows of entities, and how large an entity counts. */

import { type DictionaryEntry, dateTimeOfMs, encodeRow } from "../rows/row.ts";
import { RowCursor } from "../rows/row-cursor.ts";
import { entitySchema } from "../rows/schemas.ts";
import type { EntityProperties } from "./operation.ts";

export interface EntityState {
  readonly timestamp: bigint;
  readonly properties: EntityProperties;
}

export const encodeEntity = (state: EntityState): Uint8Array => encodeRow(entitySchema, state);

const cursor = new RowCursor(entitySchema);

/** Throws FailureError for a row that is damaged, or of a newer format. */
export const decodeEntity = (bytes: Uint8Array): EntityState => cursor.read(bytes, stateOf);

const stateOf = (row: RowCursor): EntityState => ({
  timestamp: row.ticks(entitySchema.timestamp) ?? 0n,
  properties: row.dictionary(entitySchema.properties) ?? [],
});

/** Returns the number of properties of a row, without reading them. Throws like decodeEntity. */
export const propertyCount = (bytes: Uint8Array): number => cursor.read(bytes, (row) => row.entries(entitySchema.properties));

/** Most properties of an entity, without PartitionKey, RowKey and Timestamp. */
export const propertiesMax = 252;
export const entityBytesMax: number = 1024 * 1024;

/** Sizes of values of the types that have one size, in bytes: in a row, and as the service counts them. */
export const fixedBytes: Readonly<Record<string, number>> = { bool: 1, int32: 4, int64: 8, double: 8, DateTime: 8, GUID: 16 };

/** Returns the size of an entity as the service counts it ("Understanding the Table service data model"): text in UTF-16. */
export function entityBytes(partitionKey: string, rowKey: string, properties: EntityProperties): number {
  let bytes = 4 + (partitionKey.length + rowKey.length) * 2;
  for (const property of properties) bytes += 8 + property.name.length * 2 + valueBytes(property);
  return bytes;
}

function valueBytes({ type, value }: DictionaryEntry): number {
  if (type === "string") return (value as string).length * 2 + 4;
  if (type === "binary") return (value as Uint8Array).length + 4;
  return fixedBytes[type] ?? 0;
}

/**
 * Returns the time of a write, and with it the ETag: never before the entity's last one, also when the clock was set back. The digits below the
 * millisecond are of the commit's sequence, so that two writes of one millisecond differ, also when the entity was deleted in between.
 */
export function timestampOf(wallMs: number, sequence: number, previous: bigint | undefined): bigint {
  const now = dateTimeOfMs(wallMs) + BigInt(sequence % 10_000);
  return previous !== undefined && previous >= now ? previous + 1n : now;
}
