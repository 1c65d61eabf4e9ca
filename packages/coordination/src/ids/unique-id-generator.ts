/**
 * Unique numbers for many processes without a lock: each process reserves ranges of a counter in storage and hands their numbers out from
 * memory (article "Synchronizing multiple nodes", class UniqueIdGenerator).
 *
 *   storage: 3000            process A has 1000..1999, process B has 2000..2999; the next reservation writes 4000
 *
 * Invariants:
 * - A range is handed out only after a conditional write raised the counter from its first number to the first number behind it.
 * - One reservation at a time in one generator, for all who wait. Ranges of one generator rise, so its numbers rise.
 * - A write whose outcome is unknown gives no range; its numbers may be skipped, never given twice.
 * - A counter that stands below a range of this generator was deleted or set back. No range follows: its numbers were given out before.
 */
import { CorruptCounterError, RetriesExhaustedError, requireInteger, requireNumber, UsageError } from "../errors.ts";
import { isPermanent } from "../storage/classify.ts";
import { backoffMs } from "../time/backoff.ts";
import { type Clock, sleep, systemClock, unlessAborted, withTimeout } from "../time/clock.ts";
import type { OptimisticSyncStore } from "./optimistic-sync-store.ts";

export interface UniqueIdOptions {
  /** Numbers that one write reserves: more cost fewer writes, and more are lost when a process ends. Default 1,000. */
  readonly rangeSize?: number;
  /** Attempts after the first, for a reservation that met other writers or got no answer. Default 25. */
  readonly maxRetries?: number;
  /** First number of a counter that does not exist yet. Default 0. */
  readonly firstId?: bigint;
  /** Share of a range that is left when the next one is reserved in the background, 0 for never. Default 0.2. */
  readonly prefetchShare?: number;
  /** Longest time that one read or write may take, in milliseconds. Default 10,000. */
  readonly requestTimeoutMs?: number;
  /** Longest time that one reservation may take with all its attempts, in milliseconds. Default 60,000. */
  readonly reserveTimeoutMs?: number;
  readonly clock?: Clock;
}

interface Range {
  next: bigint;
  /** First number behind the range. */
  readonly end: bigint;
}

/** Largest number: the counter is an Int64, as in the article. */
const idMax = 2n ** 63n - 1n;

const retryDelays = { firstMs: 20, maxMs: 2_000 };

export class UniqueIdGenerator {
  readonly #store: OptimisticSyncStore;
  readonly #clock: Clock;
  readonly #rangeSize: bigint;
  readonly #maxRetries: number;
  readonly #firstId: bigint;
  readonly #prefetchAt: bigint;
  readonly #requestTimeoutMs: number;
  readonly #reserveTimeoutMs: number;
  /** First number behind the highest range that this generator reserved. */
  #reservedEnd = 0n;
  #range: Range = { next: 0n, end: 0n };
  /** Reserved in the background, and used when `#range` is empty. */
  #following: Range | undefined;
  #reservation: Promise<void> | undefined;

  constructor(store: OptimisticSyncStore, options: UniqueIdOptions = {}) {
    const { rangeSize = 1000, maxRetries = 25, firstId = 0n, prefetchShare = 0.2 } = options;
    const { requestTimeoutMs = 10_000, reserveTimeoutMs = 60_000 } = options;
    requireInteger("rangeSize", rangeSize, 1, 2 ** 40);
    requireInteger("maxRetries", maxRetries, 0, 10_000);
    requireNumber("prefetchShare", prefetchShare, 0, 1);
    requireNumber("requestTimeoutMs", requestTimeoutMs, 1, 3_600_000);
    requireNumber("reserveTimeoutMs", reserveTimeoutMs, 1, 86_400_000);
    if (typeof firstId !== "bigint" || firstId < 0n || firstId > idMax)
      throw new UsageError(`firstId is ${firstId}; give a bigint from 0 to ${idMax}`);
    this.#store = store;
    this.#clock = options.clock ?? systemClock;
    this.#rangeSize = BigInt(rangeSize);
    this.#maxRetries = maxRetries;
    this.#firstId = firstId;
    this.#prefetchAt = BigInt(Math.floor(rangeSize * prefetchShare));
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#reserveTimeoutMs = reserveTimeoutMs;
  }

