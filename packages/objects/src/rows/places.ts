/**
 * Places of bytes in extents, as rows name them. Format: docs/formats/row.md.
 *
 *   places = count varint | count × ( tag u8 | position | length varint | cipher )
 *   tag & 1      position = extent varint, offset varint; else gap varint: behind the place before, in the same extent
 *   tag & 2      cipher = salt (32 bytes), offset varint                                                     since version 2
 *   tag & 4      cipher = offset varint; salt and units are those of the encrypted place before it           since version 2
 *   tag & 8      with tag & 2: the cipher ends in units = bytes of a unit varint, bytes of the write varint  since version 6
 *
 * Bytes of a write with units lie in the extent unit by unit, each followed by the tag that authenticates it:
 *
 *   extent    | unit 0: unitBytes | tag | unit 1: unitBytes | tag | last unit: the rest of the write | tag |
 *                      ^ offsetBytes of a place: its first byte, which need not be the first one of a unit
 *
 * Invariants:
 * - Whoever cuts a place moves the offset of its cipher by as many bytes, and its own by the tags between, too (`partOfPlace`).
 * - A place in a row begins with a unit, and ends with a unit or with the write. So all that its units need lies together (`spanOf`).
 */
import { assert, equalBytes } from "@stamp/base";
import { type ByteReader, type ByteWriter, DecodeError } from "./varint.ts";

/** Position of encrypted bytes in what one write encrypted. */
export interface Cipher {
  /** Random bytes from which, with the customer's key, the key of this one write is derived; `saltBytes` long. */
  readonly salt: Uint8Array;
  /** Number of bytes that the same write encrypted before these. */
  readonly offsetBytes: number;
  /** Units with tags; undefined: the bytes are not authenticated, and have no tags. */
  readonly units?: CipherUnits | undefined;
}

/** How the bytes of one write are divided into units, each with a tag. */
export interface CipherUnits {
  /** Length of every unit but the last, in bytes: `pageUnitBytes` or `blockUnitBytes`. */
  readonly unitBytes: number;
  /** Length of the write, without tags, in bytes. */
  readonly writeBytes: number;
}

/** A part of an extent: (extent, offset, length). */
export interface Place {
  readonly extentId: number;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  /** Encryption of the bytes; undefined: they lie as they were sent. */
  readonly cipher?: Cipher | undefined;
}

export const saltBytes = 32;
/** Length of the tag behind each unit, in bytes. */
export const unitTagBytes = 16;
/** Unit of pages, which later writes replace one by one. */
export const pageUnitBytes = 512;
/** Unit of all other content. Who reads one byte reads a unit. */
export const blockUnitBytes: number = 64 * 1024;

const behind = 0;
const elsewhere = 1;
const freshSalt = 2;
const sameSalt = 4;
const withUnits = 8;

/** Returns the part of a place from `start` to `end`, counted in bytes from its beginning. */
export const partOfPlace = ({ extentId, offsetBytes, cipher }: Place, start: number, end: number): Place => ({
  extentId,
  offsetBytes: offsetBytes + start + (cipher ? tagsBetween(cipher, cipher.offsetBytes, cipher.offsetBytes + start) : 0),
  lengthBytes: end - start,
  ...(cipher && { cipher: { ...cipher, offsetBytes: cipher.offsetBytes + start } }),
});

/** Returns the bytes of an extent that a place needs: whole units with their tags. A place without units is its own span. */
export function spanOf(place: Place): Place {
  const { extentId, offsetBytes, lengthBytes, cipher } = place;
  if (cipher?.units === undefined) return place;
  const { unitBytes, writeBytes } = cipher.units;
  const lead = cipher.offsetBytes % unitBytes;
  const first = cipher.offsetBytes - lead;
  const end = Math.min(Math.ceil((cipher.offsetBytes + lengthBytes) / unitBytes) * unitBytes, writeBytes);
  const units = Math.ceil((end - first) / unitBytes);
  return { extentId, offsetBytes: offsetBytes - lead, lengthBytes: end - first + units * unitTagBytes };
}

