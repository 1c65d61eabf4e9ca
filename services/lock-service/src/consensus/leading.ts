/** Rights of a leader in one term: from when everything before it is applied until leadership is lost. */
import { FailureError, refused } from "@stamp/base";

export class Leading {
  readonly term: number;
  readonly #ended = new AbortController();
  #why = "";

  constructor(term: number) {
    this.term = term;
  }

  /** Aborted when it is known that this process leads no more. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** For people. */
  get why(): string {
    return this.#why;
  }

  end(why: string): void {
    if (this.#ended.signal.aborted) return;
    this.#why = why;
    this.#ended.abort();
  }

  /** Throws FailureError `notLeader` when the term has ended. */
  check(): void {
    if (this.#ended.signal.aborted) throw this.lost(this.#why);
  }

  lost(why: string): FailureError {
    return new FailureError(refused("unavailable", "notLeader", `this process is not the active one any more: ${why}`).failure);
  }
}
