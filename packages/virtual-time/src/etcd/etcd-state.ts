/**
 * The store of a simulated etcd: keys with revisions, leases with a time to live, watchers. Every operation is one step, so it is linearizable.
 * Only the part of etcd that `@stamp/etcd` uses, with etcd's own limits and words.
 */
import { compareBytes, FailureError, type Outcome, ok, refused, toHex } from "@stamp/base";
import { etcd } from "@stamp/wire";

export interface StoredKey {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  readonly lease: bigint;
}

export interface EtcdChange {
  readonly key: Uint8Array;
  readonly revision: bigint;
  readonly deleted: boolean;
}

interface HeldLease {
  readonly ttlMs: number;
  endsMs: number;
}

/** Versions of the keys at one revision. */
type Keys = ReadonlyMap<string, StoredKey>;

const operationsMax = 128;
const requestBytesMax = 1.5 * 1024 * 1024;

export class EtcdState {
  revision = 1n;
  /** Revisions up to this one can't be read any more. */
  compacted = 0n;
  /** Bytes of keys and values that are the most; the rest is refused as etcd does with its quota. */
  quotaBytes: number = Number.POSITIVE_INFINITY;
  /** Changes the stored value where etcd is faulty. */
  garble: (key: Uint8Array, value: Uint8Array) => Uint8Array = (_key, value) => value;
  #keys: Keys = new Map();
  readonly #history = new Map<bigint, Keys>();
  readonly #leases = new Map<bigint, HeldLease>();
  #leaseNext = 1n;
  readonly #changes: EtcdChange[] = [];
  readonly #watchers = new Set<(change: EtcdChange) => void>();

  get header() {
    return { revision: this.revision };
  }

  get leases(): ReadonlyMap<bigint, { readonly endsMs: number }> {
    return this.#leases;
  }

  range(request: etcd.RangeRequest): Outcome<{ kvs: StoredKey[]; more: boolean; count: bigint; header: { revision: bigint } }> {
    const keys = request.revision === 0n ? this.#keys : this.#history.get(request.revision);
    if (request.revision > 0n && request.revision < this.compacted) {
      return refused("outOfRange", "outOfRange", "etcdserver: mvcc: required revision has been compacted");
    }
    if (keys === undefined) return refused("outOfRange", "outOfRange", "etcdserver: mvcc: required revision is a future revision");
    if (request.rangeEnd.length === 0) {
      const kvs = [keys.get(toHex(request.key))].filter((key) => key !== undefined);
      return ok({ kvs, more: false, count: BigInt(kvs.length), header: this.header });
    }
    const inside = ({ key }: StoredKey): boolean => compareBytes(key, request.key) >= 0 && compareBytes(key, request.rangeEnd) < 0;
    const found = [...keys.values()].filter(inside).sort((a, b) => compareBytes(a.key, b.key));
    const limit = request.limit === 0n ? found.length : Number(request.limit);
    return ok({ kvs: found.slice(0, limit), more: found.length > limit, count: BigInt(found.length), header: this.header });
  }

  /** Refuses a request that etcd would refuse before it proposes it. */
  check(request: etcd.TxnRequest): Outcome<void> {
    if (Math.max(request.compare.length, request.success.length, request.failure.length) > operationsMax) {
      return refused("invalidArgument", "badRequest", "etcdserver: too many operations in txn request");
    }
    const puts = [...request.success, ...request.failure].flatMap(({ request: op }) => (op.case === "requestPut" ? [op.value] : []));
    const bytes = puts.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
    if (bytes > requestBytesMax) return refused("invalidArgument", "badRequest", "etcdserver: request is too large");
    if (new Set(request.success.map((op) => nameOf(op))).size < request.success.length) {
      return refused("invalidArgument", "badRequest", "etcdserver: duplicate key given in txn request");
    }
    return ok();
  }

