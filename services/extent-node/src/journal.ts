/**
 * The journal as a running thing: group commit over preallocated segments. One write and one fdatasync are in flight; what arrives
 * meanwhile is the next batch. A record counts only when its batch is synced; callbacks run in LSN order.
 *
 * Invariants: a batch begins at a page and never spans segments; a segment is begun only when everything before it is synced; the
 * oldest segment is reused first, and only when all its records are in extent files, synced (`release`).
 * A failed write or sync ends the process: nothing can be said of the batch any more.
 */
import { assert, present } from "@stamp/base";
import {
  encodeJournalHeader,
  encodeSegmentHeader,
  type JournalRecord,
  journalHeaderBytes,
  pageAligned,
  segmentRecordsOffset,
} from "@stamp/extent";
import type { Disk, DiskFile, World } from "@stamp/ports";
import type { DiskQueue } from "./disk-queue.ts";
import { joinSmall } from "./slices.ts";

export interface JournalEntry {
  readonly record: JournalRecord;
  /** Borrowed until durable. */
  readonly body: readonly Uint8Array[];
  readonly bodyBytes: number;
  readonly bodyChecksum: number;
  readonly durable: (lsn: number, generation: number) => void;
}

export interface JournalConfig {
  readonly journalSegmentBytes: number;
  readonly journalSegmentsMax: number;
  readonly journalBatchBytesMax: number;
}

export interface JournalStart {
  readonly nextLsn: number;
  /** Highest generation of any segment found. */
  readonly generation: number;
  /** Names of the segment files, all free, oldest first. */
  readonly segments: readonly string[];
}

export interface JournalHooks {
  /** Resolves when there is room for more durable records; undefined when there is. */
  room(): Promise<void> | undefined;
  /** No more records go into this segment: `release` it when all of them are in extent files. */
  segmentClosed(generation: number): void;
  smTerm(): number;
}

interface Segment {
  readonly name: string;
  readonly file: DiskFile;
  generation: number;
  lastLsn: number;
}

export const journalFolder = "journal";
const smallBodyBytes = 16 * 1024;
const smallBatchBytes = 64 * 1024;

export class Journal {
  readonly #world: World;
  readonly #disk: Disk;
  readonly #diskQueue: DiskQueue;
  readonly #config: JournalConfig;
  readonly #hooks: JournalHooks;
  #queue: JournalEntry[] = [];
  #queuedBytes = 0;
  #nextLsn: number;
  #syncedLsn: number;
  #checkpointLsn: number;
  #generation: number;
  readonly #free: Segment[] = [];
  readonly #closed: Segment[] = [];
  #current: Segment | undefined;
  #at = 0;
  #segmentsMade: number;
  #running: Promise<void> | undefined;
  #released: (() => void) | undefined;
  #making: Promise<void> | undefined;
  #stopped = false;
  /** Moving average: what one batch takes. */
  #batchMs = 1;
  #batches = 0;
  readonly #idle: (() => void)[] = [];

  constructor(world: World, disk: Disk, queue: DiskQueue, config: JournalConfig, start: JournalStart, hooks: JournalHooks) {
    this.#diskQueue = queue;
    this.#world = world;
    this.#disk = disk;
    this.#config = config;
    this.#hooks = hooks;
    this.#nextLsn = start.nextLsn;
    this.#syncedLsn = start.nextLsn - 1;
    this.#checkpointLsn = start.nextLsn - 1;
    this.#generation = start.generation;
    this.#segmentsMade = start.segments.reduce((most, name) => Math.max(most, Number.parseInt(name, 10) || 0), 0);
  }

