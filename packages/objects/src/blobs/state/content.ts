/**
 * The content of a blob: its committed blocks in order, each with its places. It is kept in content rows ("pieces") of at most about
 * 256 KiB, so that a blob of 50,000 blocks has no large row; the head row says how many bytes come before each piece, so a range is
 * read without the others. Small content lies in its row itself. Format: docs/formats/row.md.
 *
 *   blocks  = count varint | count × ( shared varint | rest length varint | rest | size varint | places varint )
 *             An id is the first `shared` bytes of the one before, then the rest; `places` takes so many of the row's list.
 *   pieces  = count varint | count × ( bytes before it varint )
 */
import { concatBytes, emptyBytes, type Outcome, ok, refused } from "@stamp/base";
import { partOfPlace } from "../../rows/places.ts";
import { decodeRow, encodeRow, type Place } from "../../rows/row.ts";
import { blobSchema } from "../../rows/schemas.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../rows/varint.ts";

/** Content of one Put Blob is a block without id. */
export interface ContentBlock {
  readonly blockId: Uint8Array;
  readonly sizeBytes: number;
  readonly places: readonly Place[];
}

export interface ContentPiece {
  readonly blocks: readonly ContentBlock[];
  /** The bytes themselves; then there are no places. */
  readonly inline: Uint8Array | undefined;
}

export const pieceBytesMax: number = 256 * 1024;
/** Number of places of one block, so that a block fits into a piece. */
export const placesPerBlockMax = 10_000;
/** More is put into the blob data stream by the partition server, whatever the message says. */
export const inlineBytesMax: number = 128 * 1024;

/** Bytes of a place in a row, as an estimate. */
const placeBytesGuess = 20;
/** Estimate of the further bytes that an encrypted place takes if it has a salt of its own. */
const cipherBytesGuess = 36;

export const placesBytesGuess = (places: readonly Place[]): number =>
  places.reduce((sum, { cipher }) => sum + placeBytesGuess + (cipher ? cipherBytesGuess : 0), 0);

/** Returns at least one piece, also for no content at all. */
export function contentPieces(blocks: readonly ContentBlock[]): ContentPiece[] {
  const pieces: ContentPiece[] = [];
  let held: ContentBlock[] = [];
  let heldBytes = 0;
  for (const block of blocks) {
    const bytes = block.blockId.length + 10 + placesBytesGuess(block.places);
    if (held.length > 0 && heldBytes + bytes > pieceBytesMax) {
      pieces.push({ blocks: held, inline: undefined });
      held = [];
      heldBytes = 0;
    }
    held.push(block);
    heldBytes += bytes;
  }
  if (held.length > 0) pieces.push({ blocks: held, inline: undefined });
  return pieces;
}

export const sizeOfPiece = (piece: ContentPiece): number => piece.blocks.reduce((sum, block) => sum + block.sizeBytes, 0);

/** Returns a piece without the blocks that begin at `lengthBytes` or behind it; the piece itself if there are none. */
export function clipPiece(piece: ContentPiece, lengthBytes: number): ContentPiece {
  let at = 0;
  const end = piece.blocks.findIndex((block) => {
    at += block.sizeBytes;
    return at > lengthBytes;
  });
  return end < 0 ? piece : { ...piece, blocks: piece.blocks.slice(0, end) };
}

export function encodePiece(piece: ContentPiece): Uint8Array {
  const out = new ByteWriter();
  out.varint(piece.blocks.length);
  const places: Place[] = [];
  let before = emptyBytes;
  for (const block of piece.blocks) {
    const shared = sharedLength(before, block.blockId);
    out.varint(shared);
    out.sized(block.blockId.subarray(shared));
    before = block.blockId;
    out.varint(block.sizeBytes);
    out.varint(block.places.length);
    places.push(...block.places);
  }
  return encodeRow(blobSchema, {
    blocks: out.finish(),
    places: places.length > 0 ? places : undefined,
    inline: piece.inline,
  });
}

function sharedLength(a: Uint8Array, b: Uint8Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

/** `inline` is a view of `bytes`. */
export function decodePiece(bytes: Uint8Array): Outcome<ContentPiece> {
  const row = decodeRow(blobSchema, bytes);
  if (!row.ok) return row;
  const { blocks, places = [], inline } = row.value;
  try {
    return ok({ blocks: readBlocks(blocks ?? emptyBytes, places), inline });
  } catch (error) {
    if (error instanceof DecodeError) return refused("dataLoss", "damaged", `content row: ${error.message}`);
    throw error;
  }
}

function readBlocks(bytes: Uint8Array, places: readonly Place[]): ContentBlock[] {
  const reader = new ByteReader(bytes);
  const count = reader.varint();
  const blocks: ContentBlock[] = [];
  let place = 0;
  let before = emptyBytes;
  for (let i = 0; i < count; i++) {
    const shared = reader.varint();
    if (shared > before.length) throw new DecodeError("a block id shares more than there is");
    const blockId = concatBytes([before.subarray(0, shared), reader.sized()]);
    before = blockId;
    const sizeBytes = reader.varint();
    const next = place + reader.varint();
    if (next > places.length) throw new DecodeError("more places than there are");
    blocks.push({ blockId, sizeBytes, places: places.slice(place, next) });
    place = next;
  }
  if (reader.left !== 0 || place !== places.length) throw new DecodeError("something is left over");
  return blocks;
}

export function encodePieceStarts(starts: readonly number[]): Uint8Array {
  const out = new ByteWriter();
  out.varint(starts.length);
  for (const start of starts) out.varint(start);
  return out.finish();
}

/** Most blobs have one piece. */
const onePiece: Outcome<readonly number[]> = ok([0]);

export function decodePieceStarts(bytes: Uint8Array): Outcome<readonly number[]> {
  if (bytes.length === 2 && bytes[0] === 1 && bytes[1] === 0) return onePiece;
  try {
    const reader = new ByteReader(bytes);
    const count = reader.varint();
    const starts: number[] = [];
    for (let i = 0; i < count; i++) starts.push(reader.varint());
    if (reader.left !== 0) throw new DecodeError("something is left over");
    return ok(starts);
  } catch (error) {
    if (error instanceof DecodeError) return refused("dataLoss", "damaged", `piece starts: ${error.message}`);
    throw error;
  }
}

/**
 * Returns the parts of these places that hold the bytes from `start` to `end`, counted from the first place's first byte; the first `max` of
 * them.
 */
export function clipPlaces(places: readonly Place[], start: number, end: number, max: number = Number.POSITIVE_INFINITY): Place[] {
  const clipped: Place[] = [];
  let at = 0;
  for (const place of places) {
    const from = Math.max(start, at);
    const to = Math.min(end, at + place.lengthBytes);
    if (from < to) clipped.push(partOfPlace(place, from - at, to - at));
    at += place.lengthBytes;
    if (at >= end || clipped.length >= max) break;
  }
  return clipped;
}
