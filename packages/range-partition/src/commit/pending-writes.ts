/**
 * Writes that pipelined transactions decided and that are not durable and applied yet: a table above the others, which only they read.
 *
 * Two tables take turns. The newer one is written; the older one is dropped when everything in it is applied, and then the newer becomes
 * the older. So under constant load this holds at most what is decided during two commits. A row that stays a while after it was applied
 * hides nothing: its key is written by pipelined transactions only, all of which pass through here.
 */
import { MemoryTable } from "@stamp/lsm";
import type { RowWrite } from "../types.ts";

interface Generation {
  readonly table: MemoryTable;
  unapplied: number;
}

/** Above every sequence of the log, so that these rows win over those. */
const firstSequence = 2 ** 52;

export class PendingWrites {
  #newer: Generation = { table: new MemoryTable(), unapplied: 0 };
  #older: Generation = { table: new MemoryTable(), unapplied: 0 };
  #sequence: number = firstSequence;

  /** Newest first; without those that are empty. */
  get tables(): readonly MemoryTable[] {
    return [this.#newer.table, this.#older.table].filter((table) => table.count > 0);
  }

  /** Visible to the next transaction from now on. Call what it returns when they are applied; never when they are lost. */
  add(writes: readonly RowWrite[]): () => void {
    const generation = this.#newer;
    this.#sequence++;
    for (const write of writes) generation.table.put(write.key, this.#sequence, write.kind === "put" ? write.value : undefined);
    generation.unapplied++;
    return () => {
      generation.unapplied--;
      this.#turn();
    };
  }

  #turn(): void {
    for (let turns = 0; turns < 2 && this.#older.unapplied === 0; turns++) {
      if (this.#newer.table.count === 0 && this.#older.table.count === 0) return;
      this.#older = this.#newer;
      this.#newer = { table: new MemoryTable(), unapplied: 0 };
    }
  }
}
