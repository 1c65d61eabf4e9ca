/**
 * One leader among equal processes, again and again, until it is stopped (article "Leader election").
 *
 * A leader whose task hangs would keep the lease for ever. So a health check of the task is asked for at intervals; when it says no or
 * does not answer, the elector stops renewing: the task's signal is aborted, and the lease is released as soon as the task has settled, or
 * ends by itself when the task never does. Another candidate then leads; the fencing token keeps the hung task from harm.
 */
import { EventEmitter } from "node:events";
import { requireInteger, requireNumber, UnhealthyLeaderError, UsageError } from "../errors.ts";
import { backoffMs } from "../time/backoff.ts";
import { type Clock, sleep, systemClock, withTimeout } from "../time/clock.ts";
import { BlobDistributedMutex, type HeldMutex, type MutexOptions, type MutexTask } from "./blob-distributed-mutex.ts";
import { acquireEveryDefaultMs } from "./lease-holder.ts";
import type { Leadership } from "./lease-store.ts";

export interface ElectorOptions extends MutexOptions {
  /** Returns true while this process may lead; called again and again. False, a rejection or no timely answer is a no. Default: none. */
  readonly isHealthy?: (signal: AbortSignal) => Promise<boolean>;
  /** Time between two health checks and longest time for one, in milliseconds. Default 5,000. */
  readonly healthCheckEveryMs?: number;
  /** Consecutive failed health checks after which leadership is given up. Default 3. */
  readonly healthChecksFailedMax?: number;
}

interface Events {
  /** Event: this process leads, and its task begins. */
  elected: [{ readonly fencingToken: bigint }];
  /** This process does not lead any more. */
  lost: [{ readonly fencingToken: bigint; readonly reason: unknown }];
  /** An error that is followed by another attempt, or that the leader's task threw. */
  error: [unknown];
}

/** Bounds of the delay after a failed candidacy, in milliseconds. */
const failedCandidacy = { firstMs: 1_000, maxMs: 30_000 };

export class LeaderElector extends EventEmitter<Events> {
  readonly #mutex: BlobDistributedMutex;
  readonly #options: ElectorOptions;
  readonly #clock: Clock;
  readonly #healthEveryMs: number;
  readonly #failedMax: number;
  readonly #acquireEveryMs: number;
  #running = false;
  #mine: HeldMutex | undefined;

  constructor(where: ConstructorParameters<typeof BlobDistributedMutex>[0], options: ElectorOptions = {}) {
    super();
    const { healthCheckEveryMs = 5_000, healthChecksFailedMax = 3 } = options;
    requireNumber("healthCheckEveryMs", healthCheckEveryMs, 1, 3_600_000);
    requireInteger("healthChecksFailedMax", healthChecksFailedMax, 1, 1_000);
    this.#healthEveryMs = healthCheckEveryMs;
    this.#failedMax = healthChecksFailedMax;
    this.#acquireEveryMs = options.acquireEveryMs ?? acquireEveryDefaultMs;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#mutex = new BlobDistributedMutex(where, {
      ...options,
      onError: (error, during) => {
        options.onError?.(error, during);
        this.#tell(error);
      },
    });
  }

  get name(): string {
    return this.#mutex.name;
  }

  /** True while this process certainly leads. */
  get isLeader(): boolean {
    return (this.#mine?.remainingMs() ?? 0) > 0;
  }

  /** Returns the present or last leader, as everybody sees it; undefined: there never was one. */
  leader(signal?: AbortSignal): Promise<Leadership | undefined> {
    return this.#mutex.holder(signal);
  }

  /**
   * Takes part in elections until `signal` is aborted, and runs `task` whenever this process is elected. A task that returns or throws ends
   * its leadership, and the process becomes a candidate again. Resolves when `signal` is aborted and the task has settled.
   */
  async run(task: MutexTask<void>, signal: AbortSignal): Promise<void> {
    if (this.#running) throw new UsageError("run was called while this elector runs; make one elector for each candidate");
    this.#running = true;
    try {
      for (let failures = 0; !signal.aborted; ) {
        try {
          await this.#mutex.runTaskWhenMutexAcquired((_, mutex) => this.#lead(task, mutex), signal);
          failures = 0;
        } catch (error) {
          if (signal.aborted) break;
          this.#tell(error);
          // Others come first when this one could not lead.
          const restMs = this.#acquireEveryMs * 2 + backoffMs(this.#clock, failedCandidacy, failures++);
          await sleep(this.#clock, restMs, signal).catch(() => {});
        }
      }
    } finally {
      this.#running = false;
    }
  }

  /** Runs the task and its health checks until either ends. */
  async #lead(task: MutexTask<void>, mutex: HeldMutex): Promise<void> {
    const ended = new AbortController();
    this.#mine = mutex;
    this.emit("elected", { fencingToken: mutex.fencingToken });
    void this.#watchHealth(mutex, ended.signal);
    let reason: unknown = "the task ended";
    try {
      await task(mutex.signal, mutex);
    } catch (error) {
      reason = error;
      throw error;
    } finally {
      ended.abort();
      this.#mine = undefined;
      if (mutex.signal.aborted) reason = mutex.signal.reason;
      this.emit("lost", { fencingToken: mutex.fencingToken, reason });
    }
  }

  async #watchHealth(mutex: HeldMutex, ended: AbortSignal): Promise<void> {
    const { isHealthy } = this.#options;
    if (isHealthy === undefined) return;
    for (let failed = 0; ; ) {
      await sleep(this.#clock, this.#healthEveryMs, ended).catch(() => {});
      if (ended.aborted) return;
      const healthy = await withTimeout(this.#clock, this.#healthEveryMs, ended, isHealthy).catch(() => false);
      if (ended.aborted) return;
      failed = healthy ? 0 : failed + 1;
      if (failed < this.#failedMax) continue;
      mutex.giveUp(new UnhealthyLeaderError(`the leader's task failed ${failed} health checks in a row; it gives its leadership up`));
      return;
    }
  }

  /** Emits an error if anybody listens: an `error` event without a listener would end the process. */
  #tell(error: unknown): void {
    if (this.listenerCount("error") > 0) this.emit("error", error);
  }
}
