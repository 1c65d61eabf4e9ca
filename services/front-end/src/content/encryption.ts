/**
 * Encryption of content under a customer's key or a scope's, in the front-end: partition servers and extent nodes see encrypted bytes only. Stands between
 * the hashes of an upload and its pieces, and between the extent nodes and a download. Why so: docs/decisions/0431, 0440.
 *
 *   key of a write = HKDF-SHA256(key of the customer or the scope, salt = 32 random bytes, info)
 *   encrypted byte = byte XOR AES-256-CTR(key of the write), at the byte's number in the write; the counter is that number / 16
 *
 * Invariants:
 * - Each write (one body) has a salt of its own, taken from the kernel. So no part of a keystream encrypts two texts, whatever is retried,
 *   overwritten or staged again. What is sent twice within a write are the same encrypted bytes.
 * - The salt and the number of the first byte go with each place. A part of a place is decrypted without what lies before it.
 * - The customer's key is not kept: it lives as long as the request, and neither a row, a message to another process nor a log line has it.
 */
import { create } from "@bufbuild/protobuf";
import { assert, concatBytes, utf8 } from "@stamp/base";
import { type Place, saltBytes } from "@stamp/objects";
import type { Digest, RunningCipher, World } from "@stamp/ports";
import { CipherSchema, fromWire, PlaceSchema, toWire, type Place as WirePlace } from "@stamp/wire";
import type { ContentKey } from "../accounts/content-key.ts";

/** Purpose of both kinds of keys. */
const purpose = utf8("stamp: content under a customer-provided key, AES-256-CTR, 1");
const cipherBlockBytes = 16;

/** HKDF (RFC 5869) for an output as long as one hash. */
function keyOfWrite(digest: Digest, key: ContentKey, salt: Uint8Array): Uint8Array {
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

/** Encrypts one body, from its first byte to its last. */
export class WriteCipher {
  readonly #salt: Uint8Array;
  readonly #cipher: RunningCipher;

  constructor({ digest, random }: Pick<World, "digest" | "random">, key: ContentKey) {
    this.#salt = random.bytes(saltBytes);
    this.#cipher = cipherAt(digest, keyOfWrite(digest, key, this.#salt), 0);
  }

  /** An owned copy, encrypted. */
  encrypt(chunk: Uint8Array): Uint8Array {
    return this.#cipher.update(chunk);
  }

  /** The places of the whole body, in order, with what is needed to decrypt each. */
  placed(places: readonly WirePlace[]): WirePlace[] {
    let at = 0;
    return places.map((place) => {
      const cipher = create(CipherSchema, { salt: this.#salt, offsetBytes: toWire(at) });
      at += place.lengthBytes;
      return create(PlaceSchema, { ...place, cipher });
    });
  }
}

export const placeFromWire = ({ extentId, offsetBytes, lengthBytes, cipher }: WirePlace): Place => ({
  extentId: fromWire(extentId),
  offsetBytes: fromWire(offsetBytes),
  lengthBytes,
  ...(cipher && { cipher: { salt: cipher.salt, offsetBytes: fromWire(cipher.offsetBytes) } }),
});

export const placeToWire = ({ extentId, offsetBytes, lengthBytes, cipher }: Place): WirePlace =>
  create(PlaceSchema, {
    extentId: toWire(extentId),
    offsetBytes: toWire(offsetBytes),
    lengthBytes,
    ...(cipher && { cipher: { salt: cipher.salt, offsetBytes: toWire(cipher.offsetBytes) } }),
  });

/** The bytes of these places as they were sent. `stored`: all of them, in order, as they lie in the extents. */
export async function* decrypted(
  digest: Digest,
  key: ContentKey,
  places: readonly Place[],
  stored: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  let next = 0;
  let leftBytes = 0;
  let cipher: RunningCipher | undefined;
  for await (const chunk of stored) {
    for (let rest = chunk; rest.length > 0; ) {
      while (leftBytes === 0) {
        const place = places[next++];
        assert(place !== undefined, "no more bytes than the places have");
        leftBytes = place.lengthBytes;
        cipher = place.cipher && cipherAt(digest, keyOfWrite(digest, key, place.cipher.salt), place.cipher.offsetBytes);
      }
      const part = rest.subarray(0, leftBytes);
      rest = rest.subarray(part.length);
      leftBytes -= part.length;
      yield cipher ? cipher.update(part) : part;
    }
  }
}
