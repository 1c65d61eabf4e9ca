/**
 * Transactions of a range partition: each under the order of its lock keys, decided by what is committed (pipelined ones: and by what is
 * decided and not yet durable), committed in a group with others.
 *
 * Invariant: a row is changed by one transaction at a time, whose lock is held until the commit is durable and applied (pipelined: until
 * it is decided), so that nobody is told of what may still vanish. A transaction that is not pipelined sees committed rows only, so it
 * decides when the pipelined transactions before it are durable (rule plainAfterPipelined).
 */
import { assert, compareBytes, emptyBytes, type Failed, type Failure, FailureError, type Outcome, ok, refused, WakeUp } from "@stamp/base";
import type { MemoryTable } from "@stamp/lsm";
import { type Cause, SlowLog, type World, within } from "@stamp/ports";
import type { Place } from "@stamp/stream-client";
import type { ScanRange } from "../scan-range.ts";
import type { StorageTimes } from "../storage-times.ts";
import { getVersion, RowScan, type TableView } from "../tables.ts";
import type { DecidedWrites, RowWrite, Transaction, TransactOptions } from "../types.ts";
import type { GroupCommit } from "./group-commit.ts";
import { KeyLocks } from "./key-locks.ts";
import { type LastDecided, Pipelines } from "./pipelines.ts";

/** The part of a partition that transactions see and need. */
export interface TransactionHost {
  readonly rangeId: string;
  /** First key, inclusive. The end `highKey` is exclusive; empty: to the end. */
  readonly lowKey: Uint8Array;
  readonly highKey: Uint8Array;
  readonly transactionsMax: number;
  readonly commit: GroupCommit;
  readonly phases: StorageTimes["phases"];
  /** Returns why no more begin. */
  readonly closed: () => Failure | undefined;
  /** Returns why none can go on. */
  readonly ended: () => Failure | undefined;
  /** Reads a committed row. */
  readonly get: (key: Uint8Array) => Promise<Uint8Array | undefined>;
  readonly scan: (range: ScanRange) => RowScan;
  readonly view: () => TableView;
  readonly ownsPlace: (place: Place) => boolean;
  /** Returns the number that is added to the range's tickets for rows of a key (shipping/shipped-fences.ts). */
  readonly lead: (key: Uint8Array) => number;
}

/** Transactions that began within one period. */
interface Cohort {
  count: number;
  readonly emptied: { readonly promise: Promise<void>; readonly resolve: () => void };
}

/** A transaction that is under way. */
interface Begun {
  /** Wall-clock time of the transaction's begin, before its rows were decided, in milliseconds since 1970. */
  readonly wallMs: number;
  readonly monotonicMs: number;
  readonly deadlineMs: number;
  readonly cohort: Cohort;
}

const emptyCohort = (): Cohort => ({ count: 0, emptied: Promise.withResolvers<void>() });

export class Transactions {
  readonly #world: World;
  readonly #around: TransactionHost;
  readonly #locks: KeyLocks;
  readonly #slow: SlowLog;
  readonly #pipelines = new Pipelines();
  readonly #begun = new Set<Begun>();
  #deciding = 0;
  #cohort: Cohort = emptyCohort();
  /** Resolves when the transactions are over that somebody waits for. */
  #over: Promise<unknown> = Promise.resolve();
  readonly #emptied = new WakeUp();
  readonly #decided = new WakeUp();

  constructor(world: World, around: TransactionHost) {
    this.#world = world;
    this.#around = around;
    this.#locks = new KeyLocks(world.clock);
    this.#slow = new SlowLog(world);
  }

  get inProgress(): number {
    return this.#begun.size;
  }

