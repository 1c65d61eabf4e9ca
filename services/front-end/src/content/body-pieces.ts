/**
 * Pieces in which blobs come and leave. A piece that leaves is a copy, so that the large frame in which its bytes came is free at once; its
 * memory is used again when the system has taken it.
 *
 * Each download may have one small piece in its client's socket. A large one costs a quarter of the calls, but a client that then stands still
 * holds all of it. So the bytes of large pieces beyond those of small ones have a room of their own: when it is full, pieces are small.
 */
import { ReusedMemory } from "@stamp/base";
import type { Clock } from "@stamp/ports";
import { ByteBudget, type ByteHolder, type ByteShare } from "./byte-budget.ts";

export const smallPieceBytes: number = 64 * 1024;
const largePieceBytes = 256 * 1024;
/** Free memory that is kept for the next pieces, in bytes. */
const freeBytesMax = 8 * 1024 * 1024;
const uploadPieceBytesMin = 256 * 1024;
const uploadPieceBytesMax = 4 * 1024 * 1024;
/** Room of large pieces, as a part of what downloads may hold. */
const roomPart = 1 / 8;

/** Pieces of one download's body. */
export interface DownloadPieces {
  /** Length of a small and of a large piece, in bytes. */
  readonly smallBytes: number;
  readonly largeBytes: number;
  /** Room for bytes of large pieces beyond those of small ones; undefined: none. */
  readonly room?: ByteShare;
  copyOf(bytes: Uint8Array): Uint8Array;
  /** Notes that nobody looks at this piece any more. */
  taken(piece: Uint8Array): void;
}

export class BodyPieces {
  /** Memory of whole pieces of uploads. */
  readonly uploads = new ReusedMemory({
    freeBytesMax,
    pieceBytesMin: uploadPieceBytesMin,
    pieceBytesMax: uploadPieceBytesMax,
    classBytes: smallPieceBytes,
  });
  readonly #memory = new ReusedMemory({
    freeBytesMax,
    pieceBytesMin: smallPieceBytes / 2,
    pieceBytesMax: largePieceBytes,
    classBytes: smallPieceBytes,
  });
  readonly #room: ByteBudget;

  /** `downloadBytesMax`: bound of the bytes of all downloads. */
  constructor(clock: Clock, downloadBytesMax: number) {
    this.#room = new ByteBudget(clock, { bytesMax: downloadBytesMax * roomPart, waitMaxMs: 0 });
  }

  of(holder: ByteHolder): DownloadPieces {
    const memory = this.#memory;
    return {
      smallBytes: smallPieceBytes,
      largeBytes: largePieceBytes,
      room: this.#room.of(holder),
      copyOf: (bytes) => {
        const piece = memory.take(bytes.length);
        if (piece === undefined) return new Uint8Array(bytes);
        piece.set(bytes);
        return piece;
      },
      taken: (piece) => {
        if (memory.isOut(piece)) memory.give(piece);
      },
    };
  }
}

/** Returns pieces of one size, each with memory of its own. */
export const ownPieces = (bytes: number): DownloadPieces => ({
  smallBytes: bytes,
  largeBytes: bytes,
  copyOf: (given) => new Uint8Array(given),
  taken: () => {},
});
