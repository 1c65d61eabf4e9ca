/**
 * Whether the metadata store's disk has room. LevelDB can't go on after a write that found none, so nothing is recorded from a reserve on:
 * leases are renewed and everything is read (neither writes), while grants, ends of leases and transactions are refused and certainly not done.
 */
import { type Failed, refused } from "@stamp/base";
import type { World } from "@stamp/ports";

/** In so short a time nobody takes the whole reserve. */
const knownForMs = 20;

export class Room {
  readonly #world: World;
  readonly #reserveBytes: number;
  #freeBytes = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #full = false;

  constructor(world: World, reserveBytes: number) {
    this.#world = world;
    this.#reserveBytes = reserveBytes;
  }

  /** As of the last look. */
  get facts(): { readonly freeBytes: number; readonly diskFull: boolean } {
    return { freeBytes: this.#freeBytes, diskFull: this.#full };
  }

  /** Why nothing may be recorded now; undefined: it may. May throw DiskError. */
  async refusal(): Promise<Failed | undefined> {
    const nowMs = this.#world.clock.monotonicMs();
    if (nowMs - this.#lookedMs >= knownForMs) {
      this.#freeBytes = (await this.#world.disk.space()).freeBytes;
      this.#lookedMs = nowMs;
      this.#tell(this.#freeBytes < this.#reserveBytes);
    }
    if (!this.#full) return undefined;
    return refused("resourceExhausted", "diskFull", `the disk of the metadata store is full: ${this.#freeBytes} bytes are free`);
  }

  #tell(full: boolean): void {
    const { logger } = this.#world;
    if (full && !this.#full) logger.error("the disk is full: nothing new is recorded", { freeBytes: this.#freeBytes });
    if (!full && this.#full) logger.info("there is room on the disk again", { freeBytes: this.#freeBytes });
    this.#full = full;
  }
}
