/**
 * The KeyValue port over etcd, for the one process that is elected. Each batch is one etcd transaction.
 *
 * Invariants (model/lock-services.pml; rules electionConditional, batchesInOrder, answersConfirmed):
 *   - A batch is applied only while the election key has the create revision of this session: a deposed process writes nothing.
 *   - A batch is applied only directly behind the batch before it, so an attempt that arrives late changes nothing.
 *   - A batch without an answer is sent again until etcd has told whether it is there, or the session has ended.
 *   - `confirm` resolves only if etcd still had this session's election key after it was called, and at most `beatEveryMs` after the last beat or
 *     batch without another beat (beats.ts).
 *   - Nobody else writes while the session lasts, so what was read or written here is what etcd has: `cacheBytes` of it are kept.
 */
import { assert, concatBytes, equalBytes, FailureError, fromUtf8, prefixEnd, present, type Rules, refused, utf8 } from "@stamp/base";
import { DiskError, type KeyRange, type KeyValue, type KeyValueOperation } from "@stamp/ports";
import type { Beats } from "./beats.ts";
import type { Session } from "./election.ts";
import { type EtcdClient, isOfTheRequest } from "./etcd-client.ts";
import { createdAt, modifiedAt, put, read, remove } from "./operations.ts";
import { type EtcdKeys, etcdLimits } from "./options.ts";

const pageKeysMin = 8;
const pageKeysMax = 2_000;
/** Size that a page of a range aims at. */
const pageBytes = 1 << 20;
const cacheBytesDefault = 64 << 20;
/** Bound of the bytes of an operation besides its key and value. */
const operationBytes = 32;

interface Kept {
  readonly value: Uint8Array | undefined;
  readonly bytes: number;
}

export class EtcdKeyValue implements KeyValue {
  /** One operation and one comparison are the store's own. */
  readonly batchMax = { operations: etcdLimits.operationsMax - 1, bytes: etcdLimits.requestBytesMax - 4_096 } as const;
  readonly #client: EtcdClient;
  readonly #session: Session;
  readonly #keys: EtcdKeys;
  readonly #rules: Rules;
  readonly #beats: Beats;
  readonly #cacheBytesMax: number;
  /** Keyed by key as Latin-1 text; the least recently used first. */
  readonly #cache = new Map<string, Kept>();
  #cacheBytes = 0;
  /** Revision at which the batch key was written last; undefined before the first look. */
  #batchRevision: bigint | undefined;
  #batches = 0;
  #last: Promise<void> = Promise.resolve();
  /** Time at which etcd last said that it has no room, by the monotonic clock; undefined: it has room. */
  #fullSinceMs: number | undefined;

  constructor(session: Session, rules: Rules, cacheBytesMax: number = cacheBytesDefault) {
    this.#client = session.client;
    this.#session = session;
    this.#keys = session.keys;
    this.#rules = rules;
    this.#beats = session.beats;
    this.#cacheBytesMax = cacheBytesMax;
  }

  get fullSinceMs(): number | undefined {
    return this.#fullSinceMs;
  }

  async get(key: Uint8Array): Promise<Uint8Array | undefined> {
    const name = latin1(key);
    const kept = this.#cache.get(name);
    if (kept !== undefined) {
      this.#cache.delete(name);
      this.#cache.set(name, kept);
      return kept.value?.slice();
    }
    const found = await this.#read({ key: this.#stored(key) });
    const value = found.kvs[0]?.value;
    this.#keep(name, value);
    return value?.slice();
  }

  /** Writes a batch. Resolves when it is durable on most members. Throws DiskError `full` without room, FailureError if the session has ended. */
  batch(operations: readonly KeyValueOperation[]): Promise<void> {
    if (operations.length === 0) return Promise.resolve();
    const done = this.#last.then(() => this.#write(operations));
    this.#last = done.catch(() => {});
    return done;
  }

