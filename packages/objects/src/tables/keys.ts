/**
 * Keys of the Entity table.
 *
 *   AccountName  PartitionName                              ObjectName
 *   (account)    (0, table)                                 ()           table row
 *   (account)    (1, table, incarnation, PartitionKey)      (RowKey)     entity
 *
 * Tables are found without regard to case: in keys their names are lower case. The incarnation is that of the table's row (rule
 * incarnationInKey). Entities of one PartitionKey are neighbours in the order of RowKey and are never split.
 */
import type { Rules } from "@stamp/base";
import { intact } from "../plan.ts";
import { appendComponents, decodeKey, encodeKey, encodeKeyPrefix } from "../rows/key.ts";
import type { EntityKey, LocatedTable } from "./operation.ts";

const tableKind = 0;
const entityKind = 1;

export const foldedName = (table: string): string => table.toLowerCase();

export const tableKey = (account: string, table: string): Uint8Array => encodeKey([[account], [tableKind, foldedName(table)], []]);

/** Returns the prefix of every table row of the account. */
export const tablesPrefix = (account: string): Uint8Array => encodeKeyPrefix([[account]], [tableKind]);

const incarnationOf = (rules: Rules, table: LocatedTable): number => (rules.on("incarnationInKey") ? table.incarnation : 0);

/** Returns the prefix of every entity of the table. */
export const entitiesPrefix = (rules: Rules, table: LocatedTable): Uint8Array =>
  encodeKeyPrefix([[table.account]], [entityKind, foldedName(table.table), incarnationOf(rules, table)]);

/** Returns the prefix of every entity of this PartitionKey. */
export const partitionPrefix = (rules: Rules, table: LocatedTable, partitionKey: string): Uint8Array =>
  encodeKey([[table.account], [entityKind, foldedName(table.table), incarnationOf(rules, table), partitionKey]]);

/** Returns the key of an entity. `partition` is what partitionPrefix gave. */
export const entityKey = (partition: Uint8Array, rowKey: string): Uint8Array => appendComponents(partition, [[rowKey]]);

/** Returns the keys of an entity from the key of its row. */
export function entityKeyOf(key: Uint8Array): EntityKey {
  const [, partition, row] = intact(decodeKey(key));
  return { partitionKey: String(partition?.[3]), rowKey: String(row?.[0]) };
}
