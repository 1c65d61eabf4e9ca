/**
 * The journal as a running thing: group commit over preallocated segments. One write and one fdatasync are in flight; what arrives
 * meanwhile is the next batch. A record counts only when its batch is synced; callbacks run in LSN order.
 *
 * Invariants: a batch begins at a page and never spans segments; a segment is begun only when everything before it is synced, and its
 * beginning is recorded before its first record; the oldest segment is reused first, and only when all its records are in extent files,
 * synced (`release`). A failed write or sync ends the process: nothing can be said of the batch any more.
 *
 * A pointer record is held until the bytes it points to are synced in the extent's file (`JournalQueue`). So LSNs follow the order of the
 * records of one extent, and not of all.
 *
 * While the disk is full nothing is released. Appends that were not written yet then fail, and what is left (fences, seals, terms) goes
 * into the reserve segment.
 */
import { assert, Histogram, present, WakeUp } from "@stamp/base";
import {
  encodeJournalHeader,
  encodeSegmentHeader,
  type FailedRecord,
  JournalQueue,
  type JournalRecord,
  journalHeaderBytes,
  type ObeyedTerm,
  pageAligned,
  segmentRecordsOffset,
} from "@stamp/extent";
import type { Disk, World } from "@stamp/ports";
import type { DiskQueue } from "../disk/disk-queue.ts";
import { firstSegmentBytes, type Segment, SegmentPool } from "./segment-pool.ts";
import { joinSmall } from "./slices.ts";

export interface JournalEntry {
  readonly record: JournalRecord;
  /** Bytes of the record, borrowed until it is durable. */
  readonly body: readonly Uint8Array[];
  readonly bodyBytes: number;
  readonly bodyChecksum: number;
  readonly durable: (lsn: number, generation: number) => void;
  /** Called for an append that was not written and never will be. */
  readonly failed?: (why: string) => void;
  /**
   * For a pointer: it is written only when this has resolved, with the bytes it points to. If rejected, it and the
   * appends behind it fail.
   */
  readonly pointed?: { readonly lengthBytes: number; readonly synced: Promise<void> };
}

export interface JournalConfig {
  readonly journalSegmentBytes: number;
  readonly journalSegmentsMax: number;
  readonly journalBatchBytesMax: number;
  readonly reserveBytes: number;
}

export interface JournalStart {
  readonly nextLsn: number;
  /** Highest known generation of a segment that was begun. */
  readonly generation: number;
  /** Names of the segment files, all free, oldest first. */
  readonly segments: readonly string[];
}

export interface JournalHooks {
  /** Resolves when there is room for more durable records; undefined when there is. */
  room(): Promise<void> | undefined;
  /**
   * True while durable records can't be brought into extent files, because the disk is full. `diskFilled` tells when
   * that begins.
   */
  full(): boolean;
  /** Notes that no more records go into this segment: `release` it when all of them are in extent files. */
  segmentClosed(generation: number): void;
  /** Records a segment's begin, durably before the first record of this generation. */
  segmentBegun(generation: number): Promise<void>;
  obeyed(): ObeyedTerm;
}

const diskIsFull = "the disk is full";
const smallBodyBytes = 16 * 1024;
const smallBatchBytes = 64 * 1024;
/** Bytes that the records of one segment point to at most, in segments: recovery reads them again. */
const pointedSegmentsMax = 8;

export class Journal {
  readonly #world: World;
  readonly #diskQueue: DiskQueue;
  readonly #config: JournalConfig;
  readonly #hooks: JournalHooks;
  readonly #pool: SegmentPool;
  readonly #queue = new JournalQueue<JournalEntry>();
  #nextLsn: number;
  #syncedLsn: number;
  #checkpointLsn: number;
  #generation: number;
  #current: Segment | undefined;
  #at = 0;
  /** Number of bytes that pointers in the current segment refer to. */
  #pointedBytes = 0;
  #salt = 0;
  #running: Promise<void> | undefined;
  #stopped = false;
  /** Moving average: what one batch takes. */
  #batchMs = 1;
  #batches = 0;
  /** Time of one batch to be written and synced, without its wait for a turn. */
  readonly synced: Histogram;
  #writtenBytes = 0;
  /** Bytes of the batch that is being written. */
  #inHandBytes = 0;
  #drains: { readonly number: number; readonly resolve: () => void }[] = [];
  readonly #filled = new WakeUp();

  constructor(world: World, disk: Disk, queue: DiskQueue, config: JournalConfig, start: JournalStart, hooks: JournalHooks) {
    this.#world = world;
    this.#diskQueue = queue;
    this.#config = config;
    this.#hooks = hooks;
    this.#pool = new SegmentPool(world, disk, config);
    this.synced = new Histogram(world.clock);
    this.#nextLsn = start.nextLsn;
    this.#syncedLsn = start.nextLsn - 1;
    this.#checkpointLsn = start.nextLsn - 1;
    this.#generation = start.generation;
  }

