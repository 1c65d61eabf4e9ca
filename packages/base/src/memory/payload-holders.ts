/**
 * Counts who still looks at the payload of a request, and gives its memory back when nobody does (CallContext.giveBackPayload). Of an append to
 * an extent node:
 *
 *     the journal or the extent file, until it is durable     ─┐
 *     the memory that reads are served from, until it is flushed ├─▶ the last one that ends gives it back
 *     the call to each secondary, until it has answered         ─┘
 *
 * Who can't say when it ends, such as an answer that was read from memory, keeps the payload: it is never given back, and the garbage
 * collector frees it. So does everything that fails: a connection that was lost may still hold the bytes, a write may still be under way.
 */
export class PayloadHolders {
  #count: number;
  readonly #giveBack: () => void;

  /** `count`: number of holders, each of which calls `end` once, or never. */
  constructor(count: number, giveBack: () => void) {
    this.#count = count;
    this.#giveBack = giveBack;
  }

  /** Notes that one holder will not look at the payload any more. */
  end(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#giveBack();
  }

  /** Notes that somebody holds views of the memory for an unknown time. */
  keep(): void {
    this.#count = Number.POSITIVE_INFINITY;
  }
}

/** Returns undefined if the transport does not use memory again, or the bytes were copied when they were taken. */
export function holdersOf(count: number, giveBack: (() => void) | undefined): PayloadHolders | undefined {
  return giveBack === undefined ? undefined : new PayloadHolders(count, giveBack);
}
