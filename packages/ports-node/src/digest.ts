/** Checksums and hashes: native crc32c, OpenSSL's hashes, our own CRC-64 (no kept native package has Azure's variant). */
import { createCipheriv, createDecipheriv, createHash, createHmac, hash, timingSafeEqual } from "node:crypto";
import { crc32c } from "@node-rs/crc32";
import type { Digest, RunningCipher, RunningHash } from "@stamp/ports";
import { crc64Nvme } from "./crc64.ts";

const gcmTagBytes = 16;

const plain = (buffer: Buffer): Uint8Array => new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);

export class NodeDigest implements Digest {
  crc32c(bytes: Uint8Array, seed = 0): number {
    return bytes.length === 0 ? seed : crc32c(bytes, seed);
  }

  crc64(bytes: Uint8Array, seed = 0n): bigint {
    return crc64Nvme(bytes, seed);
  }

  md5(): RunningHash {
    const running = createHash("md5");
    return {
      update: (chunk) => {
        running.update(chunk);
      },
      digest: () => plain(running.digest()),
    };
  }

  sha256(bytes: Uint8Array): Uint8Array {
    return plain(hash("sha256", bytes, "buffer"));
  }

  hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array {
    return plain(createHmac("sha256", key).update(message).digest());
  }

  aes256Ctr(key: Uint8Array, counter: Uint8Array): RunningCipher {
    const cipher = createCipheriv("aes-256-ctr", key, counter);
    return { update: (chunk) => plain(cipher.update(chunk)) };
  }

  sealAes256Gcm(key: Uint8Array, nonce: Uint8Array, content: Uint8Array, boundTo: Uint8Array): Uint8Array {
    const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: gcmTagBytes }).setAAD(boundTo);
    return plain(Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()]));
  }

  openAes256Gcm(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, boundTo: Uint8Array): Uint8Array | undefined {
    const end = sealed.length - gcmTagBytes;
    if (end < 0) return undefined;
    const cipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: gcmTagBytes }).setAAD(boundTo);
    cipher.setAuthTag(sealed.subarray(end));
    const content = cipher.update(sealed.subarray(0, end));
    try {
      return plain(Buffer.concat([content, cipher.final()]));
    } catch {
      // The tag is another one.
      return undefined;
    }
  }

  equal(a: Uint8Array, b: Uint8Array): boolean {
    return a.length === b.length && timingSafeEqual(a, b);
  }
}
