/** Behaviour of every Digest: published check values, and values carried on over parts. */
import { concatBytes, fromHex, toHex, utf8 } from "@stamp/base";
import type { Digest } from "../digest.ts";
import type { RegisterTest } from "./conformance.ts";
import { check, checkEqual } from "./conformance.ts";

export function digestConformance(register: RegisterTest, make: () => Digest | Promise<Digest>): void {
  const digits = utf8("123456789");
  const pattern = (length: number): Uint8Array => {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = (i * 131 + (i >>> 8) * 7) & 0xff;
    return bytes;
  };

  register("digest: crc32c has its check value, an unsigned result, and goes on from a seed", async () => {
    const digest = await make();
    checkEqual(digest.crc32c(digits), 0xe3069283, "check value");
    checkEqual(digest.crc32c(new Uint8Array(0)), 0, "of nothing");
    checkEqual(digest.crc32c(new Uint8Array(32)), 0x8a9136aa, "32 zeros (RFC 3720 B.4)");
    checkEqual(digest.crc32c(digits, 0), 0xe3069283, "with seed 0");
    const bytes = pattern(10_007);
    for (const at of [0, 1, 7, 4096, 10_007]) {
      checkEqual(digest.crc32c(bytes.subarray(at), digest.crc32c(bytes.subarray(0, at))), digest.crc32c(bytes), `parted at ${at}`);
    }
  });

  register("digest: crc64 has its check value and goes on from a seed", async () => {
    const digest = await make();
    checkEqual(digest.crc64(digits), 0xae8b14860a799888n, "check value");
    checkEqual(digest.crc64(new Uint8Array(0)), 0n, "of nothing");
    const bytes = pattern(10_007);
    const whole = digest.crc64(bytes);
    for (const at of [0, 1, 5, 8, 9, 4096, 10_007]) {
      checkEqual(digest.crc64(bytes.subarray(at), digest.crc64(bytes.subarray(0, at))), whole, `parted at ${at}`);
    }
    for (let start = 0; start < 9; start++) {
      const copy = new Uint8Array(bytes.subarray(start, start + 100));
      checkEqual(digest.crc64(bytes.subarray(start, start + 100)), digest.crc64(copy), `unaligned by ${start}`);
    }
    let mine = 0xffffffffffffffffn;
    for (const byte of bytes) {
      mine ^= BigInt(byte);
      for (let bit = 0; bit < 8; bit++) mine = mine & 1n ? (mine >> 1n) ^ 0x9a6c9329ac4bc9b5n : mine >> 1n;
    }
    checkEqual(whole, mine ^ 0xffffffffffffffffn, "against the definition, bit by bit");
  });

  register("digest: md5 runs over chunks", async () => {
    const digest = await make();
    const hash = digest.md5();
    hash.update(utf8("a"));
    hash.update(new Uint8Array(0));
    hash.update(utf8("bc"));
    checkEqual(toHex(hash.digest()), "900150983cd24fb0d6963f7d28e17f72", "abc");
    checkEqual(toHex(digest.md5().digest()), "d41d8cd98f00b204e9800998ecf8427e", "of nothing");
  });

  register("digest: sha256 and hmac-sha256 have their published values", async () => {
    const digest = await make();
    checkEqual(toHex(digest.sha256(utf8("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "sha256(abc)");
    const hmac = digest.hmacSha256(utf8("Jefe"), utf8("what do ya want for nothing?"));
    checkEqual(toHex(hmac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", "RFC 4231 case 2");
    const longKey = new Uint8Array(131).fill(0xaa);
    const longKeyHmac = digest.hmacSha256(longKey, utf8("Test Using Larger Than Block-Size Key - Hash Key First"));
    checkEqual(toHex(longKeyHmac), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54", "RFC 4231 case 6");
  });

  register("digest: AES-256 in counter mode has its published values, also in parts, and the counter carries over", async () => {
    const digest = await make();
    const key = fromHex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4") as Uint8Array;
    const counter = fromHex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff") as Uint8Array;
    const text = fromHex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51") as Uint8Array;
    const encrypted = "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5";
    checkEqual(toHex(digest.aes256Ctr(key, counter).update(text)), encrypted, "NIST SP 800-38A F.5.5");
    for (const at of [0, 1, 15, 16, 17, 32]) {
      const cipher = digest.aes256Ctr(key, counter);
      const parts = [cipher.update(text.subarray(0, at)), cipher.update(text.subarray(at))];
      checkEqual(toHex(concatBytes(parts)), encrypted, `parted at ${at}`);
    }
    const second = fromHex("f0f1f2f3f4f5f6f7f8f9fafbfcfdff00") as Uint8Array;
    checkEqual(toHex(digest.aes256Ctr(key, second).update(text.subarray(16))), encrypted.slice(32), "from the second block on");
  });

  register("digest: AES-256-GCM has its published values, and opens nothing that was changed", async () => {
    const digest = await make();
    const hex = (text: string): Uint8Array => fromHex(text) as Uint8Array;
    const key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    const nonce = hex("cafebabefacedbaddecaf888");
    const content = hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    );
    const boundTo = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    const sealed = digest.sealAes256Gcm(key, nonce, content, boundTo);
    const encrypted =
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662";
    checkEqual(toHex(sealed), `${encrypted}76fc6ece0f4e1768cddf8853bb2d551b`, "McGrew and Viega, test case 16");
    checkEqual(toHex(digest.openAes256Gcm(key, nonce, sealed, boundTo) ?? new Uint8Array(0)), toHex(content), "opened");
    for (let at = 0; at < sealed.length; at++) {
      const changed = sealed.map((byte, i) => (i === at ? byte ^ 1 : byte));
      checkEqual(digest.openAes256Gcm(key, nonce, changed, boundTo), undefined, `byte ${at} changed`);
    }
    checkEqual(digest.openAes256Gcm(key, nonce, sealed.subarray(0, sealed.length - 1), boundTo), undefined, "cut");
    checkEqual(digest.openAes256Gcm(key, nonce, sealed.subarray(0, 8), boundTo), undefined, "shorter than a tag");
    checkEqual(digest.openAes256Gcm(key, nonce, sealed, boundTo.subarray(1)), undefined, "bound to something else");
    checkEqual(digest.openAes256Gcm(content.subarray(0, 32), nonce, sealed, boundTo), undefined, "another key");
  });

  register("digest: equal compares content, also of other lengths", async () => {
    const digest = await make();
    const bytes = fromHex("00ff10") as Uint8Array;
    check(digest.equal(bytes, concatBytes([bytes])), "the same");
    check(!digest.equal(bytes, fromHex("00ff11") as Uint8Array), "another byte");
    check(!digest.equal(bytes, bytes.subarray(0, 2)), "shorter");
    check(digest.equal(new Uint8Array(0), new Uint8Array(0)), "empty");
  });
}
