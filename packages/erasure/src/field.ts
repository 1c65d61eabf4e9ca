/**
 * Arithmetic in GF(2^8), the field of all codes here: bytes, polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), generator 2. Addition is XOR.
 */
import { assert } from "@stamp/base";

const polynomial = 0x11d;

/** powers[i] is 2^i, for i below 510, so that the sum of two logarithms is an index. */
const powers = new Uint8Array(510);
/** logarithms[a] is the i with 2^i = a, for a from 1 on. */
const logarithms = new Uint8Array(256);

for (let i = 0, power = 1; i < 255; i++) {
  powers[i] = power;
  powers[i + 255] = power;
  logarithms[power] = i;
  power <<= 1;
  if (power > 0xff) power ^= polynomial;
}

/** Returns the product of two bytes. */
export function multiply(a: number, b: number): number {
  if (a === 0 || b === 0) return 0;
  return powers[(logarithms[a] as number) + (logarithms[b] as number)] as number;
}

/** Returns the byte whose product with `a` is 1; `a` is not 0. */
export function inverse(a: number): number {
  assert(a !== 0, "0 has no inverse");
  return powers[255 - (logarithms[a] as number)] as number;
}
