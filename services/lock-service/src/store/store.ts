/**
 * The lock service's store, in LevelDB or in etcd: the only copy of the stamp's identity, its leases and its metadata keys. One process at a
 * time has it open. Each opening proves that it is complete (@stamp/ports complete-store.ts).
 *
 *   stamp         the stamp's identity                    'S' 2, JSON; 1 in a store without a proof
 *   proof         the proof of all other entries          'D' 1 (store-proof.ts)
 *   version       number of the last transaction          'V' 1, u64 big endian
 *   l/<name>      a lease                                 'L' 1, JSON (@stamp/lease)
 *   k/<key>       a metadata key                          'K' 1, u64 big endian version, then the value
 *
 * Every value is framed (@stamp/base framed.ts); docs/formats/lock-service.md.
 */
import type { Checksum, Failed, FormatName, Outcome } from "@stamp/base";
import { compareBytes, frameRecord, fromUtf8, ok, prefixEnd, present, refused, unframeRecord, utf8 } from "@stamp/base";
import type { LeaseRecord } from "@stamp/lease";
import { decodeLease, encodeLease } from "@stamp/lease";
import {
  type CompleteStore,
  type CompleteStoreWorld,
  type KeyValue,
  type KeyValueOperation,
  type OpenCompleteOptions,
  openComplete,
} from "@stamp/ports";
import { decodeStored, managerPrefix } from "@stamp/stream";

/** Formats that a lock service writes into its folder; `metadata` reaches it inside of transactions. */
export const lockServiceFormats: readonly FormatName[] = ["lock-service", "store-proof", "lease", "metadata"];

export interface KeyState {
  /** Value of the key, owned by the caller; undefined: the key is absent. */
  readonly value: Uint8Array | undefined;
  readonly version: number;
}

export interface StoredPage {
  readonly entries: { readonly key: string; readonly value: Uint8Array; readonly version: number }[];
  readonly more: boolean;
}

const stampKey = utf8("stamp");
const versionKey = utf8("version");
const leasePrefix = utf8("l/");
const keyPrefix = utf8("k/");
const pageBytesMax = 2 << 20;
/** Bound of the bytes that the store adds to a key and its value: prefix, frame and version. */
const entryBytes = 128;
/** Size of a lease's record with its key, at most: its five texts have up to 512 characters each, as JSON. */
const leaseBytesMax = 16_000;

/** Size of a group's writes. */
export interface GroupSize {
  readonly leases: number;
  readonly keys: number;
  /** Bytes of keys and values. */
  readonly keyBytes: number;
}

export const keySize = (key: string, value: Uint8Array | undefined): number => 3 * key.length + (value?.length ?? 0);

export const metadataStoreName = "metadata";
/** Name of the mark that a process keeps of a store in etcd. */
export const etcdStoreName = "etcd";
const replicatedStoreName = "consensus";

export class LockStore {
  readonly #store: CompleteStore;
  readonly #checksum: Checksum;
  #count = 0;

  constructor(store: CompleteStore, checksum: Checksum) {
    this.#store = store;
    this.#checksum = checksum;
  }

  /**
   * Refused with `damaged` when the store is not what was acknowledged last. One of an earlier version is taken over when each of its records
   * is intact; `readOnly` writes nothing.
   */
  static async open(world: CompleteStoreWorld, options: { readonly readOnly?: boolean } = {}): Promise<Outcome<LockStore>> {
    const opened = await openLevelStore(world, options);
    return opened.ok ? ok(new LockStore(opened.value, (bytes) => world.digest.crc32c(bytes))) : opened;
  }

  /** Returns the store in etcd, as the elected process has it. Refused with `newerFormat` if a newer release wrote a record of it. */
  static async openShared(world: CompleteStoreWorld, store: KeyValue): Promise<Outcome<LockStore>> {
    const opened = await openEtcdStore(world, store);
    return opened.ok ? ok(new LockStore(opened.value, (bytes) => world.digest.crc32c(bytes))) : opened;
  }