  /** Opens the segment files that are there; they hold nothing that is still needed. */
  async open(segments: readonly string[]): Promise<void> {
    for (const name of segments) {
      this.#free.push({ name, file: await this.#disk.open(`${journalFolder}/${name}`), generation: 0, lastLsn: 0 });
    }
    await this.#roll();
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }
  get batches(): number {
    return this.#batches;
  }
  get segments(): { readonly total: number; readonly waiting: number } {
    return { total: this.#free.length + this.#closed.length + (this.#current ? 1 : 0), waiting: this.#closed.length };
  }
  /** The largest body that fits into a segment. */
  get bodyBytesMax(): number {
    return this.#config.journalSegmentBytes - segmentRecordsOffset - journalHeaderBytes;
  }

  /** How long a record added now will probably wait until it is durable. */
  expectedMs(bodyBytes: number): number {
    const batchesBefore = Math.ceil((this.#queuedBytes + bodyBytes) / this.#config.journalBatchBytesMax);
    return (batchesBefore + (this.#running === undefined ? 0 : 1)) * this.#batchMs;
  }

  add(entry: JournalEntry): void {
    assert(entry.bodyBytes <= this.bodyBytesMax, "journal record fits a segment");
    this.#queue.push(entry);
    this.#queuedBytes += entry.bodyBytes;
    this.#wake();
  }

  /** Adds a record and resolves when it, and everything before it, is durable. */
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
    if (this.#running === undefined && this.#queue.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** All records of this segment and of those before it are in extent files, synced. */
  release(generation: number): void {
    while (this.#closed[0] !== undefined && this.#closed[0].generation <= generation) {
      const segment = present(this.#closed.shift(), "closed segment");
      this.#checkpointLsn = Math.max(this.#checkpointLsn, segment.lastLsn);
      this.#free.push(segment);
    }
    this.#released?.();
    this.#released = undefined;
  }

  async close(): Promise<void> {
    this.#stopped = true;
    this.#released?.();
    await this.#running;
    await this.#making;
    for (const segment of [...this.#free, ...this.#closed, ...(this.#current ? [this.#current] : [])]) await segment.file.close();
  }

  #wake(): void {
    if (this.#running !== undefined || this.#stopped) return;
    this.#running = this.#run().catch((error: unknown) => {
      this.#stopped = true;
      this.#world.fatal(`the journal can't be written: ${String(error)}`);
    });
  }

  async #run(): Promise<void> {
    // One turn of the loop: whatever arrives in this tick joins the batch.
    await undefined;
    while (this.#queue.length > 0 && !this.#stopped) {
      const room = this.#hooks.room();
      if (room !== undefined) {
        await room;
        continue;
      }
      const startedMs = this.#world.clock.monotonicMs();
      await this.#commit(this.#take());
      this.#batchMs = this.#batchMs * 0.9 + (this.#world.clock.monotonicMs() - startedMs) * 0.1;
    }
    this.#running = undefined;
    if (this.#queue.length > 0) this.#wake();
    else for (const resolve of this.#idle.splice(0)) resolve();
  }

  #take(): JournalEntry[] {
    const space = Math.min(this.#config.journalBatchBytesMax, this.bodyBytesMax);
    let count = 0;
    let bytes = 0;
    for (const entry of this.#queue) {
      const more = journalHeaderBytes + entry.bodyBytes;
      if (count > 0 && bytes + more > space) break;
      bytes += more;
      count += 1;
    }
    const batch = this.#queue.splice(0, count);
    for (const entry of batch) this.#queuedBytes -= entry.bodyBytes;
    return batch;
  }

  async #commit(batch: readonly JournalEntry[]): Promise<void> {
    let bytes = 0;
    for (const entry of batch) bytes += journalHeaderBytes + entry.bodyBytes;
    if (this.#current === undefined || this.#at + bytes > this.#config.journalSegmentBytes) await this.#roll();
    const segment = present(this.#current, "journal segment");
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
    await this.#diskQueue.run({ class: "journal" }, bytes, async () => {
      await file.write(this.#at, joinSmall(chunks, smallBatchBytes));
      await file.sync();
    });
    this.#at += pageAligned(bytes);
    this.#syncedLsn = this.#nextLsn - 1;
    segment.lastLsn = this.#syncedLsn;
    this.#batches += 1;
    batch.forEach((entry, i) => {
      entry.durable(firstLsn + i, segment.generation);
    });
  }

  #salt = 0;

  /** Begins the next segment: everything written before is synced. */
  async #roll(): Promise<void> {
    const full = this.#current;
    this.#current = undefined;
    if (full !== undefined) {
      this.#closed.push(full);
      this.#hooks.segmentClosed(full.generation);
    }
    const segment = await this.#nextSegment();
    this.#generation += 1;
    this.#salt = this.#world.random.uint32();
    segment.generation = this.#generation;
    segment.lastLsn = this.#nextLsn - 1;
    const header = encodeSegmentHeader(this.#world.digest.crc32c, {
      salt: this.#salt,
      generation: this.#generation,
      firstLsn: this.#nextLsn,
      smTerm: this.#hooks.smTerm(),
      segmentBytes: this.#config.journalSegmentBytes,
      checkpointLsn: this.#checkpointLsn,
    });
    // Synced before the first record: a torn header means a segment with nothing in it.
    await segment.file.write(0, [header]);
    await segment.file.sync();
    this.#current = segment;
    this.#at = segmentRecordsOffset;
    this.#makeSpare();
  }

  /** Preallocating takes long: the next segment is made while this one fills. */
  #makeSpare(): void {
    const { total } = this.segments;
    if (this.#free.length > 0 || this.#making !== undefined || total >= this.#config.journalSegmentsMax || this.#stopped) return;
    this.#making = this.#makeSegment()
      .then((segment) => {
        this.#free.push(segment);
      })
      .catch((error: unknown) => {
        // With the disk full it goes on with the segments there are.
        this.#world.logger.warn("no further journal segment can be made", { error: String(error) });
      })
      .finally(() => {
        this.#making = undefined;
        this.#released?.();
        this.#released = undefined;
      });
  }

  async #nextSegment(): Promise<Segment> {
    if (this.segments.total === 0) return this.#makeSegment();
    for (;;) {
      const free = this.#free.shift();
      if (free !== undefined) return free;
      this.#makeSpare();
      if (this.#making === undefined) this.#world.logger.warn("every journal segment waits for extent files");
      await new Promise<void>((resolve) => {
        this.#released = resolve;
      });
      assert(!this.#stopped, "journal closed while it waited for a segment");
    }
  }

  async #makeSegment(): Promise<Segment> {
    this.#segmentsMade += 1;
    const name = `${String(this.#segmentsMade).padStart(6, "0")}.segment`;
    const file = await this.#disk.open(`${journalFolder}/${name}`, { create: true });
    await file.allocate(this.#config.journalSegmentBytes);
    await file.sync();
    await this.#disk.syncFolder(journalFolder);
    return { name, file, generation: 0, lastLsn: 0 };
  }
}
