/**
 * Encryption of content under a customer's key or a scope's, in the front-end: partition servers and extent nodes see encrypted bytes only. Stands between
 * the hashes of an upload and its pieces, and between the extent nodes and a download. Why so: docs/design/front-end.md.
 *
 *   key of a write = HKDF-SHA256(key of the customer or the scope, salt = 32 random bytes, purpose)
 *   in units       = AES-256-GCM of each unit, the nonce is the unit's number in the write; the tag follows the unit
 *   without units  = AES-256-CTR, at the byte's number in the write: written below feature level 4, and read for ever
 *
 * Invariants:
 * - Each write (one body) has a salt of its own, taken from the kernel. So no part of a keystream encrypts two texts, whatever is retried,
 *   overwritten or staged again. What is sent twice within a write are the same encrypted bytes.
 * - The salt and the number of the first byte go with each place. A part of a place is decrypted without what lies before its first unit.
 * - No byte of a unit is given out before the tag has proved the unit: that it was encrypted under this key, at this number of this write.
 * - Under a key nothing is given out that lies in the clear, but zeros where nothing was written: a row that says so was not written by a front-end.
 * - The customer's key is not kept: it lives as long as the request, and neither a row, a message to another process nor a log line has it.
 */
import { create } from "@bufbuild/protobuf";
import { assert, concatBytes, emptyBytes, FailureError, refused, utf8 } from "@stamp/base";
import { type Cipher, type CipherUnits, type Place, saltBytes, spanOf, unitTagBytes, zeroExtentId } from "@stamp/objects";
import type { Digest, RunningCipher, World } from "@stamp/ports";
import { CipherSchema, fromWire, initOf, PlaceSchema, toWire, type Cipher as WireCipher, type Place as WirePlace } from "@stamp/wire";
import type { ContentKey } from "../accounts/content-key.ts";

/** Purposes of keys, of customers and of scopes: so no key serves two ciphers. */
const streamPurpose = utf8("stamp: content under a customer-provided key, AES-256-CTR, 1");
const unitPurpose = utf8("stamp: content in units, AES-256-GCM, 1");
const cipherBlockBytes = 16;
const nonceBytes = 12;

/** Derives the key of a write. HKDF (RFC 5869) for an output as long as one hash. */
function keyOfWrite(digest: Digest, key: ContentKey, salt: Uint8Array, purpose: Uint8Array): Uint8Array {
  const extracted = digest.hmacSha256(salt, key.bytes);
  return digest.hmacSha256(extracted, concatBytes([purpose, Uint8Array.of(1)]));
}

/** Returns the cipher for the bytes of a write from this offset on. */
function cipherAt(digest: Digest, writeKey: Uint8Array, offsetBytes: number): RunningCipher {
  const counter = new Uint8Array(cipherBlockBytes);
  new DataView(counter.buffer).setBigUint64(8, BigInt(Math.floor(offsetBytes / cipherBlockBytes)));
  const cipher = digest.aes256Ctr(writeKey, counter);
  const skipped = offsetBytes % cipherBlockBytes;
  if (skipped > 0) cipher.update(new Uint8Array(skipped));
  return cipher;
}

/** Returns the nonce of a unit: its number in the write. The key is used for one write alone. */
function nonceOf(unit: number): Uint8Array {
  const nonce = new Uint8Array(nonceBytes);
  new DataView(nonce.buffer).setBigUint64(nonceBytes - 8, BigInt(unit));
  return nonce;
}

/** Cipher of one body, from its first byte to its last. */
export class WriteCipher {
  readonly #digest: Digest;
  readonly #salt: Uint8Array;
  readonly #key: Uint8Array;
  readonly #unitBytes: number | undefined;
  /** The cipher of a write without units. */
  readonly #stream: RunningCipher | undefined;
  /** Bytes of the unit that is not whole yet. */
  #rest: Uint8Array[] = [];
  #restBytes = 0;
  #units = 0;
  #contentBytes = 0;
  /** Number of bytes that were given out. */
  storedBytes = 0;

  /** `unitBytes`: length of a unit; undefined: without tags, for releases before feature level 4. */
  constructor({ digest, random }: Pick<World, "digest" | "random">, key: ContentKey, unitBytes: number | undefined) {
    this.#digest = digest;
    this.#salt = random.bytes(saltBytes);
    this.#unitBytes = unitBytes;
    this.#key = keyOfWrite(digest, key, this.#salt, unitBytes === undefined ? streamPurpose : unitPurpose);
    this.#stream = unitBytes === undefined ? cipherAt(digest, this.#key, 0) : undefined;
  }

