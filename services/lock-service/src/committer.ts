/**
 * The one writer of the lock service. Requests are judged strictly in order of arrival; those that waited while a synced write was in
 * flight share the next one. Everybody is answered only after the write that holds what he was told, reads included: nobody ever learns
 * of something that a power cut could take back.
 */
import type { Failed, Outcome } from "@stamp/base";
import { assert, ok, refused, unknownOutcome } from "@stamp/base";
import type { LeaseDecision, LeaseRecord, LeaseTable } from "@stamp/lease";
import type { World } from "@stamp/ports";
import { Changes } from "./changes.ts";
import type { KeyState, LockStore, StoredPage } from "./store.ts";

/** What a request may do in its turn. */
export interface Turn {
  readonly leases: LeaseTable;
  /** Why nothing may be written; undefined: it may. */
  readonly refusal: Failed | undefined;
  nowMs(): number;
  /** Takes a decision's record over into this group's write. */
  decided<T>(decision: LeaseDecision<T>): Outcome<T>;
  key(key: string): Promise<Outcome<KeyState>>;
  page(prefix: string, after: string, limit: number): Promise<Outcome<StoredPage>>;
  /** Writes the keys under the next version and gives that. */
  write(writes: readonly { readonly key: string; readonly value?: Uint8Array }[]): number;
  readonly lastVersion: number;
  /** Keys written after that transaction; undefined when it is not known any more. */
  changedSince(version: number, prefix: string): string[] | undefined;
}

interface Waiting {
  readonly deadlineMs: number;
  readonly alone: boolean;
  judge(turn: Turn): Promise<void>;
  answer(written: Outcome<void>): void;
}

/** Keys of the last transactions that are remembered: about 100 bytes each. */
const changedKeysMax = 50_000;

export interface CommitterOptions {
  readonly waitingMax: number;
  readonly groupMax: number;
  readonly lastVersion: number;
  /** Why nothing can be written now. */
  readonly refusal: () => Promise<Failed | undefined>;
}

export class Committer {
  readonly #world: World;
  readonly #store: LockStore;
  readonly #leases: LeaseTable;
  readonly #options: CommitterOptions;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #broken: string | undefined;
  #lastVersion: number;
  readonly #changes: Changes;
  #closed = false;

  constructor(world: World, store: LockStore, leases: LeaseTable, options: CommitterOptions) {
    this.#world = world;
    this.#store = store;
    this.#leases = leases;
    this.#options = options;
    this.#lastVersion = options.lastVersion;
    this.#changes = new Changes(options.lastVersion, changedKeysMax);
  }

  get lastVersion(): number {
    return this.#lastVersion;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** `alone`: it reads more than single keys, so it goes first in a group. */
  submit<T>(deadlineMs: number, work: (turn: Turn) => Promise<Outcome<T>> | Outcome<T>, alone = false): Promise<Outcome<T>> {
    if (this.#closed) return Promise.resolve(refused("unavailable", "stopping", "the lock service is stopping"));
    if (this.#broken !== undefined) return Promise.resolve(refused("unavailable", "diskFailed", this.#broken));
    if (this.#waiting.length >= this.#options.waitingMax) {
      return Promise.resolve(refused("resourceExhausted", "overloaded", `${this.#waiting.length} requests wait for the store`));
    }
    return new Promise((resolve) => {
      let outcome: Outcome<T> = refused("deadlineExceeded", "timeout", "its turn came after its deadline");
      this.#waiting.push({
        deadlineMs,
        alone,
        judge: async (turn) => {
          outcome = await work(turn);
        },
        answer: (written) => resolve(written.ok ? outcome : written),
      });
      this.#running ??= this.#run();
    });
  }

  /** Finishes what waits; nothing new is taken. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) await this.#group();
    this.#running = undefined;
  }

  async #group(): Promise<void> {
    const judged: Waiting[] = [];
    let written: Outcome<void> = ok();
    try {
      const refusal = await this.#options.refusal();
      this.#leases.cannotRecord = refusal;
      const turn = new GroupTurn(this.#world, this.#store, this.#leases, this.#changes, this.#lastVersion, refusal);
      while (judged.length < this.#options.groupMax) {
        const next = this.#waiting[0];
        if (next === undefined || (next.alone && turn.dirty)) break;
        this.#waiting.shift();
        judged.push(next);
        if (this.#world.clock.monotonicMs() < next.deadlineMs) await next.judge(turn);
      }
      if (turn.dirty) await turn.commit();
      this.#changes.note(turn.written());
      this.#lastVersion = turn.lastVersion;
    } catch (error) {
      this.#broken = `the metadata store failed: ${String(error)}`;
      written = unknownOutcome("unavailable", "diskFailed", this.#broken);
    }
    for (const waiting of judged) waiting.answer(written);
    if (this.#broken !== undefined) {
      for (const waiting of this.#waiting.splice(0)) waiting.answer(refused("unavailable", "diskFailed", this.#broken));
      this.#world.fatal(this.#broken);
    }
  }
}

/** One group: what its members changed, seen by those after them. */
class GroupTurn implements Turn {
  readonly leases: LeaseTable;
  readonly refusal: Failed | undefined;
  readonly #world: World;
  readonly #store: LockStore;
  readonly #leaseRecords = new Map<string, LeaseRecord>();
  readonly #keys = new Map<string, KeyState>();
  /** The last transaction of this group that wrote each key. */
  readonly #writtenBy = new Map<string, number>();
  readonly #changes: Changes;
  #lastVersion: number;

  constructor(world: World, store: LockStore, leases: LeaseTable, changes: Changes, lastVersion: number, refusal: Failed | undefined) {
    this.leases = leases;
    this.refusal = refusal;
    this.#changes = changes;
    this.#world = world;
    this.#store = store;
    this.#lastVersion = lastVersion;
  }

  get dirty(): boolean {
    return this.#leaseRecords.size > 0 || this.#keys.size > 0;
  }

  get lastVersion(): number {
    return this.#lastVersion;
  }

  nowMs(): number {
    return this.#world.clock.monotonicMs();
  }

  decided<T>(decision: LeaseDecision<T>): Outcome<T> {
    if (decision.persist) this.#leaseRecords.set(decision.persist.name, decision.persist);
    return decision.outcome;
  }

  async key(key: string): Promise<Outcome<KeyState>> {
    const changed = this.#keys.get(key);
    return changed === undefined ? this.#store.key(key) : ok(changed);
  }

  page(prefix: string, after: string, limit: number): Promise<Outcome<StoredPage>> {
    assert(!this.dirty, "a page is read before anything is written in its group");
    return this.#store.page(prefix, after, limit);
  }

  write(writes: readonly { readonly key: string; readonly value?: Uint8Array }[]): number {
    if (writes.length === 0) return this.#lastVersion;
    assert(this.refusal === undefined, "nothing is written without room");
    this.#lastVersion += 1;
    for (const { key, value } of writes) {
      // Moved to the end: in order of versions.
      this.#writtenBy.delete(key);
      this.#writtenBy.set(key, this.#lastVersion);
      this.#keys.set(key, value === undefined ? { value: undefined, version: 0 } : { value, version: this.#lastVersion });
    }
    return this.#lastVersion;
  }

  changedSince(version: number, prefix: string): string[] | undefined {
    assert(!this.dirty, "changes are read before anything is written in their group");
    return this.#changes.since(version, prefix);
  }

  written(): Iterable<readonly [string, number]> {
    return this.#writtenBy;
  }

  commit(): Promise<void> {
    return this.#store.commit(this.#leaseRecords.values(), this.#keys, this.#lastVersion);
  }
}
