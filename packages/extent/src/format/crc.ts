/**
 * CRC-32C as the pure code sees it: the function itself comes from the Digest port (native), only the algebra is here. Joining two
 * checksums lets a node know the checksum of a whole extent without reading any byte twice.
 */

/** CRC-32C (Castagnoli) of `bytes`, continued from `seed`, the checksum of what came before (0 at the start). */
export type Crc32c = (bytes: Uint8Array, seed?: number) => number;

const polynomial = 0x82f63b78;

/** Returns the product of two polynomials over GF(2) modulo the CRC polynomial, both bit-reflected. */
function multiply(a: number, b: number): number {
  let product = 0;
  let factor = b;
  for (let mask = 0x80000000; mask !== 0; mask >>>= 1) {
    if ((a & mask) !== 0) product ^= factor;
    factor = (factor & 1) !== 0 ? (factor >>> 1) ^ polynomial : factor >>> 1;
  }
  return product >>> 0;
}

/** Powers: element k is x^(2^k) modulo the polynomial. */
const powers: readonly number[] = (() => {
  const table = [0x40000000];
  for (let k = 1; k < 64; k++) table.push(multiply(table[k - 1] as number, table[k - 1] as number));
  return table;
})();

/** Returns the checksum of A followed by B, of which `first` and `second` are the checksums and B is `secondLengthBytes` long. */
export function combineCrc32c(first: number, second: number, secondLengthBytes: number): number {
  let shift = 0x80000000;
  let bytes = secondLengthBytes;
  for (let k = 3; bytes > 0; k++) {
    if (bytes % 2 === 1) shift = multiply(shift, powers[k] as number);
    bytes = Math.floor(bytes / 2);
  }
  return (multiply(first, shift) ^ second) >>> 0;
}

/** Returns the checksum of all slices one after another. */
export function crc32cOf(crc32c: Crc32c, slices: readonly Uint8Array[], seed = 0): number {
  let sum = seed;
  for (const slice of slices) sum = crc32c(slice, sum);
  return sum;
}
