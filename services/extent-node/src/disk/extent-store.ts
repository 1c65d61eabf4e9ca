/**
 * Brings what the journal made durable into extent files and the extent table, in the background, and tells the journal which segments
 * it may use again. Until then the data are served from memory.
 *
 * Invariants: only durable records get here; an extent's data are written in offset order; a sealed header is written only after data
 * and truncation; a segment is released only when every extent it touches is synced, header and table included.
 */
import { type ExtentId, FailureError, present, WakeUp } from "@stamp/base";
import { type BlockIndex, frameBytes, indexFromRuns, type ReplicaMeta } from "@stamp/extent";
import { DiskError, type KeyValueOperation, sleep, type Timer, type World } from "@stamp/ports";
import { InPlaceWrites } from "../append/in-place-writes.ts";
import type { Journal } from "../journal/journal.ts";
import { appendIo, type Io } from "./disk-queue.ts";
import { type ExtentFiles, extentPath, type FileWrite, type ReadInto } from "./extent-files.ts";
import type { LocalExtent, PendingAppend } from "./local-extent.ts";
import { LocalExtents } from "./local-extents.ts";
import type { ExtentTable } from "./table.ts";
import { walkFile } from "./walk.ts";

const flushBytesMax = 8 * 1024 * 1024;
const flushersMax = 4;
const fullRetryMs = 1_000;
const overloadedRetryMs = 100;
/** Time that small appends wait for company, in milliseconds, unless many bytes wait: one write of a file for many batches of the journal. */
const gatherMs = 20;
const gatherBytesMax = 256 * 1024;

export interface StoreConfig {
  readonly pendingBytesMax: number;
  readonly indexedBlocksMax: number;
}

export class ExtentStore {
  readonly extents: LocalExtents = new LocalExtents();
  readonly files: ExtentFiles;
  readonly table: ExtentTable;
  readonly inPlace: InPlaceWrites;
  readonly #world: World;
  readonly #config: StoreConfig;
  #journal: Journal | undefined;
  readonly #dirty: Set<LocalExtent> = new Set();
  /** Keyed by segment generation: the extents whose records it holds. */
  readonly #touched: Map<number, Set<LocalExtent>> = new Map();
  #flushers = 0;
  #gathering: Timer | undefined;
  #pendingBytes = 0;
  #full = false;
  readonly #room = new WakeUp();
  #checkpoints: Promise<void> = Promise.resolve();
  /** Loaded indexes of extents that take no appends, in order of last use. */
  readonly #loaded: Map<LocalExtent, BlockIndex> = new Map();
  #loadedBlocks = 0;
  #stopped = false;

  constructor(world: World, config: StoreConfig, files: ExtentFiles, table: ExtentTable) {
    this.#world = world;
    this.#config = config;
    this.files = files;
    this.table = table;
    this.inPlace = new InPlaceWrites(world, files);
  }

  attach(journal: Journal): void {
    this.#journal = journal;
  }

  /**
   * True while durable bytes can't be written to extent files, because the disk is full. Ends with the first write that
   * succeeds.
   */
  get full(): boolean {
    return this.#full;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  room(): Promise<void> | undefined {
    if (this.#pendingBytes < this.#config.pendingBytesMax || this.#stopped) return undefined;
    return this.#room.next;
  }

  /** Takes note of a durable append. */
  appended(extent: LocalExtent, generation: number, append: PendingAppend): void {
    if (extent.removed) return;
    if (extent.replica.state === "sealed" && append.endBytes > extent.replica.endBytes) return;
    extent.pending.push(append);
    this.#pendingBytes += inMemory(append);
    for (const frame of append.frames) extent.index?.push(frame.offsetBytes, frame.headerBytes + frame.payloadBytes);
    this.#touch(extent, generation);
  }

  /** Notes that the replica's durable state changed. */
  changed(extent: LocalExtent, generation: number): void {
    extent.stateDirty = true;
    this.extents.stateChanged(extent);
    this.#touch(extent, generation);
  }

  /** Writes the header again, because the one on disk is wrong. */
  rewriteHeader(extent: LocalExtent): Promise<void> {
    extent.stateDirty = true;
    return this.flush(extent);
  }

  /** Drops pending appends beyond the sealed length. */
  dropBeyond(extent: LocalExtent, lengthBytes: number): void {
    const kept = extent.pending.filter((append) => append.endBytes <= lengthBytes);
    for (const append of extent.pending) if (append.endBytes > lengthBytes) this.#pendingBytes -= inMemory(append);
    extent.pending = kept;
    extent.flushedBytes = Math.min(extent.flushedBytes, lengthBytes);
    if (extent.index !== undefined && !extent.index.truncate(lengthBytes)) extent.index = undefined;
    this.#unload(extent);
    this.#freed();
  }

  /** Notes that the file was completed from other replicas up to this length. */
  replaced(extent: LocalExtent, lengthBytes: number): void {
    extent.index = undefined;
    this.#unload(extent);
    extent.flushedBytes = lengthBytes;
  }

  /** Abandons the replica: another one takes its place, and nothing more of it is written. */
  abandon(extent: LocalExtent): void {
    for (const append of extent.pending) this.#pendingBytes -= inMemory(append);
    extent.pending = [];
    extent.stateDirty = false;
    extent.syncNeeded = false;
    this.#unload(extent);
    this.#freed();
  }

  #touch(extent: LocalExtent, generation: number): void {
    let touched = this.#touched.get(generation);
    if (touched === undefined) {
      touched = new Set();
      this.#touched.set(generation, touched);
    }
    touched.add(extent);
    this.#dirty.add(extent);
    this.#gather();
  }

