/** Lock keys under which pipelined transactions were decided that are not settled yet. A lock key without such a transaction has no entry. */
import type { MemoryTable } from "@stamp/lsm";
import type { RowWrite } from "../types.ts";
import { PendingWrites } from "./pending-writes.ts";

interface Pipeline {
  readonly pending: PendingWrites;
  unsettled: number;
  /** Whether the last transaction that was decided here becomes durable. */
  last: Promise<boolean>;
}

export class Pipelines {
  readonly #open = new Map<string, Pipeline>();

  /** Number of lock keys with transactions that are not settled. */
  get size(): number {
    return this.#open.size;
  }

  /** Resolves to true when the earlier decisions under this key are durable and applied; undefined if they are already. */
  last(lockKey: Uint8Array): Promise<boolean> | undefined {
    return this.#open.size === 0 ? undefined : this.#open.get(nameOfKey(lockKey))?.last;
  }

  /** Rows that earlier transactions under this key decided and that may not be applied yet, newest first. */
  pending(lockKey: Uint8Array): readonly MemoryTable[] {
    return (this.#open.size === 0 ? undefined : this.#open.get(nameOfKey(lockKey))?.pending.tables()) ?? [];
  }

  /** Adds a decided transaction; the next one under this key sees these writes. Call what it returns once, when the outcome is known. */
  enter(lockKey: Uint8Array, writes: readonly RowWrite[]): (durable: boolean) => void {
    const name = nameOfKey(lockKey);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const pipeline: Pipeline = this.#open.get(name) ?? { pending: new PendingWrites(), unsettled: 0, last: promise };
    this.#open.set(name, pipeline);
    pipeline.unsettled++;
    pipeline.last = promise;
    const applied = pipeline.pending.add(writes);
    return (durable) => {
      if (durable) applied();
      pipeline.unsettled--;
      if (pipeline.unsettled === 0) this.#open.delete(name);
      resolve(durable);
    };
  }
}

/** One UTF-16 unit a byte: short, and equal exactly when the bytes are. */
export function nameOfKey(key: Uint8Array): string {
  let name = "";
  for (const byte of key) name += String.fromCharCode(byte);
  return name;
}
