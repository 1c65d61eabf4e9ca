/**
 * Whether the metadata store's disk has room. LevelDB can't go on after a write that found none, so nothing is recorded from a reserve on:
 * leases are renewed and everything is read (neither writes), while grants, ends of leases and transactions are refused and certainly not done.
 * Somebody else may take that reserve between a look and a write. For this a file keeps as much room again: what was being recorded gets it.
 */
import { type Failed, refused } from "@stamp/base";
import { DiskError, type World } from "@stamp/ports";

/** Time in which nobody takes the whole reserve, nearly always, in milliseconds. For a group that is there to write. */
const knownForMs = 20;
const kept = "room-kept";
/** Multiple of the reserve that has to be free for that file to be made. */
const keepFrom = 3;
const keepAgainMs = 60_000;
/** Free inodes below which nothing is recorded: LevelDB makes files as it writes. */
const reserveFiles = 32;

export class DiskRoom {
  readonly #world: World;
  readonly #reserveBytes: number;
  /** How long a look is good for a group of questions and renewals, in ms: it writes only if it finds that a lease has ended. */
  readonly #readsKnowForMs: number;
  #freeBytes = 0;
  #freeFiles: number | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #full = false;
  #keeping: Promise<void> | undefined;
  #keepFromMs = Number.NEGATIVE_INFINITY;

  constructor(world: World, reserveBytes: number, readsKnowForMs: number) {
    this.#world = world;
    this.#reserveBytes = reserveBytes;
    this.#readsKnowForMs = readsKnowForMs;
  }

  /** Free room at the last look. */
  get facts(): { readonly freeBytes: number; readonly freeFiles?: number; readonly diskFull: boolean } {
    const files = this.#freeFiles === undefined ? {} : { freeFiles: this.#freeFiles };
    return { freeBytes: this.#freeBytes, ...files, diskFull: this.#full };
  }

  /** Returns why nothing may be recorded now; undefined: it may. `writes`: somebody asks to record something. May throw DiskError. */
  async refusal(writes: boolean): Promise<Failed | undefined> {
    const nowMs = this.#world.clock.monotonicMs();
    if (nowMs - this.#lookedMs >= (writes || this.#full ? knownForMs : this.#readsKnowForMs)) {
      const { freeBytes, freeFiles } = await this.#world.disk.space();
      this.#freeBytes = freeBytes;
      this.#freeFiles = freeFiles;
      this.#lookedMs = nowMs;
      this.#tell(freeBytes < this.#reserveBytes || (freeFiles !== undefined && freeFiles < reserveFiles));
      if (this.#freeBytes >= keepFrom * this.#reserveBytes && nowMs >= this.#keepFromMs) this.#keeping ??= this.#keep();
    }
    if (!this.#full) return undefined;
    const files = this.#freeFiles === undefined ? "" : `, and ${this.#freeFiles} inodes`;
    return refused("resourceExhausted", "diskFull", `the disk of the metadata store is full: ${this.#freeBytes} bytes are free${files}`);
  }

  /** Gives the room that was kept; false when there is none. */
  async give(): Promise<boolean> {
    const { disk, logger } = this.#world;
    await this.#keeping;
    this.#keeping = undefined;
    const there = await disk.exists(kept);
    if (!there) return false;
    logger.error("the disk is full: the room that was kept for this is used");
    await disk.remove(kept);
    return true;
  }

  async #keep(): Promise<void> {
    const { clock, disk, logger } = this.#world;
    try {
      const file = await disk.open(kept, { create: true });
      try {
        await file.allocate(this.#reserveBytes);
      } finally {
        await file.close();
      }
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      logger.warn("no room is kept for the metadata store", { why: error.message });
      this.#keepFromMs = clock.monotonicMs() + keepAgainMs;
      this.#keeping = undefined;
    }
  }

  #tell(full: boolean): void {
    const { logger } = this.#world;
    if (full && !this.#full) logger.error("the disk is full: nothing new is recorded", { freeBytes: this.#freeBytes });
    if (!full && this.#full) logger.info("there is room on the disk again", { freeBytes: this.#freeBytes });
    this.#full = full;
  }
}
