/**
 * Key-value stores of one simulated machine. Writes of a store are applied one after another in the order of their calls, seen when
 * they resolve, and durable when they were synced or a later one was. A crash keeps some first part of those that were not, and of
 * those that were under way. Keys are held as strings of one character per byte, whose order is the order of the bytes.
 */
import type { Prng } from "@stamp/base";
import { FailureError } from "@stamp/base";
import type { KeyRange, KeyValue, KeyValueOpen, KeyValueOperation, KeyValueStores } from "@stamp/ports";
import type { Incarnation } from "../kernel/process.ts";
import type { SimDiskState } from "./disk-state.ts";

type Undo = readonly (readonly [key: string, before: Uint8Array | undefined])[];

/** Number of the newest synced batches that a store can lose. */
export const historyMax = 64;
/** Largest number of batches that `forget` loses. */
const forgottenMax = 16;

interface UnderWay {
  readonly operations: readonly KeyValueOperation[];
  readonly sync: boolean;
}

class StoreState {
  readonly values = new Map<string, Uint8Array>();
  /** Keys of `values`, sorted; undefined when they have to be sorted anew. */
  #sorted: string[] | undefined = [];
  /** Undo records of the batches applied since the last synced one, oldest first. */
  undos: Undo[] = [];
  /** Undo records of the newest synced batches: a store that forgets its end loses these. */
  #history: Undo[] = [];
  /** Called for but not yet applied. */
  underWay: UnderWay[] = [];
  /** Virtual time when the last one under way is done. */
  busyUntilUs = 0;
  openBy: Incarnation | undefined;
  corrupt: string | undefined;

  copyFrom(other: StoreState): void {
    for (const [key, value] of other.values) this.values.set(key, value);
    this.#sorted = undefined;
  }

  sorted(): readonly string[] {
    this.#sorted ??= [...this.values.keys()].sort();
    return this.#sorted;
  }

  apply(operations: readonly KeyValueOperation[]): void {
    const undo: (readonly [string, Uint8Array | undefined])[] = [];
    for (const operation of operations) {
      const key = toText(operation.key);
      const before = this.values.get(key);
      undo.push([key, before]);
      if (operation.kind === "put") {
        this.values.set(key, operation.value);
        if (before === undefined) this.#sorted = undefined;
      } else if (before !== undefined) {
        this.values.delete(key);
        this.#sorted = undefined;
      }
    }
    this.undos.push(undo);
  }

  /** Applies batches up to this one, in the order of the calls. */
  applyUpTo(last: UnderWay, lying: boolean): void {
    while (this.underWay.includes(last)) {
      const { operations, sync } = this.underWay.shift() as UnderWay;
      this.apply(operations);
      if (!sync || lying) continue;
      this.#history = [...this.#history, ...this.undos].slice(-historyMax);
      this.undos = [];
    }
  }

  crash(prng: Prng, lose: boolean): number {
    for (const { operations } of this.underWay) {
      if (!prng.chance(0.5)) break;
      this.apply(operations);
    }
    this.underWay = [];
    this.busyUntilUs = 0;
    this.openBy = undefined;
    const kept = lose ? prng.below(this.undos.length + 1) : this.undos.length;
    const lost = this.undos.length - kept;
    this.#undo(this.undos.slice(kept));
    this.undos = [];
    return lost;
  }

