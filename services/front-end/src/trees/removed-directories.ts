/**
 * Takes what hangs below directories that were removed recursively, in the background, one turn after another. If the process dies, the rest
 * stays until its filesystem is deleted (docs/design/tree.md, "Limits").
 *
 * Invariants:
 * - A turn that was not answered, or met another operation, is taken again later. Each other directory gets its turn first.
 * - A directory with a row that can't be read is left out, and keeps no other one waiting.
 */
import type { TreeName } from "@stamp/objects";
import { sleep, type World } from "@stamp/ports";

/** "more": something is left. "later": nothing can be taken now. */
export interface TakenBelow {
  readonly end: "done" | "more" | "later";
  /** Directories that were removed in this turn. */
  readonly below: readonly string[];
}

type Take = (tree: TreeName, directory: string) => Promise<TakenBelow>;

/** Directories that wait at most; beyond, what is below them stays until its filesystem goes. */
const waitingMax = 10_000;
const pauseFirstMs = 250;
const pauseMaxMs = 30_000;

interface Removed {
  readonly tree: TreeName;
  readonly directory: string;
}

export class RemovedDirectories {
  readonly #world: World;
  readonly #take: Take;
  readonly #ended = new AbortController();
  /** Directories that wait to be looked at; the last one is next. */
  readonly #waiting: Removed[] = [];
  #running = false;

  constructor(world: World, take: Take) {
    this.#world = world;
    this.#take = take;
  }

  add(tree: TreeName, directory: string): void {
    this.#keep({ tree, directory });
    if (this.#running) return;
    this.#running = true;
    void this.#run().finally(() => {
      this.#running = false;
    });
  }

  /** Takes no more directories. */
  end(): void {
    this.#ended.abort();
  }

  #keep(removed: Removed): void {
    if (this.#waiting.length < waitingMax) this.#waiting.push(removed);
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    let pauseMs = pauseFirstMs;
    for (let next = this.#waiting.pop(); next !== undefined && !signal.aborted; next = this.#waiting.pop()) {
      const { tree, directory } = next;
      const { end, below } = await this.#turn(next);
      // Directories below go first: else one with very many of them would have all of them wait at once.
      if (end === "more") this.#keep({ tree, directory });
      for (const each of below) this.#keep({ tree, directory: each });
      if (end !== "later") {
        pauseMs = pauseFirstMs;
        continue;
      }
      this.#waiting.unshift(next);
      await sleep(this.#world.clock, pauseMs, signal);
      pauseMs = Math.min(pauseMaxMs, pauseMs * 2);
    }
  }

  async #turn({ tree, directory }: Removed): Promise<TakenBelow> {
    try {
      return await this.#take(tree, directory);
    } catch (error) {
      const { account, filesystem } = tree;
      const fields = { account, filesystem, directory, error: String(error) };
      this.#world.logger.warn("what is below a removed directory is not collected: a row can't be read", fields);
      return { end: "done", below: [] };
    }
  }
}
