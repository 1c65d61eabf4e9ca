import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compareBytes, concatBytes, fromHex, prefixEnd, startsWith, toHex } from "./index.ts";

const bytes = fc.uint8Array({ maxLength: 12 });

test("bytes: order is that of Buffer.compare", () => {
  fc.assert(fc.property(bytes, bytes, (a, b) => Math.sign(compareBytes(a, b)) === Math.sign(Buffer.compare(a, b))));
});

test("bytes: prefixEnd is above every key with the prefix and not above any other larger key", () => {
  fc.assert(
    fc.property(bytes, bytes, (prefix, rest) => {
      const end = prefixEnd(prefix);
      const key = concatBytes([prefix, rest]);
      if (end === undefined) return prefix.every((byte) => byte === 0xff);
      const other = rest;
      const between = compareBytes(other, prefix) >= 0 && compareBytes(other, end) < 0;
      return compareBytes(key, end) < 0 && between === startsWith(other, prefix);
    }),
  );
});

test("bytes: hexadecimal reads back what it wrote and refuses what is not hexadecimal", () => {
  fc.assert(fc.property(bytes, (value) => compareBytes(fromHex(toHex(value)) as Uint8Array, value) === 0));
  assert.equal(fromHex("abc"), undefined);
  assert.equal(fromHex("zz"), undefined);
});