  /** Opens the segment files that are there; they hold nothing that is still needed. */
  async open(segments: readonly string[]): Promise<void> {
    await this.#pool.open(segments);
    await this.#roll();
  }

  /** True while only state records are written. */
  get onReserve(): boolean {
    return this.#current?.reserve === true && !this.#pool.hasFree;
  }
  get queuedBytes(): number {
    return this.#queue.bodyBytes;
  }
  get batches(): number {
    return this.#batches;
  }
  /** Bytes of the records that wait or are being written. */
  get undurableBytes(): number {
    return this.#queue.bodyBytes + this.#inHandBytes;
  }
  /** Number of bytes written since the start. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }
  get segments(): { readonly total: number; readonly waiting: number } {
    return { total: this.#pool.total, waiting: this.#pool.waiting };
  }
  /** The largest body that fits into every segment. */
  get bodyBytesMax(): number {
    return firstSegmentBytes(this.#config) - segmentRecordsOffset - journalHeaderBytes;
  }

  /** Returns the probable time until a record added now is durable, in milliseconds. */
  expectedMs(bodyBytes: number): number {
    const batchesBefore = Math.ceil((this.#queue.bodyBytes + bodyBytes) / this.#config.journalBatchBytesMax);
    return (batchesBefore + (this.#running === undefined ? 0 : 1)) * this.#batchMs;
  }

  add(entry: JournalEntry): void {
    assert(entry.bodyBytes <= this.bodyBytesMax, "journal record fits a segment");
    const { record, bodyBytes, pointed } = entry;
    const append = entry.failed !== undefined;
    const number = this.#queue.add({ item: entry, extentId: record.extentId, bodyBytes, append }, pointed !== undefined);
    pointed?.synced.then(
      () => this.#letGo(number),
      (error: unknown) => this.#letGo(number, error instanceof Error ? error.message : String(error)),
    );
    // Whoever waits for room may now have to make way for a state record.
    if (entry.failed === undefined) this.#rouse();
    this.#wake();
  }

  /** Adds a record. Resolves when it and everything of its extent before it are durable. */
  write(record: JournalRecord, body: Uint8Array, apply?: (lsn: number, generation: number) => void): Promise<void> {
    return new Promise((resolve) => {
      this.add({
        record,
        body: [body],
        bodyBytes: body.length,
        bodyChecksum: this.#world.digest.crc32c(body),
        durable: (lsn, generation) => {
          apply?.(lsn, generation);
          resolve();
        },
      });
    });
  }

  /** Resolves when everything added so far is durable. */
  drained(): Promise<void> {
    if (this.#running === undefined && this.#queue.isEmpty) return Promise.resolve();
    return new Promise((resolve) => this.#drains.push({ number: this.#queue.lastNumber, resolve }));
  }

  /** Releases the record of a pointer: the disk has its bytes, or will never have them. */
  #letGo(number: number, why?: string): void {
    this.#fail(this.#queue.letGo(number, why));
    this.#wake();
  }

  /** Notes that all records of this segment and of earlier ones are in extent files, synced. */
  release(generation: number): void {
    this.#checkpointLsn = Math.max(this.#checkpointLsn, this.#pool.release(generation));
  }

  /** Notes that the disk is full since now. */
  diskFilled(): void {
    this.#failAppends();
    this.#rouse();
    this.#pool.wake();
  }

  async close(): Promise<void> {
    this.#stopped = true;
    this.#rouse();
    this.#pool.stop();
    await this.#running;
    await this.#pool.close();
  }

  #wake(): void {
    if (this.#running !== undefined || this.#stopped) return;
    this.#running = this.#run().catch((error: unknown) => {
      if (this.#stopped) return;
      this.#stopped = true;
      this.#world.fatal(`the journal can't be written: ${String(error)}`);
    });
  }

  #rouse(): void {
    this.#filled.notify();
  }

  async #run(): Promise<void> {
    // One turn of the loop: whatever arrives in this tick joins the batch.
    await undefined;
    while (!this.#stopped) {
      if (this.#hooks.full()) this.#failAppends();
      if (!this.#queue.hasReady) break;
      const room = this.#hooks.room();
      // A state record and what was taken before it never wait for room: all of it is in memory already.
      if (room !== undefined && this.#queue.onlyAppends) {
        await Promise.race([room, this.#filled.next]);
        continue;
      }
      const startedMs = this.#world.clock.monotonicMs();
      await this.#commit(this.#queue.take(Math.min(this.#config.journalBatchBytesMax, this.bodyBytesMax)));
      this.#batchMs = this.#batchMs * 0.9 + (this.#world.clock.monotonicMs() - startedMs) * 0.1;
    }
    this.#running = undefined;
    this.#drain();
  }

  /** Wakes those that wait for what is durable or failed by now. Only between batches. */
  #drain(): void {
    const first = this.#queue.firstNumber;
    const drained = this.#drains.filter(({ number }) => number < first);
    if (drained.length === 0) return;
    this.#drains = this.#drains.filter(({ number }) => number >= first);
    for (const { resolve } of drained) resolve();
  }

  /** Fails appends that were not written yet: the node takes no bytes while its disk is full. */
  #failAppends(): void {
    this.#fail(this.#queue.failAppends(diskIsFull));
  }

  #fail(failed: readonly FailedRecord<JournalEntry>[]): void {
    for (const { item, why } of failed) item.failed?.(why);
    if (this.#running === undefined) this.#drain();
  }

  #fits(segment: Segment, batch: readonly JournalEntry[]): boolean {
    const pointedBytesMax = pointedSegmentsMax * this.#config.journalSegmentBytes;
    if (this.#pointedBytes > 0 && this.#pointedBytes + pointedBy(batch) > pointedBytesMax) return false;
    return this.#at + sizeOf(batch) <= segment.sizeBytes;
  }

  /** Fails the appends of the batch and those that wait: none may follow a failed one. */
  #withoutAppends(batch: readonly JournalEntry[]): readonly JournalEntry[] {
    for (const entry of batch) entry.failed?.(diskIsFull);
    this.#failAppends();
    return batch.filter((entry) => entry.failed === undefined);
  }

  async #commit(taken: readonly JournalEntry[]): Promise<void> {
    let batch = taken;
    if (this.#current?.reserve) {
      if (this.#pool.hasFree) await this.#roll();
      else batch = this.#withoutAppends(batch);
    }
    if (this.#current === undefined || !this.#fits(this.#current, batch)) await this.#roll();
    const segment = present(this.#current, "journal segment");
    if (segment.reserve) batch = this.#withoutAppends(batch);
    if (batch.length === 0) return;
    const bytes = sizeOf(batch);
    const { crc32c } = this.#world.digest;
    const firstLsn = this.#nextLsn;
    const chunks: Uint8Array[] = [];
    for (const entry of batch) {
      const header = encodeJournalHeader(crc32c, this.#salt, {
        ...entry.record,
        generation: segment.generation,
        lsn: this.#nextLsn++,
        syncedLsn: this.#syncedLsn,
        bodyBytes: entry.bodyBytes,
        bodyChecksum: entry.bodyChecksum,
      });
      if (entry.bodyBytes <= smallBodyBytes) chunks.push(...joinSmall([header, ...entry.body], smallBodyBytes + journalHeaderBytes));
      else chunks.push(header, ...entry.body);
    }
    const { file } = segment;
    this.#inHandBytes = bytes;
    await this.#diskQueue.run({ class: "journal" }, bytes, async () => {
      const sinceMs = this.#world.clock.monotonicMs();
      await file.write(this.#at, joinSmall(chunks, smallBatchBytes));
      await file.sync();
      this.synced.since(sinceMs);
    });
    this.#inHandBytes = 0;
    this.#at += pageAligned(bytes);
    this.#pool.filled(this.#at);
    this.#writtenBytes += pageAligned(bytes);
    this.#pointedBytes += pointedBy(batch);
    this.#syncedLsn = this.#nextLsn - 1;
    segment.lastLsn = this.#syncedLsn;
    this.#batches += 1;
    batch.forEach((entry, i) => {
      entry.durable(firstLsn + i, segment.generation);
    });
    this.#drain();
  }

  /** Begins the next segment: everything written before is synced. */
  async #roll(): Promise<void> {
    const full = this.#current;
    this.#current = undefined;
    if (full !== undefined) {
      this.#pool.written(full);
      this.#hooks.segmentClosed(full.generation);
    }
    const segment = await this.#pool.next(() => this.#hooks.full());
    const { term: smTerm, lowerings: termLowerings } = this.#hooks.obeyed();
    this.#generation += 1;
    this.#salt = this.#world.random.uint32();
    segment.generation = this.#generation;
    segment.lastLsn = this.#nextLsn - 1;
    const header = encodeSegmentHeader(this.#world.digest.crc32c, {
      salt: this.#salt,
      generation: this.#generation,
      firstLsn: this.#nextLsn,
      smTerm,
      termLowerings,
      segmentBytes: segment.sizeBytes,
      checkpointLsn: this.#checkpointLsn,
    });
    // Synced before the first record: a torn header means a segment with nothing in it.
    await segment.file.write(0, [header]);
    await segment.file.sync();
    // Only now: a generation that is recorded and not found was lost, with records in it.
    await this.#hooks.segmentBegun(this.#generation);
    this.#current = segment;
    this.#at = segmentRecordsOffset;
    this.#pointedBytes = 0;
  }
}

const sizeOf = (batch: readonly JournalEntry[]): number => batch.reduce((bytes, entry) => bytes + journalHeaderBytes + entry.bodyBytes, 0);

const pointedBy = (batch: readonly JournalEntry[]): number => batch.reduce((bytes, entry) => bytes + (entry.pointed?.lengthBytes ?? 0), 0);
