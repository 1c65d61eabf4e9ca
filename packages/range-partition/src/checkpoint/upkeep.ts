/**
 * Upkeep of a loaded partition: full memory tables are written out, checkpoints merged, the row data cache filled. What
 * is due is looked for after every commit, checkpoint and merge. `Maintenance` does each of these; here it is decided
 * when.
 */
import { type Failure, type Outcome, ok } from "@stamp/base";
import { jittered, sleep, type Timer, type World } from "@stamp/ports";
import { fillCache } from "../cache/cache-fill.ts";
import type { FilledRange } from "../cache/fill-queue.ts";
import type { MemoryBudget, MemoryShare } from "../cache/memory-budget.ts";
import type { MemoryTables } from "../memory-tables.ts";
import type { Storage } from "./checkpoint-reader.ts";
import { type FrozenTable, type Maintenance, mergesMax } from "./maintenance.ts";

const mergeRetryMs = 5_000;
/** A child does not merge at first: operations that waited for the split come now. */
const childRestMs = 1_000;

/** The partition that is kept up. */
export interface KeptPartition {
  readonly rangeId: string;
  readonly world: World;
  readonly storage: Storage;
  readonly maintenance: Maintenance;
  readonly tables: MemoryTables;
  /** Budget that the range shares with other ranges of the process. */
  readonly memory: MemoryBudget;
  /** Returns the failure with which the range has ended; undefined: it has not. */
  readonly ended: () => Failure | undefined;
  /** Returns the failure with which writes are refused; undefined: they are taken. */
  readonly closed: () => Failure | undefined;
  /** Returns why nothing in memory may be written out. */
  readonly recorded: () => Failure | undefined;
  readonly lastTicket: () => number;
  /** Called when the active table is frozen. */
  readonly frozen: (frozen: FrozenTable) => void;
  readonly lose: (failure: Failure) => void;
}

export class Upkeep {
  readonly #kept: KeptPartition;
  readonly #memory: MemoryShare;
  readonly #filled: FilledRange;
  #checkpointing: Promise<void> = Promise.resolve();
  /** True while a fill of the row data cache is asked for and not begun. */
  #fillWaits = false;
  #mergesLater: Timer | undefined;
  /** Merges under way, or resting after a failure. */
  readonly #merging = new Set<Promise<void>>();

  constructor(kept: KeptPartition) {
    this.#kept = kept;
    this.#filled = { bytes: () => this.checkpointBytes, fill: () => this.fillCache() };
    this.#memory = kept.memory.join(() => this.#writeOut());
    kept.storage.caches.fills.join(this.#filled);
    this.tellMemory();
  }

  get checkpointBytes(): number {
    return this.#kept.maintenance.checkpoints.reduce((sum, { liveBytes }) => sum + liveBytes, 0);
  }

  /** Begins a checkpoint or merges, if they are due. */
  look(): void {
    const { maintenance, tables, ended } = this.#kept;
    if (ended() !== undefined) return;
    if (tables.checkpointDue && this.#mayWriteOut) this.#beginCheckpoint();
    while (this.#merging.size < mergesMax && maintenance.mergeDue) {
      const merge = this.#merge();
      this.#merging.add(merge);
      void merge.then(() => {
        this.#merging.delete(merge);
        this.look();
      });
    }
  }

  /** Holds merges back for a moment. */
  restMerges(): void {
    const { maintenance, world } = this.#kept;
    maintenance.stop();
    this.#mergesLater = world.clock.after(childRestMs, () => this.resumeMerges());
  }

  resumeMerges(): void {
    this.#kept.maintenance.goOn();
    this.look();
  }

  /** Ends the rests of merges, for a caller that stops merges itself. */
  cancelRest(): void {
    this.#mergesLater?.cancel();
  }

  /** Begins nothing any more: the partition has ended. */
  stop(): void {
    this.cancelRest();
    this.#memory.close();
    this.#kept.storage.caches.fills.leave(this.#filled);
  }

  /** Writes out what is in memory while everything goes on; resolves when it is in a checkpoint. */
  async checkpoint(): Promise<Outcome<void>> {
    const { tables, ended, closed, recorded } = this.#kept;
    while (tables.frozen !== undefined && closed() === undefined) await this.#checkpointing;
    const failure = ended() ?? recorded();
    if (failure !== undefined) return { ok: false, failure };
    if (tables.active.count > 0 || tables.checkpointDue) {
      this.#beginCheckpoint();
      await this.#checkpointing;
    }
    const end = ended();
    return end === undefined ? ok() : { ok: false, failure: end };
  }

  /** Resolves when no frozen table is being written out. */
  async untilWritten(): Promise<void> {
    const { tables, ended } = this.#kept;
    while (tables.frozen !== undefined && ended() === undefined) await this.#checkpointing;
  }

  /** Resolves when commits may come: they wait while two memory tables are full, and while all partitions together have too much in memory. */
  async room(): Promise<void> {
    const { tables, memory, ended } = this.#kept;
    while (tables.frozen !== undefined && tables.full && ended() === undefined) await this.#checkpointing;
    while (memory.full && ended() === undefined) await memory.untilRoom();
  }

  /** Tells the shared budget how much is in memory. */
  tellMemory(): void {
    const { tables, ended } = this.#kept;
    if (ended() === undefined) this.#memory.set(tables.active.bytes, tables.frozenBytes);
  }

  freeze(): FrozenTable {
    const { tables, lastTicket, frozen } = this.#kept;
    const table = tables.freeze(lastTicket());
    frozen(table);
    this.tellMemory();
    return table;
  }

  fillCache(): void {
    if (this.#fillWaits) return;
    this.#fillWaits = true;
    const { world, storage, maintenance, closed } = this.#kept;
    storage.caches.fills.add(world.clock, () => {
      this.#fillWaits = false;
      return fillCache(world, { storage, checkpoints: () => maintenance.checkpoints, over: () => closed() !== undefined });
    });
  }

  /** Begins a checkpoint for the shared budget, though the active table is not full. */
  #writeOut(): void {
    if (this.#mayWriteOut && this.#kept.ended() === undefined && this.#kept.tables.active.count > 0) this.#beginCheckpoint();
  }

  get #mayWriteOut(): boolean {
    return this.#kept.tables.frozen === undefined && this.#kept.recorded() === undefined;
  }

  #beginCheckpoint(): void {
    this.#checkpointing = this.#checkpoint(this.freeze()).then(() => this.look());
  }

  async #checkpoint(frozen: FrozenTable): Promise<void> {
    const { maintenance, tables, lose } = this.#kept;
    if (maintenance.crowded) await Promise.race(this.#merging);
    const written = await maintenance.checkpoint(frozen);
    tables.release();
    this.tellMemory();
    if (!written.ok) lose(written.failure);
  }

  /** Merges. If the sources can't be read nothing is lost: it is tried again later. */
  async #merge(): Promise<void> {
    const { maintenance, storage, ended, rangeId, world } = this.#kept;
    const merged = await maintenance.merge();
    if (merged.ok && !merged.value.allCached) this.fillCache();
    if (merged.ok) storage.caches.fills.refill(storage.caches.blocks);
    if (merged.ok || ended() !== undefined) return;
    const { clock, logger, random } = world;
    logger.warn("checkpoints were not merged, tried again later", {
      rangeId,
      reason: merged.failure.reason,
      message: merged.failure.message,
    });
    await sleep(clock, jittered(random, mergeRetryMs));
  }
}
