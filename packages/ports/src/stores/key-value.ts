/** An ordered key-value store, on this process's own disk (LevelDB) or in etcd. Keys are compared as unsigned bytes. */
export type KeyValueOperation =
  | { readonly kind: "put"; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly kind: "delete"; readonly key: Uint8Array };

export interface KeyRange {
  readonly gte?: Uint8Array;
  readonly lt?: Uint8Array;
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** Size of the largest batch that a store takes. */
export interface BatchMax {
  readonly operations: number;
  /** Bytes of keys and values, with those that the store adds. */
  readonly bytes: number;
}

export interface KeyValue {
  /** Bounds of a batch; undefined: as large as memory allows. */
  readonly batchMax?: BatchMax | undefined;
  get(key: Uint8Array): Promise<Uint8Array | undefined>;
  /** Writes all or nothing, also over a crash. With `sync` it is durable when it resolves; without, a crash may lose it and all that follows. */
  batch(operations: readonly KeyValueOperation[], options: { readonly sync: boolean }): Promise<void>;
  /** Returns entries in key order, as of the first step. The caller owns keys and values. */
  range(range: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]>;
  /**
   * Resolves if this process was still the one that may use the store after the call; throws FailureError `notLeader` if it was not. Undefined:
   * nobody else can open the store.
   */
  readonly confirm?: (() => Promise<void>) | undefined;
  /**
   * Removes from the files what was replaced or deleted in the range. Everything that is there now is written again, so nobody may write
   * meanwhile. Undefined: the store keeps no old values, or forgets them by itself.
   */
  readonly forgetOld?: ((range: Required<Pick<KeyRange, "gte" | "lt">>) => Promise<void>) | undefined;
  close(): Promise<void>;
}

export type KeyValueOpen = { readonly kind: "opened"; readonly store: KeyValue } | { readonly kind: "corrupt"; readonly message: string };

/** Opens the stores of one process by name (a folder below its data folder). */
export interface KeyValueStores {
  open(name: string): Promise<KeyValueOpen>;
  /** Removes a store with its content; it must be closed. */
  destroy(name: string): Promise<void>;
}
