/**
 * The files of the journal: free ones, written ones that wait until everything in them is in extent files, and a small reserve. The reserve
 * is made while there is room and used only when the disk is full: then nothing written is given back, but fences, seals and terms must
 * still be recorded.
 *
 * The first segment of a disk is small, and no spare is made before it is half full: a stamp at rest takes little room, and is ready soon. A
 * segment may have any size in which the largest batch finds room, and keeps its size as long as it is used.
 */
import { present } from "@stamp/base";
import { appendHeadersBytesMax, appendPayloadBytesMax, journalHeaderBytes, segmentRecordsOffset } from "@stamp/extent";
import { type Disk, DiskError, type DiskFile, type World } from "@stamp/ports";

export interface Segment {
  readonly name: string;
  readonly file: DiskFile;
  readonly sizeBytes: number;
  readonly reserve: boolean;
  generation: number;
  lastLsn: number;
}

export interface PoolConfig {
  readonly journalSegmentBytes: number;
  readonly journalBatchBytesMax: number;
  readonly journalSegmentsMax: number;
  /** Free bytes that must be left when the journal makes a segment that it could do without. */
  readonly reserveBytes: number;
}

export const journalFolder = "journal";
const reserveName = "reserve.segment";
/** A fence or seal takes a page: room for about a thousand, and more when several are recorded together. */
const reserveBytes = 4 * 1024 * 1024;
const mebibyte = 1024 * 1024;
/** The largest record that any node sends, in bytes. */
const recordBytesMax = journalHeaderBytes + appendPayloadBytesMax + appendHeadersBytesMax;

/** Returns the size of the first segment of a disk, in bytes: room for any record and any batch, in whole MiB; never more than that of the others. */
export function firstSegmentBytes({ journalSegmentBytes, journalBatchBytesMax }: PoolConfig): number {
  const neededBytes = segmentRecordsOffset + Math.max(recordBytesMax, journalHeaderBytes + journalBatchBytesMax);
  return Math.min(journalSegmentBytes, Math.ceil(neededBytes / mebibyte) * mebibyte);
}

export class SegmentPool {
  readonly #world: World;
  readonly #disk: Disk;
  readonly #config: PoolConfig;
  readonly #free: Segment[] = [];
  /** Written segments, oldest first. */
  readonly #written: Segment[] = [];
  #reserve: Segment | undefined;
  /** Segment that was given out and is filled now. */
  #current: Segment | undefined;
  #made = 0;
  #making: Promise<void> | undefined;
  #waiting: (() => void) | undefined;
  #stopped = false;

  constructor(world: World, disk: Disk, config: PoolConfig) {
    this.#world = world;
    this.#disk = disk;
    this.#config = config;
  }

  get total(): number {
    return this.#free.length + this.#written.length + (this.#current === undefined || this.#current.reserve ? 0 : 1);
  }
  /** Written, and waiting for extent files. */
  get waiting(): number {
    return this.#written.length;
  }

  /** Files that are there and hold nothing that is still needed, oldest first. */
  async open(names: readonly string[]): Promise<void> {
    this.#made = names.reduce((most, name) => Math.max(most, Number.parseInt(name, 10) || 0), 0);
    for (const name of names) {
      const segment = await this.#opened(name);
      if (segment?.reserve) this.#reserve = segment;
      else if (segment !== undefined) this.#free.push(segment);
    }
  }

