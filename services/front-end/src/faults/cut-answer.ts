/** An answer whose connection ends in the middle. */
import { FailureError } from "@stamp/base";
import type { HttpBody, HttpResponse } from "@stamp/ports";

/** True if the answer is cut behind `bytes` bytes of its body: a body that is not longer is sent whole. */
export function isCutBy({ body, headers }: HttpResponse, bytes: number): boolean {
  if (bytes === 0 || body === undefined) return true;
  const announced = headers["Content-Length"];
  const length = body instanceof Uint8Array ? body.length : announced === undefined ? Number.POSITIVE_INFINITY : Number(announced);
  return length > bytes;
}

/**
 * Returns the answer with a body that ends its connection behind `bytes` bytes. With 0 bytes, or without a body, the connection ends before
 * the head. `signal`: aborted when the client goes away.
 */
export function cutAfter(answer: HttpResponse, bytes: number, signal: AbortSignal): HttpResponse {
  const { body, sent: _sent, ...head } = answer;
  if (bytes === 0 || body === undefined) return { status: 503, headers: {}, endsConnection: true, ...(body === undefined ? {} : { body }) };
  if (!(body instanceof Uint8Array)) return { ...head, body: new CutBody(body, bytes, signal) };
  return { ...head, headers: { ...head.headers, "Content-Length": String(body.length) }, body: new CutBody(once(body), bytes, signal) };
}

/** Ends the body of an answer that nobody will read. */
export async function dropBody({ body }: HttpResponse): Promise<void> {
  if (body !== undefined && !(body instanceof Uint8Array)) await body[Symbol.asyncIterator]().return?.();
}

async function* once(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}

class CutBody implements AsyncIterableIterator<Uint8Array>, HttpBody {
  readonly #body: HttpBody;
  readonly #inner: AsyncIterator<Uint8Array>;
  readonly #signal: AbortSignal;
  /** Bytes that are still to be sent. */
  #left: number;
  /** Resolves when the system has taken the last bytes: they would be lost with the connection. */
  #sent: PromiseWithResolvers<void> | undefined;
  /** Chunk of the body of which the last bytes are a part. */
  #last: { readonly whole: Uint8Array; readonly part: Uint8Array } | undefined;

  constructor(body: HttpBody, bytes: number, signal: AbortSignal) {
    this.#body = body;
    this.#inner = body[Symbol.asyncIterator]();
    this.#signal = signal;
    this.#left = bytes;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#sent !== undefined) {
      await this.#sent.promise;
      throw new FailureError({ code: "aborted", reason: "connectionLost", message: "a fault rule cuts the answer", applied: "unknown" });
    }
    const step = await this.#inner.next();
    if (step.done) return { done: true, value: undefined };
    if (step.value.length < this.#left) {
      this.#left -= step.value.length;
      return step;
    }
    this.#sent = Promise.withResolvers();
    const { resolve } = this.#sent;
    if (this.#signal.aborted) resolve();
    else this.#signal.addEventListener("abort", () => resolve(), { once: true });
    this.#last = { whole: step.value, part: step.value.subarray(0, this.#left) };
    return { done: false, value: this.#last.part };
  }

  taken(chunk: Uint8Array): void {
    const isLast = chunk === this.#last?.part;
    this.#body.taken?.(isLast ? (this.#last?.whole ?? chunk) : chunk);
    if (isLast) this.#sent?.resolve();
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    await this.#inner.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
