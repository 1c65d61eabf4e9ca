/** Rights of an elected process, until it is known that it leads no more. */
import { FailureError, refused } from "@stamp/base";

export class Leadership {
  readonly #ended = new AbortController();
  #why = "";

  /** Aborted when it is known that this process leads no more. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Returns why it ended, for people; empty while it has not. */
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
