import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes, unwrap } from "@stamp/base";
import fc from "fast-check";
import { decodeKey, encodeKey, encodeKeyPrefix, type KeyComponent, type KeyElement } from "./key.ts";

const element = fc.oneof(
  fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }),
  fc.integer({ min: -300, max: 300 }),
  fc.string({ unit: "binary", maxLength: 6 }),
  fc.uint8Array({ maxLength: 6 }),
  fc.constantFrom<KeyElement>("", "\0", "\0\0", "a\0", Uint8Array.of(0), Uint8Array.of(0, 255), Uint8Array.of(0xff)),
);
const key = fc.tuple(fc.array(element, { maxLength: 3 }), fc.array(element, { maxLength: 3 }), fc.array(element, { maxLength: 3 }));

const rank = (e: KeyElement): number => (typeof e === "number" ? 2 : typeof e === "string" ? 1 : 0);

function compareElement(a: KeyElement, b: KeyElement): number {
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (typeof a === "number") return a - (b as number);
  const bytes = (e: KeyElement): Uint8Array => (typeof e === "string" ? new TextEncoder().encode(e) : (e as Uint8Array));
  return compareBytes(bytes(a), bytes(b));
}

function compareKeys(a: readonly KeyComponent[], b: readonly KeyComponent[]): number {
  for (let i = 0; i < a.length; i++) {
    const left = a[i] as KeyComponent;
    const right = b[i] as KeyComponent;
    for (let j = 0; j < Math.min(left.length, right.length); j++) {
      const difference = compareElement(left[j] as KeyElement, right[j] as KeyElement);
      if (difference !== 0) return difference;
    }
    if (left.length !== right.length) return left.length - right.length;
  }
  return 0;
}

test("keys: byte order is key order, for strings, numbers and bytes with zeros inside", () => {
  fc.assert(
    fc.property(key, key, (a, b) => {
      assert.equal(Math.sign(compareBytes(encodeKey(a), encodeKey(b))), Math.sign(compareKeys(a, b)));
    }),
    { numRuns: 2_000 },
  );
});

test("keys: what was encoded is decoded", () => {
  fc.assert(fc.property(key, (a) => assert.deepEqual(unwrap(decodeKey(encodeKey(a))), a)));
});

test("keys: every truncation is refused or is a shorter key, and no flipped byte throws", () => {
  const encoded = encodeKey([["account"], [1, "container", 77, "bl\0b"], ["", 3, 9, Uint8Array.of(0, 1)]]);
  for (let length = 1; length < encoded.length; length++) {
    const cut = decodeKey(encoded.subarray(0, length));
    if (cut.ok) assert.ok(cut.value.length < 3);
    else assert.equal(cut.failure.reason, "damaged");
  }
  for (let at = 0; at < encoded.length; at++) {
    const flipped = Uint8Array.from(encoded);
    flipped[at] = (flipped[at] as number) ^ 0xff;
    const decoded = decodeKey(flipped);
    if (!decoded.ok) assert.equal(decoded.failure.reason, "damaged");
    else assert.notDeepEqual(decoded.value, unwrap(decodeKey(encoded)));
  }
});

test("keys: a string's prefix is the start of exactly the strings that begin so", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 4 }), fc.string({ unit: "binary", maxLength: 6 }), (prefix, text) => {
      const start = encodeKeyPrefix([], [1], prefix);
      const whole = encodeKey([[1, text]]);
      const begins = compareBytes(whole.subarray(0, start.length), start) === 0;
      const utf8 = (s: string): Buffer => Buffer.from(new TextEncoder().encode(s));
      assert.equal(begins, utf8(text).subarray(0, utf8(prefix).length).equals(utf8(prefix)));
    }),
  );
});