  /** Returns the length of a piece, in bytes: the largest up to `bytesMax` that ends with a unit. */
  pieceBytes(bytesMax: number): number {
    if (this.#unitBytes === undefined) return bytesMax;
    const sealedBytes = this.#unitBytes + unitTagBytes;
    return Math.max(1, Math.floor(bytesMax / sealedBytes)) * sealedBytes;
  }

  /** Returns how many bytes this much content takes, with tags. */
  storedFor(contentBytes: number): number {
    return this.#unitBytes === undefined ? contentBytes : contentBytes + Math.ceil(contentBytes / this.#unitBytes) * unitTagBytes;
  }

  /** Encrypts the next bytes. Returns an owned copy of what is whole: nothing, if they fill no unit. */
  encrypt(chunk: Uint8Array): Uint8Array {
    this.#contentBytes += chunk.length;
    return this.#given(this.#stream ? this.#stream.update(chunk) : this.#whole(chunk));
  }

  /** Returns what is left: the last unit. */
  end(): Uint8Array {
    return this.#given(this.#restBytes > 0 ? this.#seal() : emptyBytes);
  }

  #given(bytes: Uint8Array): Uint8Array {
    this.storedBytes += bytes.length;
    return bytes;
  }

  #whole(chunk: Uint8Array): Uint8Array {
    const sealed: Uint8Array[] = [];
    for (let rest = chunk; rest.length > 0; ) {
      const part = rest.subarray(0, (this.#unitBytes as number) - this.#restBytes);
      rest = rest.subarray(part.length);
      this.#restBytes += part.length;
      const isWhole = this.#restBytes === this.#unitBytes;
      // The chunk is the caller's: what waits for the next one is copied.
      this.#rest.push(isWhole ? part : Uint8Array.from(part));
      if (isWhole) sealed.push(this.#seal());
    }
    return sealed.length === 1 ? (sealed[0] as Uint8Array) : concatBytes(sealed);
  }

  #seal(): Uint8Array {
    const unit = this.#rest.length === 1 ? (this.#rest[0] as Uint8Array) : concatBytes(this.#rest);
    this.#rest = [];
    this.#restBytes = 0;
    return this.#digest.sealAes256Gcm(this.#key, nonceOf(this.#units++), unit, emptyBytes);
  }

  /** Returns the places of the whole body, in order, with what is needed to decrypt each. `stored`: where its bytes lie, with tags. */
  placed(stored: readonly WirePlace[]): WirePlace[] {
    const unitBytes = this.#unitBytes;
    const units = unitBytes === undefined ? undefined : { unitBytes, writeBytes: toWire(this.#contentBytes) };
    let at = 0;
    const places = stored.map((place) => {
      const cipher = create(CipherSchema, { salt: this.#salt, offsetBytes: toWire(at), ...(units && { units }) });
      const lengthBytes = unitBytes === undefined ? place.lengthBytes : contentOf(place.lengthBytes, unitBytes);
      at += lengthBytes;
      return create(PlaceSchema, { ...place, lengthBytes, cipher });
    });
    assert(at === this.#contentBytes, "places for all of the content");
    return places;
  }
}

/** Returns the length of the content in this many stored bytes, which begin with a unit. */
const contentOf = (storedBytes: number, unitBytes: number): number =>
  storedBytes - Math.ceil(storedBytes / (unitBytes + unitTagBytes)) * unitTagBytes;

const cipherFromWire = ({ salt, offsetBytes, units }: WireCipher): Cipher => ({
  salt,
  offsetBytes: fromWire(offsetBytes),
  ...(units && { units: { unitBytes: units.unitBytes, writeBytes: fromWire(units.writeBytes) } }),
});

export const placeFromWire = ({ extentId, offsetBytes, lengthBytes, cipher }: WirePlace): Place => ({
  extentId: fromWire(extentId),
  offsetBytes: fromWire(offsetBytes),
  lengthBytes,
  ...(cipher && { cipher: cipherFromWire(cipher) }),
});

export const placeToWire = ({ extentId, offsetBytes, lengthBytes, cipher }: Place): WirePlace =>
  create(PlaceSchema, {
    extentId: toWire(extentId),
    offsetBytes: toWire(offsetBytes),
    lengthBytes,
    ...(cipher && { cipher: initOf(CipherSchema, cipher) }),
  });

/** Returns the bytes of these places as they were sent. `stored`: the bytes of their spans (`spanOf`), in order. Throws FailureError. */
export async function* decrypted(
  digest: Digest,
  key: ContentKey,
  places: readonly Place[],
  stored: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  let next = 0;
  let opening: Opening | undefined;
  for await (const chunk of stored) {
    for (let rest = chunk; rest.length > 0; ) {
      while (opening === undefined || opening.leftBytes === 0) {
        const place = places[next++];
        assert(place !== undefined, "no more bytes than the places have");
        opening = openingOf(digest, key, place);
      }
      const part = rest.subarray(0, opening.wantedBytes);
      rest = rest.subarray(part.length);
      const opened = opening.take(part);
      if (opened.length > 0) yield opened;
    }
  }
}

/** Decrypts the bytes of one place's span. */
interface Opening {
  /** Number of bytes of the span that did not come yet. */
  readonly leftBytes: number;
  /** Number of bytes that `take` takes at once, at most. */
  readonly wantedBytes: number;
  take(part: Uint8Array): Uint8Array;
}

function openingOf(digest: Digest, key: ContentKey, place: Place): Opening {
  const { cipher, lengthBytes } = place;
  if (cipher?.units !== undefined) return new UnitOpening(digest, key, place, cipher, cipher.units);
  if (cipher === undefined && place.extentId !== zeroExtentId) throw new FailureError(notEncrypted(place).failure);
  const stream = cipher && cipherAt(digest, keyOfWrite(digest, key, cipher.salt, streamPurpose), cipher.offsetBytes);
  return {
    leftBytes: lengthBytes,
    get wantedBytes() {
      return this.leftBytes;
    },
    take(part) {
      (this as { leftBytes: number }).leftBytes -= part.length;
      return stream ? stream.update(part) : part;
    },
  };
}

/** Collects a unit with its tag, verifies it, and gives the part that the place names. */
class UnitOpening implements Opening {
  readonly #digest: Digest;
  readonly #key: Uint8Array;
  readonly #place: Place;
  readonly #units: CipherUnits;
  /** Begin and end of the place in the content of the write. */
  readonly #from: number;
  readonly #to: number;
  /** Offset at which the collected unit begins. */
  #at: number;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  leftBytes: number;

  constructor(digest: Digest, key: ContentKey, place: Place, cipher: Cipher, units: CipherUnits) {
    this.#digest = digest;
    this.#key = keyOfWrite(digest, key, cipher.salt, unitPurpose);
    this.#place = place;
    this.#units = units;
    this.#from = cipher.offsetBytes;
    this.#to = cipher.offsetBytes + place.lengthBytes;
    this.#at = cipher.offsetBytes - (cipher.offsetBytes % units.unitBytes);
    this.leftBytes = spanOf(place).lengthBytes;
  }

  get #contentBytes(): number {
    return Math.min(this.#units.unitBytes, this.#units.writeBytes - this.#at);
  }

  get wantedBytes(): number {
    return this.#contentBytes + unitTagBytes - this.#heldBytes;
  }

  take(part: Uint8Array): Uint8Array {
    const isWhole = part.length === this.wantedBytes;
    this.leftBytes -= part.length;
    this.#heldBytes += part.length;
    // The chunk is the reader's: what waits for the next one is copied.
    this.#held.push(isWhole ? part : Uint8Array.from(part));
    if (!isWhole) return emptyBytes;
    const sealed = this.#held.length === 1 ? part : concatBytes(this.#held);
    const unit = this.#digest.openAes256Gcm(this.#key, nonceOf(this.#at / this.#units.unitBytes), sealed, emptyBytes);
    if (unit === undefined) throw new FailureError(unproven(this.#place, this.#at).failure);
    const begin = this.#at;
    this.#at += unit.length;
    this.#held = [];
    this.#heldBytes = 0;
    return unit.subarray(Math.max(0, this.#from - begin), Math.min(unit.length, this.#to - begin));
  }
}

/** Refuses content in the clear of a blob whose content is encrypted: whoever has the disks could put it there. */
export const notEncrypted = ({ extentId, offsetBytes }: Pick<Place, "extentId" | "offsetBytes">) =>
  refused("internal", "damaged", `extent ${extentId} at ${offsetBytes}: bytes in the clear where the row of the blob names a key`);

const unproven = ({ extentId, offsetBytes }: Place, at: number) =>
  refused(
    "internal",
    "damaged",
    `extent ${extentId} at ${offsetBytes}: encrypted bytes are not those that were written (unit at ${at} of the write)`,
  );
