/**
 * One range partition over its streams: rows read at a snapshot, transactions under row order, group commit, checkpoints in the
 * background. Knows nothing of leases: whoever answers users checks its lease after it has an answer of this.
 *
 * Invariants: a row is changed by one transaction at a time, whose lock is held until the commit is durable and applied (pipelined: until
 * it is decided; the next transaction of its lock key sees it, and nobody is told of it before it is durable); sequences rise without a gap in the
 * log; a snapshot sees exactly the commits up to its sequence.
 */
import { compareBytes, type Failure, FailureError, type FormatName, type Outcome, ok, present } from "@stamp/base";
import type { LogLineage } from "@stamp/lsm";
import { SlowLog, type World } from "@stamp/ports";
import type { AppendOptions, OwnedStream, Place, StreamClient } from "@stamp/stream-client";
import { BlobData, type StoredData } from "./blob-data/blob-data.ts";
import { DataPins } from "./blob-data/data-pins.ts";
import { makeCaches } from "./cache/caches.ts";
import { MemoryBudget } from "./cache/memory-budget.ts";
import { evenKeySamples, type Storage } from "./checkpoint/checkpoint-reader.ts";
import { Maintenance } from "./checkpoint/maintenance.ts";
import { Upkeep } from "./checkpoint/upkeep.ts";
import { type CommittedGroup, GroupCommit } from "./commit/group-commit.ts";
import { Transactions } from "./commit/transactions.ts";
import { LogFollowers } from "./followers/log-followers.ts";
import { Departure } from "./handoff/departure.ts";
import type { HandedOver } from "./handoff/hand-over.ts";
import { inheritPartition } from "./handoff/inherit.ts";
import type { LeftPartition } from "./handoff/leave.ts";
import { limitDefaults } from "./limits.ts";
import { type LoadedPartition, loadPartition, type PartitionStreams } from "./load/load.ts";
import { MemoryTables } from "./memory-tables.ts";
import type { ScanRange } from "./scan-range.ts";
import { ShippedFences } from "./shipping/shipped-fences.ts";
import { getVersion, memorySamples, RowScan, type TableView } from "./tables.ts";
import type {
  DataExtent,
  DecidedWrites,
  PartitionLimits,
  PartitionOptions,
  PartitionStats,
  Snapshot,
  Transaction,
  TransactOptions,
} from "./types.ts";

export class RangePartition {
  readonly rangeId: string;
  readonly #world: World;
  readonly #options: PartitionOptions;
  readonly #limits: Required<PartitionLimits>;
  readonly #streams: PartitionStreams;
  readonly #storage: Storage;
  readonly #maintenance: Maintenance;
  readonly #commit: GroupCommit;
  readonly #transactions: Transactions;
  readonly #data: BlobData;
  /** Reads of the bytes that rows refer to. */
  readonly data: StoredData;
  /** Readers of the commit log. */
  readonly followers: LogFollowers;
  readonly fences: ShippedFences;
  readonly #slow: SlowLog;
  readonly #tables: MemoryTables;
  readonly #upkeep: Upkeep;
  /** The tables that each open snapshot reads. */
  readonly #views = new WeakMap<Snapshot, TableView>();
  #ended: Failure | undefined;
  #lost = false;
  /** Part that leaves when the range is split or merged. */
  readonly departure: Departure;

  /** Takes the partition over from whoever had it. Refused with `staleOwnerEpoch` when a higher epoch did so before. */
  static async load(
    world: World,
    streams: StreamClient,
    options: PartitionOptions & { readonly timeoutMs: number },
  ): Promise<Outcome<RangePartition>> {
    const limits = { ...limitDefaults, ...options.limits };
    const loaded = await loadPartition(world, streams, options, options.caches ?? makeCaches(limits));
    if (!loaded.ok) return loaded;
    const partition = new RangePartition(world, options, limits, loaded.value);
    partition.#upkeep.look();
    partition.#upkeep.fillCache();
    return ok(partition);
  }

