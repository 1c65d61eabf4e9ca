/**
 * Whether the metadata store's disk has room. LevelDB can't go on after a write that found none, so nothing is recorded from a reserve on:
 * leases are renewed and everything is read (neither writes), while grants, ends of leases and transactions are refused and certainly not done.
 */
import { type Failed, refused } from "@stamp/base";
import { sleep, type World } from "@stamp/ports";

const lookEveryMs = 500;

export class Room {
  readonly #world: World;
  readonly #reserveBytes: number;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #freeBytes = Number.MAX_SAFE_INTEGER;
  #full = false;

  constructor(world: World, reserveBytes: number) {
    this.#world = world;
    this.#reserveBytes = reserveBytes;
  }

  get facts(): { readonly freeBytes: number; readonly diskFull: boolean } {
    return { freeBytes: this.#freeBytes, diskFull: this.#full };
  }

  /** Why nothing is recorded now; undefined: it is. */
  get refusal(): Failed | undefined {
    if (!this.#full) return undefined;
    return refused("resourceExhausted", "diskFull", `the disk of the metadata store is full: ${this.#freeBytes} bytes are free`);
  }

  /** Resolves after the first look. */
  async start(): Promise<void> {
    await this.#look();
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await sleep(this.#world.clock, lookEveryMs, this.#stop.signal);
      await this.#look();
    }
  }

  async #look(): Promise<void> {
    const { disk, logger } = this.#world;
    this.#freeBytes = (await disk.space()).freeBytes;
    const full = this.#freeBytes < this.#reserveBytes;
    if (full !== this.#full) {
      if (full) logger.error("the disk is full: nothing new is recorded", { freeBytes: this.#freeBytes });
      else logger.info("there is room on the disk again", { freeBytes: this.#freeBytes });
    }
    this.#full = full;
  }
}
