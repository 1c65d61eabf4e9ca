/**
 * Writing a checkpoint goes on in small steps: between two of them the process does what waits, and a merge also rests while clients are
 * served. A merge takes processor time and disk of every node that keeps a copy, and nobody waits for it; but when writes make
 * checkpoints faster than they are merged it goes on without rest.
 */
import { sleep, type World } from "@stamp/ports";

/** Of one step: at most about 2 ms of this process. */
const stepEntriesMax = 256;
const stepBytesMax = 256 * 1024;
/** A rest is at most so long. */
const restMsMax = 250;
const readsRestTimes = 7;

/** How many times its work a step rests; 0: it only lets others go first. */
export type RestTimes = () => number;

export class MergePace {
  readonly #world: World;
  readonly #restTimes: RestTimes;
  #entries = 0;
  #bytes = 0;
  #sinceMs: number;

  constructor(world: World, restTimes: RestTimes) {
    this.#world = world;
    this.#restTimes = restTimes;
    this.#sinceMs = world.clock.monotonicMs();
  }

  /** An entry was worked on. A promise: the step is over, wait for it. */
  worked(bytes: number): Promise<void> | undefined {
    this.#bytes += bytes;
    return ++this.#entries < stepEntriesMax && this.#bytes < stepBytesMax ? undefined : this.step();
  }

  /** A step is over: resolves when the next one may begin. */
  async step(): Promise<void> {
    const { clock } = this.#world;
    const workedMs = clock.monotonicMs() - this.#sinceMs;
    await sleep(clock, Math.min(restMsMax, this.#restTimes() * workedMs));
    this.#entries = 0;
    this.#bytes = 0;
    this.#sinceMs = clock.monotonicMs();
  }
}

/** What clients of this process asked for lately. */
export type Served = "nothing" | "reads" | "writes";

/**
 * `checkpoints` of at most `checkpointsMax`. While there are writes they become more: half of what a read may meet can wait long, more than it may
 * meet is to become less. While rows are only read they don't, and each read notices a merge more than a checkpoint that it
 * meets: there a filter says no. Without clients there is nobody to rest for.
 */
export function restTimes(checkpoints: number, checkpointsMax: number, served: Served): number {
  if (served === "nothing") return 0;
  if (served === "reads") return readsRestTimes;
  if (checkpoints > checkpointsMax) return 0;
  return checkpoints > checkpointsMax / 2 ? 1 : 3;
}
