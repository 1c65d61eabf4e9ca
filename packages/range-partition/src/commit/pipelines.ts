/** Lock keys under which pipelined transactions were decided that are not settled yet. A lock key without such a transaction has no entry. */
import type { MemoryTable } from "@stamp/lsm";
import type { RowWrite } from "../types.ts";
import { PendingWrites } from "./pending-writes.ts";

/** A transaction that was decided under a lock key. */
export interface LastDecided {
  /** Resolves to true when the write is durable and applied, to false if that never happens. */
  readonly settled: Promise<boolean>;
  /** True if the write became durable, false if it failed; undefined while that is open. */
  durable: boolean | undefined;
}

interface Pipeline {
  readonly pending: PendingWrites;
  unsettled: number;
  last: LastDecided;
}

export class Pipelines {
  readonly #open = new Map<string, Pipeline>();

  /** Number of lock keys with transactions that are not settled. */
  get size(): number {
    return this.#open.size;
  }

  /** Returns the last transaction that was decided under this key; undefined if all are settled. */
  last(lockKey: Uint8Array): LastDecided | undefined {
    return this.#open.size === 0 ? undefined : this.#open.get(nameOfKey(lockKey))?.last;
  }

  /** Returns the rows that earlier transactions under this key decided and that may not be applied yet, newest first. */
  pending(lockKey: Uint8Array): readonly MemoryTable[] {
    return (this.#open.size === 0 ? undefined : this.#open.get(nameOfKey(lockKey))?.pending.tables()) ?? [];
  }

  /** Adds a decided transaction; the next one under this key sees these writes. Call what it returns once, when the outcome is known. */
  enter(lockKey: Uint8Array, writes: readonly RowWrite[]): (durable: boolean) => void {
    const name = nameOfKey(lockKey);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const last: LastDecided = { settled: promise, durable: undefined };
    const pipeline: Pipeline = this.#open.get(name) ?? { pending: new PendingWrites(), unsettled: 0, last };
    this.#open.set(name, pipeline);
    pipeline.unsettled++;
    pipeline.last = last;
    const applied = pipeline.pending.add(writes);
    return (durable) => {
      if (durable) applied();
      pipeline.unsettled--;
      if (pipeline.unsettled === 0) this.#open.delete(name);
      last.durable = durable;
      resolve(durable);
    };
  }
}

/** Returns a short text that is equal exactly when the bytes are: one UTF-16 unit for each byte. */
export function nameOfKey(key: Uint8Array): string {
  let name = "";
  for (const byte of key) name += String.fromCharCode(byte);
  return name;
}
