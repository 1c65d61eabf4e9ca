/**
 * CRC-64/NVME as Azure uses it (x-ms-content-crc64): reflected polynomial 0x9a6c9329ac4bc9b5, all ones at the start and at the end.
 * Table-driven, eight bytes a step as two 32-bit words, so that no bigint is made inside the loop.
 */
import { endianness } from "node:os";

const polynomialLow = 0xac4bc9b5 | 0;
const polynomialHigh = 0x9a6c9329 | 0;

/** Entry i of table k is the remainder of byte i followed by k zero bytes; it lies at k * 256 + i. */
const low = new Int32Array(8 * 256);
const high = new Int32Array(8 * 256);

for (let i = 0; i < 256; i++) {
  let lo = i;
  let hi = 0;
  for (let bit = 0; bit < 8; bit++) {
    const carry = lo & 1;
    lo = (lo >>> 1) | (hi << 31);
    hi >>>= 1;
    if (carry) {
      lo ^= polynomialLow;
      hi ^= polynomialHigh;
    }
  }
  low[i] = lo;
  high[i] = hi;
}
for (let k = 1; k < 8; k++) {
  for (let i = 0; i < 256; i++) {
    const lo = low[(k - 1) * 256 + i] as number;
    const hi = high[(k - 1) * 256 + i] as number;
    low[k * 256 + i] = ((lo >>> 8) | (hi << 24)) ^ (low[lo & 0xff] as number);
    high[k * 256 + i] = (hi >>> 8) ^ (high[lo & 0xff] as number);
  }
}

const wordsAreLittleEndian = endianness() === "LE";

export function crc64Nvme(bytes: Uint8Array, seed = 0n): bigint {
  let lo = ~Number(BigInt.asIntN(32, seed));
  let hi = ~Number(BigInt.asIntN(32, seed >> 32n));
  const oneByte = (byte: number): void => {
    const index = (lo ^ byte) & 0xff;
    lo = ((lo >>> 8) | (hi << 24)) ^ (low[index] as number);
    hi = (hi >>> 8) ^ (high[index] as number);
  };
  const length = bytes.length;
  // Words of four bytes begin at addresses that are multiples of four.
  const wordsStart = wordsAreLittleEndian ? Math.min(length, (4 - (bytes.byteOffset % 4)) % 4) : length;
  const stepCount = Math.floor((length - wordsStart) / 8);
  let at = 0;
  for (; at < wordsStart; at++) oneByte(bytes[at] as number);
  if (stepCount > 0) {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset + wordsStart, stepCount * 2);
    let low32 = lo;
    let high32 = hi;
    for (let i = 0; i < words.length; i += 2) {
      low32 ^= words[i] as number;
      high32 ^= words[i + 1] as number;
      const i7 = 1792 + (low32 & 0xff);
      const i6 = 1536 + ((low32 >>> 8) & 0xff);
      const i5 = 1280 + ((low32 >>> 16) & 0xff);
      const i4 = 1024 + (low32 >>> 24);
      const i3 = 768 + (high32 & 0xff);
      const i2 = 512 + ((high32 >>> 8) & 0xff);
      const i1 = 256 + ((high32 >>> 16) & 0xff);
      const i0 = high32 >>> 24;
      low32 =
        (low[i7] as number) ^
        (low[i6] as number) ^
        (low[i5] as number) ^
        (low[i4] as number) ^
        (low[i3] as number) ^
        (low[i2] as number) ^
        (low[i1] as number) ^
        (low[i0] as number);
      high32 =
        (high[i7] as number) ^
        (high[i6] as number) ^
        (high[i5] as number) ^
        (high[i4] as number) ^
        (high[i3] as number) ^
        (high[i2] as number) ^
        (high[i1] as number) ^
        (high[i0] as number);
    }
    lo = low32;
    hi = high32;
    at += stepCount * 8;
  }
  for (; at < length; at++) oneByte(bytes[at] as number);
  return (BigInt(~hi >>> 0) << 32n) | BigInt(~lo >>> 0);
}
