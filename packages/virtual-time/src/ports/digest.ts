/** Checksums are pure functions of their input: the simulation uses the native ones. */
import { createCipheriv, createDecipheriv, createHash, createHmac, timingSafeEqual } from "node:crypto";
import { crc32c } from "@node-rs/crc32";
import type { Digest } from "@stamp/ports";

/** Bytes of the tag of AES-256-GCM. */
const tagBytes = 16;

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
  sealAes256Gcm: (key, nonce, content, boundTo) => {
    const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes }).setAAD(boundTo);
    return new Uint8Array(Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()]));
  },
  openAes256Gcm: (key, nonce, sealed, boundTo) => {
    if (sealed.length < tagBytes) return undefined;
    const cipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes }).setAAD(boundTo);
    cipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
    const content = cipher.update(sealed.subarray(0, sealed.length - tagBytes));
    try {
      return new Uint8Array(Buffer.concat([content, cipher.final()]));
    } catch {
      return undefined;
    }
  },
  equal: (a, b) => a.length === b.length && timingSafeEqual(a, b),
};
