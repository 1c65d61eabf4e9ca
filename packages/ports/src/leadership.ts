/** Rights of an elected process, until it is known that it leads no more. */
import { FailureError, refused } from "@stamp/base";

export class Leadership {
  readonly #ended = new AbortController();
  #why = "";

  /** Signal that is aborted when this process is known to lead no more. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Reason why the leadership ended, for people; empty: it has not. */
  get why(): string {
    return this.#why;
  }

  end(why: string): void {
    if (this.#ended.signal.aborted) return;
    this.#why = why;
    this.#ended.abort();
  }

  /** Throws FailureError `notLeader` if leadership has ended. */
  check(): void {
    if (this.#ended.signal.aborted) throw this.lost(this.#why);
  }

  /** Returns the failure of a call that leadership did not outlast. */
  lost(why: string): FailureError {
    return new FailureError(refused("unavailable", "notLeader", `this process is not the active one any more: ${why}`).failure);
  }
}
