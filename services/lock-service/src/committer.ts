/**
 * The one writer of the lock service. Requests are judged strictly in order of arrival; those that waited while a synced write was in
 * flight share the next one. Everybody is answered only after the write that holds what he was told, reads included: nobody ever learns
 * of something that a power cut could take back. Over a store that another process may take over, a group that writes nothing is answered
 * only after the store has confirmed that nobody has (rule answersConfirmed).
 */
import type { Failed, Outcome } from "@stamp/base";
import { assert, FailureError, Histogram, ok, refused, unknownOutcome } from "@stamp/base";
import type { LeaseDecision, LeaseRecord, LeaseTable } from "@stamp/lease";
import { DiskError, sleep, type World } from "@stamp/ports";
import { Changes } from "./changes.ts";
import { type GroupSize, type KeyState, keySize, type LockStore, type StoredPage } from "./store/store.ts";
import { WaitingQuestions } from "./waits.ts";

/** Parts of the service that a request may use in its turn. */
export interface CommitTurn {
  readonly leases: LeaseTable;
  /** Reason why nothing may be written; undefined: it may. */
  readonly refusal: Failed | undefined;
  nowMs(): number;
  /** Takes a decision's record over into this group's write. */
  decided<T>(decision: LeaseDecision<T>): Outcome<T>;
  key(key: string): Promise<Outcome<KeyState>>;
  page(prefix: string, after: string, limit: number): Promise<Outcome<StoredPage>>;
  /** Writes the keys under the next version and gives that. */
  write(writes: readonly { readonly key: string; readonly value?: Uint8Array }[]): number;
  readonly lastVersion: number;
  /** Returns the keys written after that transaction; undefined when it is not known any more. */
  changedSince(version: number, prefix: string): string[] | undefined;
}

const oneLease: GroupSize = { leases: 1, keys: 0, keyBytes: 0 };

interface Waiting {
  readonly deadlineMs: number;
  readonly alone: boolean;
  /** True if the request asks to record something. Others write only when they find that a lease has ended. */
  readonly writes: boolean;
  /** Bounds of the rows that the request may write. */
  readonly size: GroupSize;
  judge(turn: CommitTurn): Promise<void>;
  answer(written: Outcome<void>): void;
}

/** A group whose write found no room: it may be on the disk or not. It is written again until it is there; nobody learns of it before that. */
interface Undecided {
  readonly turn: GroupTurn;
  readonly judged: readonly Waiting[];
  /** Failure of whatever needs the undecided batch. */
  readonly failure: Failed;
}

/** Pause between two attempts to write the group, in milliseconds. */
const againMs = 20;

/** Keys of the last transactions that are remembered: about 100 bytes each. */
const changedKeysMax = 50_000;

export interface CommitterOptions {
  readonly waitingMax: number;
  readonly groupMax: number;
  readonly lastVersion: number;
  /** Returns why nothing can be written now. `writes`: a member of the group asks to record something. */
  readonly refusal: (writes: boolean) => Promise<Failed | undefined>;
  /** Makes some room on a full disk; false when it can't. */
  readonly giveRoom: () => Promise<boolean>;
  /** Called when nothing may be written or answered any more: the process must end, or give up its turn as the active one. */
  readonly broken: (why: string) => void;
}

export class Committer {
  readonly #world: World;
  readonly #store: LockStore;
  readonly #leases: LeaseTable;
  readonly #options: CommitterOptions;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #broken: Failed | undefined;
  #undecided: Undecided | undefined;
  #lastVersion: number;
  readonly #changes: Changes;
  #closed = false;
  /** Time of one group to be written and synced. */
  readonly wrote: Histogram;
  /** Questions that wait for a grant or recorded end of a lease, by its name. */
  readonly leaseWaits: WaitingQuestions;
  /** Questions that wait for a written key. */
  readonly keyWaits: WaitingQuestions;

  constructor(world: World, store: LockStore, leases: LeaseTable, options: CommitterOptions) {
    this.#world = world;
    this.#store = store;
    this.#leases = leases;
    this.#options = options;
    this.wrote = new Histogram(world.clock);
    this.leaseWaits = new WaitingQuestions(world.clock);
    this.keyWaits = new WaitingQuestions(world.clock);
    this.#lastVersion = options.lastVersion;
    this.#changes = new Changes(options.lastVersion, changedKeysMax);
  }

