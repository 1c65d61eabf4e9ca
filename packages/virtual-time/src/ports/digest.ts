/** Checksums are pure functions of their input: the simulation uses the native ones. */
import { createCipheriv, createHash, createHmac, timingSafeEqual } from "node:crypto";
import { crc32c } from "@node-rs/crc32";
import type { Digest } from "@stamp/ports";

const table = new BigUint64Array(256);
for (let i = 0; i < 256; i++) {
  let value = BigInt(i);
  for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ 0x9a6c9329ac4bc9b5n : value >> 1n;
  table[i] = value;
}

function crc64(bytes: Uint8Array, seed = 0n): bigint {
  let crc = seed ^ 0xffffffffffffffffn;
  for (const byte of bytes) crc = (crc >> 8n) ^ (table[Number(crc & 0xffn) ^ byte] as bigint);
  return crc ^ 0xffffffffffffffffn;
}

export const digest: Digest = {
  crc32c: (bytes, seed) => crc32c(bytes, seed) >>> 0,
  crc64,
  md5: () => {
    const hash = createHash("md5");
    return {
      update: (chunk) => {
        hash.update(chunk);
      },
      digest: () => new Uint8Array(hash.digest()),
    };
  },
  sha256: (bytes) => new Uint8Array(createHash("sha256").update(bytes).digest()),
  hmacSha256: (key, message) => new Uint8Array(createHmac("sha256", key).update(message).digest()),
  aes256Ctr: (key, counter) => {
    const cipher = createCipheriv("aes-256-ctr", key, counter);
    return { update: (chunk) => new Uint8Array(cipher.update(chunk)) };
  },
  equal: (a, b) => a.length === b.length && timingSafeEqual(a, b),
};
