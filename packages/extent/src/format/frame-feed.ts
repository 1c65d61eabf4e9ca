/**
 * Whole frames out of bytes that come in pieces of any size: what copies, scrub and fsck read. Every frame that goes out is verified, header
 * and payload; a frame that is not whole yet is held, and joined once.
 */
import { concatBytes, type ExtentId } from "@stamp/base";
import { putU64, viewOf } from "./binary.ts";
import { chunkBytes, chunksIntact, frameFixedBytes, frameMagic, parseFrameHeader } from "./block-frame.ts";
import type { Crc32c } from "./crc.ts";

export type FedFrames =
  /** `bytes` are the frames that became whole, none perhaps; `totals` their lengths. They begin at `offsetBytes` of the extent. */
  | { readonly kind: "frames"; readonly offsetBytes: number; readonly bytes: Uint8Array; readonly totals: readonly number[] }
  /** Bytes at `offsetBytes` are no frame, or not the frame that was written. */
  | { readonly kind: "invalid"; readonly offsetBytes: number; readonly why: string };

const nothing = new Uint8Array(0);
/** Header of a frame with one chunk, in bytes. */
const smallHeaderBytes = frameFixedBytes + 4;
/** Length of the small header's part that its checksum covers, behind the place, in bytes. */
const coveredBytes = smallHeaderBytes - 8;
const placeBytes = 16;

export class FrameFeed {
  readonly #crc32c: Crc32c;
  readonly #extentId: ExtentId;
  /** Place and header of a small frame: the bytes under its checksum. */
  readonly #covered = new Uint8Array(placeBytes + coveredBytes);
  readonly #coveredView: DataView = viewOf(this.#covered);
  #endBytes: number;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** Length of the held frame in bytes; known once its header is. */
  #neededBytes = 0;

  /** `offsetBytes`: offset of the first piece, at which a frame begins. */
  constructor(crc32c: Crc32c, extentId: ExtentId, offsetBytes: number) {
    this.#crc32c = crc32c;
    this.#extentId = extentId;
    this.#endBytes = offsetBytes;
    putU64(this.#coveredView, 0, extentId);
  }

  /** Returns where the frames that went out end. */
  get endBytes(): number {
    return this.#endBytes;
  }

  /** Returns where the next piece begins. */
  get nextBytes(): number {
    return this.#endBytes + this.#heldBytes;
  }

  /** Takes the next bytes. `piece` is borrowed until all of it was returned. */
  push(piece: Uint8Array): FedFrames {
    this.#held.push(piece);
    this.#heldBytes += piece.length;
    if (this.#heldBytes < this.#neededBytes) return { kind: "frames", offsetBytes: this.#endBytes, bytes: nothing, totals: [] };
    const bytes = this.#held.length === 1 ? piece : concatBytes(this.#held);
    const offsetBytes = this.#endBytes;
    const totals: number[] = [];
    const view = viewOf(bytes);
    let at = 0;
    this.#neededBytes = 0;
    while (at < bytes.length) {
      const total = this.#smallFrame(bytes, view, at) || this.#frame(bytes, at);
      if (typeof total === "string") return { kind: "invalid", offsetBytes: offsetBytes + at, why: total };
      if (total === 0) break;
      totals.push(total);
      at += total;
      this.#endBytes += total;
    }
    this.#held = at < bytes.length ? [bytes.subarray(at)] : [];
    this.#heldBytes = bytes.length - at;
    return { kind: "frames", offsetBytes, bytes: bytes.subarray(0, at), totals };
  }

  /** Returns the length of an intact frame of one chunk, without an allocation but for its payload's view; else 0. Most frames are such. */
  #smallFrame(bytes: Uint8Array, view: DataView, at: number): number {
    if (at + smallHeaderBytes > bytes.length || view.getUint32(at, true) !== frameMagic) return 0;
    const payloadBytes = view.getUint32(at + 8, true);
    const end = at + smallHeaderBytes + payloadBytes;
    if (payloadBytes === 0 || payloadBytes > chunkBytes || end > bytes.length || view.getUint32(at + 12, true) !== chunkBytes) return 0;
    putU64(this.#coveredView, 8, this.#endBytes);
    for (let i = 0; i < coveredBytes; i++) this.#covered[placeBytes + i] = bytes[at + 8 + i] as number;
    if (this.#crc32c(this.#covered) !== view.getUint32(at + 4, true)) return 0;
    if (this.#crc32c(bytes.subarray(at + smallHeaderBytes, end)) !== view.getUint32(at + frameFixedBytes, true)) return 0;
    return end - at;
  }

  /** Returns the length of the frame; 0: it is not whole; a text: why it is none. */
  #frame(bytes: Uint8Array, at: number): number | string {
    const parsed = parseFrameHeader(this.#crc32c, this.#extentId, this.#endBytes, bytes.subarray(at));
    if (parsed.kind === "invalid") return parsed.why;
    if (parsed.kind === "short") return 0;
    const { headerBytes, payloadBytes } = parsed.header;
    const total = headerBytes + payloadBytes;
    if (at + total > bytes.length) {
      this.#neededBytes = total;
      return 0;
    }
    const payload = bytes.subarray(at + headerBytes, at + total);
    return chunksIntact(this.#crc32c, parsed.header, 0, payload) ? total : "frame payload checksum";
  }
}
