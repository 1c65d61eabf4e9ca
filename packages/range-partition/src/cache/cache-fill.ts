/**
 * A range that comes to a server brings a cold row data cache with it: what is read of it first waits for extent nodes, for as long as it
 * takes to meet every block once; and merges of what is not cached write blocks that are not either. Where the cache has room, blocks are
 * read into it ahead, newest checkpoints first. Nothing is pushed out for that, and it gives way to clients as a merge does.
 *
 * A merge has what it reads and what it writes in the cache at once: for a while that may be more than fits, and what goes for it are blocks of
 * other ranges. When all ranges together fit they are filled again behind it.
 */
import { WorkInTurn } from "@stamp/base";
import { type Clock, sleep, type World } from "@stamp/ports";
import type { Checkpoint, Storage } from "../checkpoint/checkpoint-reader.ts";
import { fillRestTimes, MergePace } from "../checkpoint/merge-pace.ts";
import type { BlockCache } from "./block-cache.ts";

/** Ranges that follow a server's death are all loaded first, and merges follow one another. */
const fillAfterMs = 10_000;

/** A range that shares the cache. */
export interface Filled {
  /** Bytes of its checkpoints. */
  readonly bytes: () => number;
  /** Asks for it to be filled. */
  readonly fill: () => void;
}

/** One range at a time for all that share a cache, in the order in which they came. */
export class FillQueue {
  readonly #ranges = new Set<Filled>();
  readonly #turns = new WorkInTurn();
  /** When all ranges were asked for last. */
  #pushedOutBytes = 0;

  join(range: Filled): void {
    this.#ranges.add(range);
  }

  leave(range: Filled): void {
    this.#ranges.delete(range);
  }

  /** A merge has ended. */
  refill(blocks: Pick<BlockCache, "pushedOutBytes" | "holds">): void {
    if (blocks.pushedOutBytes === this.#pushedOutBytes) return;
    let bytes = 0;
    for (const range of this.#ranges) bytes += range.bytes();
    if (!blocks.holds(bytes)) return;
    this.#pushedOutBytes = blocks.pushedOutBytes;
    for (const range of this.#ranges) range.fill();
  }

  /** Queues a fill. It begins after the fills before it, and not before `fillAfterMs` from now. */
  add(clock: Clock, fill: () => Promise<void>): void {
    const beginsMs = clock.monotonicMs() + fillAfterMs;
    void this.#turns.run(async () => {
      const waitMs = beginsMs - clock.monotonicMs();
      if (waitMs > 0) await sleep(clock, waitMs);
      await fill();
    });
  }
}

export interface FillSource {
  readonly storage: Storage;
  /** The present checkpoints, newest first. */
  readonly checkpoints: () => readonly Checkpoint[];
  readonly over: () => boolean;
}

/** Fills the cache. Blocks that are gone or unreadable are left out: a reader that wants one hears why. */
export async function fillCache(world: World, { storage, checkpoints, over }: FillSource): Promise<void> {
  const pace = new MergePace(world, fillRestTimes(world.clock, storage.figures));
  for (const checkpoint of checkpoints()) {
    const ended = (): boolean => over() || !checkpoints().includes(checkpoint);
    for (let at: number | undefined = 0; at !== undefined && !ended(); ) {
      at = await checkpoint.fill(at);
      await pace.step();
    }
  }
}
