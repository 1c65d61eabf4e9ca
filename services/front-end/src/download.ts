/**
 * A blob's bytes on their way out, straight from the extent nodes. The partition server said where they are; when that is no longer true
 * (an extent was rewritten, moved, or its nodes are gone), it is asked again for the rest under the same ETag. So a client gets the bytes
 * of one state of the blob, or a connection that breaks; never other bytes.
 */
import { type Failure, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { type Place, zeroExtentId } from "@stamp/objects";
import { type ExtentReader, locationFromWire, placeFromWire } from "@stamp/stream-client";
import type { BlobContent } from "@stamp/wire";
import { fromWire } from "@stamp/wire";
import type { ByteShare } from "./byte-budget.ts";

export interface DownloadOptions {
  readonly reader: ExtentReader;
  readonly budget: ByteShare;
  /** Of what is read ahead. */
  readonly windowBytes: number;
  readonly readTimeoutMs: number;
  readonly signal?: AbortSignal;
  /** The content from here to the end of what was asked for, under the same ETag. */
  readonly again: (startBytes: number) => Promise<Outcome<BlobContent>>;
}

/** How often it is asked again without one more byte. */
const fruitlessMax = 4;

export class Download implements AsyncIterableIterator<Uint8Array> {
  readonly #options: DownloadOptions;
  readonly #endBytes: number;
  readonly #windowBytes: number;
  #at: number;
  #content: BlobContent | undefined;
  #chunks: AsyncIterator<Uint8Array> | undefined;
  #first: Uint8Array | undefined;
  #fruitless = 0;
  #budgeted = false;
  #ended = false;

  /** `endBytes`: exclusive, of all that will be sent. */
  constructor(content: BlobContent, endBytes: number, options: DownloadOptions) {
    this.#options = options;
    this.#content = content;
    this.#at = fromWire(content.startBytes);
    this.#endBytes = endBytes;
    this.#windowBytes = Math.min(options.windowBytes, endBytes - this.#at);
  }

  get lengthBytes(): number {
    return this.#endBytes - this.#at + (this.#first?.length ?? 0);
  }

  /** Reads the first piece, so that what can't be read at all is an answer of its own, not a broken one. */
  async open(): Promise<Outcome<void>> {
    try {
      const first = await this.next();
      if (!first.done) this.#first = first.value;
      return ok();
    } catch (error) {
      await this.return();
      if (error instanceof FailureError) return { ok: false, failure: error.failure };
      throw error;
    }
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const first = this.#first;
    if (first) {
      this.#first = undefined;
      return { done: false, value: first };
    }
    while (!this.#ended) {
      if (this.#at >= this.#endBytes) return this.return();
      const chunk = await this.#nextChunk();
      if (!chunk) continue;
      if (chunk.length > this.#endBytes - this.#at) throw broken("more bytes than were asked for");
      this.#at += chunk.length;
      this.#fruitless = 0;
      return { done: false, value: chunk };
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#ended = true;
    this.#first = undefined;
    if (this.#budgeted) {
      this.#budgeted = false;
      this.#options.budget.give(this.#windowBytes);
    }
    const chunks = this.#chunks;
    this.#chunks = undefined;
    await chunks?.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Undefined: look at where we are again. Throws what can't be helped. */
  async #nextChunk(): Promise<Uint8Array | undefined> {
    try {
      this.#chunks ??= await this.#open();
      const step = await this.#chunks.next();
      if (!step.done) return step.value;
      this.#chunks = undefined;
      return undefined;
    } catch (error) {
      await this.#chunks?.return?.();
      this.#chunks = undefined;
      if (!(error instanceof FailureError) || !this.#mayGoOn(error.failure)) throw error;
      return undefined;
    }
  }

  async #open(): Promise<AsyncIterator<Uint8Array>> {
    const content = this.#content ?? (await this.#again());
    this.#content = undefined;
    if (fromWire(content.startBytes) !== this.#at) throw broken("content that starts elsewhere");
    if (content.inline.length > 0) return one(content.inline);
    const { reader, budget, readTimeoutMs, signal } = this.#options;
    if (!this.#budgeted) {
      await budget.take(this.#windowBytes);
      this.#budgeted = true;
    }
    reader.learn(content.extents.map(locationFromWire));
    const options = { timeoutMs: readTimeoutMs, windowBytes: this.#windowBytes };
    return withZeros(content.places.map(placeFromWire), (places) => reader.readPlaces(places, signal ? { ...options, signal } : options));
  }

  async #again(): Promise<BlobContent> {
    if (++this.#fruitless > fruitlessMax) throw broken(`nothing more after ${fruitlessMax} attempts`);
    const answer = await this.#options.again(this.#at);
    if (!answer.ok) throw new FailureError(answer.failure);
    return answer.value;
  }

  #mayGoOn(failure: Failure): boolean {
    return !this.#options.signal?.aborted && failure.code !== "internal" && failure.reason !== "cancelled" && failure.reason !== "conflict";
  }
}

function broken(what: string): FailureError {
  const { failure } = refused("internal", "bug", `a download got ${what}`);
  return new FailureError(failure);
}

const zeros = new Uint8Array(256 * 1024);

/** Pages of zeros lie nowhere; they are made here. */
async function* withZeros(places: readonly Place[], read: (places: Place[]) => AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < places.length; ) {
    const start = at;
    while (at < places.length && places[at]?.extentId !== zeroExtentId) at++;
    if (at > start) yield* read(places.slice(start, at));
    const hole = places[at++];
    for (let left = hole?.lengthBytes ?? 0; left > 0; left -= zeros.length) yield zeros.subarray(0, Math.min(left, zeros.length));
  }
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield bytes;
}
