/**
 * The life of one start of a role inside this process. Whatever the role waits for passes through its life: while it is paused, outcomes are
 * put off and come late, in their order, as after SIGCONT. When it has ended they never come, and nothing that the role still does has an
 * effect, as after SIGKILL.
 */

/** Error of a role that has ended. Only callers outside of the stamp see it. */
export class EndedError extends Error {
  override readonly name = "EndedError";
}

export class RoleLife {
  #state: "running" | "paused" | "ended" = "running";
  #held: (() => void)[] = [];
  /** Waiting callers outside of the stamp. */
  readonly #outside = new Set<(error: Error) => void>();

  get ended(): boolean {
    return this.#state === "ended";
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    // The first of them may pause it again.
    const held = this.#held;
    this.#held = [];
    for (const act of held) this.deliver(act);
  }

  end(): void {
    this.#state = "ended";
    this.#held = [];
    for (const reject of this.#outside) reject(new EndedError("the role has ended"));
    this.#outside.clear();
  }

  /** Runs `act` now, when the role goes on, or never. */
  deliver(act: () => void): void {
    if (this.#state === "running") act();
    else if (this.#state === "paused") this.#held.push(act);
  }

  /** Returns the outcome of a call by or to the role. Begins `work` now if the role runs. */
  call<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) =>
      this.deliver(() => {
        work().then(
          (value) => this.deliver(() => resolve(value)),
          (error: unknown) => this.deliver(() => reject(error)),
        );
      }),
    );
  }

  each<T>(open: () => AsyncIterable<T>): AsyncIterable<T> {
    return this.#steps(open, (work) => this.call(work));
  }

  /** Does the same as `call`, for callers outside of the stamp: throws EndedError if the role ends first. */
  outside<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.ended) {
        reject(new EndedError("the role has ended"));
        return;
      }
      this.#outside.add(reject);
      const settled = (): boolean => this.#outside.delete(reject);
      this.call(work).then(
        (value) => settled() && resolve(value),
        (error: unknown) => settled() && reject(error),
      );
    });
  }

  /** Does the same as `each`, for callers outside of the stamp: throws EndedError if the role ends first. */
  eachOutside<T>(open: () => AsyncIterable<T>): AsyncIterable<T> {
    return this.#steps(open, (work) => this.outside(work));
  }

  #steps<T>(open: () => AsyncIterable<T>, call: <R>(work: () => Promise<R>) => Promise<R>): AsyncIterable<T> {
    return {
      [Symbol.asyncIterator]: () => {
        let opened: AsyncIterator<T> | undefined;
        const iterator = (): AsyncIterator<T> => {
          opened ??= open()[Symbol.asyncIterator]();
          return opened;
        };
        return {
          next: () => call(() => iterator().next()),
          // Also before the first step: what was made for the reader is given back.
          return: async (value?: unknown) => {
            if (!this.ended) await iterator().return?.(value);
            return { done: true, value: value as T };
          },
        };
      },
    };
  }
}
