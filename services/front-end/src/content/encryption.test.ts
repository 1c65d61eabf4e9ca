import assert from "node:assert/strict";
import { createDecipheriv, hkdfSync } from "node:crypto";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { concatBytes, FailureError, fromHex, toHex, utf8 } from "@stamp/base";
import { clipPlaces, keepsUnits, type Place, pageUnitBytes, spanOf, unitTagBytes, zeroExtentId } from "@stamp/objects";
import { NodeDigest } from "@stamp/ports-node";
import { PlaceSchema } from "@stamp/wire";
import fc from "fast-check";
import { decrypted, placeFromWire, WriteCipher } from "./encryption.ts";

const digest = new NodeDigest();
const keyBytes = fromHex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f") as Uint8Array<ArrayBuffer>;
const key = { bytes: keyBytes, sha256: digest.sha256(keyBytes) };
/** Encrypted bytes of the first test: their format never changes. */
const frozen = "3d04eb699198922a4de33ec1f3e7f1505342fdbbeea70ac186cc4d8d3b8a994739965dc3f44165d9a01eb391213bf5";

/** Encrypted bytes of the first test of units: their format never changes. */
const frozenUnit =
  "0e9033bb21105a8be25a15087e4d1a7a135719416bb91d2b93d89483083cdee1312385d308bda34559c341a28b7ef5de131dbbc44a5ce4a8ebf8c2542888694a1dd0e44db6e2c7104398b3df0e0f33e93378048c0204";

/** A salt with this byte everywhere, and then the next one: as from the kernel, no two writes have the same. */
const salts = (fill: number) => ({ uint32: () => 0, float: () => 0, bytes: (length: number) => new Uint8Array(length).fill(fill++) });

/** Returns what one write stores, in pieces of these lengths, and where. */
function written(text: Uint8Array, cuts: readonly number[], random = salts(1)) {
  const cipher = new WriteCipher({ digest, random }, key, undefined);
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  const pieces = [...ends, text.length].map((end, i) => text.subarray(i === 0 ? 0 : ends[i - 1], end)).filter(({ length }) => length > 0);
  const stored = concatBytes(pieces.map((piece) => cipher.encrypt(piece)));
  const places = pieces.map(({ length }, i) => create(PlaceSchema, { extentId: BigInt(i + 1), offsetBytes: 24n, lengthBytes: length }));
  return { stored, places: cipher.placed(places).map(placeFromWire) };
}

const sealedUnitBytes = pageUnitBytes + unitTagBytes;

/** Returns what one write stores in units of 512 bytes, as it comes in chunks of these lengths, in pieces of so many units each. */
function writtenInUnits(text: Uint8Array, chunks: readonly number[], pieceUnits: number, random = salts(1)) {
  const cipher = new WriteCipher({ digest, random }, key, pageUnitBytes);
  const parts: Uint8Array[] = [];
  let at = 0;
  for (const length of [...chunks, text.length]) {
    // The memory of a chunk is used again.
    const chunk = Uint8Array.from(text.subarray(at, at + length));
    parts.push(cipher.encrypt(chunk));
    chunk.fill(0xdb);
    at += length;
  }
  parts.push(cipher.end());
  const stored = concatBytes(parts);
  assert.equal(stored.length, cipher.storedFor(text.length));
  assert.equal(stored.length, cipher.storedBytes);
  const pieceBytes = cipher.pieceBytes(pieceUnits * sealedUnitBytes + 17);
  assert.equal(pieceBytes, pieceUnits * sealedUnitBytes);
  const places = [];
  for (let from = 0, piece = 1; from < stored.length; from += pieceBytes, piece++) {
    const lengthBytes = Math.min(pieceBytes, stored.length - from);
    places.push(create(PlaceSchema, { extentId: BigInt(piece), offsetBytes: 24n, lengthBytes }));
  }
  const pieces = new Map(places.map(({ extentId }, i) => [Number(extentId), stored.subarray(i * pieceBytes, (i + 1) * pieceBytes)]));
  return { pieces, places: cipher.placed(places).map(placeFromWire) };
}

/** Returns the bytes of spans, as extent nodes have them. */
const storedOf = (pieces: ReadonlyMap<number, Uint8Array>, places: readonly Place[]): Uint8Array[] =>
  places.map(spanOf).map(({ extentId, offsetBytes, lengthBytes }) => {
    if (extentId === zeroExtentId) return new Uint8Array(lengthBytes);
    const piece = pieces.get(extentId) ?? new Uint8Array(0);
    assert.ok(offsetBytes >= 24 && offsetBytes - 24 + lengthBytes <= piece.length, "a span lies in its piece");
    return piece.subarray(offsetBytes - 24, offsetBytes - 24 + lengthBytes);
  });

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

