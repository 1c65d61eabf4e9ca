/**
 * Operations on tables and entities and their results: the same as in proto/stamp/v1/entities.proto. Names, limits of single values and
 * the syntax of filters were checked by the front-end; what depends on what is stored is decided here.
 */
import type { DictionaryEntry } from "../rows/row.ts";
import type { SignedIdentifier } from "../signed-identifiers.ts";
import type { FilterTerm } from "./filter.ts";

export interface TableAddress {
  readonly account: string;
  /** Name of the table, as the client wrote it. Tables are found without regard to case. */
  readonly table: string;
}

/** With the incarnation of the table's row, as a read said that was sent after the request arrived. */
export interface LocatedTable extends TableAddress {
  readonly incarnation: number;
}

export interface EntityKey {
  readonly partitionKey: string;
  readonly rowKey: string;
}

/** Properties of an entity, without PartitionKey, RowKey and Timestamp. */
export type EntityProperties = readonly DictionaryEntry[];

export interface Entity extends EntityKey {
  /** 100 ns since 1970-01-01 UTC; its ETag is made of it. */
  readonly timestamp: bigint;
  readonly properties: EntityProperties;
}

export const entityActions = ["insert", "replace", "merge", "delete", "insertOrReplace", "insertOrMerge"] as const;
export type EntityAction = (typeof entityActions)[number];

export interface EntityChange {
  readonly action: EntityAction;
  readonly rowKey: string;
  readonly properties: EntityProperties;
  /** Timestamp that the entity of a replace, merge or delete must have; undefined for any (If-Match: *). */
  readonly ifTimestamp?: bigint | undefined;
}

/** All or nothing, in one PartitionKey, each RowKey once. A single change is a list of one. */
export interface ChangeEntities {
  readonly table: LocatedTable;
  readonly partitionKey: string;
  readonly changes: readonly EntityChange[];
}

export interface GetEntity extends EntityKey {
  readonly table: LocatedTable;
  /** Names of the properties that are asked for; empty: all. */
  readonly select: readonly string[];
}

export interface QueryEntities {
  readonly table: LocatedTable;
  /** Postfix; empty: every entity. */
  readonly filter: readonly FilterTerm[];
  readonly select: readonly string[];
  /** Last key that was looked at. The query goes on behind it. */
  readonly after?: EntityKey | undefined;
  readonly entitiesMax: number;
  /** True if the asker takes whole entities as packed rows. */
  readonly packed?: boolean | undefined;
}

export interface ListTables {
  readonly account: string;
  /** Filter over the property TableName. */
  readonly filter: readonly FilterTerm[];
  /** The name that was looked at last; empty: from the start. */
  readonly after: string;
  readonly tablesMax: number;
}

export type TableOperation =
  | { readonly case: "createTable"; readonly value: TableAddress }
  | { readonly case: "getTable"; readonly value: TableAddress }
  | { readonly case: "setTableAcl"; readonly value: TableAddress & { readonly signedIdentifiers: readonly SignedIdentifier[] } }
  | { readonly case: "deleteTable"; readonly value: TableAddress }
  | { readonly case: "listTables"; readonly value: ListTables }
  | { readonly case: "changeEntities"; readonly value: ChangeEntities }
  | { readonly case: "getEntity"; readonly value: GetEntity }
  | { readonly case: "queryEntities"; readonly value: QueryEntities };

export interface Table {
  /** Name of the table, as written at its creation. */
  readonly name: string;
  readonly incarnation: number;
  readonly signedIdentifiers: readonly SignedIdentifier[];
}

/** The part of an answer that one range gives in one call. */
interface Page {
  /** True if the page stopped before the end of the range: ask again behind the last key. */
  readonly more: boolean;
  /** True if the query goes on behind this range. */
  readonly rangeEnded: boolean;
  /** Number of rows that were looked at. */
  readonly rowsRead: number;
}

export interface EntityPage extends Page {
  readonly entities: readonly Entity[];
  /** Packed rows in place of `entities`, if the caller takes them (packed-entities.ts). */
  readonly rows?: Uint8Array<ArrayBuffer> | undefined;
  /** Last key that the query looked at, match or not; undefined: none. */
  readonly last?: EntityKey | undefined;
}

export interface TablePage extends Page {
  readonly tables: readonly Table[];
  readonly last: string;
}

export type TableResult =
  | { readonly case: "table"; readonly value: Table }
  | { readonly case: "tables"; readonly value: TablePage }
  /** One per change: the new timestamp; of a delete, the one that was deleted. */
  | { readonly case: "changed"; readonly value: { readonly timestamps: readonly bigint[] } }
  | { readonly case: "entity"; readonly value: Entity }
  | { readonly case: "entities"; readonly value: EntityPage };
