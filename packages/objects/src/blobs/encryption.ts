/**
 * Blobs that are encrypted under a key of the customer. The front-end encrypts and decrypts; here is only what can be told of the key without
 * knowing it: its SHA-256, in the head row of the blob and in the rows of uncommitted blocks (docs/decisions/0431).
 *
 * Invariant: a head has a digest if and only if each of its places has a cipher. So plain bytes never count as encrypted ones, nor the reverse.
 */
import { equalBytes } from "@stamp/base";
import { type ServiceError, serviceError } from "../errors.ts";
import type { Body, Conditions } from "../operation.ts";

type Digest = Uint8Array | undefined;

/** Compares the key of the request with the one that the content is encrypted under. Undefined: go on. */
export function checkKey({ encryptionKeySha256: given }: Conditions, held: Digest): ServiceError | undefined {
  if (given === undefined) return held === undefined ? undefined : serviceError("BlobUsesCustomerSpecifiedEncryption");
  if (held === undefined) return serviceError("BlobDoesNotUseCustomerSpecifiedEncryption");
  return equalBytes(given, held) ? undefined : serviceError("BlobCustomerSpecifiedEncryptionMismatch");
}

/** The same where a request may leave out the key, because it neither reads nor writes what the key encrypts. */
export const checkKeyIfGiven = (conditions: Conditions, held: Digest): ServiceError | undefined =>
  conditions.encryptionKeySha256 === undefined ? undefined : checkKey(conditions, held);

/** Why these bytes can't be content under the request's key; undefined if they can. */
export function unusableUnderKey({ encryptionKeySha256: given }: Conditions, { inline, places }: Body): string | undefined {
  if (given === undefined) return places.some(({ cipher }) => cipher) ? "encrypted bytes come with the digest of their key" : undefined;
  if (given.length !== keyDigestBytes) return `the digest of a key has ${keyDigestBytes} bytes`;
  if (inline.length > 0) return "encrypted bytes are put into the blob data stream first";
  return places.every(({ cipher }) => cipher) ? undefined : "with a key, all bytes are encrypted";
}

const keyDigestBytes = 32;
