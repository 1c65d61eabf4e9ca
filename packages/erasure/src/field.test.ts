import assert from "node:assert/strict";
import { test } from "node:test";
import { inverse, multiply } from "./field.ts";

/** Multiplies bit by bit, without tables. */
function slow(a: number, b: number): number {
  let product = 0;
  for (let bit = 0; bit < 8; bit++) if ((b >> bit) & 1) product ^= a << bit;
  for (let bit = 14; bit >= 8; bit--) if ((product >> bit) & 1) product ^= 0x11d << (bit - 8);
  return product;
}

test("field: the product of any two bytes is the one of the polynomials", () => {
  for (let a = 0; a < 256; a++) for (let b = 0; b < 256; b++) assert.equal(multiply(a, b), slow(a, b), `${a} times ${b}`);
});

test("field: a byte times its inverse is 1, and 0 has none", () => {
  for (let a = 1; a < 256; a++) assert.equal(slow(a, inverse(a)), 1);
  assert.throws(() => inverse(0));
});
