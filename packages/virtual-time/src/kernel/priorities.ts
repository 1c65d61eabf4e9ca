/**
 * Exploration by priorities (PCT, Burckhardt et al.): every process has a rank, and whatever happens to one of rank r comes r steps of
 * time later than it would, so that the higher ones get ahead of it again and again in the same way. At a few moments of the run a
 * process falls to the lowest rank. A bug that needs d orderings is found with a probability that depends on d and the number of
 * processes, not on the length of the run; random delays alone even out instead.
 */
import type { Prng } from "@stamp/base";
import type { SimProcess } from "./process.ts";

export class Priorities {
  readonly #prng: Prng;
  readonly #stepUs: number;
  readonly #changesAtMs: number[];
  #lowest = 0;

  constructor(prng: Prng, options: { readonly changes: number; readonly withinMs: number; readonly nowMs: number }) {
    this.#prng = prng;
    // Steps reach from far below the network's delay to far above it.
    this.#stepUs = Math.round(20 * 10 ** (prng.float() * 3));
    this.#changesAtMs = Array.from({ length: options.changes }, () => options.nowMs + prng.float() * options.withinMs).sort(
      (a, b) => a - b,
    );
  }

  begin(processes: readonly SimProcess[]): void {
    for (const process of this.#prng.shuffle([...processes])) this.#fall(process);
  }

  /** Returns the process that loses its priority, if the time of the next change has come. */
  change(nowMs: number, processes: readonly SimProcess[]): string | undefined {
    if (this.#changesAtMs.length === 0 || nowMs < (this.#changesAtMs[0] as number)) return undefined;
    this.#changesAtMs.shift();
    const process = this.#prng.pick(processes);
    this.#fall(process);
    return process.name;
  }

  #fall(process: SimProcess): void {
    process.lagUs = this.#lowest * this.#stepUs;
    this.#lowest += 1;
  }
}