test("encryption: any range of any pieces is decrypted, however the bytes arrive, with zeros between them", async () => {
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

const cutsOf = (bytes: Uint8Array, arrivals: readonly number[]): Uint8Array[] => {
  const at = [...new Set(arrivals.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...at, bytes.length].map((to, i) => bytes.subarray(i === 0 ? 0 : at[i - 1], to));
};

test("units: frozen bytes, which later releases decrypt: AES-256-GCM as Node makes it, under a key of its own purpose", async () => {
  const text = utf8("what a customer stored under a key of their own, and nobody may change");
  const { pieces, places } = writtenInUnits(text, [20], 1);
  assert.equal(toHex(pieces.get(1) as Uint8Array), frozenUnit);
  const salt = new Uint8Array(32).fill(1);
  const units = { unitBytes: 512, writeBytes: text.length };
  assert.deepEqual(places, [{ extentId: 1, offsetBytes: 24, lengthBytes: text.length, cipher: { salt, offsetBytes: 0, units } }]);
  const writeKey = hkdfSync("sha256", keyBytes, salt, "stamp: content in units, AES-256-GCM, 1", 32);
  const decipher = createDecipheriv("aes-256-gcm", new Uint8Array(writeKey), new Uint8Array(12));
  const stored = pieces.get(1) as Uint8Array;
  decipher.setAuthTag(stored.subarray(text.length));
  assert.deepEqual(new Uint8Array(Buffer.concat([decipher.update(stored.subarray(0, text.length)), decipher.final()])), text);
});

test("units: any range of any write is decrypted from the spans of its places, however the bytes come and arrive, also of cut pages", async () => {
  const run = fc.asyncProperty(
    fc.integer({ min: 1, max: 3_000 }),
    fc.array(fc.nat({ max: 900 }), { maxLength: 6 }),
    fc.integer({ min: 1, max: 3 }),
    fc.nat(),
    fc.nat(),
    fc.array(fc.nat(), { maxLength: 8 }),
    async (length, chunks, pieceUnits, from, count, arrivals) => {
      const text = Uint8Array.from({ length }, (_, i) => (i * 31) & 0xff);
      const { pieces, places } = writtenInUnits(text, chunks, pieceUnits);
      assert.ok(places.every(keepsUnits));
      const start = from % length;
      const end = start + 1 + (count % (length - start));
      const hole = { extentId: zeroExtentId, offsetBytes: 0, lengthBytes: 33 };
      const asked = [hole, ...clipPlaces(places, start, end), hole];
      const stored = cutsOf(concatBytes(storedOf(pieces, asked)), arrivals);
      const zeros = new Uint8Array(33);
      assert.deepEqual(await readBack(asked, stored), concatBytes([zeros, text.subarray(start, end), zeros]));
      // Pages that a later write leaves in place stay whole units.
      const pages = clipPlaces(places, start - (start % 512), Math.min(length, Math.ceil(end / 512) * 512));
      assert.ok(pages.every(keepsUnits));
    },
  );
  await fc.assert(run);
});

test("units: no changed, moved, missing or foreign bit is decrypted, and nothing of its unit is given out", async () => {
  const text = Uint8Array.from({ length: 1_400 }, (_, i) => i & 0xff);
  const { pieces, places } = writtenInUnits(text, [], 9);
  const stored = pieces.get(1) as Uint8Array;
  const refusedAfter = async (bytes: Uint8Array, asked = places, under = key): Promise<number> => {
    let given = 0;
    const source = (async function* () {
      yield bytes;
    })();
    try {
      for await (const part of decrypted(digest, under, asked, source)) {
        assert.deepEqual(part, text.subarray(given, given + part.length), "what is given out is what was written");
        given += part.length;
      }
    } catch (error) {
      assert.ok(error instanceof FailureError && error.failure.reason === "damaged", String(error));
      return given;
    }
    assert.fail("it was decrypted");
  };
  for (let bit = 0; bit < stored.length * 8; bit += 7) {
    const changed = Uint8Array.from(stored);
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
    assert.equal(await refusedAfter(changed), 512 * Math.floor((bit >> 3) / sealedUnitBytes));
  }
  const [first, second, last] = [stored.subarray(0, 528), stored.subarray(528, 1_056), stored.subarray(1_056)];
  assert.equal(await refusedAfter(concatBytes([second, first, last])), 0, "units of the same write in another order");
  const other = writtenInUnits(text, [], 9, salts(5)).pieces.get(1) as Uint8Array;
  assert.equal(await refusedAfter(concatBytes([first, other.subarray(528, 1_056), last])), 512, "a unit of another write");
  const otherKey = { ...key, bytes: keyBytes.toReversed() as Uint8Array<ArrayBuffer> };
  assert.equal(await refusedAfter(stored, places, otherKey), 0);
  const asStream = places.map(({ cipher, ...place }) => ({ ...place, ...(cipher && { cipher: { ...cipher, offsetBytes: 512 } }) }));
  assert.equal(await refusedAfter(first, asStream), 0, "a place that names another unit");
});

test("encryption: what lies in the clear is not given out under a key, in front of encrypted places or behind them", async () => {
  const text = Uint8Array.from({ length: 600 }, (_, i) => i & 0xff);
  const { pieces, places } = writtenInUnits(text, [], 9);
  const planted = { extentId: 7, offsetBytes: 24, lengthBytes: 5 };
  const stored = pieces.get(1) as Uint8Array;
  const refusesClear = (error: unknown) => error instanceof FailureError && /in the clear/.test(error.failure.message);
  await assert.rejects(readBack([planted, ...places], [utf8("plain"), stored]), refusesClear);
  await assert.rejects(readBack([...places, planted], [stored, utf8("plain")]), refusesClear);
  // The row says that the units were written as releases before did: their key has another purpose.
  const asStream = places.map(({ cipher, ...place }) => ({ ...place, ...(cipher && { cipher: { salt: cipher.salt, offsetBytes: 0 } }) }));
  const read = await readBack(asStream, [stored.subarray(0, 600)]);
  assert.notEqual(toHex(read), toHex(text));
  const changed = Uint8Array.from(stored.subarray(0, 600));
  changed[0] = (changed[0] as number) ^ 1;
  assert.equal((await readBack(asStream, [changed]))[0], (read[0] as number) ^ 1, "no tag proves the older format");
});