  /** Like `load`, begun with what `parents` left in this process. Undefined if that fails: the range has to be loaded. */
  static async inherit(
    world: World,
    client: StreamClient,
    options: PartitionOptions,
    parents: readonly RangePartition[],
    left: LeftPartition,
    handed: HandedOver,
  ): Promise<RangePartition | undefined> {
    const limits = { ...limitDefaults, ...options.limits };
    const streams = parents.map((parent) => parent.#streams);
    const inherited = await inheritPartition(world, client, options, options.caches ?? makeCaches(limits), streams, left, handed);
    if (inherited === undefined) return undefined;
    const partition = new RangePartition(world, options, limits, inherited);
    partition.#upkeep.restMerges();
    return partition;
  }

  private constructor(world: World, options: PartitionOptions, limits: Required<PartitionLimits>, loaded: LoadedPartition) {
    const { replayed, streams } = loaded;
    this.rangeId = options.rangeId;
    this.#world = world;
    this.#options = options;
    this.#limits = limits;
    this.#streams = streams;
    this.#storage = loaded.storage;
    const own = { low: options.lowKey, high: options.highKey };
    const followed = { ...options, own, recentBytesMax: limits.followedBytesMax };
    this.followers = new LogFollowers(world, followed, loaded, () => this.#unlessLeft(() => this.#maintenance.recordFollowers()));
    const sizes = { checkpointsMax: limits.checkpointsMax, garbageBytesMax: 4 * limits.memoryTableBytesMax };
    this.#maintenance = new Maintenance(loaded.storage, streams, loaded, sizes, own, this.followers);
    this.#slow = new SlowLog(world);
    const settled = loaded.state.settledExtents ?? [];
    const pins = new DataPins({ rules: world.rules, termMs: options.pinTermMs ?? 0, nowMs: world.clock.monotonicMs(), settled });
    this.#data = new BlobData(streams.blobData, loaded.storage.reader, pins, () => world.clock.monotonicMs());
    this.data = this.#data;
    this.#tables = new MemoryTables(limits, replayed, { extentId: streams.commitLog.extents.at(-1)?.extentId ?? 0, offsetBytes: 0 });
    this.#commit = new GroupCommit(world, streams.commitLog, {
      ownerEpoch: options.ownerEpoch,
      groupBytesMax: limits.groupBytesMax,
      overdueBytesMax: limits.overdueBytesMax,
      lastSequence: replayed.lastSequence,
      lastTicket: replayed.lastTicket,
      appends: loaded.storage.times.append,
      apply: (committed) => this.#apply(committed),
      room: () => this.#upkeep.room(),
      onLost: (failure) => this.#lose(failure),
    });
    this.#transactions = this.#makeTransactions();
    this.departure = this.#makeDeparture();
    this.fences = new ShippedFences({
      stored: loaded.state.shippedFences ?? {},
      keys: { low: this.#options.lowKey, high: this.#options.highKey },
      record: (fences) => this.#maintenance.recordFences(fences, this.#commit.lastTicket),
      tickets: this.#commit,
      untilOver: () => this.#transactions.untilOver(),
      ended: () => this.#ended ?? this.departure.recorded,
    });
    this.#upkeep = this.#makeUpkeep();
    for (const stream of Object.values(streams)) void stream?.whenFenced.then(() => this.#fenced(stream));
  }

  #makeTransactions(): Transactions {
    const { rangeId, lowKey, highKey } = this.#options;
    return new Transactions(this.#world, {
      rangeId,
      lowKey,
      highKey,
      transactionsMax: this.#limits.transactionsMax,
      commit: this.#commit,
      phases: this.#storage.times.phases,
      closed: () => this.#closed,
      ended: () => this.#ended,
      get: (key) => this.get(key),
      scan: (range) => this.scan(range),
      view: () => this.#view(),
      ownsPlace: (place) => this.ownsPlace(place),
      lead: (key) => this.fences.lead(key),
    });
  }

