import assert from "node:assert/strict";
import { createDecipheriv, hkdfSync } from "node:crypto";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { concatBytes, fromHex, toHex, utf8 } from "@stamp/base";
import { clipPlaces, zeroExtentId } from "@stamp/objects";
import { NodeDigest } from "@stamp/ports-node";
import { PlaceSchema } from "@stamp/wire";
import fc from "fast-check";
import { decrypted, placeFromWire, WriteCipher } from "./encryption.ts";

const digest = new NodeDigest();
const keyBytes = fromHex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f") as Uint8Array<ArrayBuffer>;
const key = { bytes: keyBytes, sha256: digest.sha256(keyBytes) };
/** Encrypted bytes of the first test: their format never changes. */
const frozen = "3d04eb699198922a4de33ec1f3e7f1505342fdbbeea70ac186cc4d8d3b8a994739965dc3f44165d9a01eb391213bf5";

/** A salt with this byte everywhere, and then the next one: as from the kernel, no two writes have the same. */
const salts = (fill: number) => ({ uint32: () => 0, float: () => 0, bytes: (length: number) => new Uint8Array(length).fill(fill++) });

/** Returns what one write stores, in pieces of these lengths, and where. */
function written(text: Uint8Array, cuts: readonly number[], random = salts(1)) {
  const cipher = new WriteCipher({ digest, random }, key);
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  const pieces = [...ends, text.length].map((end, i) => text.subarray(i === 0 ? 0 : ends[i - 1], end)).filter(({ length }) => length > 0);
  const stored = concatBytes(pieces.map((piece) => cipher.encrypt(piece)));
  const places = pieces.map(({ length }, i) => create(PlaceSchema, { extentId: BigInt(i + 1), offsetBytes: 24n, lengthBytes: length }));
  return { stored, places: cipher.placed(places).map(placeFromWire) };
}

async function readBack(places: Parameters<typeof decrypted>[2], stored: readonly Uint8Array[]): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  const source = (async function* () {
    yield* stored;
  })();
  for await (const part of decrypted(digest, key, places, source)) parts.push(part);
  return concatBytes(parts);
}

test("encryption: frozen bytes, which later releases decrypt; the key of a write is HKDF-SHA256 of the customer's, as Node makes it", async () => {
  const text = utf8("what a customer stored under a key of their own");
  const { stored, places } = written(text, [20]);
  assert.equal(toHex(stored), frozen);
  const salt = new Uint8Array(32).fill(1);
  assert.deepEqual(
    places.map(({ cipher }) => cipher),
    [
      { salt, offsetBytes: 0 },
      { salt, offsetBytes: 20 },
    ],
  );
  const writeKey = hkdfSync("sha256", keyBytes, salt, "stamp: content under a customer-provided key, AES-256-CTR, 1", 32);
  const decipher = createDecipheriv("aes-256-ctr", new Uint8Array(writeKey), new Uint8Array(16));
  assert.deepEqual(new Uint8Array(decipher.update(stored)), text);
  assert.deepEqual(await readBack(places, [stored]), text);
});

test("encryption: any range of any pieces is decrypted, however the bytes arrive, with zeros and plain bytes between them", async () => {
  const run = fc.asyncProperty(
    fc.uint8Array({ minLength: 1, maxLength: 200 }),
    fc.array(fc.nat(), { maxLength: 5 }),
    fc.nat(),
    fc.nat(),
    fc.array(fc.nat(), { maxLength: 5 }),
    async (text, cuts, from, count, arrivals) => {
      const { stored, places } = written(text, cuts);
      const start = from % text.length;
      const end = start + 1 + (count % (text.length - start));
      const hole = { extentId: zeroExtentId, offsetBytes: 0, lengthBytes: 33 };
      const asked = [hole, ...clipPlaces(places, start, end), hole];
      const zeros = new Uint8Array(33);
      const bytes = concatBytes([zeros, stored.subarray(start, end), zeros]);
      const at = [...new Set(arrivals.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
      const chunks = [...at, bytes.length].map((to, i) => bytes.subarray(i === 0 ? 0 : at[i - 1], to));
      assert.deepEqual(await readBack(asked, chunks), concatBytes([zeros, text.subarray(start, end), zeros]));
    },
  );
  await fc.assert(run);
});

test("encryption: no two writes have a byte of keystream in common, also of the same bytes under the same key", () => {
  const random = salts(1);
  const nothing = new Uint8Array(4_096);
  const seen = new Set<string>();
  for (let write = 0; write < 50; write++) {
    const { stored } = written(nothing, [17], random);
    for (let at = 0; at < stored.length; at += 16) seen.add(toHex(stored.subarray(at, at + 16)));
  }
  assert.equal(seen.size, 50 * (4_096 / 16));
});
