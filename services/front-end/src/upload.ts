/**
 * A request's body on its way in: into the message when it is small, else in pieces to the blob data stream of its range, with a window of
 * pieces in flight. Hashes are taken on the way and compared before anything refers to the bytes. No more than the window is held of one
 * request, and no more than the budget of all together; a request that has to wait for the budget first sends what it holds.
 */
import { type Parsed, parsed, rejected } from "@stamp/azure-rest";
import { concatBytes, type Outcome } from "@stamp/base";
import type { Digest } from "@stamp/ports";
import type { Place } from "@stamp/wire";
import type { ByteShare } from "./byte-budget.ts";
import type { ContentDigests } from "./content-digests.ts";
import { restErrorOf } from "./failures.ts";

export interface UploadOptions {
  /** Undefined: as long as it turns out to be, up to `bytesMax`. */
  readonly contentLengthBytes: number | undefined;
  readonly bytesMax: number;
  readonly inlineBytesMax: number;
  readonly pieceBytes: number;
  readonly windowBytes: number;
  readonly wants: { readonly md5: boolean; readonly crc64: boolean };
  readonly budget: ByteShare;
  readonly digest: Digest;
  readonly writeData: (payload: Uint8Array) => Promise<Outcome<readonly Place[]>>;
}

export interface Uploaded extends ContentDigests {
  /** Either is empty. */
  readonly inline: Uint8Array;
  readonly places: readonly Place[];
}

const none = new Uint8Array(0);

export async function receiveBody(body: AsyncIterable<Uint8Array>, options: UploadOptions): Promise<Parsed<Uploaded>> {
  const upload = new Upload(options);
  try {
    await upload.start();
    for await (const chunk of body) {
      const problem = await upload.add(chunk);
      if (problem) return problem;
    }
    return await upload.finish();
  } finally {
    upload.drop();
  }
}

class Upload {
  readonly #options: UploadOptions;
  readonly #md5: ReturnType<Digest["md5"]> | undefined;
  #crc64 = 0n;
  #received = 0;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** Of `held`, counted in the budget. */
  #budgeted = 0;
  readonly #sent: { readonly bytes: number; readonly answer: Promise<Outcome<readonly Place[]>> }[] = [];
  #inFlightBytes = 0;
  readonly #places: Place[] = [];

  constructor(options: UploadOptions) {
    this.#options = options;
    this.#md5 = options.wants.md5 ? options.digest.md5() : undefined;
  }

  /** A small body takes its whole length first: it holds what it has while it waits for the rest. */
  async start(): Promise<void> {
    const { contentLengthBytes, budget } = this.#options;
    if (!this.#small || contentLengthBytes === undefined) return;
    await budget.take(contentLengthBytes);
    this.#budgeted = contentLengthBytes;
  }

  async add(chunk: Uint8Array): Promise<Parsed<never> | undefined> {
    this.#received += chunk.length;
    const { contentLengthBytes, bytesMax, wants, digest, budget } = this.#options;
    if (this.#received > (contentLengthBytes ?? bytesMax)) {
      return contentLengthBytes === undefined ? tooLarge(bytesMax) : wrongLength("longer", contentLengthBytes);
    }
    this.#md5?.update(chunk);
    if (wants.crc64) this.#crc64 = digest.crc64(chunk, this.#crc64);
    if (!this.#small) {
      if (!budget.tryTake(chunk.length)) {
        const problem = await this.#send();
        if (problem) return problem;
        await budget.take(chunk.length);
      }
      this.#budgeted += chunk.length;
    }
    return this.#hold(chunk);
  }

  async finish(): Promise<Parsed<Uploaded>> {
    const { contentLengthBytes } = this.#options;
    if (contentLengthBytes !== undefined && this.#received < contentLengthBytes) return wrongLength("shorter", contentLengthBytes);
    let inline: Uint8Array = none;
    if (this.#small) inline = concatBytes(this.#held);
    else {
      const problem = (await this.#send()) ?? (await this.#settle(0));
      if (problem) return problem;
    }
    const md5 = this.#md5?.digest();
    const { wants } = this.#options;
    return parsed({ inline, places: this.#places, ...(md5 ? { md5 } : {}), ...(wants.crc64 ? { crc64: this.#crc64 } : {}) });
  }

  /** Gives back what is held; pieces in flight do so themselves. */
  drop(): void {
    this.#options.budget.give(this.#budgeted);
    this.#budgeted = 0;
    this.#held = [];
    this.#heldBytes = 0;
  }

  get #small(): boolean {
    const { contentLengthBytes, inlineBytesMax } = this.#options;
    return contentLengthBytes !== undefined && contentLengthBytes <= inlineBytesMax;
  }

  async #hold(chunk: Uint8Array): Promise<Parsed<never> | undefined> {
    const { pieceBytes } = this.#options;
    let rest = chunk;
    while (!this.#small && this.#heldBytes + rest.length >= pieceBytes) {
      const fits = pieceBytes - this.#heldBytes;
      this.#held.push(rest.subarray(0, fits));
      this.#heldBytes += fits;
      rest = rest.subarray(fits);
      const problem = await this.#send();
      if (problem) return problem;
    }
    if (rest.length > 0) {
      this.#held.push(rest);
      this.#heldBytes += rest.length;
    }
    return undefined;
  }

  /** What is held, as one piece, when the window has room for it. */
  async #send(): Promise<Parsed<never> | undefined> {
    if (this.#heldBytes === 0) return undefined;
    const { windowBytes, budget, writeData } = this.#options;
    const problem = await this.#settle(Math.max(0, windowBytes - this.#heldBytes));
    if (problem) return problem;
    const piece = concatBytes(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    this.#budgeted -= piece.length;
    this.#inFlightBytes += piece.length;
    const answer = writeData(piece).finally(() => budget.give(piece.length));
    this.#sent.push({ bytes: piece.length, answer });
    return undefined;
  }

  /** Waits, oldest first, until no more than so many bytes are in flight. */
  async #settle(inFlightBytesMax: number): Promise<Parsed<never> | undefined> {
    while (this.#inFlightBytes > inFlightBytesMax) {
      const oldest = this.#sent.shift();
      if (!oldest) return undefined;
      const outcome = await oldest.answer;
      this.#inFlightBytes -= oldest.bytes;
      // Nothing refers to these bytes yet: the operation itself did not happen, whatever became of them.
      if (!outcome.ok) return { ok: false, error: restErrorOf({ ...outcome.failure, applied: "no" }) };
      this.#places.push(...outcome.value);
    }
    return undefined;
  }
}

const wrongLength = (how: string, contentLengthBytes: number): Parsed<never> =>
  rejected("InvalidInput", { Reason: `The body is ${how} than Content-Length (${contentLengthBytes}).` });

const tooLarge = (bytesMax: number): Parsed<never> => rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
