/**
 * A request's body on its way in: into the message when it is small, else in pieces to the blob data stream of its range, with a window of
 * pieces in flight. Hashes are taken on the way and compared before anything refers to the bytes.
 *
 * What is counted in the budget is what came and was not written yet (counted-buffer.ts), never what was only announced. No more than the
 * window is held of one request.
 *
 * A client is quick while its bytes wait for this process: as many as a socket gives at once are there when they are read. It is the budget
 * that slows it down. Its upload waits for room for a whole piece and holds nothing meanwhile, so that however many such uploads there are,
 * they are written in whole pieces. A slow client's upload must not keep room that it does not fill: it takes room as bytes come. If there is
 * none, or others want its bytes while it waits for its client, it sends what it holds as a piece of its own.
 */
import { type Parsed, parsed, rejected } from "@stamp/azure-rest";
import type { Outcome, ReusedMemory } from "@stamp/base";
import type { Digest } from "@stamp/ports";
import type { Place } from "@stamp/wire";
import { restErrorOf } from "../objects/failures.ts";
import type { ByteShare } from "./byte-budget.ts";
import type { ContentDigests } from "./content-digests.ts";
import { CountedBuffer } from "./counted-buffer.ts";
import type { WriteCipher } from "./encryption.ts";

export interface UploadOptions {
  /** Length of the body; undefined: not announced, up to `bytesMax`. */
  readonly contentLengthBytes: number | undefined;
  readonly bytesMax: number;
  readonly inlineBytesMax: number;
  readonly pieceBytes: number;
  readonly windowBytes: number;
  /** Bytes in one chunk from which on the client counts as quick. */
  readonly quickChunkBytes: number;
  readonly wants: { readonly md5: boolean; readonly crc64: boolean };
  readonly budget: ByteShare;
  /** Room for whole pieces: less than in `budget`, so that the pieces of quick uploads never fill it. */
  readonly pieceRoom: ByteShare;
  readonly digest: Digest;
  /** Encrypts what is written, in pieces that end with its units; hashes are those of the bytes that came. Nothing stays inline then. */
  readonly cipher?: WriteCipher | undefined;
  /** Memory of the pieces. Default: each has memory of its own. */
  readonly memory?: ReusedMemory;
  /** Writes a payload; `free`: to be called when nobody will look at the payload any more. */
  readonly writeData: (payload: Uint8Array, free: () => void) => Promise<Outcome<readonly Place[]>>;
}

export interface UploadedContent extends ContentDigests {
  /** Content that goes into the row; empty if `places` is not, and the other way round. */
  readonly inline: Uint8Array;
  readonly places: readonly Place[];
}

const none = new Uint8Array(0);

/** Bytes in one chunk from which on a client counts as quick. A socket gives 64 KiB at once, when it has them. */
export const quickChunkBytes = 32 * 1024;
/**
 * With so many smaller chunks in a row a client is slow again. A few come from every client: the rest of what its system had, or what its
 * process wrote just before it had other things to do.
 */
const smallChunksMax = 4;
/** Part of the budget of uploads that whole pieces of quick uploads may take, so that there is always room for small bodies. */
export const pieceShare = 7 / 8;
/** A quick upload waits for a whole piece this many times as long as others wait for a chunk: it stands behind whole pieces. */
export const pieceWaits = 3;
/**
 * Number of requests for its bytes that a quick upload refuses after the last large chunk of its client; at the next one it gives the bytes
 * back. Two budgets (bytes held, room for whole pieces) ask every 100 ms each, so this takes 0.5 to 1 s.
 */
const asksMax = 10;
/**
 * Number of such refusals for one piece, however many large chunks come: 2 to 4 s. Else a client would hold a piece with a chunk each
 * second.
 */
const pieceAsksMax = 40;
/**
 * Least of both numbers while small requests leave few places for whole pieces: there a client that stands still would hold one of three
 * places for a second.
 */
const asksLeast = 3;
const pieceAsksLeast = 10;

/** Pieces of one body at most, when it is written in smaller ones for want of room: what refers to them has a bound. */
const piecesMax = 8_000;