  /** Gathers work in the background: until a flush, data are read from memory and are safe in the journal. */
  #gather(): void {
    if (this.#pendingBytes >= Math.min(gatherBytesMax, this.#config.pendingBytesMax / 4)) {
      this.#gathering?.cancel();
      this.#gathering = undefined;
      this.#wake();
      return;
    }
    if (this.#stopped) return;
    this.#gathering ??= this.#world.clock.after(gatherMs, () => {
      this.#gathering = undefined;
      this.#wake();
    });
  }

  #wake(): void {
    while (this.#flushers < flushersMax && this.#dirty.size > 0 && !this.#stopped) {
      const extent = present(this.#dirty.values().next().value, "dirty extent");
      this.#dirty.delete(extent);
      if (extent.flushing !== undefined) continue;
      this.#flushers += 1;
      this.#flushNext(extent).finally(() => {
        this.#flushers -= 1;
        if (extent.dirty) this.#dirty.add(extent);
        if (this.#dirty.size > 0) this.#gather();
      });
    }
  }

  /** Resolves when everything that is durable now is in the file (not yet synced). */
  async flush(extent: LocalExtent): Promise<void> {
    while (extent.dirty && !this.#stopped) await this.#flushNext(extent);
  }

  #flushNext(extent: LocalExtent): Promise<void> {
    extent.flushing ??= this.#flushOnce(extent).finally(() => {
      extent.flushing = undefined;
    });
    return extent.flushing;
  }

  async #flushOnce(extent: LocalExtent): Promise<void> {
    try {
      await this.#writeOut(extent);
    } catch (error) {
      if (this.#stopped) return;
      if (error instanceof DiskError && error.kind === "full") {
        await this.#waitForSpace(extent.replica.extentId);
        return;
      }
      if (error instanceof FailureError && error.failure.reason === "overloaded") {
        await sleep(this.#world.clock, overloadedRetryMs);
        return;
      }
      this.#stopped = true;
      this.#world.fatal(`extent ${extent.replica.extentId} can't be written: ${String(error)}`);
    }
  }

  async #waitForSpace(id: ExtentId): Promise<void> {
    if (!this.#full) {
      this.#full = true;
      this.#world.logger.error("the disk is full: durable data wait in the journal, appends are refused", { extent: id });
      this.#journal?.diskFilled();
    }
    await sleep(this.#world.clock, fullRetryMs);
  }

  spaceFound(): void {
    if (!this.#full) return;
    this.#full = false;
    this.#world.logger.info("there is room on the disk again");
  }

  async #writeOut(extent: LocalExtent): Promise<void> {
    const { extentId } = extent.replica;
    if (extent.removed) {
      extent.before = undefined;
      this.#pendingBytes -= extent.pending.reduce((sum, append) => sum + inMemory(append), 0);
      extent.pending = [];
      extent.stateDirty = false;
      await this.files.remove(extentId);
      await this.table.forget(extentId);
      this.#freed();
      return;
    }
    if (extent.before !== undefined) {
      const work = extent.before;
      await work();
      if (extent.before === work) extent.before = undefined;
    }
    await this.files.ensure(extentId);
    const batch: PendingAppend[] = [];
    let bytes = 0;
    for (const append of extent.pending) {
      if (batch.length > 0 && bytes + inMemory(append) > flushBytesMax) break;
      batch.push(append);
      bytes += inMemory(append);
    }
    const first = batch[0];
    if (first !== undefined) {
      const writes = writesOf(batch);
      for (const { offsetBytes, chunks } of writes) await this.files.write(extentPath(extentId), offsetBytes, chunks);
      const totals = batch.flatMap((append) => append.frames.map((frame) => frameBytes(frame.payloadBytes)));
      await this.table.write([this.table.putRun(extentId, first.offsetBytes, totals)], false);
      if (writes.length > 0) this.spaceFound();
      extent.syncNeeded = true;
      // A seal may have cut the tail meanwhile.
      const written = new Set(batch);
      const left = extent.pending.filter((append) => !written.has(append));
      const freed = extent.pending.length - left.length;
      if (freed > 0) {
        for (const append of extent.pending) {
          if (!written.has(append)) continue;
          this.#pendingBytes -= inMemory(append);
          // Reads look for it in the file from now on.
          append.inMemory?.holders?.end();
        }
        const last = extent.pending.filter((append) => written.has(append)).at(-1);
        extent.pending = left;
        extent.flushedBytes = Math.max(extent.flushedBytes, last?.endBytes ?? 0);
      }
      this.#freed();
    }
    if (extent.stateDirty && extent.pending.length === 0) await this.#writeState(extent);
  }

  /** Writes the header (synced) and the table entry. */
  async #writeState(extent: LocalExtent): Promise<void> {
    extent.stateDirty = false;
    const { extentId, sealedLengthBytes } = extent.replica;
    if (sealedLengthBytes !== undefined) await this.files.truncate(extentId, sealedLengthBytes);
    const meta = inFile(extent);
    extent.syncNeeded = false;
    await this.files.writeHeader(extentPath(extentId), meta);
    await this.table.write([this.table.put(meta)], false);
    if (sealedLengthBytes !== undefined) this.#settle(extent);
  }

  #freed(): void {
    if (this.#pendingBytes >= this.#config.pendingBytesMax) return;
    this.#room.notify();
  }

  /** Notes that the journal put the last record into this segment. */
  segmentClosed(generation: number): void {
    this.#checkpoints = this.#checkpoints
      .then(() => this.#checkpoint(generation))
      .catch((error: unknown) => {
        if (!this.#stopped) this.#world.fatal(`a journal segment can't be released: ${String(error)}`);
      });
  }

  async #checkpoint(generation: number): Promise<void> {
    const touched = this.#touched.get(generation) ?? new Set();
    for (const extent of touched) {
      await this.flush(extent);
      if (this.#stopped) return;
      if (extent.removed) continue;
      if (extent.syncNeeded) {
        extent.stateDirty = true;
        await this.flush(extent);
      }
    }
    if (this.#stopped) return;
    await this.#syncTable();
    if (this.#stopped) return;
    this.#touched.delete(generation);
    this.#journal?.release(generation);
  }

  async #syncTable(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.table.sync();
        return;
      } catch (error) {
        if (!(error instanceof DiskError) || error.kind !== "full") throw error;
        await sleep(this.#world.clock, fullRetryMs);
      }
    }
  }

  /** Returns the block index of an extent: in memory while it is written, loaded from the table afterwards, or walked from the file. */
  async index(extent: LocalExtent): Promise<BlockIndex | undefined> {
    return this.heldIndex(extent) ?? this.#loadIndex(extent);
  }

  /** Returns the extent's block index, if it is in memory. */
  heldIndex(extent: LocalExtent): BlockIndex | undefined {
    if (extent.index !== undefined) return extent.index;
    const held = this.#loaded.get(extent);
    if (held === undefined) return undefined;
    this.#loaded.delete(extent);
    this.#loaded.set(extent, held);
    return held;
  }

  async #loadIndex(extent: LocalExtent): Promise<BlockIndex | undefined> {
    const { extentId, durableBytes } = extent.replica;
    const runs = await this.table.runs(extentId);
    let index = indexFromRuns(runs, durableBytes);
    if (index === undefined) {
      const walked = await walkFile(this.#world.digest.crc32c, this.files, extentId, durableBytes, appendIo);
      if (walked.endBytes !== durableBytes) return undefined;
      index = walked.index;
      const operations: KeyValueOperation[] = [this.table.putRun(extentId, 0, walked.totals)];
      await this.table.forgetRuns(extentId);
      await this.table.write(operations, false);
    }
    if (this.#loaded.has(extent) || extent.removed) return index;
    this.#loaded.set(extent, index);
    this.#loadedBlocks += index.count;
    for (const [other, old] of this.#loaded) {
      if (this.#loadedBlocks <= this.#config.indexedBlocksMax || other === extent) break;
      this.#loaded.delete(other);
      this.#loadedBlocks -= old.count;
    }
    return index;
  }

  #unload(extent: LocalExtent): void {
    const held = this.#loaded.get(extent);
    if (held === undefined) return;
    this.#loaded.delete(extent);
    this.#loadedBlocks -= held.count;
  }

  /** Moves the index of a sealed extent to those that may be dropped. */
  #settle(extent: LocalExtent): void {
    if (extent.index === undefined) return;
    this.#unload(extent);
    this.#loaded.set(extent, extent.index);
    this.#loadedBlocks += extent.index.count;
    extent.index = undefined;
  }

  /**
   * Reads the durable bytes [offset, offset + length) of the extent, as slices. `into`: memory for them, used if all of them are in the file. May
   * throw DiskError, and FailureError when it would be too late.
   */
  async read(extent: LocalExtent, offsetBytes: number, lengthBytes: number, io: Io, into?: ReadInto): Promise<Uint8Array[]> {
    const end = offsetBytes + lengthBytes;
    const { extentId } = extent.replica;
    const fileEnd = Math.min(end, extent.flushedBytes);
    if (fileEnd === end && lengthBytes > 0) return [await this.files.read(extentId, offsetBytes, lengthBytes, io, into)];
    const fromFile = (from: number, to: number): Promise<Uint8Array> => this.files.read(extentId, from, to - from, io);
    // The file is read before the first await: what is in memory now may be in the file then, and the other way round after a seal.
    const parts: (Uint8Array | Promise<Uint8Array>)[] = fileEnd > offsetBytes ? [fromFile(offsetBytes, fileEnd)] : [];
    for (const append of extent.pending) {
      const [first, last] = [Math.max(append.offsetBytes, offsetBytes, fileEnd), Math.min(append.endBytes, end)];
      if (first >= last) continue;
      if (append.inMemory === undefined) {
        parts.push(fromFile(first, last));
        continue;
      }
      append.inMemory.holders?.keep();
      let at = append.offsetBytes;
      for (const slice of append.inMemory.slices) {
        const [from, to] = [Math.max(0, first - at), Math.min(slice.length, last - at)];
        if (to > from) parts.push(slice.subarray(from, to));
        at += slice.length;
      }
    }
    return Promise.all(parts);
  }

  async flushAll(): Promise<void> {
    for (const extent of [...this.extents.values()]) await this.flush(extent);
  }

  async close(): Promise<void> {
    this.#stopped = true;
    this.inPlace.stop();
    this.#gathering?.cancel();
    this.#freed();
    this.#room.notify();
    await Promise.all([...this.extents.values()].map((extent) => extent.flushing));
    await this.files.closeAll();
    await this.table.close();
  }
}

const inMemory = (append: PendingAppend): number => (append.inMemory === undefined ? 0 : append.endBytes - append.offsetBytes);

/** Returns the writes that bring pending appends into the file, as few as possible. */
function writesOf(batch: readonly PendingAppend[]): FileWrite[] {
  const writes: { offsetBytes: number; chunks: Uint8Array[] }[] = [];
  let last: PendingAppend | undefined;
  for (const append of batch) {
    if (append.inMemory !== undefined) {
      if (last?.inMemory === undefined) writes.push({ offsetBytes: append.offsetBytes, chunks: [] });
      writes.at(-1)?.chunks.push(...append.inMemory.slices);
    }
    last = append;
  }
  return writes;
}

/** Returns the state for the file's header: no more than the file holds. */
function inFile(extent: LocalExtent): ReplicaMeta {
  const { meta } = extent.replica;
  return { ...meta, durableBytes: Math.min(meta.durableBytes, extent.flushedBytes) };
}