  /** Returns the next to write to; the first of a disk is small. Waits until one is free, or until `reserve` says that the reserve may be taken. */
  async next(reserve: () => boolean): Promise<Segment> {
    for (;;) {
      const segment = this.#free.shift() ?? (this.total === 0 ? await this.#make(firstSegmentBytes(this.#config)) : undefined);
      if (segment !== undefined) {
        this.#current = segment;
        this.#makeSpare(!this.#isSmall(segment));
        return segment;
      }
      if (this.#reserve !== undefined && reserve()) {
        const taken = this.#reserve;
        this.#reserve = undefined;
        this.#current = taken;
        return taken;
      }
      this.#makeSpare();
      if (this.#making === undefined) this.#world.logger.warn("every journal segment waits for extent files");
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
      if (this.#stopped) throw new Error("the journal was closed while it waited for a segment");
    }
  }

  /** Notes that the current segment is filled up to here. */
  filled(bytes: number): void {
    if (this.#current !== undefined && this.#isSmall(this.#current) && 2 * bytes >= this.#current.sizeBytes) this.#makeSpare();
  }

  #isSmall({ sizeBytes, reserve }: Segment): boolean {
    return !reserve && sizeBytes < this.#config.journalSegmentBytes;
  }

  get hasFree(): boolean {
    return this.#free.length > 0;
  }

  /** Notes that the current segment is full. */
  written(segment: Segment): void {
    this.#current = undefined;
    this.#written.push(segment);
  }

  /** Releases segments up to this generation, whose records are all in extent files, synced. Returns their last LSN. */
  release(generation: number): number {
    let lastLsn = 0;
    while (this.#written[0] !== undefined && this.#written[0].generation <= generation) {
      const segment = present(this.#written.shift(), "written segment");
      lastLsn = segment.lastLsn;
      if (segment.reserve) this.#reserve = segment;
      else this.#free.push(segment);
    }
    this.wake();
    return lastLsn;
  }

  /** Wakes whoever waits for a segment: they look again. */
  wake(): void {
    this.#waiting?.();
    this.#waiting = undefined;
  }

  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  async close(): Promise<void> {
    this.stop();
    await this.#making;
    const current = this.#current === undefined ? [] : [this.#current];
    const reserve = this.#reserve === undefined ? [] : [this.#reserve];
    for (const segment of [...this.#free, ...this.#written, ...current, ...reserve]) await segment.file.close();
  }

  /** Makes the next segment, if wanted, and the reserve, while this one fills: preallocating takes long. */
  #makeSpare(wanted = true): void {
    const spare = wanted && this.#free.length === 0 && this.total < this.#config.journalSegmentsMax;
    const reserve = this.#reserve === undefined && this.#current?.reserve !== true && !this.#written.some((each) => each.reserve);
    if ((!spare && !reserve) || this.#making !== undefined || this.#stopped) return;
    const making = async (): Promise<void> => {
      if (spare && (await this.#hasRoom())) this.#free.push(await this.#make(this.#config.journalSegmentBytes));
      this.wake();
      if (reserve) this.#reserve = await this.#allocated(reserveName, reserveBytes);
    };
    this.#making = making()
      .catch((error: unknown) => {
        // With the disk full it goes on with the segments there are.
        this.#world.logger.warn("no further journal segment can be made", { error: String(error) });
      })
      .finally(() => {
        this.#making = undefined;
        this.wake();
      });
  }

  /** True if there is room for another segment. On a nearly full disk the present ones have to do. */
  async #hasRoom(): Promise<boolean> {
    const { freeBytes } = await this.#disk.space();
    const leftBytes = freeBytes - this.#config.journalSegmentBytes;
    const has = leftBytes >= Math.max(this.#config.reserveBytes, this.#reserve === undefined ? reserveBytes : 0);
    if (!has) this.#world.logger.warn("no further journal segment is made: the disk is nearly full", { freeBytes });
    return has;
  }

  #make(sizeBytes: number): Promise<Segment> {
    this.#made += 1;
    return this.#allocated(`${String(this.#made).padStart(6, "0")}.segment`, sizeBytes);
  }

  async #allocated(name: string, sizeBytes: number): Promise<Segment> {
    const path = `${journalFolder}/${name}`;
    const file = await this.#disk.open(path, { create: true });
    try {
      await file.allocate(sizeBytes);
      await file.sync();
    } catch (error) {
      // A part of it would keep the last room for nothing.
      await file.close();
      await this.#disk.remove(path);
      throw error;
    }
    await this.#disk.syncFolder(journalFolder);
    return { name, file, sizeBytes, reserve: name === reserveName, generation: 0, lastLsn: 0 };
  }

  /** Opens a segment. One that a crash left unfinished is completed, or left out while the disk is full. */
  async #opened(name: string): Promise<Segment | undefined> {
    const reserve = name === reserveName;
    const file = await this.#disk.open(`${journalFolder}/${name}`);
    const held = await file.sizeBytes();
    const firstBytes = firstSegmentBytes(this.#config);
    const segmentBytes = held <= firstBytes ? firstBytes : this.#config.journalSegmentBytes;
    const wanted = reserve ? reserveBytes : segmentBytes;
    if (held < wanted) {
      try {
        await file.allocate(wanted);
        await file.sync();
      } catch (error) {
        if (!(error instanceof DiskError) || error.kind !== "full") throw error;
        this.#world.logger.warn("a journal segment is left out: it can't be completed", { name, held, wanted });
        await file.close();
        return undefined;
      }
    }
    return { name, file, sizeBytes: Math.max(held, wanted), reserve, generation: 0, lastLsn: 0 };
  }
}
