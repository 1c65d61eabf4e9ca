/**
 * A mutex among processes: the lease of a blob (article "Leader election", class BlobDistributedMutex).
 *
 * Each time the mutex is acquired, the next fencing token is written into the blob's metadata, under the lease. What the task writes to can
 * refuse a lower token than it has seen (`putFenced`), so that a holder that was paused past its lease changes nothing.
 */

import { hostname } from "node:os";
import type { ContainerClient } from "@azure/storage-blob";
import { UsageError } from "../errors.ts";
import { isPermanent } from "../storage/classify.ts";
import { jitteredMs } from "../time/backoff.ts";
import { sleep, withTimeout } from "../time/clock.ts";
import { type HeldLease, LeaseHolder, type LeaseOptions } from "./lease-holder.ts";
import { BlobLeaseStore, type Leadership, type LeaseStore } from "./lease-store.ts";

export interface MutexOptions extends LeaseOptions {
  /** Name under which this process appears to others. Default: host name and process id. */
  readonly name?: string;
}

/** Mutex, as the task that runs under it sees it. */
export interface HeldMutex extends HeldLease {
  /** Higher than that of every earlier holder. */
  readonly fencingToken: bigint;
}

export type MutexTask<T> = (signal: AbortSignal, mutex: HeldMutex) => Promise<T>;

/** Longest time that reading or writing the record may take, in milliseconds. */
const requestMaxMs = 10_000;

export class BlobDistributedMutex {
  readonly name: string;
  readonly #store: LeaseStore;
  readonly #holder: LeaseHolder;
  readonly #onError: NonNullable<LeaseOptions["onError"]>;

  /** `where`: container and name of the blob whose lease is the mutex. The class creates both if they are missing. */
  constructor(where: { readonly container: ContainerClient; readonly blobName: string } | LeaseStore, options: MutexOptions = {}) {
    this.name = options.name ?? `${hostname()}/${process.pid}`;
    if (this.name === "" || this.name.length > 256) throw new UsageError("name must have 1 to 256 characters");
    this.#store = "blobName" in where ? new BlobLeaseStore(where.container, where.blobName) : where;
    this.#holder = new LeaseHolder(this.#store, options);
    this.#onError = options.onError ?? (() => {});
  }

  /**
   * Waits for the mutex, runs the task under it and returns the task's value. If the mutex is lost while the task runs, the task's signal
   * is aborted; when the task has settled, this waits for the mutex and runs the task again. Rejects with the task's own error, with the
   * reason of `signal`, with a LeaseBlobInUseError, or with the service's error when it refuses for good (bad name, no permission).
   *
   * A task that does not settle after its signal keeps this from returning: it must listen to its signal.
   */
  async runTaskWhenMutexAcquired<T>(task: MutexTask<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      const result = await this.#holder.hold(async (lease) => {
        const fencingToken = await this.#claim(lease);
        return await task(lease.signal, { ...lease, fencingToken });
      }, signal);
      if (result.kind === "finished") return result.value;
      signal?.throwIfAborted();
    }
  }

  /** Returns the present or last holder of the mutex; undefined: there never was one. */
  async holder(signal?: AbortSignal): Promise<Leadership | undefined> {
    return await withTimeout(this.#holder.clock, requestMaxMs, signal, (each) => this.#store.read(each));
  }

  /** Takes the next fencing token. Repeats while the lease is held: a repeated claim skips a number, which harms nobody. */
  async #claim(lease: HeldLease): Promise<bigint> {
    for (;;) {
      lease.signal.throwIfAborted();
      try {
        // Bounded: renewals go on beside it, so that a claim without an answer would keep the mutex for ever and never run the task.
        return await withTimeout(this.#holder.clock, requestMaxMs, lease.signal, (each) =>
          this.#store.claim(lease.leaseId, this.name, each),
        );
      } catch (error) {
        lease.signal.throwIfAborted();
        if (isPermanent(error) || isOurs(error)) throw error;
        this.#onError(error, "claim");
      }
      await sleep(this.#holder.clock, jitteredMs(this.#holder.clock, 500, 0.5), lease.signal);
    }
  }
}

/** True for errors of this package, which a repetition would not change. */
const isOurs = (error: unknown): boolean => error instanceof Error && error.name === "LeaseBlobInUseError";
