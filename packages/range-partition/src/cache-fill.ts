/**
 * A range that comes to a server brings a cold row data cache with it: what is read of it first waits for extent nodes, for as long as it
 * takes to meet every block once; and merges of what is not cached write blocks that are not either. Where the cache has room, blocks are
 * read into it ahead, newest checkpoints first. Nothing is pushed out for that, and it gives way to clients as a merge does.
 */
import { type Clock, sleep, type World } from "@stamp/ports";
import type { Checkpoint, Storage } from "./checkpoint-reader.ts";
import { fillRestTimes, MergePace } from "./merge-pace.ts";

/** Ranges that follow a server's death are all loaded first, and merges follow one another. */
const fillAfterMs = 10_000;

/** One range at a time for all that share a cache, in the order in which they came. */
export class FillQueue {
  #last: Promise<void> = Promise.resolve();

  /** Not before some seconds from now. */
  add(clock: Clock, fill: () => Promise<void>): void {
    const beginsMs = clock.monotonicMs() + fillAfterMs;
    this.#last = this.#last.then(async () => {
      const waitMs = beginsMs - clock.monotonicMs();
      if (waitMs > 0) await sleep(clock, waitMs);
      await fill();
    });
  }
}

export interface FillSource {
  readonly storage: Storage;
  /** As they are now, newest first. */
  readonly checkpoints: () => readonly Checkpoint[];
  readonly over: () => boolean;
}

/** What is not there any more, or can't be read, is left out: whoever wants it will hear why. */
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
