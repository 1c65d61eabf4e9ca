/**
 * Blobs that are encrypted under a key of the customer or under an encryption scope, a key of the stamp. The front-end encrypts and decrypts.
 * Here is only what names the key: the SHA-256 of a customer's, the name of a scope. It stands in the head row of the blob and in the rows of
 * uncommitted blocks (docs/design/front-end.md).
 *
 * Invariant: a head names a key if and only if each of its places has a cipher. So plain bytes never count as encrypted ones, nor the reverse.
 */
import { equalBytes } from "@stamp/base";
import { type ServiceError, type ServiceErrorCode, serviceError } from "../errors.ts";
import type { Body, Conditions } from "../operation.ts";
import { keepsUnits } from "../rows/places.ts";

/** Names the key that content is encrypted under. At most one of the two is there; neither: the content is not encrypted. */
export interface KeyName {
  /** SHA-256 of the customer's key. */
  readonly encryptionKeySha256?: Uint8Array | undefined;
  /** Name of the encryption scope. */
  readonly encryptionScope?: string | undefined;
}

export const keyNameOf = ({ encryptionKeySha256, encryptionScope }: KeyName): KeyName => ({ encryptionKeySha256, encryptionScope });

const isNamed = ({ encryptionKeySha256, encryptionScope }: KeyName): boolean =>
  encryptionKeySha256 !== undefined || encryptionScope !== undefined;

/**
 * Compares the key of a write's bytes with the one that the content is encrypted under. Undefined: go on. If the scope was not named by the
 * client, but found in the blob before, the client is not at fault: it is told to come again.
 */
export function checkKey(given: Conditions, held: KeyName): ServiceError | undefined {
  const code = disagreement(given, held);
  if (code === undefined) return undefined;
  const isOfScopes = given.encryptionScope !== undefined || held.encryptionScope !== undefined;
  return serviceError(given.encryptionAsFound === true && isOfScopes ? "ServerBusy" : code);
}

/** Checks the key of a request whose bytes no key encrypts: who names no key may read and change what is under a scope. */
export const checkKeyOrScope = (given: Conditions, held: KeyName): ServiceError | undefined =>
  held.encryptionScope !== undefined && !isNamed(given) ? undefined : checkKey(given, held);

/** Checks the key of a request that may leave it out, because it neither reads nor writes what the key encrypts. */
export const checkKeyIfGiven = (given: Conditions, held: KeyName): ServiceError | undefined =>
  isNamed(given) ? checkKey(given, held) : undefined;

function disagreement(given: KeyName, held: KeyName): ServiceErrorCode | undefined {
  if (!isNamed(given)) return isNamed(held) ? "BlobUsesCustomerSpecifiedEncryption" : undefined;
  if (!isNamed(held)) return "BlobDoesNotUseCustomerSpecifiedEncryption";
  return isSame(given, held) ? undefined : "BlobCustomerSpecifiedEncryptionMismatch";
}

function isSame(given: KeyName, held: KeyName): boolean {
  const [a, b] = [given.encryptionKeySha256, held.encryptionKeySha256];
  const digests = a === undefined || b === undefined ? a === b : equalBytes(a, b);
  return digests && given.encryptionScope === held.encryptionScope;
}

/** Returns why these bytes can't be content under this key; undefined: they can. */
export function unusableUnderKey(given: KeyName, { inline, places }: Body): string | undefined {
  if (!isNamed(given)) return places.some(({ cipher }) => cipher) ? "encrypted bytes come with the name of their key" : undefined;
  const { encryptionKeySha256: digest, encryptionScope: scope } = given;
  if (digest !== undefined && scope !== undefined) return "bytes are encrypted under a customer's key or under a scope, not both";
  if (digest !== undefined && digest.length !== keyDigestBytes) return `the digest of a key has ${keyDigestBytes} bytes`;
  if (scope === "") return "a scope has a name";
  if (inline.length > 0) return "encrypted bytes are put into the blob data stream first";
  if (!places.every(({ cipher }) => cipher)) return "with a key, all bytes are encrypted";
  return places.every(keepsUnits) ? undefined : "bytes with tags are written in whole units";
}

const keyDigestBytes = 32;