  /** Returns the store that lock services replicate, as the leader of a term has it; `readOnly`: as a stopped member has it. */
  static async openReplicated(
    world: CompleteStoreWorld,
    store: KeyValue,
    lineage: Uint8Array,
    options: { readonly readOnly?: boolean } = {},
  ): Promise<Outcome<LockStore>> {
    const opened = await openComplete(world, replicatedStoreName, { ...options, store, lineage, replicated: true });
    return opened.ok ? ok(new LockStore(opened.value, (bytes) => world.digest.crc32c(bytes))) : opened;
  }

  /** Most keys that one transaction writes; undefined: no bound of the store's own. */
  get writesMax(): number | undefined {
    const max = this.#store.batchMax;
    return max && max.operations - 1;
  }

  /** True if one batch has room for these rows, with the number of the transaction. */
  fits({ leases, keys, keyBytes }: GroupSize): boolean {
    const max = this.#store.batchMax;
    if (max === undefined) return true;
    return leases + keys + 1 <= max.operations && leases * leaseBytesMax + keyBytes + keys * entryBytes <= max.bytes;
  }

  /** Returns undefined if nobody else can have opened the store since. */
  get confirm(): (() => Promise<void>) | undefined {
    return this.#store.confirm;
  }

  /** Random name of the store's history. A restore gives a new one: versions of two lineages can't be compared. */
  get lineage(): string {
    return this.#store.lineage;
  }

  /** Number of the last batch; NaN, which equals no other, while that is not known. */
  get sequence(): number {
    return this.#store.sequence ?? Number.NaN;
  }

  /** Number of keys; the last known one while a batch is undecided. */
  get count(): number {
    this.#count = this.#store.count ?? this.#count;
    return this.#count;
  }