  get lastVersion(): number {
    return this.#lastVersion;
  }

  /** True if certainly no transaction after that version wrote a key with the prefix. */
  wroteNothingSince(version: number, prefix: string): boolean {
    return this.#changes.since(version, prefix)?.length === 0;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Submits a request. `alone`: it reads more than single keys, so it goes first in a group. `writes`: false for a question or renewal. */
  submit<T>(
    deadlineMs: number,
    work: (turn: CommitTurn) => Promise<Outcome<T>> | Outcome<T>,
    {
      alone = false,
      writes = true,
      size = oneLease,
    }: { readonly alone?: boolean; readonly writes?: boolean; readonly size?: GroupSize } = {},
  ): Promise<Outcome<T>> {
    if (this.#closed) return Promise.resolve(refused("unavailable", "stopping", "the lock service is stopping"));
    if (this.#broken !== undefined) return Promise.resolve(this.#broken);
    if (this.#waiting.length >= this.#options.waitingMax) {
      return Promise.resolve(refused("resourceExhausted", "overloaded", `${this.#waiting.length} requests wait for the store`));
    }
    return new Promise((resolve) => {
      let outcome: Outcome<T> = refused("deadlineExceeded", "timeout", "its turn came after its deadline");
      this.#waiting.push({
        deadlineMs,
        alone,
        writes,
        size,
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
    this.leaseWaits.end();
    this.keyWaits.end();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0 || (this.#undecided !== undefined && !this.#closed)) {
      if (this.#undecided !== undefined) await this.#again(this.#undecided);
      if (this.#waiting.length > 0) await this.#group();
      else if (this.#undecided !== undefined) await sleep(this.#world.clock, againMs);
    }
    const left = this.#undecided;
    this.#undecided = undefined;
    if (left !== undefined) answer(left.judged, unknownOutcome("unavailable", "diskFull", "the lock service stops, and its disk is full"));
    this.#running = undefined;
  }

  async #group(): Promise<void> {
    const judged: Waiting[] = [];
    let turn: GroupTurn | undefined;
    try {
      const undecided = this.#undecided;
      const writes = this.#waiting.some((one) => one.writes);
      const refusal = undecided?.failure ?? (await this.#options.refusal(writes));
      this.#leases.cannotRecord = refusal;
      this.#leases.undecided = undecided?.turn.leaseNames ?? new Set();
      turn = new GroupTurn(this.#world, this.#store, this.#leases, this.#changes, this.#lastVersion, refusal, undecided?.turn);
      while (judged.length < this.#options.groupMax) {
        const next = this.#waiting[0];
        if (next === undefined || (next.writes && !writes) || (turn.dirty && (next.alone || !turn.fits(next.size)))) break;
        this.#waiting.shift();
        judged.push(next);
        if (this.#world.clock.monotonicMs() < next.deadlineMs) await next.judge(turn);
      }
      await this.#commit(turn, judged);
    } catch (error) {
      if (turn?.dirty && isFull(error)) this.#undecide(turn, judged, error);
      else this.#break(error, judged);
    }
  }

  async #again({ turn, judged }: Undecided): Promise<void> {
    try {
      if ((await this.#options.refusal(true)) !== undefined) return;
      await this.#commit(turn, judged);
      this.#undecided = undefined;
    } catch (error) {
      if (!isFull(error)) this.#break(error, judged);
    }
  }

  async #commit(turn: GroupTurn, judged: readonly Waiting[]): Promise<void> {
    if (turn.dirty) await this.#write(turn);
    else await this.#store.confirm?.();
    this.#changes.note(turn.written());
    this.#lastVersion = turn.lastVersion;
    answer(judged, ok());
    for (const name of turn.leaseNames) this.leaseWaits.told(name);
    for (const [key] of turn.written()) this.keyWaits.told(key);
  }

  async #write(turn: GroupTurn): Promise<void> {
    const sinceMs = this.#world.clock.monotonicMs();
    try {
      await turn.commit();
    } catch (error) {
      if (!isFull(error) || !(await this.#options.giveRoom())) throw error;
      await turn.commit();
    }
    this.wrote.since(sinceMs);
  }

  #undecide(turn: GroupTurn, judged: readonly Waiting[], error: DiskError): void {
    assert(this.#undecided === undefined, "nothing is recorded while a group is undecided");
    this.#world.logger.error("the disk is full: what was being recorded is tried again until there is room", { why: error.message });
    this.#undecided = {
      turn,
      judged,
      failure: refused("resourceExhausted", "diskFull", `the disk of the metadata store is full: ${error.message}`),
    };
  }

  #break(error: unknown, judged: readonly Waiting[]): void {
    const deposed = error instanceof FailureError && error.failure.reason === "notLeader" ? error.failure : undefined;
    const { reason, message } = deposed ?? { reason: "diskFailed" as const, message: `the metadata store failed: ${String(error)}` };
    this.#broken = refused("unavailable", reason, message);
    const unknown = unknownOutcome("unavailable", reason, message);
    answer(judged, unknown);
    answer(this.#undecided?.judged ?? [], unknown);
    this.#undecided = undefined;
    answer(this.#waiting.splice(0), this.#broken);
    this.leaseWaits.end();
    this.keyWaits.end();
    this.#options.broken(message);
  }
}

const isFull = (error: unknown): error is DiskError => error instanceof DiskError && error.kind === "full";

function answer(judged: readonly Waiting[], written: Outcome<void>): void {
  for (const waiting of judged) waiting.answer(written);
}

/** Changes of the members of one group; each member sees those of the members before it. */
class GroupTurn implements CommitTurn {
  readonly leases: LeaseTable;
  readonly refusal: Failed | undefined;
  readonly #world: World;
  readonly #store: LockStore;
  readonly #leaseRecords = new Map<string, LeaseRecord>();
  readonly #keys = new Map<string, KeyState>();
  #keyBytes = 0;
  /** The last transaction of this group that wrote each key. */
  readonly #writtenBy = new Map<string, number>();
  readonly #changes: Changes;
  /** Group before this one, if that may be on the disk or not. */
  readonly #undecided: GroupTurn | undefined;
  #lastVersion: number;

  constructor(
    world: World,
    store: LockStore,
    leases: LeaseTable,
    changes: Changes,
    lastVersion: number,
    refusal: Failed | undefined,
    undecided: GroupTurn | undefined,
  ) {
    this.leases = leases;
    this.refusal = refusal;
    this.#undecided = undecided;
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

  /** True if one batch of the store holds what is in the group and as much more. */
  fits(next: GroupSize): boolean {
    const leases = this.#leaseRecords.size + next.leases;
    return this.#store.fits({ leases, keys: this.#keys.size + next.keys, keyBytes: this.#keyBytes + next.keyBytes });
  }

  get leaseNames(): ReadonlySet<string> {
    return new Set(this.#leaseRecords.keys());
  }

  nowMs(): number {
    return this.#world.clock.monotonicMs();
  }

  decided<T>(decision: LeaseDecision<T>): Outcome<T> {
    if (decision.persist) this.#leaseRecords.set(decision.persist.name, decision.persist);
    return decision.outcome;
  }

  async key(key: string): Promise<Outcome<KeyState>> {
    const withheld = this.#withheld((undecided) => undecided === key);
    if (withheld !== undefined) return withheld;
    const changed = this.#keys.get(key);
    return changed === undefined ? this.#store.key(key) : ok(changed);
  }

  async page(prefix: string, after: string, limit: number): Promise<Outcome<StoredPage>> {
    assert(!this.dirty, "a page is read before anything is written in its group");
    const withheld = this.#withheld((undecided) => undecided.startsWith(prefix));
    if (withheld !== undefined) return withheld;
    return this.#store.page(prefix, after, limit);
  }

  #withheld(concerned: (undecided: string) => boolean): Failed | undefined {
    const undecided = this.#undecided === undefined ? [] : [...this.#undecided.#keys.keys()];
    return undecided.some(concerned) ? this.refusal : undefined;
  }

  write(writes: readonly { readonly key: string; readonly value?: Uint8Array }[]): number {
    if (writes.length === 0) return this.#lastVersion;
    assert(this.refusal === undefined, "nothing is written without room");
    this.#lastVersion += 1;
    for (const { key, value } of writes) {
      // Moved to the end: in order of versions.
      this.#keyBytes += keySize(key, value);
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
