/**
 * The store of one member of a replicated metadata store, in one LevelDB: hard state, log and rows (docs/design/consensus.md has the reason for
 * one store; docs/formats/consensus.md the bytes).
 *
 *   h                         hard state
 *   s                         snapshot: where the log begins, who the members are, which rows count
 *   a                         last entry whose writes are among the rows
 *   e/<index>                 an entry of the log
 *   r/<generation>/<key>      a row; rows of another generation are of a snapshot on its way, or left over
 *
 * Invariants:
 *   - Log, hard state and rows of one Ready change in one batch. Nothing counts before a synced batch (rule consensusWritesSynced).
 *   - A snapshot that is being received lies aside. One batch makes its rows count, and gives up log and rows of before.
 *   - A store is opened only if the log has no hole, and the rows are those of the proof among them. Anything else is damage, never an empty store.
 */
import {
  assert,
  type Checksum,
  compareBytes,
  concatBytes,
  type Failed,
  type Outcome,
  ok,
  prefixEnd,
  present,
  refused,
  utf8,
} from "@stamp/base";
import { type CompleteStoreWorld, DiskError, type KeyRange, type KeyValue, type KeyValueOperation, whyIncomplete } from "@stamp/ports";
import { type Entry, type HardState, noSnapshot, type Ready, type SnapshotMeta } from "@stamp/raft";
import {
  type AppliedEntry,
  decodeApplied,
  decodeEntry,
  decodeHardState,
  decodeOperations,
  decodeSnapshot,
  encodeApplied,
  encodeEntry,
  encodeHardState,
  encodeOperations,
  encodeSnapshot,
} from "./records.ts";

/** Content of a starting member's store, without its rows. */
export interface StoredMember {
  readonly hardState: HardState;
  readonly snapshot: SnapshotMeta;
  readonly entries: readonly Entry[];
}

export type MemberStoreWorld = Pick<CompleteStoreWorld, "keyValue" | "digest" | "rules">;

const hardStateKey = utf8("h");
const snapshotKey = utf8("s");
const appliedKey = utf8("a");
const entryPrefix = utf8("e/");
const rowPrefix = utf8("r/");
/** Keys that one batch of a cleaning deletes. */
const deletedTogether = 2_000;

function numbered(prefix: Uint8Array, number: number, rest: Uint8Array = new Uint8Array(0)): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number));
  return concatBytes([prefix, bytes, rest]);
}

const entryKey = (index: number): Uint8Array => numbered(entryPrefix, index);
const rowsOf = (generation: number): Uint8Array => numbered(rowPrefix, generation, utf8("/"));
const put = (key: Uint8Array, value: Uint8Array): KeyValueOperation => ({ kind: "put", key, value });
const damaged = (message: string): Failed => refused("dataLoss", "damaged", message);

export class MemberStore {
  readonly #kv: KeyValue;
  readonly #world: MemberStoreWorld;
  readonly #checksum: Checksum;
  #generation: number;
  #lineage: Uint8Array;
  #snapshot: SnapshotMeta;
  /** Last entry that the batch applies which is being written. */
  #applied: AppliedEntry;
  /** Last entry whose writes can be read. */
  #readable: AppliedEntry;
  /** Last index in the stored log. */
  #last: number;
  /** Called for each row that was applied. */
  onRow: ((key: Uint8Array, value: Uint8Array | undefined) => void) | undefined;
  /** Called when a batch failed: throws unless it is to be tried again. */
  onFailure: (error: unknown) => Promise<void> = (error) => Promise.reject(error);

  private constructor(world: MemberStoreWorld, kv: KeyValue, found: Found) {
    this.#world = world;
    this.#kv = kv;
    this.#checksum = (bytes) => world.digest.crc32c(bytes);
    this.#generation = found.generation;
    this.#lineage = found.lineage;
    this.#snapshot = found.snapshot;
    this.#applied = found.applied;
    this.#readable = found.applied;
    this.#last = found.entries.at(-1)?.index ?? found.snapshot.index;
  }

  /** Opens the store. Refuses with `damaged` if no member wrote it, with `newerFormat` if a newer release did. Throws DiskError if the disk fails. */
  static async open(
    world: MemberStoreWorld,
    name: string,
  ): Promise<Outcome<{ readonly store: MemberStore; readonly stored: StoredMember }>> {
    const opened = await world.keyValue.open(name);
    if (opened.kind === "corrupt") return damaged(`LevelDB can't read it: ${opened.message}`);
    const kv = opened.store;
    try {
      const found = await readAll(world, kv);
      if (!found.ok) {
        await kv.close();
        return found;
      }
      const store = new MemberStore(world, kv, found.value);
      await store.#deleteRowsBut(found.value.generation);
      return ok({ store, stored: found.value });
    } catch (error) {
      await kv.close();
      if (error instanceof DiskError && error.kind === "io") return damaged(`it can't be read: ${error.message}`);
      throw error;
    }
  }

