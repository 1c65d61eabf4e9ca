/**
 * Writing a checkpoint goes on in small steps: between two of them the process does what waits, and a merge also rests while clients are
 * served. A merge takes processor time and disk of every node that keeps a copy, and nobody waits for it; but when writes make
 * checkpoints faster than they are merged it goes on without rest.
 */
import { type Clock, sleep, type World } from "@stamp/ports";
import type { ServedFigures, StorageFigures } from "../storage-figures.ts";

/** Bounds of one step: at most about 2 ms of this process. */
const stepEntriesMax = 256;
const stepBytesMax = 256 * 1024;
/** Longest rest, in milliseconds. */
const restMsMax = 500;
/** Inverse of the share of time that merges take beside reads. */
const readsPart = 16;
/** Rate of writes below which merges keep up without a larger share of the time. */
const writtenBytesPerSecond = 1024 * 1024;
const writtenLookMs = 1_000;

/** Returns the rest after a step, as a multiple of its time; 0: only give way. */
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

  /** Notes that an entry was worked on. A promise: the step is over, wait for it. */
  worked(bytes: number): Promise<void> | undefined {
    this.#bytes += bytes;
    return ++this.#entries < stepEntriesMax && this.#bytes < stepBytesMax ? undefined : this.step();
  }

  /** Notes that a step is over: resolves when the next one may begin. */
  async step(): Promise<void> {
    const { clock } = this.#world;
    const workedMs = clock.monotonicMs() - this.#sinceMs;
    await sleep(clock, Math.min(restMsMax, this.#restTimes() * workedMs));
    this.#entries = 0;
    this.#bytes = 0;
    this.#sinceMs = clock.monotonicMs();
  }
}

/** Kind of the requests that this process served lately. */
export type ServedKind = "nothing" | "reads" | "writes";

/** Watches, for one merge, what was served since the last look, and if much was written lately. */
export class ServedWatch {
  #before: ServedFigures;
  #sinceMs: number;
  #sinceBytes: number;
  /** True if much is written; also until it is known. */
  #muchWritten = true;

  constructor(nowMs: number, figures: ServedFigures) {
    this.#before = figures;
    this.#sinceMs = nowMs;
    this.#sinceBytes = figures.bytesWritten;
  }

  look(nowMs: number, figures: ServedFigures): ServedKind {
    const { rowsRead, bytesWritten } = this.#before;
    this.#before = figures;
    const elapsedMs = nowMs - this.#sinceMs;
    if (elapsedMs >= writtenLookMs) {
      this.#muchWritten = (figures.bytesWritten - this.#sinceBytes) * 1_000 > writtenBytesPerSecond * elapsedMs;
      this.#sinceMs = nowMs;
      this.#sinceBytes = figures.bytesWritten;
    }
    if (figures.bytesWritten === bytesWritten && figures.rowsRead === rowsRead) return "nothing";
    return this.#muchWritten ? "writes" : "reads";
  }
}

/**
 * `checkpoints` of at most `checkpointsMax`. While much is written they become more: half of what a read may meet can wait long, more than it
 * may meet is to become less. While rows are nearly only read they don't, and each read notices a merge more than a checkpoint that it meets:
 * there a filter says no. So all merges of this process together (`merges`) take a sixteenth of its time then. Without clients there is
 * nobody to rest for.
 */
export function restTimes(checkpoints: number, checkpointsMax: number, served: ServedKind, merges: number): number {
  if (served === "nothing") return 0;
  if (served === "reads") return readsPart * merges - 1;
  if (checkpoints > checkpointsMax) return 0;
  return checkpoints > checkpointsMax / 2 ? 1 : 3;
}

/**
 * Returns the pauses of reading ahead into the cache, which can always wait: beside clients it is one merge more, and
 * at most half of the time it reads.
 */
export function fillRestTimes(clock: Pick<Clock, "monotonicMs">, figures: StorageFigures): RestTimes {
  const watch = new ServedWatch(clock.monotonicMs(), figures.served);
  return () => {
    const served = watch.look(clock.monotonicMs(), figures.served);
    return served === "nothing" ? 1 : readsPart * (figures.merges + 1) - 1;
  };
}
