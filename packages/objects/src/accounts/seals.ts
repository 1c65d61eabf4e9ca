/**
 * Secrets of accounts at rest: keys, delegation secret and keys of encryption scopes, sealed in the account's row.
 *
 *     version u8 = 1 | id of the master key, 8 bytes
 *     nonce 12 | data key 32, encrypted under the master key | tag 16
 *     nonce 12 | content, encrypted under the data key | tag 16
 *
 * AES-256-GCM twice (an envelope): a data key is random and seals one content; the master key seals data keys only, so it encrypts little, and a
 * new master key needs no knowledge of what lies in the rows. Invariants:
 * - Both parts are bound to the name of the account and to the master key's id: a value copied into another account's row does not open.
 * - A data key and a nonce are never used twice.
 * - A value that does not open is an error, never an account without keys.
 */
import { concatBytes, type Failed, type Outcome, ok, refused, toHex, utf8 } from "@stamp/base";

/** Sealing of secrets, which a plan asks of the holder of the master key. */
export interface Seals {
  /**
   * Seals the content for an account; undefined if there is no master key, and secrets stay in the row as they are. Whether the level of the stamp allows
   * a row to become sealed is asked by the plan (`mayWrite`, level `neededLevels.sealedAccounts`).
   */
  seal(account: string, content: Uint8Array): Uint8Array | undefined;
  /** Opens sealed secrets. Refuses with `masterKeyMissing` if no held key sealed them, with `damaged` if they do not open. */
  open(account: string, sealed: Uint8Array): Outcome<Uint8Array>;
}

/** AES-256-GCM and a MAC; `Digest` of the ports is one. */
export interface SealingCiphers {
  hmacSha256(key: Uint8Array, message: Uint8Array): Uint8Array;
  sealAes256Gcm(key: Uint8Array, nonce: Uint8Array, content: Uint8Array, boundTo: Uint8Array): Uint8Array;
  openAes256Gcm(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array, boundTo: Uint8Array): Uint8Array | undefined;
}

const version = 1;
const idBytes = 8;
const nonceBytes = 12;
const dataKeyBytes = 32;
const tagBytes = 16;
const wrappedAt = 1 + idBytes;
const contentAt = wrappedAt + nonceBytes + dataKeyBytes + tagBytes;
const sealedBytesMin = contentAt + nonceBytes + tagBytes;

/** Returns the id of a master key: what tells it from others and reveals nothing of it. 16 hex digits as text. */
export const idOfMasterKey = (ciphers: SealingCiphers, masterKey: Uint8Array): Uint8Array =>
  concatBytes([ciphers.hmacSha256(masterKey, utf8("stamp master key id")).subarray(0, idBytes)]);

/** Returns the id of the master key that sealed the value: 16 hex digits. */
export const masterKeyIdIn = (sealed: Uint8Array): string => toHex(sealed.subarray(1, wrappedAt));

interface MasterKey {
  readonly id: Uint8Array;
  readonly key: Uint8Array;
}

export class AccountSeals implements Seals {
  readonly #ciphers: SealingCiphers;
  readonly #random: (length: number) => Uint8Array;
  readonly #masterKeys: () => readonly Uint8Array[];
  #given: readonly Uint8Array[] | undefined;
  #keys: readonly MasterKey[] = [];

  /**
   * `masterKeys`: asked at each use; of 32 bytes each, and another list after a change. The first seals; all open. None: nothing is sealed.
   */
  constructor(ciphers: SealingCiphers, random: (length: number) => Uint8Array, masterKeys: () => readonly Uint8Array[]) {
    this.#ciphers = ciphers;
    this.#random = random;
    this.#masterKeys = masterKeys;
  }

  #now(): readonly MasterKey[] {
    const given = this.#masterKeys();
    if (given !== this.#given) {
      this.#given = given;
      this.#keys = given.map((key) => ({ id: idOfMasterKey(this.#ciphers, key), key }));
    }
    return this.#keys;
  }

  /** Ids of the master keys, the one that seals first: 16 hex digits each. */
  get ids(): readonly string[] {
    return this.#now().map(({ id }) => toHex(id));
  }

  seal(account: string, content: Uint8Array): Uint8Array | undefined {
    const [master] = this.#now();
    if (master === undefined) return undefined;
    const dataKey = this.#random(dataKeyBytes);
    const [keyNonce, contentNonce] = [this.#random(nonceBytes), this.#random(nonceBytes)];
    const wrapped = this.#ciphers.sealAes256Gcm(master.key, keyNonce, dataKey, boundTo("key", account, master.id));
    const sealed = this.#ciphers.sealAes256Gcm(dataKey, contentNonce, content, boundTo("content", account, master.id));
    return concatBytes([Uint8Array.of(version), master.id, keyNonce, wrapped, contentNonce, sealed]);
  }

  open(account: string, sealed: Uint8Array): Outcome<Uint8Array> {
    if (sealed.length < sealedBytesMin || sealed[0] !== version) return damaged(account);
    const id = masterKeyIdIn(sealed);
    const master = this.#now().find((key) => toHex(key.id) === id);
    if (master === undefined) return missing(account, id, this.ids);
    const dataKey = this.#opened(sealed.subarray(wrappedAt, contentAt), master.key, boundTo("key", account, master.id));
    const content = dataKey && this.#opened(sealed.subarray(contentAt), dataKey, boundTo("content", account, master.id));
    return content === undefined ? damaged(account) : ok(content);
  }

  #opened(part: Uint8Array, key: Uint8Array, bound: Uint8Array): Uint8Array | undefined {
    return this.#ciphers.openAes256Gcm(key, part.subarray(0, nonceBytes), part.subarray(nonceBytes), bound);
  }
}

/** Seals for who has no master key: nothing is sealed. */
export const noSeals: Seals = {
  seal: () => undefined,
  open: (account, sealed) => missing(account, masterKeyIdIn(sealed), []),
};

/** Returns the bytes that bind a sealed part to its account, whose name has no zero byte. */
const boundTo = (part: "key" | "content", account: string, id: Uint8Array): Uint8Array =>
  concatBytes([utf8(`stamp account ${part}\0${version}\0${account}\0`), id]);

const damaged = (account: string): Failed => refused("dataLoss", "damaged", `the sealed secrets of account ${account} do not open`);

const missing = (account: string, id: string, held: readonly string[]): Failed =>
  refused(
    "failedPrecondition",
    "masterKeyMissing",
    `the secrets of account ${account} are sealed by master key ${id}, and this partition server has ${held.join(" and ") || "none"}. ` +
      "Put that key back (masterKeyFile, or masterKeyPreviousFile beside a newer one: docs/guides/keys-at-rest.md) and restart the partition servers",
  );
