/**
 * A request's body on its way in: into the message when it is small, else in pieces to the blob data stream of its range, with a window of
 * pieces in flight. Hashes are taken on the way and compared before anything refers to the bytes.
 *
 * What is counted in the budget is what came and was not written yet (counted-buffer.ts), never what was only announced. No more than the
 * window is held of one request. A request for whose bytes there is no room, or whose bytes others want while it waits for its client, sends
 * what it holds as a piece of its own.
 */
import { type Parsed, parsed, rejected } from "@stamp/azure-rest";
import type { Outcome } from "@stamp/base";
import type { Digest } from "@stamp/ports";
import type { Place } from "@stamp/wire";
import { restErrorOf } from "../objects/failures.ts";
import type { ByteShare } from "./byte-budget.ts";
import type { ContentDigests } from "./content-digests.ts";
import { CountedBuffer } from "./counted-buffer.ts";
import type { WriteCipher } from "./encryption.ts";

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
  /** Encrypts what is written; hashes are those of the bytes that came. Nothing stays inline then. */
  readonly cipher?: WriteCipher | undefined;
  readonly writeData: (payload: Uint8Array) => Promise<Outcome<readonly Place[]>>;
}

export interface Uploaded extends ContentDigests {
  /** Either is empty. */
  readonly inline: Uint8Array;
  readonly places: readonly Place[];
}

const none = new Uint8Array(0);

/** Pieces of one body at most, when it is written in smaller ones for want of room: what refers to them has a bound. */
const piecesMax = 8_000;

export async function receiveBody(body: AsyncIterable<Uint8Array>, options: UploadOptions): Promise<Parsed<Uploaded>> {
  const upload = new Upload(options);
  try {
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
  readonly #held: CountedBuffer;
  readonly #leastPieceBytes: number;
  readonly #endWanted: () => void;
  /** True while it waits for the client's next bytes. */
  #isIdle = true;
  /** A piece that was sent while others wanted its bytes. */
  #givingBack: Promise<Parsed<never> | undefined> | undefined;
  readonly #sent: { readonly bytes: number; readonly answer: Promise<Outcome<readonly Place[]>> }[] = [];
  #inFlightBytes = 0;
  readonly #places: Place[] = [];

  constructor(options: UploadOptions) {
    const { wants, digest, budget, pieceBytes, contentLengthBytes, bytesMax } = options;
    this.#options = options;
    this.#md5 = wants.md5 ? digest.md5() : undefined;
    this.#held = new CountedBuffer(
      budget,
      this.#small ? (contentLengthBytes ?? 0) : Math.min(pieceBytes, contentLengthBytes ?? pieceBytes),
    );
    this.#leastPieceBytes = Math.ceil((contentLengthBytes ?? bytesMax) / piecesMax);
    this.#endWanted = budget.whenWanted(() => this.#giveBack());
  }

  async add(chunk: Uint8Array): Promise<Parsed<never> | undefined> {
    this.#isIdle = false;
    const problem = (await this.#givingBack) ?? (await this.#add(chunk));
    this.#givingBack = undefined;
    this.#isIdle = true;
    return problem;
  }

  async #add(chunk: Uint8Array): Promise<Parsed<never> | undefined> {
    this.#received += chunk.length;
    const { contentLengthBytes, bytesMax, pieceBytes, wants, digest } = this.#options;
    if (this.#received > (contentLengthBytes ?? bytesMax)) {
      return contentLengthBytes === undefined ? tooLarge(bytesMax) : wrongLength("longer", contentLengthBytes);
    }
    this.#md5?.update(chunk);
    if (wants.crc64) this.#crc64 = digest.crc64(chunk, this.#crc64);
    for (let rest = this.#options.cipher?.encrypt(chunk) ?? chunk; rest.length > 0; ) {
      const part = this.#small ? rest : rest.subarray(0, pieceBytes - this.#held.lengthBytes);
      rest = rest.subarray(part.length);
      const problem = await this.#hold(part);
      if (problem) return problem;
    }
    return undefined;
  }

  async finish(): Promise<Parsed<Uploaded>> {
    this.#isIdle = false;
    const gaveBack = await this.#givingBack;
    if (gaveBack) return gaveBack;
    const { contentLengthBytes } = this.#options;
    if (contentLengthBytes !== undefined && this.#received < contentLengthBytes) return wrongLength("shorter", contentLengthBytes);
    let inline: Uint8Array = none;
    if (this.#small) inline = new Uint8Array(this.#held.bytes);
    else {
      const problem = (await this.#send()) ?? (await this.#settle(0));
      if (problem) return problem;
    }
    const md5 = this.#md5?.digest();
    const { wants, cipher } = this.#options;
    const places = cipher?.placed(this.#places) ?? this.#places;
    return parsed({ inline, places, ...(md5 ? { md5 } : {}), ...(wants.crc64 ? { crc64: this.#crc64 } : {}) });
  }

  /** Gives back what is held; pieces in flight do so themselves. */
  drop(): void {
    this.#isIdle = false;
    this.#endWanted();
    this.#held.drop();
  }

  get #small(): boolean {
    const { contentLengthBytes, inlineBytesMax, cipher } = this.#options;
    return contentLengthBytes !== undefined && contentLengthBytes <= (cipher ? 0 : inlineBytesMax);
  }

  async #hold(part: Uint8Array): Promise<Parsed<never> | undefined> {
    // A client that has brought a whole piece is likely to bring another one.
    if (!this.#held.tryAppend(part, !this.#small && this.#sent.length > 0)) {
      if (!this.#small && this.#held.lengthBytes >= this.#leastPieceBytes) {
        const problem = await this.#send();
        if (problem) return problem;
      }
      const held = await this.#held.append(part);
      if (!held.ok) return { ok: false, error: restErrorOf(held.failure) };
    }
    return !this.#small && this.#held.lengthBytes >= this.#options.pieceBytes ? this.#send() : undefined;
  }

  /** Others hold less and wait: what the client has brought so far is written. */
  #giveBack(): void {
    if (!this.#isIdle || this.#small || this.#givingBack || this.#held.lengthBytes < this.#leastPieceBytes) return;
    this.#givingBack = this.#send();
  }

  /** Sends what is held as one piece, when the window has room for it. */
  async #send(): Promise<Parsed<never> | undefined> {
    if (this.#held.lengthBytes === 0) return undefined;
    const { windowBytes, budget, writeData } = this.#options;
    const problem = await this.#settle(Math.max(0, windowBytes - this.#held.lengthBytes));
    if (problem) return problem;
    const { payload, countedBytes } = this.#held.handOver();
    this.#inFlightBytes += payload.length;
    const answer = writeData(payload).finally(() => budget.give(countedBytes));
    this.#sent.push({ bytes: payload.length, answer });
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
