/**
 * Copies for repair take turns on one node: one of them writes at a time, and rests afterwards while clients use the node. What a copy
 * fetches from others counts as beside the appends of clients too, but nobody waits for it.
 */
import { CopyPace, type CopyProgress } from "@stamp/extent";
import { sleep, type World } from "@stamp/ports";

export class CopyTurns {
  readonly #world: World;
  readonly #pace = new CopyPace();
  #last: Promise<void> = Promise.resolve();

  constructor(world: World) {
    this.#world = world;
  }

  get facts(): Readonly<Record<string, number>> {
    return this.#pace.facts;
  }

  /** Learns how long an append at this node waited for the journal. */
  appendDurable(arrivedMs: number): void {
    this.#pace.appendDurable(arrivedMs, this.#world.clock.monotonicMs());
  }

  /** Runs work that counts as a copy's. */
  async working<T>(work: () => Promise<T>): Promise<T> {
    this.#pace.stepBegan();
    try {
      return await work();
    } finally {
      this.#pace.stepEnded(this.#world.clock.monotonicMs());
    }
  }

  /** Does it when the copies that came before have done theirs and rested; resolves when this one has. `rests`: undefined, it need not. */
  alone(work: () => Promise<void>, rests: (workedMs: number) => CopyProgress | undefined): Promise<void> {
    const { clock } = this.#world;
    const turn = this.#last.then(async () => {
      const startedMs = clock.monotonicMs();
      await this.working(work);
      const progress = rests(clock.monotonicMs() - startedMs);
      const restMs = progress === undefined ? 0 : this.#pace.restMs(progress);
      if (restMs > 0) await sleep(clock, restMs);
    });
    this.#last = turn.catch(() => {});
    return turn;
  }
}
