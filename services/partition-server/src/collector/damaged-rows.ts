/**
 * Damaged rows that one pass of the collector met. What such a row decides is left alone, and the pass goes on for all others of the range: the
 * next pass would meet the same row.
 */
import { type Failure, FailureError, toHex } from "@stamp/base";

export class DamagedRows {
  /** Number of decisions that were left to a later pass. */
  count = 0;
  #first: { readonly message: string; readonly key?: string } | undefined;

  /** Takes a failure to read one row, or what a row decides. Returns false for any other failure: the pass ends, and is tried again later. */
  note(failure: Failure, key?: Uint8Array): boolean {
    if (failure.reason !== "damaged") return false;
    this.count++;
    this.#first ??= { message: failure.message, ...(key && { key: toHex(key) }) };
    return true;
  }

  /** Returns what `read` does; undefined: the row is damaged. */
  read<T>(key: Uint8Array, read: () => T): { readonly value: T } | undefined {
    try {
      return { value: read() };
    } catch (error) {
      if (!(error instanceof FailureError) || !this.note(error.failure, key)) throw error;
      return undefined;
    }
  }

  /** Facts for one log line. An account can have many damaged rows, so only the first one is named. */
  get facts(): Readonly<Record<string, unknown>> {
    return { count: this.count, first: this.#first };
  }
}
