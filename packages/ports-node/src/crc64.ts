/**
 * CRC-64/NVME as Azure uses it (x-ms-content-crc64): reflected polynomial 0x9a6c9329ac4bc9b5, all ones at the start and at the end.
 * Table-driven, eight bytes a step, in two 32-bit halves so that no bigint is made inside the loop.
 */
const polynomialLow = 0xac4bc9b5;
const polynomialHigh = 0x9a6c9329;

/** Of table k the entry i is the remainder of byte i followed by k zero bytes; at k * 256 + i. */
const low = new Uint32Array(8 * 256);
const high = new Uint32Array(8 * 256);

for (let i = 0; i < 256; i++) {
  let lo = i;
  let hi = 0;
  for (let bit = 0; bit < 8; bit++) {
    const carry = lo & 1;
    lo = ((lo >>> 1) | (hi << 31)) >>> 0;
    hi >>>= 1;
    if (carry) {
      lo = (lo ^ polynomialLow) >>> 0;
      hi = (hi ^ polynomialHigh) >>> 0;
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

export function crc64Nvme(bytes: Uint8Array, seed = 0n): bigint {
  let lo = ~Number(seed & 0xffffffffn);
  let hi = ~Number(seed >> 32n);
  const length = bytes.length;
  const wholeLength = length - (length % 8);
  let at = 0;
  for (; at < wholeLength; at += 8) {
    lo ^= (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24);
    hi ^=
      (bytes[at + 4] as number) | ((bytes[at + 5] as number) << 8) | ((bytes[at + 6] as number) << 16) | ((bytes[at + 7] as number) << 24);
    const i7 = 1792 + (lo & 0xff);
    const i6 = 1536 + ((lo >>> 8) & 0xff);
    const i5 = 1280 + ((lo >>> 16) & 0xff);
    const i4 = 1024 + (lo >>> 24);
    const i3 = 768 + (hi & 0xff);
    const i2 = 512 + ((hi >>> 8) & 0xff);
    const i1 = 256 + ((hi >>> 16) & 0xff);
    const i0 = hi >>> 24;
    lo =
      (low[i7] as number) ^
      (low[i6] as number) ^
      (low[i5] as number) ^
      (low[i4] as number) ^
      (low[i3] as number) ^
      (low[i2] as number) ^
      (low[i1] as number) ^
      (low[i0] as number);
    hi =
      (high[i7] as number) ^
      (high[i6] as number) ^
      (high[i5] as number) ^
      (high[i4] as number) ^
      (high[i3] as number) ^
      (high[i2] as number) ^
      (high[i1] as number) ^
      (high[i0] as number);
  }
  for (; at < length; at++) {
    const index = (lo ^ (bytes[at] as number)) & 0xff;
    lo = ((lo >>> 8) | (hi << 24)) ^ (low[index] as number);
    hi = (hi >>> 8) ^ (high[index] as number);
  }
  return (BigInt(~hi >>> 0) << 32n) | BigInt(~lo >>> 0);
}
