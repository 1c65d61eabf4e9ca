/** Bodies of answers: none, a whole one in pieces, and one that says when it has ended. */
import type { HttpBody } from "@stamp/ports";

const answerPieceBytes = 256 * 1024;

export const noBody: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
};

/** Yields a whole body in pieces, at the pace of the client. */
export async function* piecesOf(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.length; at += answerPieceBytes) yield body.subarray(at, at + answerPieceBytes);
}

/** Body that counts as a request in progress until it was sent or dropped. */
export class CountedBody implements AsyncIterableIterator<Uint8Array>, HttpBody {
  readonly #body: HttpBody;
  readonly #inner: AsyncIterator<Uint8Array>;
  #ended: (() => void) | undefined;

  constructor(body: HttpBody, ended: () => void) {
    this.#body = body;
    this.#inner = body[Symbol.asyncIterator]();
    this.#ended = ended;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    try {
      const step = await this.#inner.next();
      if (!step.done) return step;
    } catch (error) {
      await this.return();
      throw error;
    }
    return this.return();
  }

  taken(chunk: Uint8Array): void {
    this.#body.taken?.(chunk);
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#ended?.();
    this.#ended = undefined;
    await this.#inner.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
