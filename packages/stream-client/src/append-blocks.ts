import type { Cause } from "@stamp/ports";

/**
 * Blocks of one append, and whether their memory is free. It is when the append is acknowledged and the only call that carried them was answered
 * so: the primary has all of them, so that no connection sends them any more. After a second call the connection of the first may still do.
 */
export class AppendBlocks {
  /** Client's request for which they are appended, if there is one. */
  readonly cause: Cause | undefined;
  readonly #blocks: readonly Uint8Array[];
  readonly #whenFree: (() => void) | undefined;
  #calls = 0;
  #isAnswered = false;
  #isSettled = false;

  /** `whenFree`: called once, or never. */
  constructor(blocks: readonly Uint8Array[], whenFree: (() => void) | undefined, cause?: Cause) {
    this.cause = cause;
    this.#blocks = blocks;
    this.#whenFree = whenFree;
  }

  /** Returns the blocks, for one more call. */
  toSend(): readonly Uint8Array[] {
    this.#calls += 1;
    return this.#blocks;
  }

  /** Notes that a call with these blocks was answered: they are durable on every replica. */
  answered(): void {
    this.#isAnswered = true;
    this.#look();
  }

  /** Notes that the append is acknowledged. */
  settled(): void {
    this.#isSettled = true;
    this.#look();
  }

  #look(): void {
    if (this.#isAnswered && this.#isSettled && this.#calls === 1) this.#whenFree?.();
  }
}