  /**
   * Returns the next number. Rejects with a CorruptCounterError, a RetriesExhaustedError, or the service's error when it refuses for good;
   * the next call tries again. Aborting `signal` rejects this call with its reason; a reservation that is under way serves later calls.
   */
  async nextId(signal?: AbortSignal): Promise<bigint> {
    for (;;) {
      signal?.throwIfAborted();
      const id = this.tryNextId();
      if (id !== undefined) return id;
      await unlessAborted(this.#reserve(), signal);
    }
  }

  /** Returns the next number if one is in memory; undefined otherwise. Costs no storage operation before the range runs out. */
  tryNextId(): bigint | undefined {
    if (this.#range.next === this.#range.end) {
      if (this.#following === undefined) return undefined;
      this.#range = this.#following;
      this.#following = undefined;
    }
    const id = this.#range.next++;
    if (this.#following === undefined && this.#range.end - this.#range.next <= this.#prefetchAt && this.#prefetchAt > 0n) {
      // If it fails, the call that needs the range tries again and tells the error.
      this.#reserve().catch(() => {});
    }
    return id;
  }

  #reserve(): Promise<void> {
    this.#reservation ??= this.#reserveRange()
      .then((range) => {
        this.#following = range;
      })
      .finally(() => {
        this.#reservation = undefined;
      });
    return this.#reservation;
  }

  async #reserveRange(): Promise<Range> {
    let last: unknown;
    let attempt = 0;
    const untilMs = this.#clock.monotonicMs() + this.#reserveTimeoutMs;
    for (; attempt <= this.#maxRetries && this.#clock.monotonicMs() < untilMs; attempt++) {
      if (attempt > 0) await sleep(this.#clock, backoffMs(this.#clock, retryDelays, attempt - 1));
      try {
        const { data, version } = await this.#request(untilMs, (signal) => this.#store.getData(signal));
        const first = data === undefined ? this.#firstId : this.#parse(data);
        if (first < this.#reservedEnd) {
          throw new CorruptCounterError(
            `${this.#store.name} ${data === undefined ? "is gone" : `holds ${first}`}, but the numbers below ${this.#reservedEnd} were ` +
              "reserved already; write a number above every number that was ever given out",
          );
        }
        const end = first + this.#rangeSize;
        if (end > idMax) {
          throw new CorruptCounterError(
            `${this.#store.name} holds ${first}: no ${this.#rangeSize} numbers are left below ${idMax}; use another counter`,
          );
        }
        if (await this.#request(untilMs, (signal) => this.#store.tryOptimisticWrite(String(end), version, signal))) {
          this.#reservedEnd = end;
          return { next: first, end };
        }
        last = undefined;
      } catch (error) {
        if (error instanceof CorruptCounterError || isPermanent(error)) throw error;
        last = error;
      }
    }
    const why =
      last === undefined
        ? "each met another writer; use a larger rangeSize"
        : `the last failed: ${last instanceof Error ? last.message : last}`;
    throw new RetriesExhaustedError(`no range was reserved in ${this.#store.name} after ${attempt} attempts; ${why}`, {
      cause: last,
    });
  }

  #parse(data: string): bigint {
    const text = data.trim();
    if (!/^\d{1,19}$/.test(text) || BigInt(text) > idMax) {
      throw new CorruptCounterError(
        `${this.#store.name} holds ${JSON.stringify(data.slice(0, 100))}, which is no number from 0 to ${idMax}; ` +
          "write a number above every number that was ever given out",
      );
    }
    return BigInt(text);
  }

  #request<T>(untilMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const leftMs = Math.max(1, untilMs - this.#clock.monotonicMs());
    return withTimeout(this.#clock, Math.min(this.#requestTimeoutMs, leftMs), undefined, work);
  }
}
