/** Queue of fills of the row data cache, for all ranges that share the cache. */
import { WorkInTurn } from "@stamp/base";
import { type Clock, sleep } from "@stamp/ports";
import type { BlockCache } from "./block-cache.ts";

/** Ranges that follow a server's death are all loaded first, and merges follow one another. */
const fillAfterMs = 10_000;

/** A range that shares the cache. */
export interface FilledRange {
  /** Returns the size of the range's checkpoints, in bytes. */
  readonly bytes: () => number;
  /** Fills the cache with blocks of the range. */
  readonly fill: () => void;
}

/** Lets one range at a time fill, of all that share a cache, in the order of their coming. */
export class FillQueue {
  readonly #ranges = new Set<FilledRange>();
  readonly #turns = new WorkInTurn();
  /** Bytes that had been pushed out when all ranges were last asked for. */
  #pushedOutBytes = 0;

  join(range: FilledRange): void {
    this.#ranges.add(range);
  }

  leave(range: FilledRange): void {
    this.#ranges.delete(range);
  }

  /** Notes that a merge has ended. */
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