  /** Every transaction that began before this wall-clock time is over, in milliseconds since 1970. */
  get overBeforeMs(): number {
    let earliest = this.#world.clock.wallMs();
    for (const { wallMs } of this.#begun) earliest = Math.min(earliest, wallMs);
    return earliest;
  }

  /** Monotonic time before which all transactions are over, in milliseconds; nobody sets that clock. */
  get overBeforeMonotonicMs(): number {
    let earliest = this.#world.clock.monotonicMs();
    for (const { monotonicMs } of this.#begun) earliest = Math.min(earliest, monotonicMs);
    return earliest;
  }

  /**
   * For a partition that takes no more: resolves when no transaction is being decided, so that every later commit is
   * queued, or by `wake`.
   */
  async untilDecided(): Promise<void> {
    if (this.#deciding > 0 && this.#around.ended() === undefined) await this.#decided.next;
  }

  /** Wakes everybody who waits for rows: their transactions come to nothing. */
  wake(): void {
    this.#emptied.notify();
    this.#decided.notify();
  }

  /** Resolves when every transaction that began before now is over, or by `wake`. */
  async untilOver(): Promise<void> {
    const before = this.#cohort;
    this.#cohort = emptyCohort();
    // Another caller may still wait for an older cohort.
    const older = this.#over;
    const over = Promise.all([older, before.count > 0 ? Promise.race([before.emptied.promise, this.#untilNone()]) : undefined]);
    this.#over = over;
    await over;
  }

  async #untilNone(): Promise<void> {
    if (this.#begun.size > 0 && this.#around.ended() === undefined) await this.#emptied.next;
  }

  async run<T>(
    lockKey: Uint8Array | readonly Uint8Array[],
    decide: (transaction: Transaction) => Promise<DecidedWrites<T>>,
    options: TransactOptions,
  ): Promise<Outcome<T>> {
    const { rangeId, transactionsMax, commit, phases } = this.#around;
    const closed = this.#around.closed();
    if (closed !== undefined) return { ok: false, failure: closed };
    if (this.#begun.size >= transactionsMax)
      return refused("resourceExhausted", "overloaded", `${this.#begun.size} transactions wait in ${rangeId}`);
    assert(!options.pipelined || lockKey instanceof Uint8Array, "a pipelined transaction has one lock key");
    const { clock } = this.#world;
    const beganMs = clock.monotonicMs();
    const begun: Begun = { wallMs: clock.wallMs(), monotonicMs: beganMs, deadlineMs: beganMs + options.timeoutMs, cohort: this.#cohort };
    this.#begun.add(begun);
    begun.cohort.count++;
    const release =
      lockKey instanceof Uint8Array
        ? await this.#locks.acquire(lockKey, options.timeoutMs)
        : await this.#locks.acquireAll(lockKey, options.timeoutMs);
    const leave = (): void => {
      release?.();
      this.#leave(begun);
    };
    const inTurn = release !== undefined && (options.pipelined || (await this.#untilPipelinedEnd(lockKey, begun)));
    const lockedMs = clock.monotonicMs();
    phases.turn.since(beganMs, lockedMs);
    // It left while this one waited for its turn: nothing more is decided here, so that it leaves soon.
    const closedMeanwhile = this.#around.closed();
    if (!inTurn || closedMeanwhile !== undefined) {
      leave();
      if (closedMeanwhile !== undefined) return { ok: false, failure: closedMeanwhile };
      return refused("deadlineExceeded", "timeout", `no turn for this row of ${rangeId}`);
    }
    let decided: DecidedWrites<T>;
    // Both at once: tickets with a lead rise as those without it do.
    const ticket = commit.takeTicket() + this.#around.lead(lockKey instanceof Uint8Array ? lockKey : (lockKey[0] ?? emptyBytes));
    this.#deciding++;
    // Taken with the rows that it decided: it may fail while this one decides, and is then in no pipeline any more.
    const seen = options.pipelined && lockKey instanceof Uint8Array ? this.#pipelines.last(lockKey) : undefined;
    try {
      const pending = options.pipelined && lockKey instanceof Uint8Array ? this.#pipelines.pending(lockKey) : [];
      decided = await decide(this.#transaction(ticket, pending));
    } catch (error) {
      phases.decide.since(lockedMs);
      this.#isDecided();
      leave();
      if (error instanceof FailureError) return { ok: false, failure: error.failure };
      throw error;
    }
    const decidedMs = clock.monotonicMs();
    phases.decide.since(lockedMs, decidedMs);
    // The transaction's writes are queued when this returns.
    const ending = this.#end(lockKey, decided, options, begun, { release, leave, seen });
    this.#isDecided();
    const outcome = await ending;
    if (decided.writes.length > 0) phases.commit.since(decidedMs);
    this.#slow.ended("a transaction took long", beganMs, () => ({
      rangeId,
      requestId: options.cause?.["request-id"],
      turnMs: Math.round(lockedMs - beganMs),
      decideMs: Math.round(decidedMs - lockedMs),
      commitMs: Math.round(clock.monotonicMs() - decidedMs),
      outcome: outcome.ok ? "done" : outcome.failure.reason,
    }));
    return outcome;
  }

  /** Resolves to true when nothing that was decided under these keys is undurable; false: not in time, or never. Called in their turn. */
  async #untilPipelinedEnd(lockKey: Uint8Array | readonly Uint8Array[], begun: Begun): Promise<boolean> {
    if (this.#pipelines.size === 0 || !this.#world.rules.on("plainAfterPipelined")) return true;
    for (const key of lockKey instanceof Uint8Array ? [lockKey] : lockKey) {
      const last = this.#pipelines.last(key);
      // A write that was taken back is in nobody's way.
      if (last !== undefined && !(await within(this.#world.clock, this.#leftMs(begun), last.settled)) && last.durable === undefined)
        return false;
    }
    return true;
  }

  async #end<T>(
    lockKey: Uint8Array | readonly Uint8Array[],
    decided: DecidedWrites<T>,
    options: TransactOptions,
    begun: Begun,
    { release, leave, seen }: { readonly release: () => void; readonly leave: () => void; readonly seen: LastDecided | undefined },
  ): Promise<Outcome<T>> {
    if (options.pipelined && lockKey instanceof Uint8Array) return this.#pipelined(lockKey, decided, begun, release, seen, options.cause);
    const { writes, result } = decided;
    if (writes.length === 0) {
      leave();
      return ok(result);
    }
    this.#checkKeys(writes);
    const committed = await this.#around.commit.commit(writes, this.#leftMs(begun), leave, { cause: options.cause });
    return committed.ok ? ok(result) : committed;
  }

  /**
   * The lock is free as soon as the writes are queued: what comes next sees them and is queued behind them, so it is never durable without
   * them. What was decided without writing may have been decided by what is not durable yet: it is answered when that is (rule
   * pipelineAnswersDurable).
   */
  async #pipelined<T>(
    lockKey: Uint8Array,
    decided: DecidedWrites<T>,
    begun: Begun,
    release: () => void,
    seen: LastDecided | undefined,
    cause: Cause | undefined,
  ): Promise<Outcome<T>> {
    const { writes, result } = decided;
    const { clock, rules } = this.#world;
    const { commit, rangeId } = this.#around;
    const leave = (): void => this.#leave(begun);
    const leftMs = this.#leftMs(begun);
    const noRoom = writes.length > 0 ? commit.noRoom : undefined;
    if (noRoom !== undefined) {
      // The caller learns nothing of what was seen, so there is nothing to wait for.
      release();
      leave();
      return noRoom;
    }
    if (writes.length > 0 && seen?.durable === false && rules.on("decidedByLostRefused")) {
      release();
      leave();
      return this.#decidedByLost();
    }
    const refusal = writes.length > 0 ? commit.refusal(writes) : undefined;
    if (writes.length === 0 || refusal !== undefined) {
      release();
      const known = seen === undefined || !rules.on("pipelineAnswersDurable") ? true : seen.durable;
      const durable = known ?? (await within(clock, leftMs, (seen as LastDecided).settled));
      leave();
      if (durable) return refusal ?? ok(result);
      const closed = this.#around.closed();
      if (closed !== undefined) return { ok: false, failure: closed };
      if (seen?.durable === false) return this.#decidedByLost();
      return commit.refusal([]) ?? refused("deadlineExceeded", "timeout", `what was seen in ${rangeId} did not become durable in time`);
    }
    this.#checkKeys(writes);
    const settled = this.#pipelines.enter(lockKey, rules.on("pipelineSeesPending") ? writes : []);
    const committing = commit.commit(writes, leftMs, leave, { settled, cause });
    release();
    const committed = await committing;
    return committed.ok ? ok(result) : committed;
  }

  /** Returns the failure of a transaction that read a write which was taken back (`GroupCommit.#takeBack`), or whose range ended. */
  #decidedByLost(): Failed {
    const { commit, rangeId } = this.#around;
    return (
      commit.refusal([]) ?? refused("unavailable", "noPlacement", `a write in ${rangeId} found no room, and this one was decided by it`)
    );
  }

  #isDecided(): void {
    this.#deciding--;
    if (this.#deciding === 0) this.#decided.notify();
  }

  #leave(begun: Begun): void {
    const { cohort } = begun;
    this.#begun.delete(begun);
    cohort.count--;
    if (cohort.count === 0 && cohort !== this.#cohort) cohort.emptied.resolve();
    if (this.#begun.size === 0) this.#emptied.notify();
  }

  #transaction(ticket: number, pending: readonly MemoryTable[]): Transaction {
    const { get, scan, ownsPlace } = this.#around;
    const common = { nextSequence: ticket, ownsPlace, raiseTicket: (used: number) => this.#around.commit.raiseTicket(used) };
    if (pending.length === 0) return { ...common, get, scan };
    // Everything committed and, over it, everything decided.
    const view = (): TableView => {
      this.#alive();
      const committed = this.#around.view();
      return { ...committed, memory: [...pending, ...committed.memory] };
    };
    return {
      ...common,
      get: async (key) => (await getVersion(view(), key, Number.MAX_SAFE_INTEGER))?.value,
      scan: (range) => new RowScan(view(), range, Number.MAX_SAFE_INTEGER, { clock: this.#world.clock }),
    };
  }

  #leftMs({ deadlineMs }: Begun): number {
    return Math.max(1, deadlineMs - this.#world.clock.monotonicMs());
  }

  #checkKeys(writes: readonly RowWrite[]): void {
    const { lowKey, highKey } = this.#around;
    for (const { key } of writes) {
      const inRange = compareBytes(key, lowKey) >= 0 && (highKey.length === 0 || compareBytes(key, highKey) < 0);
      assert(inRange, "a write inside the range");
    }
  }

  #alive(): void {
    const ended = this.#around.ended();
    if (ended !== undefined) throw new FailureError(ended);
  }
}
