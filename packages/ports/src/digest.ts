/** Checksums, hashes and a cipher, native where there is one. Inputs are borrowed. */
export interface RunningHash {
  update(chunk: Uint8Array): void;
  /** Returns the digest and ends the hash. */
  digest(): Uint8Array;
}

export interface RunningCipher {
  /** Encrypts, or decrypts, the next bytes; an owned copy of the same length. */
  update(chunk: Uint8Array): Uint8Array;
}

export interface Digest {
  /** Returns CRC-32C (Castagnoli); `seed` is the checksum of what came before, 0 at the start. */
  crc32c(bytes: Uint8Array, seed?: number): number;
  /** Returns CRC-64/NVME, as in x-ms-content-crc64; `seed` as above. "123456789" gives 0xae8b14860a799888. */
  crc64(bytes: Uint8Array, seed?: bigint): bigint;
  md5(): RunningHash;
  sha256(bytes: Uint8Array): Uint8Array;
  hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array;
  /** Encrypts or decrypts by AES-256 in counter mode: key of 32 bytes, first counter block of 16 bytes, counted up as one big-endian number. */
  aes256Ctr(key: Uint8Array, counter: Uint8Array): RunningCipher;
  /** Encrypts by AES-256-GCM: returns the ciphertext and its tag of 16 bytes. Key of 32 bytes; nonce of 12 bytes, used once with a key. */
  sealAes256Gcm(key: Uint8Array, nonce: Uint8Array, content: Uint8Array, boundTo: Uint8Array): Uint8Array;
  /** Returns the content; undefined if the key, the nonce, the bytes or what they are bound to are others than when they were sealed. */
  openAes256Gcm(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, boundTo: Uint8Array): Uint8Array | undefined;
  /** Compares in constant time; false when the lengths differ. */
  equal(a: Uint8Array, b: Uint8Array): boolean;
}