export async function receiveBody(body: AsyncIterable<Uint8Array>, options: UploadOptions): Promise<Parsed<UploadedContent>> {
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
  readonly #pieceBytes: number;
  readonly #leastPieceBytes: number;
  readonly #endWanted: (() => void)[];
  /** Bytes that the piece that is held took of the room for whole pieces. */
  #reservedBytes = 0;
  /** True while the upload waits for the client's next bytes. */
  #isIdle = true;
  /** True if one of the last chunks was a large one. */
  #isQuick = false;
  /** Chunks that came since the last large one. */
  #smallInARow = 0;
  /** How many times others asked for the bytes since the last large chunk came. */
  #asks = 0;
  /** How many times others asked for the bytes of this piece. */
  #pieceAsks = 0;
  /** Piece that was sent because others wanted its bytes. */
  #givingBack: Promise<Parsed<never> | undefined> | undefined;
  readonly #sent: { readonly bytes: number; readonly answer: Promise<Outcome<readonly Place[]>> }[] = [];
  #inFlightBytes = 0;
  readonly #places: Place[] = [];

  constructor(options: UploadOptions) {
    const { wants, digest, budget, pieceRoom, cipher, contentLengthBytes, bytesMax, memory } = options;
    this.#options = options;
    this.#pieceBytes = cipher?.pieceBytes(options.pieceBytes) ?? options.pieceBytes;
    this.#md5 = wants.md5 ? digest.md5() : undefined;
    this.#held = new CountedBuffer(
      budget,
      this.#small ? (contentLengthBytes ?? 0) : Math.min(this.#pieceBytes, this.#unheldBytes ?? this.#pieceBytes),
      memory,
    );
    this.#leastPieceBytes = Math.ceil((contentLengthBytes ?? bytesMax) / piecesMax);
    this.#endWanted = this.#small ? [] : [budget, pieceRoom].map((share) => share.whenWanted(() => this.#giveBack()));
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
    const { contentLengthBytes, bytesMax, wants, digest, cipher } = this.#options;
    const isLarge = !this.#small && chunk.length >= this.#options.quickChunkBytes;
    this.#smallInARow = isLarge ? 0 : this.#smallInARow + 1;
    if (isLarge) this.#asks = 0;
    this.#isQuick = isLarge || (this.#isQuick && this.#smallInARow < smallChunksMax);
    if (this.#received > (contentLengthBytes ?? bytesMax)) {
      return contentLengthBytes === undefined ? tooLarge(bytesMax) : wrongLength("longer", contentLengthBytes);
    }
    this.#md5?.update(chunk);
    if (wants.crc64) this.#crc64 = digest.crc64(chunk, this.#crc64);
    return this.#holdAll(cipher?.encrypt(chunk) ?? chunk);
  }

  async #holdAll(bytes: Uint8Array): Promise<Parsed<never> | undefined> {
    for (let rest = bytes; rest.length > 0; ) {
      const part = this.#small ? rest : rest.subarray(0, this.#pieceBytes - this.#held.lengthBytes);
      rest = rest.subarray(part.length);
      const problem = await this.#hold(part);
      if (problem) return problem;
    }
    return undefined;
  }

  async finish(): Promise<Parsed<UploadedContent>> {
    this.#isIdle = false;
    const gaveBack = await this.#givingBack;
    if (gaveBack) return gaveBack;
    const { contentLengthBytes, cipher } = this.#options;
    if (contentLengthBytes !== undefined && this.#received < contentLengthBytes) return wrongLength("shorter", contentLengthBytes);
    let inline: Uint8Array = none;
    if (this.#small) inline = new Uint8Array(this.#held.bytes);
    else {
      const last = cipher?.end() ?? none;
      const problem = (await this.#holdAll(last)) ?? (await this.#send()) ?? (await this.#settle(0));
      if (problem) return problem;
    }
    const md5 = this.#md5?.digest();
    const { wants } = this.#options;
    const places = cipher?.placed(this.#places) ?? this.#places;
    return parsed({ inline, places, ...(md5 ? { md5 } : {}), ...(wants.crc64 ? { crc64: this.#crc64 } : {}) });
  }

  /** Gives back what is held; pieces in flight do so themselves. */
  drop(): void {
    this.#isIdle = false;
    for (const end of this.#endWanted) end();
    this.#held.drop();
    this.#options.pieceRoom.give(this.#reservedBytes);
    this.#reservedBytes = 0;
  }

  get #small(): boolean {
    const { contentLengthBytes, inlineBytesMax, cipher } = this.#options;
    return contentLengthBytes !== undefined && contentLengthBytes <= (cipher ? 0 : inlineBytesMax);
  }

  async #hold(part: Uint8Array): Promise<Parsed<never> | undefined> {
    if (this.#small) return this.#append(part);
    if (!this.#tryHold(part)) {
      if (this.#held.lengthBytes >= this.#leastPieceBytes) {
        const problem = await this.#send();
        if (problem) return problem;
      }
      if (this.#isQuick && this.#held.lengthBytes === 0) {
        const problem = await this.#reserve(this.#wholePiece(part));
        if (problem) return problem;
      }
      const problem = await this.#append(part);
      if (problem) return problem;
    }
    return this.#held.lengthBytes >= this.#pieceBytes ? this.#send() : undefined;
  }

  /** Begins a piece of a quick upload, only if there is room for all of it. */
  #tryHold(part: Uint8Array): boolean {
    const isReserved = this.#isQuick && this.#tryReserve(this.#wholePiece(part));
    if (this.#isQuick && !isReserved && this.#held.lengthBytes === 0) return false;
    return this.#held.tryAppend(part);
  }

  #tryReserve(bytes: number): boolean {
    const { pieceRoom } = this.#options;
    const more = bytes - this.#reservedBytes;
    if (more <= 0) return true;
    if (!pieceRoom.tryTake(more)) return false;
    const isReserved = this.#held.tryReserve(bytes);
    if (isReserved) this.#reservedBytes = bytes;
    else pieceRoom.give(more);
    return isReserved;
  }

  /** Waits for room for a whole piece. Nothing is held meanwhile. */
  async #reserve(bytes: number): Promise<Parsed<never> | undefined> {
    const taken = await this.#options.pieceRoom.take(bytes);
    if (!taken.ok) return { ok: false, error: restErrorOf(taken.failure) };
    this.#reservedBytes = bytes;
    const reserved = await this.#held.reserve(bytes);
    return reserved.ok ? undefined : { ok: false, error: restErrorOf(reserved.failure) };
  }

  async #append(part: Uint8Array): Promise<Parsed<never> | undefined> {
    const held = await this.#held.append(part);
    return held.ok ? undefined : { ok: false, error: restErrorOf(held.failure) };
  }

  /** Returns the length of the whole piece; a body that ends in it makes it shorter. */
  #wholePiece(part: Uint8Array): number {
    return Math.min(this.#pieceBytes, this.#held.lengthBytes + part.length + (this.#unheldBytes ?? this.#pieceBytes));
  }

  /** Bytes to be written of which nothing came yet; undefined if the length is not known. */
  get #unheldBytes(): number | undefined {
    const { contentLengthBytes, cipher } = this.#options;
    if (contentLengthBytes === undefined) return undefined;
    return cipher ? cipher.storedFor(contentLengthBytes) - cipher.storedBytes : contentLengthBytes - this.#received;
  }

  /** Writes what the client has brought, because others hold less and wait. A quick client has a moment to bring more. */
  #giveBack(): boolean {
    this.#asks++;
    this.#pieceAsks++;
    const part = this.#options.pieceRoom.partInForce;
    const mayKeep = this.#asks < Math.max(asksLeast, asksMax * part) && this.#pieceAsks < Math.max(pieceAsksLeast, pieceAsksMax * part);
    if (this.#isQuick && mayKeep) return false;
    if (!this.#isIdle || this.#small || this.#givingBack) return false;
    if (this.#held.lengthBytes >= this.#leastPieceBytes) this.#givingBack = this.#send();
    else if (!this.#held.hasUnused) return false;
    else this.#trim();
    return true;
  }

  #trim(): void {
    this.#held.trim();
    this.#options.pieceRoom.give(this.#reservedBytes);
    this.#reservedBytes = 0;
  }

  /** Sends the held bytes as one piece, when the window has room. */
  async #send(): Promise<Parsed<never> | undefined> {
    this.#pieceAsks = 0;
    if (this.#held.lengthBytes === 0) return undefined;
    const { windowBytes, budget, pieceRoom, writeData } = this.#options;
    const problem = await this.#settle(Math.max(0, windowBytes - this.#held.lengthBytes));
    if (problem) return problem;
    const { payload, countedBytes, free } = this.#held.handOver();
    this.#inFlightBytes += payload.length;
    const reservedBytes = this.#reservedBytes;
    this.#reservedBytes = 0;
    const answer = writeData(payload, free).finally(() => {
      budget.give(countedBytes);
      pieceRoom.give(reservedBytes);
    });
    this.#sent.push({ bytes: payload.length, answer });
    return undefined;
  }

  /** Waits, oldest first, until at most this many bytes are in flight. */
  async #settle(inFlightBytesMax: number): Promise<Parsed<never> | undefined> {
    while (this.#inFlightBytes > inFlightBytesMax) {
      const oldest = this.#sent.shift();
      if (!oldest) return undefined;
      const outcome = await oldest.answer;
      this.#inFlightBytes -= oldest.bytes;
      // Nothing refers to these bytes yet: whether or not they were stored, the operation itself did not happen.
      if (!outcome.ok) return { ok: false, error: restErrorOf({ ...outcome.failure, applied: "no" }) };
      this.#places.push(...outcome.value);
    }
    return undefined;
  }
}

const wrongLength = (how: string, contentLengthBytes: number): Parsed<never> =>
  rejected("InvalidInput", { Reason: `The body is ${how} than Content-Length (${contentLengthBytes}).` });

const tooLarge = (bytesMax: number): Parsed<never> => rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
