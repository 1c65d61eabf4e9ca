/**
 * The partition manager's needs of a table that it serves itself; range-table.ts gives it over streams, tests give
 * another.
 */
import type { Outcome } from "@stamp/base";

export interface TableRow {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** Change of the map's table; a row without a value is deleted. */
export type TableChange = TableRow | { readonly key: Uint8Array };

export interface OwnTable {
  /** Returns all rows, in key order. */
  readAll(): Promise<Outcome<TableRow[]>>;
  /**
   * All or nothing; gives the sequence of the commit. After any failure but a refusal nothing more may be written in this term, unless the
   * changes were none. `timeoutMs`: if it is not the table's own.
   */
  write(changes: readonly TableChange[], timeoutMs?: number): Promise<Outcome<number>>;
  /** Sequence of the newest commit; 0 if never written. Goes on where an earlier term left it. */
  readonly sequence: number;
  /** Lineage of the metadata store that the table was opened under; undefined: of a test's table. */
  readonly lineage?: number;
  close(): Promise<void>;
}

/** Opens the table's streams under the term as owner epoch: whoever owned them before writes nothing any more. */
export type OpenTable = (table: "map" | "schema", pmTerm: number, onFenced: (why: string) => void) => Promise<Outcome<OwnTable>>;