  /** Removes old values of metadata keys from the store's files. Nobody may write meanwhile. */
  async forgetOld(prefix: string): Promise<void> {
    const gte = storedKey(prefix);
    const lt = present(prefixEnd(gte), "the end of a prefix");
    let isThere = false;
    // LevelDB keeps values for whoever reads: the reading ends first.
    for await (const _ of this.#store.range({ gte, lt, limit: 1 })) isThere = true;
    if (isThere) await this.#store.forgetOld?.({ gte, lt });
  }

  async empty(): Promise<boolean> {
    for await (const _ of this.#store.range({ limit: 1 })) return false;
    return true;
  }

  async stampId(): Promise<Outcome<string | undefined>> {
    const stored = await this.#store.get(stampKey);
    if (stored === undefined) return ok<string | undefined>(undefined);
    return decodeStamp(stored, this.#checksum);
  }

  async initialise(stampId: string): Promise<void> {
    await this.#store.batch(
      [
        { kind: "put", key: stampKey, value: encodeStamp(stampId, this.#checksum) },
        { kind: "put", key: versionKey, value: encodeVersion(0, this.#checksum) },
      ],
      { sync: true },
    );
  }

  async lastVersion(): Promise<Outcome<number>> {
    const stored = await this.#store.get(versionKey);
    if (stored === undefined) return refused("dataLoss", "damaged", "the transaction number is missing");
    return decodeVersion(stored, this.#checksum);
  }

  async leases(): Promise<Outcome<LeaseRecord[]>> {
    const records: LeaseRecord[] = [];
    for await (const [, value] of this.#store.range({ gte: leasePrefix, lt: present(prefixEnd(leasePrefix), "end of leases") })) {
      const record = decodeLease(value, this.#checksum);
      if (!record.ok) return record;
      records.push(record.value);
    }
    return ok(records);
  }

  async key(key: string): Promise<Outcome<KeyState>> {
    const stored = await this.#store.get(storedKey(key));
    if (stored === undefined) return ok({ value: undefined, version: 0 });
    return decodeKeyState(stored, this.#checksum);
  }

  /** Returns the keys with the prefix, after `after`, at most `limit` and about 2 MiB. */
  async page(prefix: string, after: string, limit: number): Promise<Outcome<StoredPage>> {
    const prefixBytes = storedKey(prefix);
    const first = after === "" ? prefixBytes : following(storedKey(after));
    const entries: StoredPage["entries"] = [];
    let bytes = 0;
    const range = { gte: compareBytes(first, prefixBytes) < 0 ? prefixBytes : first, lt: present(prefixEnd(prefixBytes), "end of prefix") };
    for await (const [key, stored] of this.#store.range({ ...range, limit: limit + 1 })) {
      if (entries.length === limit || bytes >= pageBytesMax) return ok({ entries, more: true });
      const state = decodeKeyState(stored, this.#checksum);
      if (!state.ok) return state;
      const value = present(state.value.value, "value of a stored key");
      entries.push({ key: fromUtf8(key.subarray(keyPrefix.length)), value, version: state.value.version });
      bytes += key.length + value.length;
    }
    return ok({ entries, more: false });
  }

  /**
   * Yields everything as it is at the first step. Throws FailureError `damaged` at the end if the entries are not what was written.
   */
  everything(): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    return this.#store.everything();
  }

  /** Makes a group durable. Throws if that fails. */
  async commit(leases: Iterable<LeaseRecord>, keys: Iterable<readonly [string, KeyState]>, lastVersion: number): Promise<void> {
    let operations: KeyValueOperation[] = [];
    const changed = [...keys];
    const keyBytes = changed.reduce((sum, [key, { value }]) => sum + keySize(key, value), 0);
    for (const lease of leases) {
      // Each lease is a record of its own: it may become durable before the rest of the group.
      if (!this.fits({ leases: operations.length + 1, keys: changed.length, keyBytes })) {
        await this.#store.batch(operations, { sync: true });
        operations = [];
      }
      operations.push({ kind: "put", key: leaseKey(lease.name), value: encodeLease(lease, this.#checksum) });
    }
    let wroteKeys = false;
    for (const [key, state] of changed) {
      wroteKeys = true;
      if (state.value === undefined) operations.push({ kind: "delete", key: storedKey(key) });
      else operations.push({ kind: "put", key: storedKey(key), value: encodeKeyState(state.value, state.version, this.#checksum) });
    }
    if (wroteKeys) operations.push({ kind: "put", key: versionKey, value: encodeVersion(lastVersion, this.#checksum) });
    await this.#store.batch(operations, { sync: true });
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

/** Returns the store in this process's own folder, proven complete. */
export function openLevelStore(world: CompleteStoreWorld, options: OpenCompleteOptions = {}): Promise<Outcome<CompleteStore>> {
  return openComplete(world, metadataStoreName, { ...options, adopt: (store) => adopt(store, (bytes) => world.digest.crc32c(bytes)) });
}

/** Returns the store in etcd, proven complete. */
export function openEtcdStore(
  world: CompleteStoreWorld,
  store: KeyValue,
  options: OpenCompleteOptions = {},
): Promise<Outcome<CompleteStore>> {
  const checksum: Checksum = (bytes) => world.digest.crc32c(bytes);
  const look = (key: Uint8Array, value: Uint8Array): Outcome<unknown> => refuseNewerRecord(fromUtf8(key), value, checksum);
  return openComplete(world, etcdStoreName, { ...options, store, shared: true, look });
}

/** Refuses with `newerFormat` if a record, or a stream manager's record in it, is of a later version. Damage is left to its reader. */
export async function refuseNewerRecords(store: Pick<KeyValue, "range">, checksum: Checksum): Promise<Outcome<void>> {
  for await (const [key, value] of store.range({})) {
    const refusal = refuseNewerRecord(fromUtf8(key), value, checksum);
    if (!refusal.ok) return refusal;
  }
  return ok();
}

function refuseNewerRecord(name: string, value: Uint8Array, checksum: Checksum): Outcome<void> {
  const newer = (outcome: Outcome<unknown>): Failed | undefined =>
    !outcome.ok && outcome.failure.reason === "newerFormat" ? outcome : undefined;
  const known = name === "stamp" ? stampVersions.proven : 1;
  const record = unframeRecord(name.startsWith("l/") ? "lease" : "lock-service", value[0] ?? 0, known, value, checksum);
  const refusal = newer(record);
  if (refusal !== undefined) return refusal;
  if (!record.ok || !name.startsWith(`k/${managerPrefix}`)) return ok();
  return newer(decodeStored(name.slice(2), record.value.subarray(8), checksum)) ?? ok();
}

const leaseKey = (name: string): Uint8Array => utf8(`l/${name}`);
/** Returns the key in the store of a metadata key. */
export const storedKey = (key: string): Uint8Array => utf8(`k/${key}`);

/** Returns the key that sorts immediately after. */
function following(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}

/** Adds what a store of the earlier version lacks: software that knows no proof must not write to it any more. */
async function adopt(store: KeyValue, checksum: Checksum): Promise<Outcome<KeyValueOperation[]>> {
  const stamp = await store.get(stampKey);
  if (stamp === undefined) return refused("dataLoss", "damaged", "the metadata store holds data but no stamp identity");
  if (stamp[1] !== 1) {
    return refused("dataLoss", "damaged", "its proof is gone: it has lost its end, or was copied without its mark, the file metadata-mark");
  }
  for await (const [key, value] of store.range({})) {
    const intact = checkEntry(fromUtf8(key), value, checksum);
    if (!intact.ok) return refused("dataLoss", "damaged", `key ${fromUtf8(key)}: ${intact.failure.message}`);
  }
  const stampId = decodeStamp(stamp, checksum);
  if (!stampId.ok) return stampId;
  return ok([{ kind: "put", key: stampKey, value: encodeStamp(stampId.value, checksum) }]);
}

function checkEntry(key: string, value: Uint8Array, checksum: Checksum): Outcome<unknown> {
  if (key === "stamp") return decodeStamp(value, checksum);
  if (key === "version") return decodeVersion(value, checksum);
  if (key.startsWith("l/")) return decodeLease(value, checksum);
  if (key.startsWith("k/")) return decodeKeyState(value, checksum);
  return refused("dataLoss", "damaged", "this software knows no such key");
}

/** Versions of the stamp's record; version 2 says that the store has a proof of its content. Both have the same fields. */
const stampVersions = { bare: 1, proven: 2 } as const;

export function encodeStamp(stampId: string, checksum: Checksum): Uint8Array {
  return frameRecord(0x53, stampVersions.proven, utf8(JSON.stringify({ stampId })), checksum);
}

export function decodeStamp(bytes: Uint8Array, checksum: Checksum): Outcome<string> {
  const payload = unframeRecord(
    "lock-service",
    0x53,
    bytes[1] === stampVersions.bare ? stampVersions.bare : stampVersions.proven,
    bytes,
    checksum,
  );
  if (!payload.ok) return payload;
  const raw = JSON.parse(fromUtf8(payload.value)) as { readonly stampId?: unknown };
  return typeof raw.stampId === "string" ? ok(raw.stampId) : refused("dataLoss", "damaged", "the stamp record has no stampId");
}

export function encodeVersion(version: number, checksum: Checksum): Uint8Array {
  const payload = new Uint8Array(8);
  new DataView(payload.buffer).setBigUint64(0, BigInt(version));
  return frameRecord(0x56, 1, payload, checksum);
}

export function decodeVersion(bytes: Uint8Array, checksum: Checksum): Outcome<number> {
  const payload = unframeRecord("lock-service", 0x56, 1, bytes, checksum);
  if (!payload.ok) return payload;
  if (payload.value.length !== 8) return refused("dataLoss", "damaged", "a transaction number has 8 bytes");
  return ok(readVersion(payload.value));
}

export function encodeKeyState(value: Uint8Array, version: number, checksum: Checksum): Uint8Array {
  const payload = new Uint8Array(8 + value.length);
  new DataView(payload.buffer).setBigUint64(0, BigInt(version));
  payload.set(value, 8);
  return frameRecord(0x4b, 1, payload, checksum);
}

export function decodeKeyState(bytes: Uint8Array, checksum: Checksum): Outcome<KeyState> {
  const payload = unframeRecord("lock-service", 0x4b, 1, bytes, checksum);
  if (!payload.ok) return payload;
  if (payload.value.length < 8) return refused("dataLoss", "damaged", "a metadata key has at least 8 bytes");
  return ok({ value: payload.value.subarray(8), version: readVersion(payload.value) });
}

function readVersion(payload: Uint8Array): number {
  return Number(new DataView(payload.buffer, payload.byteOffset, payload.byteLength).getBigUint64(0));
}
