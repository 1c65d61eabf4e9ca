/**
 * A blob's bytes on their way out, straight from the extent nodes. The partition server said where they are; when that is no longer true
 * (an extent was rewritten, moved, or its nodes are gone), it is asked again for the rest under the same ETag. So a client gets the bytes
 * of one state of the blob, or a connection that breaks; never other bytes.
 *
 * What is held is what is counted in the budget:
 * - one small piece, for as long as the download goes on: the bytes that wait in the socket (body-pieces.ts, also of large ones);
 * - what is read ahead of it. It is taken only while the budget has room, and given back when the client takes no further piece for
 *   `stallMs`. Then the download goes on in small runs that grow while the client keeps up, and are read again at the same places.
 */
import { type Failure, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { clipPlaces, type Place, spanOf, zeroExtentId } from "@stamp/objects";
import type { Cause, Clock, Digest, HttpBody, Timer } from "@stamp/ports";
import { type ExtentReader, locationFromWire } from "@stamp/stream-client";
import type { BlobContent } from "@stamp/wire";
import { fromWire } from "@stamp/wire";
import type { ContentKey } from "../accounts/content-key.ts";
import type { DownloadPieces } from "./body-pieces.ts";
import type { ByteShare } from "./byte-budget.ts";
import { decrypted, notEncrypted, placeFromWire } from "./encryption.ts";

export interface DownloadOptions {
  readonly clock: Clock;
  readonly reader: ExtentReader;
  readonly budget: ByteShare;
  /** Bytes read ahead, at most. */
  readonly windowBytes: number;
  /** Pieces that are handed out. */
  readonly pieces: DownloadPieces;
  readonly readTimeoutMs: number;
  readonly signal?: AbortSignal;
  /** Client's request that is answered. */
  readonly cause?: Cause | undefined;
  /** Key that decrypts encrypted content. */
  readonly decrypting?: { readonly digest: Digest; readonly key: ContentKey } | undefined;
  /** Returns the content from here to `endBytes` (exclusive), or as far as one answer goes, under the same ETag. */
  readonly again: (startBytes: number, endBytes: number) => Promise<Outcome<BlobContent>>;
}

/** Number of requests without a byte in the answer after which a download fails. */
const emptyAttemptsMax = 4;
/**
 * A client that takes no further piece for so long is slow: nothing is held ahead of it. Clients take bytes in bursts: with 64 downloads on a
 * busy machine a quarter of a second passes often, and what was held is then read a second time.
 */
const stallMs = 1_000;
/** Number of places that are kept for a slow client, so that they are not asked for again. */
const placesKeptMax = 256;

/** Places of the content from `startBytes` on. */
interface Known {
  readonly startBytes: number;
  readonly places: readonly Place[];
}

export class Download implements AsyncIterableIterator<Uint8Array>, HttpBody {
  readonly #options: DownloadOptions;
  readonly #startBytes: number;
  readonly #endBytes: number;
  readonly #pieceBytes: number;
  readonly #windowBytes: number;
  #at: number;
  #content: BlobContent | undefined;
  #known: Known | undefined;
  #chunks: AsyncIterator<Uint8Array> | undefined;
  /** Bytes that came and were not handed out yet. */
  #rest: Uint8Array = none;
  #first: Uint8Array | undefined;
  /** Attempts in a row that brought no byte. */
  #emptyAttempts = 0;
  /** Bytes taken of the budget: the piece, and what is read ahead; of the room of large pieces: what the last one has beyond a small one. */
  #pieceHeld = 0;
  #largeHeld = 0;
  #aheadHeld = 0;
  /** Bytes of a run; at least a window: to the end of what is known. */
  #runBytes: number;
  #stall: Timer | undefined;
  #endWanted: (() => void) | undefined;
  #isOut = false;
  #ended = false;

  /** `endBytes`: end of all that will be sent, exclusive. */
  constructor(content: BlobContent, endBytes: number, options: DownloadOptions) {
    this.#options = options;
    this.#content = content;
    this.#startBytes = fromWire(content.startBytes);
    this.#at = this.#startBytes;
    this.#endBytes = endBytes;
    this.#windowBytes = Math.min(options.windowBytes, endBytes - this.#at);
    this.#pieceBytes = Math.min(options.pieces.smallBytes, Math.max(1, endBytes - this.#at));
    this.#runBytes = this.#windowBytes;
  }

  get lengthBytes(): number {
    return this.#endBytes - this.#startBytes;
  }

  /** Reads the first piece, so that unreadable content is an answer of its own and not a broken one. */
  async open(): Promise<Outcome<void>> {
    const taken = await this.#options.budget.take(this.#pieceBytes);
    if (!taken.ok) return taken;
    this.#pieceHeld = this.#pieceBytes;
    this.#endWanted = this.#options.budget.whenWanted((by) => {
      const waiting = by !== "nobody";
      if (waiting) this.#letGo();
      return waiting;
    });
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
    this.#stall?.cancel();
    this.#isOut = false;
    this.#giveLarge();
    const first = this.#first;
    if (first) {
      this.#first = undefined;
      return this.#out(first);
    }
    while (!this.#ended) {
      if (this.#rest.length > 0) return this.#out(this.#piece());
      if (this.#at >= this.#endBytes) return this.return();
      const chunk = await this.#nextChunk();
      if (!chunk) continue;
      if (chunk.length > this.#endBytes - this.#at) throw broken("more bytes than were asked for");
      this.#emptyAttempts = 0;
      this.#rest = chunk;
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#ended = true;
    this.#first = undefined;
    this.#known = undefined;
    this.#content = undefined;
    this.#stall?.cancel();
    this.#giveLarge();
    this.#endWanted?.();
    this.#endWanted = undefined;
    await this.#closeRun();
    this.#options.budget.give(this.#pieceHeld);
    this.#pieceHeld = 0;
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Notes that nobody looks at a piece that was handed out any more. */
  taken(piece: Uint8Array): void {
    this.#options.pieces.taken(piece);
  }

  #piece(): Uint8Array {
    const piece = this.#options.pieces.copyOf(this.#rest.subarray(0, this.#nextBytes()));
    this.#rest = this.#rest.subarray(piece.length);
    this.#at += piece.length;
    return piece;
  }

  /**
   * Returns the length of the next piece. Nothing is known of a client before it has taken one, so its first piece is small. Those of a slow
   * client are, too, because no more is read for it.
   */
  #nextBytes(): number {
    const { room, largeBytes } = this.#options.pieces;
    if (this.#at === this.#startBytes) return this.#pieceBytes;
    const more = Math.min(largeBytes, this.#rest.length) - this.#pieceBytes;
    if (more <= 0 || !room?.tryTake(more)) return this.#pieceBytes;
    this.#largeHeld = more;
    return this.#pieceBytes + more;
  }

  #giveLarge(): void {
    this.#options.pieces.room?.give(this.#largeHeld);
    this.#largeHeld = 0;
  }

  /** Hands a piece to the client. If the client does not come back for more, what is read ahead is dropped. */
  #out(value: Uint8Array): IteratorResult<Uint8Array, undefined> {
    this.#isOut = true;
    if (this.#at < this.#endBytes) {
      this.#stall = this.#options.clock.after(stallMs, () => {
        this.#runBytes = this.#pieceBytes;
        this.#letGo();
      });
    }
    return { done: false, value };
  }

  /** Gives back what was read ahead, unless it is being read. */
  #letGo(): void {
    if (this.#isOut && !this.#ended) void this.#closeRun();
  }

  async #closeRun(): Promise<void> {
    const chunks = this.#chunks;
    this.#chunks = undefined;
    this.#rest = none;
    this.#options.budget.give(this.#aheadHeld);
    this.#aheadHeld = 0;
    await chunks?.return?.();
  }

  /** Reads the next chunk; undefined: look at the position again. Throws what can't be helped. */
  async #nextChunk(): Promise<Uint8Array | undefined> {
    try {
      this.#chunks ??= await this.#open();
      const step = await this.#chunks.next();
      if (!step.done) return step.value;
      await this.#closeRun();
      // The client kept up with the whole run.
      this.#runBytes = Math.min(this.#windowBytes, 2 * this.#runBytes);
      return undefined;
    } catch (error) {
      await this.#closeRun();
      this.#known = undefined;
      if (!(error instanceof FailureError) || !this.#mayGoOn(error.failure)) throw error;
      return undefined;
    }
  }

  async #open(): Promise<AsyncIterator<Uint8Array>> {
    const places = this.#from(this.#at) ?? (await this.#ask());
    const { decrypting } = this.#options;
    if (places instanceof Uint8Array) {
      if (decrypting && places.length > 0) throw new FailureError(notEncrypted({ extentId: zeroExtentId, offsetBytes: 0 }).failure);
      return one(places);
    }
    const windowBytes = this.#takeAhead();
    const { reader, readTimeoutMs, signal, cause } = this.#options;
    const run = windowBytes < this.#windowBytes ? clipPlaces(places, 0, windowBytes) : places;
    const options = { timeoutMs: readTimeoutMs, windowBytes, isBorrowed: true, cause };
    const stored = withZeros(run.map(spanOf), (some) => reader.readPlaces(some, signal ? { ...options, signal } : options));
    return decrypting ? decrypted(decrypting.digest, decrypting.key, run, stored) : stored;
  }

  /** Takes as much as there is room for, down to one piece: that one is held anyway. */
  #takeAhead(): number {
    const { budget } = this.#options;
    for (let bytes = this.#runBytes; bytes > this.#pieceBytes; bytes = Math.floor(bytes / 2)) {
      if (!budget.tryTake(bytes)) continue;
      this.#aheadHeld = bytes;
      return bytes;
    }
    return this.#pieceBytes;
  }

  /** Returns the known places from here on. */
  #from(at: number): readonly Place[] | undefined {
    const known = this.#known;
    if (!known) return undefined;
    const places = clipPlaces(known.places, at - known.startBytes, Number.POSITIVE_INFINITY);
    this.#known = { startBytes: at, places };
    return places.length > 0 ? places : undefined;
  }

  /** Asks for the content from here on; small content comes with the answer. */
  async #ask(): Promise<readonly Place[] | Uint8Array> {
    const content = this.#content ?? (await this.#again());
    this.#content = undefined;
    if (fromWire(content.startBytes) !== this.#at) throw broken("content that starts elsewhere");
    const isEncrypted = content.inline.length === 0 && content.places.some(({ cipher }) => cipher);
    if (isEncrypted && !this.#options.decrypting) throw broken("encrypted bytes without their key");
    if (content.inline.length > 0) return content.inline;
    this.#options.reader.learn(content.extents.map(locationFromWire));
    const places = content.places.map(placeFromWire);
    if (places.length <= placesKeptMax) this.#known = { startBytes: this.#at, places };
    return places;
  }

  async #again(): Promise<BlobContent> {
    if (++this.#emptyAttempts > emptyAttemptsMax) throw broken(`nothing more after ${emptyAttemptsMax} attempts`);
    // A slow client of a blob with many places is told only the places of the run.
    const endBytes = this.#runBytes < this.#windowBytes ? Math.min(this.#endBytes, this.#at + this.#runBytes) : this.#endBytes;
    const answer = await this.#options.again(this.#at, endBytes);
    if (!answer.ok) throw new FailureError(answer.failure);
    return answer.value;
  }

  #mayGoOn(failure: Failure): boolean {
    return !this.#options.signal?.aborted && failure.code !== "internal" && failure.reason !== "cancelled" && failure.reason !== "conflict";
  }
}

const none = new Uint8Array(0);

function broken(what: string): FailureError {
  const { failure } = refused("internal", "bug", `a download got ${what}`);
  return new FailureError(failure);
}

const zeros = new Uint8Array(256 * 1024);

/** Pages of zeros lie nowhere; they are made here. */
export async function* withZeros(
  places: readonly Place[],
  read: (places: Place[]) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
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
