/** Checksums of a body that a request may announce, and their comparison with what arrived. */
import { crc64Text, type HttpHeaders, type Parsed, parseDigest, parsed, rejected, toBase64 } from "@stamp/azure-rest";
import { equalBytes } from "@stamp/base";

export interface ContentDigests {
  readonly md5?: Uint8Array;
  readonly crc64?: bigint;
}

/** Digests of the body in the request's headers. */
export interface AnnouncedDigests {
  readonly md5: Uint8Array | undefined;
  /** CRC-64 that the request announces, as in the header. */
  readonly crc64: Uint8Array | undefined;
}

export function announcedDigests(headers: HttpHeaders): Parsed<AnnouncedDigests> {
  const md5 = parseDigest(headers, "content-md5", 16);
  if (!md5.ok) return md5;
  const crc64 = parseDigest(headers, "x-ms-content-crc64", 8);
  if (!crc64.ok) return crc64;
  if (md5.value && crc64.value) return rejected("BothCrc64AndMd5HeaderPresent");
  return parsed({ md5: md5.value, crc64: crc64.value });
}

export function compareDigests(announced: AnnouncedDigests, actual: ContentDigests): Parsed<void> {
  if (announced.md5 && !(actual.md5 && equalBytes(announced.md5, actual.md5))) {
    const calculated = actual.md5 ? toBase64(actual.md5) : "";
    return rejected("Md5Mismatch", { UserSpecifiedMd5: toBase64(announced.md5), ServerCalculatedMd5: calculated });
  }
  if (announced.crc64) {
    const specified = toBase64(announced.crc64);
    const calculated = actual.crc64 === undefined ? "" : crc64Text(actual.crc64);
    if (specified !== calculated) {
      return rejected("Crc64Mismatch", { UserSpecifiedCrc64: specified, ServerCalculatedCrc64: calculated });
    }
  }
  return parsed(undefined);
}
