/**
 * Places of bytes in extents, as rows name them. Format: docs/formats/row.md.
 *
 *   places = count varint | count × ( tag u8 | position | length varint | cipher )
 *   tag & 1      position = extent varint, offset varint; else gap varint: behind the place before, in the same extent
 *   tag & 2      cipher = salt (32 bytes), offset varint                                                     since version 2
 *   tag & 4      cipher = offset varint; the salt is the one of the encrypted place before it                since version 2
 *
 * Invariant: whoever cuts a place moves the offset of its cipher by as many bytes (`partOfPlace`).
 */
import { assert, equalBytes } from "@stamp/base";
import { type ByteReader, type ByteWriter, DecodeError } from "./varint.ts";

/** Where bytes that a customer's key encrypts stand in what one write encrypted. */
export interface Cipher {
  /** Random bytes from which, with the customer's key, the key of this one write is derived; `saltBytes` long. */
  readonly salt: Uint8Array;
  /** Number of bytes that the same write encrypted before these. */
  readonly offsetBytes: number;
}

/** A part of an extent: (extent, offset, length). */
export interface Place {
  readonly extentId: number;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  /** Undefined: the bytes lie there as they were sent. */
  readonly cipher?: Cipher | undefined;
}

export const saltBytes = 32;

const behind = 0;
const elsewhere = 1;
const freshSalt = 2;
const sameSalt = 4;

/** The bytes from `start` to `end` of a place, counted from its first byte. */
export const partOfPlace = ({ extentId, offsetBytes, cipher }: Place, start: number, end: number): Place => ({
  extentId,
  offsetBytes: offsetBytes + start,
  lengthBytes: end - start,
  ...(cipher && { cipher: { salt: cipher.salt, offsetBytes: cipher.offsetBytes + start } }),
});

export function writePlaces(out: ByteWriter, places: readonly Place[]): void {
  out.varint(places.length);
  let extentId = -1;
  let end = 0;
  let salt: Uint8Array | undefined;
  for (const place of places) {
    const { cipher } = place;
    const follows = place.extentId === extentId && place.offsetBytes >= end;
    const saltTag = cipher === undefined ? 0 : salt !== undefined && equalBytes(salt, cipher.salt) ? sameSalt : freshSalt;
    out.byte((follows ? behind : elsewhere) | saltTag);
    if (follows) out.varint(place.offsetBytes - end);
    else {
      out.varint(place.extentId);
      out.varint(place.offsetBytes);
    }
    out.varint(place.lengthBytes);
    if (cipher !== undefined) {
      assert(cipher.salt.length === saltBytes, `a salt of ${saltBytes} bytes`);
      if (saltTag === freshSalt) out.bytes(cipher.salt);
      out.varint(cipher.offsetBytes);
      salt = cipher.salt;
    }
    extentId = place.extentId;
    end = place.offsetBytes + place.lengthBytes;
  }
}

/** Throws DecodeError. `ciphers`: whether the version of the row has them. */
export function readPlaces(reader: ByteReader, ciphers: boolean): Place[] {
  const count = reader.varint();
  const places: Place[] = [];
  let extentId = -1;
  let end = 0;
  let salt: Uint8Array | undefined;
  for (let i = 0; i < count; i++) {
    const tag = reader.byte();
    const saltTag = tag & ~elsewhere;
    const known = saltTag === 0 || (ciphers && (saltTag === freshSalt || saltTag === sameSalt));
    if (!known || (i === 0 && (tag & elsewhere) === 0)) throw new DecodeError(`a place does not start with ${tag}`);
    if ((tag & elsewhere) !== 0) extentId = reader.varint();
    const offsetBytes = ((tag & elsewhere) !== 0 ? 0 : end) + reader.varint();
    const lengthBytes = reader.varint();
    end = offsetBytes + lengthBytes;
    if (!Number.isSafeInteger(end)) throw new DecodeError("a place is too far");
    if (saltTag === freshSalt) salt = Uint8Array.from(reader.bytes(saltBytes));
    if (saltTag === 0) places.push({ extentId, offsetBytes, lengthBytes });
    else if (salt === undefined) throw new DecodeError("no salt before a place that has the same");
    else places.push({ extentId, offsetBytes, lengthBytes, cipher: { salt, offsetBytes: reader.varint() } });
  }
  if (reader.left !== 0) throw new DecodeError("bytes after the last place");
  return places;
}
