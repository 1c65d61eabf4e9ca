/**
 * Faults by the seed: a crash of any process or of all, a cut between one process and the rest (both ways or one), a pause, a bad
 * network, a slow disk. They come one after another, overlap at times, and end with `heal`: everything runs, nothing is cut.
 */
import type { Prng } from "@stamp/base";
import type { Simulation } from "../simulation.ts";

export type FaultKind = "crash" | "power-loss" | "partition" | "partition-one-way" | "pause" | "bad-network" | "slow-disk" | "failed-fsync";

export interface FaultOptions {
  /** Processes that faults may hit. */
  readonly targets: readonly string[];
  /** Everybody who can be on the other side of a cut: the targets and their clients. */
  readonly everybody: readonly string[];
  /** Time between two faults: uniform up to twice this. */
  readonly everyMs: number;
  readonly weights?: Partial<Record<FaultKind, number>>;
  /** How long a pause or a cut lasts at most. */
  readonly lastsMaxMs: number;
}

const usualWeights: Record<FaultKind, number> = {
  crash: 10,
  "power-loss": 1,
  partition: 4,
  "partition-one-way": 4,
  pause: 4,
  "bad-network": 2,
  "slow-disk": 2,
  "failed-fsync": 1,
};

export class Faults {
  readonly counts: Partial<Record<FaultKind, number>> = {};
  readonly #sim: Simulation;
  readonly #options: FaultOptions;
  readonly #prng: Prng;
  readonly #paused = new Set<string>();
  #stopped = false;
  #running: Promise<void> | undefined;

  constructor(sim: Simulation, options: FaultOptions) {
    this.#sim = sim;
    this.#options = options;
    this.#prng = sim.prng.fork();
  }

  start(): void {
    this.#running = this.#run();
  }

  /** No further faults; everything that was done is undone and whoever is dead starts again. */
  async heal(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    this.#calm();
    this.#sim.heal();
    for (const name of this.#paused) this.#sim.resume(name);
    for (const name of this.#options.targets) {
      this.#sim.disk(name).slowFactor = 1;
      this.#sim.restart(name);
    }
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#sim.sleep(this.#prng.float() * 2 * this.#options.everyMs);
      if (!this.#stopped) this.#strike();
    }
  }

  #strike(): void {
    const kind = this.#pickKind();
    const prng = this.#prng;
    const sim = this.#sim;
    const { targets, everybody, lastsMaxMs } = this.#options;
    const target = prng.pick(targets);
    const lastsMs = prng.float() ** 2 * lastsMaxMs;
    switch (kind) {
      case "crash":
        if (!sim.isUp(target)) return;
        sim.crash(target);
        break;
      case "power-loss":
        for (const name of targets) sim.crash(name, { unsynced: "lost" });
        break;
      case "partition":
      case "partition-one-way": {
        const others = everybody.filter((name) => name !== target);
        const some = prng.chance(0.5) ? others : prng.shuffle([...others]).slice(0, 1 + prng.below(others.length));
        const oneWay = kind === "partition-one-way";
        if (oneWay && prng.chance(0.5)) sim.partition(some, [target], { oneWay });
        else sim.partition([target], some, { oneWay });
        void sim.sleep(lastsMs).then(() => sim.heal());
        break;
      }
      case "pause":
        if (!sim.isUp(target)) return;
        sim.pause(target);
        this.#paused.add(target);
        void sim.sleep(lastsMs).then(() => {
          this.#paused.delete(target);
          sim.resume(target);
        });
        break;
      case "bad-network":
        sim.note("bad-network");
        sim.network.options = { ...sim.network.options, breakChance: 0.003, silenceChance: 0.0005, slowChance: 0.05, slowUs: 400_000 };
        void sim.sleep(lastsMs).then(() => this.#calm());
        break;
      case "slow-disk":
        sim.note("slow-disk", target);
        sim.disk(target).slowFactor = 20 + prng.below(600);
        void sim.sleep(lastsMs).then(() => {
          sim.disk(target).slowFactor = 1;
        });
        break;
      case "failed-fsync":
        sim.note("failed-fsync", target);
        sim.disk(target).failNext("sync");
        break;
    }
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }

  #calm(): void {
    this.#sim.network.options = { ...this.#sim.network.options, breakChance: 0, silenceChance: 0, slowChance: 0 };
  }

  #pickKind(): FaultKind {
    const weights = { ...usualWeights, ...this.#options.weights };
    const kinds = Object.keys(weights) as FaultKind[];
    let left = this.#prng.float() * kinds.reduce((sum, kind) => sum + weights[kind], 0);
    for (const kind of kinds) {
      left -= weights[kind];
      if (left < 0) return kind;
    }
    return "crash";
  }
}
