/**
 * A range that comes to a server brings a cold row data cache with it: what is read of it first waits for extent nodes, for as long as it
 * takes to meet every block once; and merges of what is not cached write blocks that are not either. Where the cache has room, blocks are
 * read into it ahead, newest checkpoints first. Nothing is pushed out for that, and it gives way to clients as a merge does.
 *
 * A merge has what it reads and what it writes in the cache at once: for a while that may be more than fits, and what goes for it are blocks of
 * other ranges. When all ranges together fit they are filled again behind it.
 */
import type { World } from "@stamp/ports";
import type { Checkpoint, Storage } from "../checkpoint/checkpoint-reader.ts";
import { fillRestTimes, MergePace } from "../checkpoint/merge-pace.ts";

export interface FillSource {
  readonly storage: Storage;
  /** Returns the present checkpoints, newest first. */
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
