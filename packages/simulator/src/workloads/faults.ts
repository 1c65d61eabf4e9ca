/**
 * Faults by the seed: a crash of any process, of some or of all, a cut between one process and some of the rest (both ways or one) or
 * between two halves, a pause, a bad network, a slow disk, a failed fsync. They come one after another, overlap at times, and end with `heal`: everything runs,
 * nothing is cut.
 *
 * Every seed has a temper of its own: which kinds are likely, whom they like to hit, how fast they come and how long they last. Many
 * different tempers find more than one average one, because some promises are broken only by the same two faults again and again.
 */
import type { Prng } from "@stamp/base";
import type { Simulation } from "../simulation.ts";

export type FaultKind =
  | "crash"
  | "rack-loss"
  | "power-loss"
  | "partition"
  | "partition-one-way"
  | "split"
  | "pause"
  | "bad-network"
  | "slow-disk"
  | "failed-fsync";

export interface FaultOptions {
  /** Processes that faults may hit. */
  readonly targets: readonly string[];
  /** Processes without a role: their crash is for good, whoever uses one starts a new one. */
  readonly clients: readonly string[];
  /** Multiplies the time between faults: what recovers slowly must have time to. */
  readonly pace: number;
}

const usualWeights: Record<FaultKind, number> = {
  crash: 10,
  "rack-loss": 2,
  "power-loss": 1,
  partition: 6,
  "partition-one-way": 4,
  split: 4,
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
  readonly #weights: readonly (readonly [FaultKind, number])[];
  readonly #targets: readonly (readonly [string, number])[];
  readonly #everyMs: number;
  readonly #lastsMaxMs: number;
  readonly #paused = new Set<string>();
  #onStrike: (() => void)[] = [];
  #stopped = false;
  #running: Promise<void> | undefined;

  constructor(sim: Simulation, options: FaultOptions) {
    this.#sim = sim;
    this.#options = options;
    const prng = sim.prng.fork();
    this.#prng = prng;
    const temper = (): number => prng.pick([0, 0.3, 1, 1, 3, 10]);
    this.#weights = (Object.keys(usualWeights) as FaultKind[]).map((kind) => [kind, usualWeights[kind] * temper()] as const);
    this.#targets = options.targets.map((name) => [name, prng.pick([0.2, 1, 1, 5])] as const);
    this.#everyMs = options.pace * prng.pick([400, 1_200, 1_200, 3_000]);
    this.#lastsMaxMs = prng.pick([1_500, 6_000, 6_000, 15_000]);
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when the next fault strikes, or after `timeoutMs`. */
  async next(timeoutMs: number): Promise<void> {
    await Promise.race([this.#sim.sleep(timeoutMs), new Promise<void>((resolve) => this.#onStrike.push(resolve))]);
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
      this.#sim.disk(name).forgetPlans();
      this.#sim.restart(name);
    }
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#sim.sleep(this.#prng.float() * 2 * this.#everyMs);
      if (this.#stopped) return;
      this.#strike();
      // One fault seldom comes alone.
      while (!this.#stopped && this.#prng.chance(0.3)) {
        await this.#sim.sleep(this.#prng.float() ** 2 * 1_500);
        if (!this.#stopped) this.#strike();
      }
    }
  }

  #strike(): void {
    const kind = weighted(this.#prng, this.#weights) ?? "crash";
    if (!this.#inflict(kind)) return;
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    const woken = this.#onStrike;
    this.#onStrike = [];
    for (const wake of woken) wake();
  }

  #inflict(kind: FaultKind): boolean {
    const prng = this.#prng;
    const sim = this.#sim;
    const { targets, clients } = this.#options;
    const target = weighted(prng, this.#targets) as string;
    const lastsMs = prng.float() ** 2 * this.#lastsMaxMs;
    switch (kind) {
      case "crash": {
        const victim = prng.chance(0.15) && clients.length > 0 ? prng.pick(clients) : target;
        if (!sim.isUp(victim)) return false;
        sim.crash(victim);
        return true;
      }
      case "rack-loss": {
        const some = prng.shuffle([...targets, ...clients]).slice(0, 2 + prng.below(3));
        for (const name of some) sim.crash(name, { unsynced: "lost" });
        return true;
      }
      case "power-loss":
        for (const name of targets) sim.crash(name, { unsynced: "lost" });
        return true;
      case "partition":
      case "partition-one-way": {
        const others = [...targets, ...clients].filter((name) => name !== target);
        const some = prng.chance(0.4) ? others : prng.shuffle([...others]).slice(0, 1 + prng.below(others.length));
        const oneWay = kind === "partition-one-way";
        if (oneWay && prng.chance(0.5)) sim.partition(some, [target], { oneWay });
        else sim.partition([target], some, { oneWay });
        void sim.sleep(lastsMs).then(() => sim.heal());
        return true;
      }
      case "split": {
        const [one, other]: [string[], string[]] = [[], []];
        for (const name of [...targets, ...clients]) (prng.chance(0.5) ? one : other).push(name);
        sim.partition(one, other);
        void sim.sleep(lastsMs).then(() => sim.heal());
        return true;
      }
      case "pause":
        if (!sim.isUp(target)) return false;
        sim.pause(target);
        this.#paused.add(target);
        void sim.sleep(lastsMs).then(() => {
          this.#paused.delete(target);
          sim.resume(target);
        });
        return true;
      case "bad-network":
        sim.note("bad-network");
        sim.network.options = { ...sim.network.options, breakChance: 0.003, silenceChance: 0.0005, slowChance: 0.05, slowUs: 400_000 };
        void sim.sleep(lastsMs).then(() => this.#calm());
        return true;
      case "slow-disk":
        sim.note("slow-disk", target);
        sim.disk(target).slowFactor = 20 + prng.below(600);
        void sim.sleep(lastsMs).then(() => {
          sim.disk(target).slowFactor = 1;
        });
        return true;
      case "failed-fsync":
        sim.note("failed-fsync", target);
        sim.disk(target).failNext("sync");
        return true;
    }
  }

  #calm(): void {
    this.#sim.network.options = { ...this.#sim.network.options, breakChance: 0, silenceChance: 0, slowChance: 0 };
  }
}

function weighted<T>(prng: Prng, items: readonly (readonly [T, number])[]): T | undefined {
  let left = prng.float() * items.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [item, weight] of items) {
    left -= weight;
    if (left < 0) return item;
  }
  return undefined;
}