  /** Name of the history of the rows; empty: there are none. */
  get lineage(): Uint8Array {
    return this.#lineage;
  }

  /** Last entry whose writes readers of the rows see. */
  get applied(): AppliedEntry {
    return this.#readable;
  }

  get snapshotIndex(): number {
    return this.#snapshot.index;
  }

  /** Makes an empty store the first one of a new stamp: its snapshot, and a lineage that no other store has yet. */
  async begin(snapshot: SnapshotMeta, lineage: Uint8Array): Promise<StoredMember> {
    assert(this.#lineage.length === 0, "a history begins in an empty store");
    this.#lineage = lineage;
    this.#generation = 1;
    this.#snapshot = snapshot;
    this.#applied = { index: snapshot.index, term: snapshot.term };
    this.#readable = this.#applied;
    this.#last = snapshot.index;
    const hardState: HardState = { term: 0, vote: undefined, commit: snapshot.index };
    await this.#kv.batch([put(hardStateKey, encodeHardState(hardState, this.#checksum)), this.#snapshotRecord(), this.#appliedRecord()], {
      sync: true,
    });
    return { hardState, snapshot, entries: [] };
  }

  /**
   * Writes what the Readys ask for, and applies their committed entries, in one batch. At most the first one installs a snapshot, which is of this
   * lineage.
   */
  async write(readys: readonly Ready[], lineage: Uint8Array): Promise<void> {
    const operations: KeyValueOperation[] = [];
    let sync = false;
    let cleaned: number | undefined;
    for (const ready of readys) {
      sync ||= ready.mustSync;
      if (ready.snapshot !== undefined) {
        cleaned = this.#generation;
        this.#install(operations, ready.snapshot, lineage);
      }
      this.#append(operations, ready.entries);
      if (ready.hardState !== undefined) operations.push(put(hardStateKey, encodeHardState(ready.hardState, this.#checksum)));
      this.#apply(operations, ready.committed);
    }
    await this.#batch(operations, sync && this.#world.rules.on("consensusWritesSynced"));
    this.#readable = this.#applied;
    this.#tellRows(readys);
    if (cleaned !== undefined) await this.#deleteRowsBut(this.#generation);
  }

  #tellRows(readys: readonly Ready[]): void {
    for (const { body } of this.onRow === undefined ? [] : readys.flatMap(({ committed }) => committed)) {
      const rows = body.kind === "data" ? decodeOperations(body.data) : ok([]);
      if (rows.ok) for (const row of rows.value) this.onRow?.(row.key, row.kind === "put" ? row.value : undefined);
    }
  }

  /** Cuts the stored log off below a snapshot of what is applied. */
  async cut(snapshot: SnapshotMeta): Promise<void> {
    assert(snapshot.index === this.#applied.index, "a snapshot is of the rows as they are");
    const from = this.#snapshot.index + 1;
    if (snapshot.index < from) return;
    this.#snapshot = snapshot;
    const operations: KeyValueOperation[] = [this.#snapshotRecord()];
    for (let index = from; index <= snapshot.index; index++) operations.push({ kind: "delete", key: entryKey(index) });
    await this.#batch(operations, true);
  }

  /** Rows that count, as a store that is only read. */
  get rows(): Pick<KeyValue, "get" | "range"> {
    return {
      get: (key) => this.#kv.get(concatBytes([rowsOf(this.#generation), key])),
      range: (range) => this.#range(this.#generation, range),
    };
  }

  /** Stores rows of a snapshot that is being received. */
  async receive(bytes: Uint8Array, first: boolean): Promise<Outcome<void>> {
    const rows = decodeOperations(bytes);
    if (!rows.ok) return rows;
    if (first) await this.#deleteRowsBut(this.#generation);
    const prefix = rowsOf(this.#generation + 1);
    await this.#batch(
      rows.value.map((row) => ({ ...row, key: concatBytes([prefix, row.key]) })),
      false,
    );
    return ok();
  }

  /** Returns why the rows that were received are not what the leader has; undefined: they are. */
  whyReceivedIncomplete(): Promise<string | undefined> {
    return whyIncomplete(this.#world, { range: (range) => this.#range(this.#generation + 1, range) });
  }

  close(): Promise<void> {
    return this.#kv.close();
  }

  /** Writes a batch, again and again while `onFailure` says so. */
  async #batch(operations: readonly KeyValueOperation[], sync: boolean): Promise<void> {
    for (let done = operations.length === 0; !done; ) {
      try {
        await this.#kv.batch(operations, { sync });
        done = true;
      } catch (error) {
        await this.onFailure(error);
      }
    }
  }

  #install(operations: KeyValueOperation[], snapshot: SnapshotMeta, lineage: Uint8Array): void {
    for (let index = this.#snapshot.index + 1; index <= this.#last; index++) operations.push({ kind: "delete", key: entryKey(index) });
    this.#generation += 1;
    this.#lineage = lineage;
    this.#snapshot = snapshot;
    this.#applied = { index: snapshot.index, term: snapshot.term };
    this.#last = snapshot.index;
    operations.push(this.#snapshotRecord(), this.#appliedRecord());
  }

  #append(operations: KeyValueOperation[], entries: readonly Entry[]): void {
    const first = entries[0];
    const last = entries.at(-1);
    if (first === undefined || last === undefined) return;
    for (let index = last.index + 1; index <= this.#last; index++) operations.push({ kind: "delete", key: entryKey(index) });
    for (const entry of entries) operations.push(put(entryKey(entry.index), encodeEntry(entry, this.#checksum)));
    this.#last = last.index;
  }

  #apply(operations: KeyValueOperation[], committed: readonly Entry[]): void {
    const last = committed.at(-1);
    if (last === undefined) return;
    assert(committed[0]?.index === this.#applied.index + 1, "entries are applied in order, each once");
    const prefix = rowsOf(this.#generation);
    for (const { body } of committed) {
      if (body.kind !== "data") continue;
      const rows = decodeOperations(body.data);
      // Every member has these bytes, and whoever proposed them has encoded them.
      assert(rows.ok, "a committed entry can be read");
      for (const row of rows.value) operations.push({ ...row, key: concatBytes([prefix, row.key]) });
    }
    this.#applied = { index: last.index, term: last.term };
    operations.push(this.#appliedRecord());
  }

  #snapshotRecord(): KeyValueOperation {
    return put(
      snapshotKey,
      encodeSnapshot({ snapshot: this.#snapshot, generation: this.#generation, lineage: this.#lineage }, this.#checksum),
    );
  }

  #appliedRecord(): KeyValueOperation {
    return put(appliedKey, encodeApplied(this.#applied, this.#checksum));
  }

  #range(generation: number, range: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    return rangeOfRows(this.#kv, generation, range);
  }

  async #deleteRowsBut(generation: number): Promise<void> {
    const kept = rowsOf(generation);
    const after = present(prefixEnd(kept), "the end of a prefix");
    const end = present(prefixEnd(rowPrefix), "the end of a prefix");
    await this.#deleteRange({ gte: rowPrefix, lt: kept });
    await this.#deleteRange({ gte: after, lt: end });
  }

  async #deleteRange(range: { readonly gte: Uint8Array; readonly lt: Uint8Array }): Promise<void> {
    for (let more = true; more; ) {
      const operations: KeyValueOperation[] = [];
      for await (const [key] of this.#kv.range({ ...range, limit: deletedTogether })) operations.push({ kind: "delete", key });
      more = operations.length === deletedTogether;
      await this.#batch(operations, false);
    }
  }
}

async function* rangeOfRows(
  kv: Pick<KeyValue, "range">,
  generation: number,
  { gte, lt, ...rest }: KeyRange,
): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
  const prefix = rowsOf(generation);
  const end = lt === undefined ? present(prefixEnd(prefix), "the end of a prefix") : concatBytes([prefix, lt]);
  for await (const [key, value] of kv.range({ ...rest, gte: concatBytes([prefix, gte ?? new Uint8Array(0)]), lt: end }))
    yield [key.slice(prefix.length), value];
}

interface Found extends StoredMember {
  readonly generation: number;
  readonly lineage: Uint8Array;
  readonly applied: AppliedEntry;
}

/** Reads a whole store. Refused with `damaged` or `newerFormat`. */
async function readAll(world: MemberStoreWorld, kv: KeyValue): Promise<Outcome<Found>> {
  const checksum: Checksum = (bytes) => world.digest.crc32c(bytes);
  const [hard, head, last] = [await kv.get(hardStateKey), await kv.get(snapshotKey), await kv.get(appliedKey)];
  const hardState = hard === undefined ? ok<HardState>({ term: 0, vote: undefined, commit: 0 }) : decodeHardState(hard, checksum);
  if (!hardState.ok) return hardState;
  const nothing = { snapshot: noSnapshot, generation: 0, lineage: new Uint8Array(0) };
  const begins = head === undefined ? ok(nothing) : decodeSnapshot(head, checksum);
  if (!begins.ok) return begins;
  const { snapshot, generation, lineage } = begins.value;
  const applied = last === undefined ? ok<AppliedEntry>({ index: snapshot.index, term: snapshot.term }) : decodeApplied(last, checksum);
  if (!applied.ok) return applied;
  const entries = await readLog(kv, snapshot.index, checksum);
  if (!entries.ok) return entries;
  const end = entries.value.at(-1)?.index ?? snapshot.index;
  if (hard === undefined && end > 0) return damaged("the hard state is missing");
  if (head !== undefined && last === undefined) return damaged("the place of the last applied entry is missing");
  if (applied.value.index < snapshot.index || applied.value.index > end)
    return damaged(`entry ${applied.value.index} is applied, and the log has those from ${snapshot.index + 1} to ${end}`);
  const why = await whyIncomplete(world, { range: (range) => rangeOfRows(kv, generation, range) });
  if (why !== undefined) return damaged(why);
  return ok({ hardState: hardState.value, snapshot, entries: entries.value, generation, lineage, applied: applied.value });
}

async function readLog(kv: KeyValue, snapshotIndex: number, checksum: Checksum): Promise<Outcome<Entry[]>> {
  const entries: Entry[] = [];
  for await (const [key, value] of kv.range({ gte: entryPrefix, lt: present(prefixEnd(entryPrefix), "the end of a prefix") })) {
    const entry = decodeEntry(value, checksum);
    if (!entry.ok) return entry;
    const { index, term } = entry.value;
    const before = entries.at(-1);
    if (compareBytes(key, entryKey(index)) !== 0 || index !== (before?.index ?? snapshotIndex) + 1 || term < (before?.term ?? 0))
      return damaged(`its log has entry ${index} of term ${term} behind entry ${before?.index ?? snapshotIndex}`);
    entries.push(entry.value);
  }
  return ok(entries);
}

/** Reads a snapshot of the rows at its first step, in pieces. */
export class SnapshotReader {
  readonly index: number;
  readonly #rows: AsyncIterator<readonly [Uint8Array, Uint8Array]>;
  #next: IteratorResult<readonly [Uint8Array, Uint8Array]>;
  #offset = 0;
  /** Piece that was read last: it is asked for again if it was lost. */
  #given: { readonly offset: number; readonly bytes: Uint8Array; readonly last: boolean } | undefined;

  private constructor(
    index: number,
    rows: AsyncIterator<readonly [Uint8Array, Uint8Array]>,
    next: IteratorResult<readonly [Uint8Array, Uint8Array]>,
  ) {
    this.index = index;
    this.#rows = rows;
    this.#next = next;
  }

  static async begin(store: MemberStore): Promise<SnapshotReader> {
    const rows = store.rows.range({})[Symbol.asyncIterator]();
    return new SnapshotReader(store.applied.index, rows, await rows.next());
  }

  /** Returns a piece; undefined: these bytes are not held any more. */
  async piece(offset: number, bytesMax: number): Promise<{ readonly bytes: Uint8Array; readonly last: boolean } | undefined> {
    // A later reader of the same snapshot has the same pieces.
    while (this.#offset < offset && this.#given?.last !== true) await this.#read(bytesMax);
    if (this.#given?.offset === offset) return this.#given;
    return offset === this.#offset && this.#given?.last !== true ? this.#read(bytesMax) : undefined;
  }

  async #read(bytesMax: number): Promise<{ readonly bytes: Uint8Array; readonly last: boolean }> {
    const offset = this.#offset;
    const rows: KeyValueOperation[] = [];
    for (let bytes = 0; this.#next.done !== true && bytes < bytesMax; ) {
      const [key, value] = this.#next.value;
      rows.push(put(key, value));
      bytes += key.length + value.length;
      this.#next = await this.#rows.next();
    }
    const bytes = encodeOperations(rows);
    this.#offset = offset + bytes.length;
    this.#given = { offset, bytes, last: this.#next.done === true };
    return this.#given;
  }

  async close(): Promise<void> {
    await this.#rows.return?.();
  }
}