  apply(request: etcd.TxnRequest): Outcome<{ succeeded: boolean; responses: object[]; header: { revision: bigint } }> {
    const succeeded = request.compare.every((compare) => this.#holds(compare));
    const operations = succeeded ? request.success : request.failure;
    const writes = operations.filter(({ request: op }) => op.case !== "requestRange");
    for (const { request: op } of writes) {
      if (op.case === "requestPut" && op.value.lease !== 0n && !this.#leases.has(op.value.lease)) {
        return refused("notFound", "leaseEnded", "etcdserver: requested lease not found");
      }
    }
    // Without room etcd goes on removing keys, and refuses every transaction that could put one.
    const couldPut = [...request.success, ...request.failure].some(({ request: op }) => op.case === "requestPut");
    if (couldPut && this.bytes > this.quotaBytes) {
      return refused("resourceExhausted", "diskFull", "etcdserver: mvcc: database space exceeded");
    }
    if (writes.length > 0) this.#write(writes);
    const responses = operations.map(({ request: op }) => {
      if (op.case !== "requestRange") return op.case === "requestPut" ? answer("responsePut") : answer("responseDeleteRange");
      const found = this.range(op.value);
      if (!found.ok) throw new FailureError(found.failure);
      return { response: { case: "responseRange" as const, value: found.value } };
    });
    return ok({ succeeded, responses, header: this.header });
  }

  /** Returns all keys, to be stored. */
  saved(): unknown {
    return this.#keys;
  }

  /** Restores the members from a backup, as a person does. The elected process is not in it. */
  putBack(saved: unknown): void {
    this.revision += 1n;
    this.#keys = new Map([...(saved as Keys)].filter(([, { lease }]) => lease === 0n));
    this.#history.set(this.revision, this.#keys);
    for (const id of [...this.#leases.keys()]) this.#leases.delete(id);
  }

  /** Loses a key, as damage of every member's disk does. */
  forget(key: Uint8Array): void {
    const keys = new Map(this.#keys);
    keys.delete(toHex(key));
    this.#keys = keys;
  }

  get bytes(): number {
    let bytes = 0;
    for (const { key, value } of this.#keys.values()) bytes += key.length + value.length;
    return bytes;
  }

  compact(revision: bigint): Outcome<void> {
    if (revision <= this.compacted) return refused("outOfRange", "outOfRange", "etcdserver: mvcc: required revision has been compacted");
    this.compacted = revision;
    for (const known of this.#history.keys()) if (known < revision) this.#history.delete(known);
    this.#changes.splice(0, this.#changes.findIndex((change) => change.revision >= revision) >>> 0);
    return ok();
  }

  grant(ttlSeconds: bigint, nowMs: number): bigint {
    const id = this.#leaseNext++;
    const ttlMs = Number(ttlSeconds) * 1_000;
    this.#leases.set(id, { ttlMs, endsMs: nowMs + ttlMs });
    return id;
  }

  /** Seconds that the lease has now; 0: there is none. */
  keepAlive(id: bigint, nowMs: number): bigint {
    const lease = this.#leases.get(id);
    if (lease === undefined) return 0n;
    lease.endsMs = nowMs + lease.ttlMs;
    return BigInt(lease.ttlMs / 1_000);
  }

  /** Gives every lease its whole time to live again, as a new leader of etcd does. */
  extendLeases(nowMs: number): void {
    for (const lease of this.#leases.values()) lease.endsMs = nowMs + lease.ttlMs;
  }

  revoke(id: bigint): boolean {
    if (!this.#leases.delete(id)) return false;
    const bound = [...this.#keys.values()].filter(({ lease }) => lease === id);
    if (bound.length > 0) this.#write(bound.map(({ key }) => deletion(key)));
    return true;
  }

  expire(nowMs: number): void {
    for (const [id, { endsMs }] of this.#leases) if (endsMs <= nowMs) this.revoke(id);
  }

  /** Tells every change of a key from a revision on. Gives what ends it. */
  watch(startRevision: bigint, told: (change: EtcdChange) => void): () => void {
    for (const change of this.#changes) if (change.revision >= startRevision) told(change);
    this.#watchers.add(told);
    return () => this.#watchers.delete(told);
  }

  #write(writes: readonly Pick<etcd.RequestOp, "request">[]): void {
    this.revision += 1n;
    const keys = new Map(this.#keys);
    const changed: EtcdChange[] = [];
    for (const { request: op } of writes) {
      if (op.case === "requestPut") {
        const { key, value, lease } = op.value;
        const createRevision = keys.get(toHex(key))?.createRevision ?? this.revision;
        keys.set(toHex(key), {
          key: key.slice(),
          value: this.garble(key, value).slice(),
          createRevision,
          modRevision: this.revision,
          lease,
        });
        changed.push({ key, revision: this.revision, deleted: false });
      } else if (op.case === "requestDeleteRange" && keys.delete(toHex(op.value.key))) {
        changed.push({ key: op.value.key, revision: this.revision, deleted: true });
      }
    }
    this.#keys = keys;
    this.#history.set(this.revision, keys);
    this.#changes.push(...changed);
    for (const change of changed) for (const told of this.#watchers) told(change);
  }

  #holds({ key, target, targetUnion }: etcd.Compare): boolean {
    const stored = this.#keys.get(toHex(key));
    if (target === etcd.Compare_CompareTarget.CREATE) return (stored?.createRevision ?? 0n) === targetUnion.value;
    if (target === etcd.Compare_CompareTarget.MOD) return (stored?.modRevision ?? 0n) === targetUnion.value;
    throw new Error("the simulated etcd compares revisions only");
  }
}

const answer = (kind: "responsePut" | "responseDeleteRange") => ({ response: { case: kind, value: {} } });
const nameOf = ({ request: op }: etcd.RequestOp): string => toHex(op.value?.key ?? new Uint8Array(0));
const deletion = (key: Uint8Array): Pick<etcd.RequestOp, "request"> =>
  ({ request: { case: "requestDeleteRange", value: { key, rangeEnd: new Uint8Array(0) } } }) as Pick<etcd.RequestOp, "request">;