  /** Loses the last synced batches. The store must be closed. */
  forgetEnd(batches: number): void {
    const kept = Math.max(0, this.#history.length - batches);
    this.#undo(this.#history.slice(kept));
    this.#history = this.#history.slice(0, kept);
  }

  /** Returns a function that puts the store back into its present state. The store must be closed then and now. */
  saved(): () => void {
    const values = new Map(this.values);
    const history = this.#history;
    return () => {
      this.values.clear();
      for (const [key, value] of values) this.values.set(key, value);
      this.#history = history;
      this.#sorted = undefined;
    };
  }

  /** Loses its last synced batches, or one key. It must be closed. Gives what puts all of it back; undefined if there is nothing to lose. */
  forget(prng: Prng): (() => void) | undefined {
    const putBack = this.saved();
    if (prng.chance(0.5)) {
      if (this.#history.length === 0) return undefined;
      this.forgetEnd(1 + prng.below(Math.min(forgottenMax, this.#history.length)));
    } else {
      if (this.values.size === 0) return undefined;
      this.values.delete(prng.pick(this.sorted()));
      this.#sorted = undefined;
    }
    return putBack;
  }

  /** Undoes the newest batches, oldest first. */
  #undo(undos: readonly Undo[]): void {
    for (const undo of [...undos].reverse()) {
      for (const [key, before] of [...undo].reverse()) {
        if (before === undefined) this.values.delete(key);
        else this.values.set(key, before);
      }
    }
    this.#sorted = undefined;
  }
}

export class KeyValueState {
  readonly #prng: Prng;
  /** Stores lie on the machine's disk and are as slow. */
  readonly #disk: SimDiskState;
  readonly #stores = new Map<string, StoreState>();

  constructor(disk: SimDiskState, prng: Prng) {
    this.#disk = disk;
    this.#prng = prng;
  }

  /** Makes the next opening of the store report damage, until the store is destroyed. */
  corrupt(name: string, message = "injected"): void {
    this.store(name).corrupt = message;
  }

  /** Makes a store lose its last batches or a key, and open as if nothing had happened, as LevelDB does with damage. */
  forget(name: string): (() => void) | undefined {
    return this.store(name).forget(this.#prng);
  }

  /** Returns a function that puts the store back into its present state. No process may have it open, then and now. */
  saved(name: string): () => void {
    return this.store(name).saved();
  }

  /** Makes a store lose this number of its last synced batches (64 at most), and open as if nothing had happened. */
  forgetEnd(name: string, batches: number): void {
    this.store(name).forgetEnd(batches);
  }

  wipe(): void {
    this.#stores.clear();
  }

  /** Makes this the content of a copy of the machine's disk, as of now. */
  copyFrom(other: KeyValueState): void {
    this.wipe();
    for (const [name, store] of other.#stores) this.store(name).copyFrom(store);
  }

  crash(lose: boolean): number {
    let lost = 0;
    for (const store of this.#stores.values()) lost += store.crash(this.#prng, lose);
    return lost;
  }

  store(name: string): StoreState {
    let store = this.#stores.get(name);
    if (!store) {
      store = new StoreState();
      this.#stores.set(name, store);
    }
    return store;
  }

  drop(name: string): void {
    this.#stores.delete(name);
  }

  get lying(): boolean {
    return this.#disk.lying;
  }

  latencyUs(sync: boolean): number {
    return Math.ceil(((sync ? 400 : 10) + this.#prng.below(sync ? 800 : 20)) * this.#disk.slowFactor);
  }
}

export class SimKeyValueStores implements KeyValueStores {
  readonly #incarnation: Incarnation;
  readonly #state: KeyValueState;

  constructor(incarnation: Incarnation, state: KeyValueState) {
    this.#incarnation = incarnation;
    this.#state = state;
  }

  open(name: string): Promise<KeyValueOpen> {
    return this.#incarnation.later<KeyValueOpen>(this.#state.latencyUs(true), "kv-open", name, () => {
      const store = this.#state.store(name);
      if (store.openBy) throw inUse(name);
      if (store.corrupt !== undefined) return { kind: "corrupt", message: store.corrupt };
      store.openBy = this.#incarnation;
      return { kind: "opened", store: new SimKeyValue(this.#incarnation, this.#state, store, name) };
    });
  }

  destroy(name: string): Promise<void> {
    return this.#incarnation.later(this.#state.latencyUs(true), "kv-destroy", name, () => {
      if (this.#state.store(name).openBy) throw inUse(name);
      this.#state.drop(name);
    });
  }
}

class SimKeyValue implements KeyValue {
  readonly #incarnation: Incarnation;
  readonly #state: KeyValueState;
  readonly #store: StoreState;
  readonly #name: string;
  #closed = false;

  constructor(incarnation: Incarnation, state: KeyValueState, store: StoreState, name: string) {
    this.#incarnation = incarnation;
    this.#state = state;
    this.#store = store;
    this.#name = name;
  }

  get(key: Uint8Array): Promise<Uint8Array | undefined> {
    const text = toText(key);
    return this.#later("kv-get", this.#state.latencyUs(false), () => {
      const value = this.#store.values.get(text);
      return value && new Uint8Array(value);
    });
  }

  batch(operations: readonly KeyValueOperation[], options: { readonly sync: boolean }): Promise<void> {
    if (!this.#incarnation.alive) return new Promise(() => {});
    const owned = operations.map((operation) => copied(operation));
    const store = this.#store;
    const now = this.#incarnation.nowUs;
    const waiting: UnderWay = { operations: owned, sync: options.sync };
    store.underWay.push(waiting);
    store.busyUntilUs = Math.max(store.busyUntilUs, now) + this.#state.latencyUs(options.sync);
    if (this.#closed) return Promise.reject(inUse(`${this.#name} is closed`));
    return this.#incarnation.persist(
      store.busyUntilUs - now,
      options.sync ? "kv-sync" : "kv-batch",
      this.#name,
      () => store.applyUpTo(waiting, this.#state.lying),
      () => {
        store.underWay = store.underWay.filter((each) => each !== waiting);
        return inUse(`${this.#name}: struck by a failpoint`);
      },
    );
  }

  async *range(range: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    const found = await this.#later("kv-range", this.#state.latencyUs(false), () => this.#find(range));
    for (const entry of found) yield entry;
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    const wait = Math.max(0, this.#store.busyUntilUs - this.#incarnation.nowUs);
    const closing = this.#later("kv-close", wait + 10, () => {
      if (this.#store.openBy === this.#incarnation) this.#store.openBy = undefined;
    });
    this.#closed = true;
    return closing;
  }

  #find(range: KeyRange): (readonly [Uint8Array, Uint8Array])[] {
    const keys = this.#store.sorted();
    const from = range.gte ? lowerBound(keys, toText(range.gte)) : 0;
    const to = range.lt ? lowerBound(keys, toText(range.lt)) : keys.length;
    const count = Math.max(0, Math.min(range.limit ?? Number.MAX_SAFE_INTEGER, to - from));
    const found: (readonly [Uint8Array, Uint8Array])[] = [];
    for (let i = 0; i < count; i++) {
      const key = keys[range.reverse ? to - 1 - i : from + i] as string;
      found.push([toBytes(key), new Uint8Array(this.#store.values.get(key) as Uint8Array)]);
    }
    return found;
  }

  #later<T>(kind: string, delayUs: number, work: () => T): Promise<T> {
    if (this.#closed) return Promise.reject(inUse(`${this.#name} is closed`));
    return this.#incarnation.later(delayUs, kind, this.#name, work);
  }
}

function copied(operation: KeyValueOperation): KeyValueOperation {
  const key = new Uint8Array(operation.key);
  return operation.kind === "put" ? { kind: "put", key, value: new Uint8Array(operation.value) } : { kind: "delete", key };
}

function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

function toText(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i++) text += String.fromCharCode(bytes[i] as number);
  return text;
}

function toBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function inUse(name: string): FailureError {
  return new FailureError({ code: "failedPrecondition", reason: "conflict", message: `store is in use: ${name}`, applied: "no" });
}
