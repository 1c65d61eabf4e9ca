/**
 * Large appends on their way into extent files, each written once: the journal gets a pointer to them when they are synced. One write and
 * one sync of a file are under way, of few files at once; what comes meanwhile is the next. Clients wait for them as for the journal's own
 * write, so they go before what others want of the disk.
 *
 * What a crash leaves of them lies beyond all that header, table and journal know of the extent, and means nothing.
 */
import type { ExtentId } from "@stamp/base";
import { FailureError } from "@stamp/base";
import { DiskError, type World } from "@stamp/ports";
import type { Io } from "../disk/disk-queue.ts";
import { type ExtentFiles, extentPath } from "../disk/extent-files.ts";

const urgentIo: Io = { class: "journal" };

interface Write {
  readonly offsetBytes: number;
  readonly chunks: readonly Uint8Array[];
  readonly lengthBytes: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const learnShare = 0.1;
/** Files written and synced at once: beside the journal's write, and reads, of the four threads that Node has for files. */
const filesMax = 2;

export class InPlaceWrites {
  readonly #world: World;
  readonly #files: ExtentFiles;
  readonly #waiting: Map<ExtentId, Write[]> = new Map();
  /** Bytes that are not synced yet, in memory. */
  queuedBytes = 0;
  #msPerByte = 0;
  readonly #inHand: Set<ExtentId> = new Set();
  #busySinceMs = 0;
  #stopped = false;

  constructor(world: World, files: ExtentFiles) {
    this.#world = world;
    this.#files = files;
  }

  /** Returns how long a write that comes now will probably take. */
  expectedMs(lengthBytes: number): number {
    return (this.queuedBytes + lengthBytes) * this.#msPerByte;
  }

  /** Resolves when the bytes are in the file, synced. Rejects with the reason when there is no room. `chunks` are borrowed until then. */
  write(id: ExtentId, offsetBytes: number, chunks: readonly Uint8Array[], lengthBytes: number): Promise<void> {
    this.queuedBytes += lengthBytes;
    return new Promise((resolve, reject) => {
      const write: Write = { offsetBytes, chunks, lengthBytes, resolve, reject };
      const waiting = this.#waiting.get(id);
      if (waiting === undefined) this.#waiting.set(id, [write]);
      else waiting.push(write);
      this.#next();
    });
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Writes into the next file, in the order of the files' first appends. */
  #next(): void {
    for (const id of this.#waiting.keys()) {
      if (this.#inHand.size >= filesMax) return;
      if (!this.#inHand.has(id)) void this.#begin(id);
    }
  }

  async #begin(id: ExtentId): Promise<void> {
    if (this.#inHand.size === 0) this.#busySinceMs = this.#world.clock.monotonicMs();
    this.#inHand.add(id);
    // Appends that arrive in this tick share one write.
    await undefined;
    const writes = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    await this.#writeOut(id, writes);
    this.#inHand.delete(id);
    this.#next();
  }

  async #writeOut(id: ExtentId, writes: readonly Write[]): Promise<void> {
    const bytes = writes.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);
    try {
      await this.#files.ensure(id);
      if (this.#world.rules.on("pointedBytesSynced")) await this.#files.writeSynced(extentPath(id), writes, urgentIo);
      else for (const { offsetBytes, chunks } of writes) await this.#files.write(extentPath(id), offsetBytes, chunks, urgentIo);
      const nowMs = this.#world.clock.monotonicMs();
      this.#msPerByte = this.#msPerByte * (1 - learnShare) + ((nowMs - this.#busySinceMs) / bytes) * learnShare;
      this.#busySinceMs = nowMs;
      for (const { resolve } of writes) resolve();
    } catch (error) {
      if (!refusedByDisk(error) && !this.#stopped) this.#world.fatal(`extent ${id} can't be written: ${String(error)}`);
      for (const { reject } of writes) reject(error);
    } finally {
      this.queuedBytes -= bytes;
    }
  }
}

/** True if the disk has no room or too much waits: nothing is wrong with it. */
function refusedByDisk(error: unknown): boolean {
  if (error instanceof DiskError) return error.kind === "full";
  return error instanceof FailureError && error.failure.reason === "overloaded";
}