  async *range({ gte, lt, limit = Number.POSITIVE_INFINITY, reverse = false }: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    assert(!reverse, "a store in etcd is read forwards only");
    let from = this.#stored(gte ?? new Uint8Array(0));
    const end = lt === undefined ? present(prefixEnd(this.#keys.data), "end of the store's keys") : this.#stored(lt);
    let left = limit;
    let pageKeys = 256;
    let revision = 0n;
    while (left > 0) {
      const page = await this.#page(from, end, Math.min(left, pageKeys), revision);
      if (page === undefined) {
        pageKeys = Math.max(1, pageKeys >> 1);
        continue;
      }
      revision = page.revision;
      let bytes = 0;
      for (const { key, value } of page.kvs) {
        bytes += key.length + value.length;
        yield [key.slice(this.#keys.data.length), value.slice()];
      }
      left -= page.kvs.length;
      const last = page.kvs.at(-1);
      if (last === undefined || !page.more) return;
      from = concatBytes([last.key, new Uint8Array(1)]);
      pageKeys = Math.round(Math.min(pageKeysMax, Math.max(pageKeysMin, (pageBytes * page.kvs.length) / Math.max(bytes, 1))));
    }
  }

  /** Resolves if this process was still elected after the call; throws FailureError if the session has ended. */
  async confirm(): Promise<void> {
    if (!this.#rules.on("answersConfirmed")) return;
    if (!this.#beats.fresh) {
      const beaten = await this.#beats.beat();
      this.#session.check();
      if (beaten === "deposed") throw this.#deposed("another process was elected");
      return;
    }
    const { kvs } = await this.#read({ key: this.#keys.active });
    if (kvs[0]?.createRevision !== this.#session.createRevision) throw this.#deposed("another process was elected");
  }

  /** Ends the session: whatever waits for etcd ends with it. */
  async close(): Promise<void> {
    this.#session.end("its store was closed");
    await this.#last;
  }

  async #write(operations: readonly KeyValueOperation[]): Promise<void> {
    const { active, batch } = this.#keys;
    const newest = new Map(operations.map((operation) => [latin1(operation.key), operation]));
    const ops = [...newest.values()].map((each) =>
      each.kind === "put" ? put(this.#stored(each.key), each.value) : remove(this.#stored(each.key)),
    );
    this.#check([...newest.values()]);
    this.#batchRevision ??= (await this.#read({ key: batch })).kvs[0]?.modRevision ?? 0n;
    this.#batches += 1;
    const id = utf8(`${this.#session.createRevision}/${this.#batches}`);
    const compare = [
      ...(this.#rules.on("electionConditional") ? [createdAt(active, this.#session.createRevision)] : []),
      ...(this.#rules.on("batchesInOrder") ? [modifiedAt(batch, this.#batchRevision)] : []),
    ];
    const request = { compare, success: [...ops, put(batch, id)], failure: [read(active), read(batch)] };
    let unanswered = false;
    const sentMs = this.#client.world.clock.monotonicMs();
    for (let tries = 0; ; tries++) {
      this.#session.check();
      const answer = await this.#client.once(({ kv }, options) => kv.txn(request, options));
      if (answer.ok) {
        const revision = answer.value.succeeded ? answer.value.header?.revision : this.#written(answer.value.responses, id);
        this.#batchRevision = present(revision, "revision of an answer");
        break;
      }
      const { failure } = answer;
      if (failure.reason === "diskFull") {
        // etcd says so also of a transaction that it has applied and that filled it.
        const written = (await this.#read({ key: batch })).kvs[0];
        if (written !== undefined && equalBytes(written.value, id)) {
          this.#batchRevision = written.modRevision;
          break;
        }
        this.#fullSinceMs = this.#client.world.clock.monotonicMs();
        if (!unanswered) throw new DiskError("full", "etcd", failure.message);
      } else if (isOfTheRequest(failure)) throw new FailureError(failure);
      unanswered ||= failure.applied === "unknown" && failure.reason !== "diskFull";
      await this.#client.pause(tries, this.#session.ended);
    }
    this.#fullSinceMs = undefined;
    this.#beats.wrote(sentMs);
    for (const [name, each] of newest) this.#keep(name, each.kind === "put" ? each.value.slice() : undefined);
  }

  /** Returns the revision of the batch, which an earlier attempt wrote. The conditions did not hold. */
  #written(
    responses: readonly { readonly response: { readonly case?: string | undefined; readonly value?: unknown } }[],
    id: Uint8Array,
  ): bigint {
    type Found = { readonly kvs: readonly { readonly createRevision: bigint; readonly modRevision: bigint; readonly value: Uint8Array }[] };
    const [active, batch] = responses.map(({ response }) => (response.value as Found).kvs[0]);
    if (active?.createRevision !== this.#session.createRevision) throw this.#deposed("another process was elected");
    if (batch === undefined || !equalBytes(batch.value, id)) {
      throw this.#deposed(
        `its last batch is ${batch === undefined ? "gone" : fromUtf8(batch.value)}, not ${fromUtf8(id)} or the one before`,
      );
    }
    return batch.modRevision;
  }

  #check(operations: readonly KeyValueOperation[]): void {
    let bytes = 0;
    for (const each of operations) bytes += operationSize(each, this.#keys.data.length);
    if (operations.length <= this.batchMax.operations && bytes <= this.batchMax.bytes) return;
    const message = `a batch of ${operations.length} operations and ${bytes} bytes is larger than etcd takes`;
    throw new FailureError(refused("invalidArgument", "messageTooLarge", message).failure);
  }

  async #page(from: Uint8Array, end: Uint8Array, limit: number, revision: bigint) {
    const request = { key: from, rangeEnd: end, limit: BigInt(limit), revision };
    const answer = await this.#client.repeat(
      ({ kv }, options) => kv.range(request, { ...options, timeoutMs: 4 * options.timeoutMs }),
      (failure) => failure.reason === "messageTooLarge" || this.#session.ended.aborted,
    );
    if (answer.ok) return { ...answer.value, revision: revision === 0n ? (answer.value.header?.revision ?? 0n) : revision };
    if (answer.failure.reason === "messageTooLarge" && limit > 1) return undefined;
    this.#session.check();
    throw new FailureError(answer.failure);
  }

  /** Reads, and repeats until there is an answer or the session has ended. */
  async #read(request: { readonly key: Uint8Array }) {
    const answer = await this.#client.repeat(
      ({ kv }, options) => kv.range(request, options),
      () => this.#session.ended.aborted,
    );
    this.#session.check();
    if (!answer.ok) throw new FailureError(answer.failure);
    return answer.value;
  }

  #deposed(why: string): FailureError {
    this.#session.end(why);
    return this.#session.lost(why);
  }

  #stored(key: Uint8Array): Uint8Array {
    return this.#keys.stored(key);
  }

  #keep(name: string, value: Uint8Array | undefined): void {
    const bytes = name.length + (value?.length ?? 0) + 64;
    this.#cacheBytes -= this.#cache.get(name)?.bytes ?? 0;
    this.#cache.delete(name);
    if (bytes > this.#cacheBytesMax) return;
    this.#cache.set(name, { value, bytes });
    this.#cacheBytes += bytes;
    for (const [oldest, kept] of this.#cache) {
      if (this.#cacheBytes <= this.#cacheBytesMax) break;
      this.#cache.delete(oldest);
      this.#cacheBytes -= kept.bytes;
    }
  }
}

const operationSize = (operation: KeyValueOperation, prefixBytes: number): number =>
  operationBytes + prefixBytes + operation.key.length + (operation.kind === "put" ? operation.value.length : 0);

function latin1(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
