import type { Outcome } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { Place, StreamClient } from "@stamp/stream-client";
import type { Decided, PartitionOptions, PartitionStats, Row, ScanRange, Snapshot, Transaction, TransactOptions } from "./types.ts";

export * from "./types.ts";

export declare class RangePartition {
  static load(
    world: World,
    streams: StreamClient,
    options: PartitionOptions & { readonly timeoutMs: number },
  ): Promise<Outcome<RangePartition>>;
  readonly rangeId: string;
  readonly stats: PartitionStats;
  /** Throw FailureError when storage can't be read or the partition is lost. */
  get(key: Uint8Array, snapshot?: Snapshot): Promise<Uint8Array | undefined>;
  snapshot(): Snapshot;
  scan(range: ScanRange, snapshot?: Snapshot): AsyncIterable<Row>;
  transact<T>(lockKey: Uint8Array, decide: (tx: Transaction) => Promise<Decided<T>>, options: TransactOptions): Promise<Outcome<T>>;
  appendData(chunks: readonly Uint8Array[], options: { readonly timeoutMs: number }): Promise<Outcome<readonly Place[]>>;
  ownsPlace(place: Place): boolean;
  close(options?: { readonly timeoutMs?: number }): Promise<void>;
}
