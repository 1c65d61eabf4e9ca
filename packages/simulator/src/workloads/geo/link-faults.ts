/**
 * Faults of the link between two stamps and of the way to the location service: cut both ways, cut one way, slow. They come beside those of
 * the stamps' own processes.
 */
import type { Prng } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import type { Reshapes } from "../reshapes.ts";
import type { TwoStamps } from "./location.ts";

const lastsMaxMs = 12_000;
const slowMaxUs = 300_000;

export class LinkFaults {
  readonly counts: Record<string, number> = {};
  readonly #sim: Simulation;
  readonly #place: TwoStamps;
  readonly #prng: Prng;
  readonly #everyMs: number;
  readonly #reshapes: readonly Reshapes[];
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  /** `reshapes`: ranges of the stamps that are split, merged and moved. */
  constructor(sim: Simulation, place: TwoStamps, everyMs: number, reshapes: readonly Reshapes[]) {
    this.#sim = sim;
    this.#place = place;
    this.#prng = sim.prng.fork();
    this.#everyMs = everyMs;
    this.#reshapes = reshapes;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** No further faults of the link. What is cut is healed by the caller. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    this.#sim.network.slowLinks.clear();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#sim.sleep(this.#prng.float() * 2 * this.#everyMs);
      if (!this.#stopped) this.#strike();
    }
  }

  #strike(): void {
    const sim = this.#sim;
    const prng = this.#prng;
    const { north, south } = this.#place.stamps;
    const kind = prng.pick(["cut", "cut", "one-way", "slow", "location", "reshape", "reshape", "reshape"] as const);
    const lastsMs = prng.float() ** 2 * lastsMaxMs;
    const sides = prng.shuffle([north.processes, south.processes]);
    const [from, to] = kind === "location" ? [this.#place.location, sides[0] ?? []] : [sides[0] ?? [], sides[1] ?? []];
    if (kind === "reshape") {
      if (prng.pick(this.#reshapes).begin(prng)) this.#count(kind);
      return;
    }
    this.#count(kind === "location" ? "way to the location cut" : `link ${kind}`);
    if (kind === "slow") {
      const slowUs = prng.below(slowMaxUs);
      for (const one of from) for (const other of to) sim.network.slowLinks.set(`${one}>${other}`, slowUs);
      void sim.sleep(lastsMs).then(() => sim.network.slowLinks.clear());
      return;
    }
    sim.partition(from, to, { oneWay: kind === "one-way" || prng.chance(0.2) });
    void sim.sleep(lastsMs).then(() => {
      for (const one of from) for (const other of to) sim.healPair(one, other);
    });
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }
}