  #makeDeparture(): Departure {
    return new Departure({
      rangeId: this.rangeId,
      world: this.#world,
      streams: this.#streams,
      maintenance: this.#maintenance,
      commit: this.#commit,
      transactions: this.#transactions,
      data: this.#data,
      ended: () => this.#ended,
      tables: this.#tables,
      upkeep: () => this.#upkeep,
    });
  }

  #makeUpkeep(): Upkeep {
    return new Upkeep({
      rangeId: this.rangeId,
      world: this.#world,
      storage: this.#storage,
      maintenance: this.#maintenance,
      tables: this.#tables,
      memory: this.#options.memory ?? new MemoryBudget(Number.POSITIVE_INFINITY),
      ended: () => this.#ended,
      closed: () => this.#closed,
      recorded: () => this.departure.recorded,
      lastTicket: () => this.#commit.lastTicket,
      frozen: ({ lastSequence, logStart }) => this.followers.mark(lastSequence, logStart),
      lose: (failure) => this.#lose(failure),
    });
  }

  get lineage(): LogLineage {
    return this.#maintenance.state.lineage ?? { log: 0, store: 0 };
  }

  /** Begins a later lineage of the log than `above`, durably. */
  beginLineage(above: number): Promise<Outcome<void>> {
    return this.#unlessLeft(() => this.#maintenance.beginLineage(above));
  }

  get stats(): PartitionStats {
    const { active, frozen, frozenBytes, lastSequence, activeLogBytes } = this.#tables;
    return {
      sequence: lastSequence,
      memoryTableBytes: active.bytes + frozenBytes,
      memoryTableEntries: active.count + (frozen?.table.count ?? 0),
      memoryTableFirstSequence: frozen?.table.firstSequence || active.firstSequence,
      checkpointedSequence: this.#maintenance.state.checkpointedSequence,
      logBytes: activeLogBytes,
      checkpoints: this.#maintenance.checkpoints.length,
      checkpointBytes: this.#upkeep.checkpointBytes,
      cacheBytes: this.#storage.caches.blocks.bytes,
      indexCacheBytes: this.#storage.caches.indexes.bytes,
      storage: this.#storage.figures.counts,
      transactionsInProgress: this.#transactions.inProgress,
      overBeforeMs: this.#transactions.overBeforeMs,
      overBeforeMonotonicMs: this.#transactions.overBeforeMonotonicMs,
      commits: this.#commit.commits,
      groups: this.#commit.groups,
      ...{ lost: this.#lost, losses: this.#maintenance.state.losses },
    };
  }

  /** Returns the value now, or as the snapshot sees it. Throws FailureError when storage can't be read or the partition is lost. */
  async get(key: Uint8Array, snapshot?: Snapshot): Promise<Uint8Array | undefined> {
    this.#alive();
    this.#storage.figures.add("pointReads");
    return (await getVersion(this.#view(snapshot), key, snapshot?.sequence ?? this.#tables.lastSequence))?.value;
  }

  /** Returns a snapshot of now: everything committed so far, nothing later. It keeps what it reads from in memory until it is closed. */
  snapshot(): Snapshot {
    const snapshot: Snapshot = {
      sequence: this.#tables.lastSequence,
      close: () => {
        this.#views.delete(snapshot);
      },
    };
    this.#views.set(snapshot, this.#view());
    return snapshot;
  }

  /** Yields rows in key order, all from one moment. Throws FailureError. */
  scan(range: ScanRange, snapshot?: Snapshot): RowScan {
    this.#alive();
    const { figures } = this.#storage;
    const watch = { figures, check: () => this.#alive(), clock: this.#world.clock };
    return new RowScan(this.#view(snapshot), range, snapshot?.sequence ?? this.#tables.lastSequence, watch);
  }

  /**
   * Runs `decide` while nobody else writes under this lock key (or any of these), commits what it decided and answers when that is durable.
   * Without writes nothing is appended. Past the deadline: `no` if the commit was not sent yet, else `unknown`, and the lock stays held until
   * the outcome is known. Pipelined: the lock is free when the writes are queued, and a queued commit is `unknown` past the deadline.
   */
  transact<T>(
    lockKey: Uint8Array | readonly Uint8Array[],
    decide: (transaction: Transaction) => Promise<DecidedWrites<T>>,
    options: TransactOptions,
  ): Promise<Outcome<T>> {
    return this.#transactions.run(lockKey, decide, options);
  }

  /** Appends to the blob data stream, one block a chunk. Bytes that no row refers to are garbage. */
  async appendData(chunks: readonly Uint8Array[], options: AppendOptions): Promise<Outcome<readonly Place[]>> {
    const closed = this.#closed;
    if (closed !== undefined) return { ok: false, failure: closed };
    const sinceMs = this.#world.clock.monotonicMs();
    const placed = await this.#data.append(chunks, options);
    this.#slow.ended("an append of blob data took long", sinceMs, () => ({
      ...{ rangeId: this.rangeId, requestId: options.cause?.["request-id"] },
      behind: this.#streams.blobData?.pendingAppends,
      outcome: placed.ok ? "done" : placed.failure.reason,
    }));
    return placed;
  }

  ownsPlace(place: Place): boolean {
    return this.#data.owns(place);
  }

  /** Returns the sealed extents that no upload in progress has bytes in, in order; recorded before they are returned, so that later owners know. */
  async settleExtents(): Promise<Outcome<readonly DataExtent[]>> {
    const ended = this.#ended;
    if (ended !== undefined) return { ok: false, failure: ended };
    // The children are loaded from the last record of a leaving partition.
    if (this.departure.recorded === undefined) {
      this.#data.settle();
      const recorded = new Set(this.#maintenance.state.settledExtents);
      const settled = this.#data.settled;
      const known = settled.every((extentId) => recorded.has(extentId)) ? ok() : await this.#maintenance.settle(settled);
      if (!known.ok) return known;
    }
    return ok(this.#data.settledExtents);
  }

  /** Deleted containers, tables and queues with rows here: `account/name/incarnation`, milliseconds since 1970. */
  get goneSinceMs(): Readonly<Record<string, number>> {
    return this.#maintenance.state.goneSinceMs ?? {};
  }

  /** Records that, so that later owners count on. */
  recordGone(goneSinceMs: Readonly<Record<string, number>>): Promise<Outcome<void>> {
    return this.#unlessLeft(() => this.#maintenance.recordGone(goneSinceMs));
  }

  async #unlessLeft(record: () => Promise<Outcome<void>>): Promise<Outcome<void>> {
    const ended = this.#ended ?? this.departure.recorded;
    return ended === undefined ? record() : { ok: false, failure: ended };
  }

  /**
   * Records, before it resolves well, that the streams hold this version of a format whose version no load reads (rows, keys). To be asked
   * inside of a transaction that will write it: what leaves for other owners has the record then, or the transaction is refused.
   */
  async need(format: FormatName, version: number): Promise<Outcome<void>> {
    if ((this.#maintenance.state.needs?.[format] ?? 0) >= version) return ok();
    const done = await this.#unlessLeft(() => this.#maintenance.need(format, version));
    return done.ok ? done : { ok: false, failure: { ...done.failure, applied: "no" } };
  }

  /** Renews the pins of these extents; returns the extents that are gone. */
  pinData(extentIds: readonly number[]): Outcome<readonly number[]> {
    const closed = this.#closed;
    return closed === undefined ? ok(this.#data.pin(extentIds)) : { ok: false, failure: closed };
  }

  /** Appends the bytes of these places once more. Returns a place for each. */
  copyData(places: readonly Place[], options: { readonly timeoutMs: number }): Promise<Outcome<readonly Place[]>> {
    const closed = this.#closed;
    return closed === undefined ? this.#data.copy(places, options) : Promise.resolve({ ok: false, failure: closed });
  }

  /**
   * Lets no row begin to refer to these extents from now on. Resolves when every transaction that began before is over, so that a snapshot taken
   * then shows every reference there is or ever will be (rule placesCheckedInRowOrder). For one collector at a time.
   */
  async leaveExtents(extentIds: readonly number[]): Promise<void> {
    this.#data.leave(extentIds);
    await this.#transactions.untilOver();
  }

  /** Takes those of them out of the blob data stream that nothing refers to; the others may be referred to again. */
  dropExtents(unreferenced: ReadonlySet<number>, options: { readonly timeoutMs: number }): Promise<Outcome<readonly number[]>> {
    return this.#data.drop(this.#ended ? new Set() : unreferenced, options);
  }

  /** Writes what is in memory out while everything goes on; resolves when it is in a checkpoint. Not of one that leaves: that does so itself. */
  checkpoint(): Promise<Outcome<void>> {
    return this.#upkeep.checkpoint();
  }

  /** Resolves when there is an extent to write commits to. */
  begin(): Promise<void> {
    return this.#streams.commitLog.begin();
  }

  /** Returns the keys that divide what is in memory and in checkpoints into parts of about one size, in order; none when there is little. */
  keySamples(): readonly Uint8Array[] {
    const inMemory = this.#view().memory.map(memorySamples);
    return evenKeySamples([...this.#maintenance.checkpoints, ...inMemory], (key) => this.#inRange(key));
  }

  /** Names and extents of the range's streams, for the next owner. */
  get streams(): PartitionStreams {
    return this.#streams;
  }

  /** Takes no new transaction; resolves when none is in flight or the time is over. The outcome of the rest is unknown. */
  async close(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    const stopping: Failure = { code: "unavailable", reason: "stopping", message: `${this.rangeId} was closed`, applied: "no" };
    this.#ended ??= stopping;
    this.#stopWork();
    this.#commit.end(stopping);
    await new Promise<void>((resolve) => {
      const timer = this.#world.clock.after(options.timeoutMs ?? 5_000, resolve);
      void this.#commit.whenIdle().then(() => {
        timer.cancel();
        resolve();
      });
    });
    await this.#closeStreams();
  }

  /** Forgets what the row data cache has of a partition that was closed and is served elsewhere. */
  async forgetCached(): Promise<void> {
    for (const checkpoint of this.#maintenance.checkpoints) await checkpoint.forget();
  }

  #view(snapshot?: Snapshot): TableView {
    if (snapshot !== undefined) return present(this.#views.get(snapshot), "the view of an open snapshot");
    return { memory: this.#tables.newestFirst, checkpoints: this.#maintenance.checkpoints };
  }

  #inRange(key: Uint8Array): boolean {
    const { lowKey, highKey } = this.#options;
    return compareBytes(key, lowKey) >= 0 && (highKey.length === 0 || compareBytes(key, highKey) < 0);
  }

  #apply(committed: CommittedGroup): void {
    this.#storage.figures.add("rowBytesAccepted", this.#tables.apply(committed));
    const { firstSequence, transactions, place } = committed;
    const end = place && this.#tables.logEnd;
    this.followers.committed({ firstSequence, transactions, lastTicket: this.#commit.lastTicket, end });
    this.#upkeep.tellMemory();
    this.#upkeep.look();
  }

  #fenced(stream: OwnedStream): void {
    const message = `${stream.name} has another owner than epoch ${this.#options.ownerEpoch}`;
    this.#lose({ code: "failedPrecondition", reason: "staleOwnerEpoch", message, applied: "no" });
  }

  #lose(failure: Failure): void {
    if (this.#ended !== undefined) return;
    this.#ended = { ...failure, applied: "no" };
    this.#stopWork();
    this.#lost = true;
    this.#commit.end(failure);
    void this.#closeStreams();
    this.#world.logger.warn("range partition lost", { rangeId: this.rangeId, reason: failure.reason, message: failure.message });
    this.#options.onLost?.(failure.message);
  }

  #stopWork(): void {
    this.#upkeep.stop();
    this.#transactions.wake();
    this.followers.stop();
  }

  async #closeStreams(): Promise<void> {
    const { metadata, commitLog, rowData, blobData } = this.#streams;
    await Promise.all([metadata, commitLog, rowData, blobData].map((stream) => stream?.close()));
  }

  /** Returns the failure with which new work is refused; undefined: it is taken. */
  get #closed(): Failure | undefined {
    return this.#ended ?? this.departure.left;
  }

  #alive(): void {
    if (this.#ended !== undefined) throw new FailureError(this.#ended);
  }
}
