/**
 * Writes that pipelined transactions of one lock key decided and that are not durable and applied yet: tables above the committed rows,
 * which only the next transactions of that lock key read.
 *
 * Two generations take turns. The newer one is written; the older one is dropped when everything in it is applied, and then the newer
 * becomes the older. So under constant load this holds at most what is decided during two commits. A row that stays a while after it was
 * applied hides nothing, because other transactions that take this lock key write its rows only when nothing is pending here (rule
 * plainAfterPipelined). One writes without it: a collector empties a deleted container under the lowest key inside, and no
 * operation finds these blobs any more. Writes are kept as they are until somebody reads, because most transactions have no successor in time.
 */
import { MemoryTable } from "@stamp/lsm";
import type { RowWrite } from "../types.ts";

interface Generation {
  /** Table of the pending writes; absent until a transaction reads. */
  table: MemoryTable | undefined;
  /** Writes that are not in the table yet, in the order of their transactions. */
  unread: (readonly RowWrite[])[];
  unapplied: number;
}

/** First sequence of pending writes: above every one of the log, so that these rows win over those. */
const firstSequence = 2 ** 52;

const emptyGeneration = (): Generation => ({ table: undefined, unread: [], unapplied: 0 });

export class PendingWrites {
  #newer: Generation = emptyGeneration();
  #older: Generation = emptyGeneration();
  #sequence: number = firstSequence;

  /** Returns the tables, newest first, without those that are empty. */
  tables(): readonly MemoryTable[] {
    const older = this.#tableOf(this.#older);
    const newer = this.#tableOf(this.#newer);
    return [newer, older].filter((table) => table !== undefined);
  }

  /** Makes writes visible to the next transaction. Call the returned function when they are applied; never when they are lost. */
  add(writes: readonly RowWrite[]): () => void {
    const generation = this.#newer;
    generation.unread.push(writes);
    generation.unapplied++;
    return () => {
      generation.unapplied--;
      this.#turn();
    };
  }

  #tableOf(generation: Generation): MemoryTable | undefined {
    for (const writes of generation.unread) {
      generation.table ??= new MemoryTable();
      this.#sequence++;
      for (const write of writes) generation.table.put(write.key, this.#sequence, write.kind === "put" ? write.value : undefined);
    }
    generation.unread = [];
    return generation.table;
  }

  #turn(): void {
    if (this.#older.unapplied > 0) return;
    this.#older = this.#newer;
    this.#newer = emptyGeneration();
  }
}
