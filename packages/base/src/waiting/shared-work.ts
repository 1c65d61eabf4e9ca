/**
 * Promises that several callers share. In each, a failure is told to those who wait for it and is not kept: the next caller tries again. A process
 * that kept one would answer with it until its restart, long after the cause (a full disk, no file handles) is gone.
 */

/** One run of work at a time for each key. Callers who come meanwhile wait for the same run; nothing is kept when it has ended. */
export class JoinedWork<K, T> {
  readonly #running = new Map<K, Promise<T>>();

  /** Number of keys whose work runs. */
  get size(): number {
    return this.#running.size;
  }

  /** Returns the run of this key, which `work` begins if there is none. */
  run(key: K, work: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const ended = (): void => {
      if (this.#running.get(key) === run) this.#running.delete(key);
    };
    const run = work();
    this.#running.set(key, run);
    run.then(ended, ended);
    return run;
  }
}

/** Runs work in the order asked, one at a time. Work that fails does not keep the next from running. */
export class WorkInTurn {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves or rejects as `work` does. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    const run = this.#last.then(work);
    this.#last = run.catch(() => {});
    return run;
  }
}