/** Returns the length of the tags that lie between two bytes of a write, which are counted from its first one. */
const tagsBetween = ({ units }: Cipher, from: number, to: number): number =>
  units === undefined ? 0 : (Math.floor(to / units.unitBytes) - Math.floor(from / units.unitBytes)) * unitTagBytes;

/** True if a place with units may stand in a row. */
export function keepsUnits({ lengthBytes, cipher }: Place): boolean {
  if (cipher?.units === undefined) return true;
  const { unitBytes, writeBytes } = cipher.units;
  const end = cipher.offsetBytes + lengthBytes;
  if (unitBytes !== pageUnitBytes && unitBytes !== blockUnitBytes) return false;
  if (!Number.isSafeInteger(writeBytes) || end > writeBytes) return false;
  return cipher.offsetBytes % unitBytes === 0 && (end === writeBytes || end % unitBytes === 0);
}

export function writePlaces(out: ByteWriter, places: readonly Place[]): void {
  out.varint(places.length);
  let extentId = -1;
  let end = 0;
  let before: Cipher | undefined;
  for (const place of places) {
    const { cipher } = place;
    const follows = place.extentId === extentId && place.offsetBytes >= end;
    const saltTag = cipher === undefined ? 0 : before !== undefined && isSameWrite(before, cipher) ? sameSalt : freshSalt;
    const unitsTag = saltTag === freshSalt && cipher?.units !== undefined ? withUnits : 0;
    out.byte((follows ? behind : elsewhere) | saltTag | unitsTag);
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
      if (unitsTag !== 0 && cipher.units !== undefined) {
        out.varint(cipher.units.unitBytes);
        out.varint(cipher.units.writeBytes);
      }
      before = cipher;
    }
    extentId = place.extentId;
    end = place.offsetBytes + place.lengthBytes;
  }
}

const isSameWrite = (a: Cipher, b: Cipher): boolean =>
  equalBytes(a.salt, b.salt) && a.units?.unitBytes === b.units?.unitBytes && a.units?.writeBytes === b.units?.writeBytes;

/** Reads places of a row whose version has ciphers and units, or not. Throws DecodeError. */
export function readPlaces(reader: ByteReader, has: { readonly ciphers: boolean; readonly units: boolean }): Place[] {
  const count = reader.varint();
  const places: Place[] = [];
  let extentId = -1;
  let end = 0;
  let before: Cipher | undefined;
  for (let i = 0; i < count; i++) {
    const tag = reader.byte();
    const saltTag = tag & ~elsewhere;
    const isFresh = saltTag === freshSalt || (has.units && saltTag === (freshSalt | withUnits));
    const known = saltTag === 0 || (has.ciphers && (isFresh || saltTag === sameSalt));
    if (!known || (i === 0 && (tag & elsewhere) === 0)) throw new DecodeError(`a place does not start with ${tag}`);
    if ((tag & elsewhere) !== 0) extentId = reader.varint();
    const offsetBytes = ((tag & elsewhere) !== 0 ? 0 : end) + reader.varint();
    const lengthBytes = reader.varint();
    end = offsetBytes + lengthBytes;
    if (!Number.isSafeInteger(end)) throw new DecodeError("a place is too far");
    if (saltTag === 0) {
      places.push({ extentId, offsetBytes, lengthBytes });
      continue;
    }
    if (isFresh) before = readCipher(reader, (saltTag & withUnits) !== 0);
    else if (before === undefined) throw new DecodeError("no salt before a place that has the same");
    else before = { ...before, offsetBytes: reader.varint() };
    const place = { extentId, offsetBytes, lengthBytes, cipher: before };
    if (!keepsUnits(place)) throw new DecodeError("a place that is not whole units");
    places.push(place);
  }
  if (reader.left !== 0) throw new DecodeError("bytes after the last place");
  return places;
}

function readCipher(reader: ByteReader, hasUnits: boolean): Cipher {
  const salt = Uint8Array.from(reader.bytes(saltBytes));
  const offsetBytes = reader.varint();
  return hasUnits ? { salt, offsetBytes, units: { unitBytes: reader.varint(), writeBytes: reader.varint() } } : { salt, offsetBytes };
}
