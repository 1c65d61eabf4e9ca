/**
 * Faults of the link between two stamps and of the way to the location service: cut both ways, cut one way, slow. They come beside those of
 * the stamps' own processes. Ranges are split, merged, moved and collected meanwhile, and a process dies when an operation on the account
 * has just made a step.
 */
import type { Prng } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { PartitionManager } from "@stamp/wire";
import type { Reshapes } from "../reshapes.ts";
import { stampNames, type TwoStamps } from "./location.ts";

const lastsMaxMs = 12_000;
const slowMaxUs = 300_000;
const collectMs = 20_000;

export interface LinkFaultOptions {
  readonly everyMs: number;
  /** Ranges of the stamps that are split, merged and moved. */
  readonly reshapes: readonly Reshapes[];
  /** How often a process dies when an operation has made a step. */
  readonly stepCrashChance: number;
}

const kinds = ["cut", "cut", "one-way", "slow", "location", "reshape", "reshape", "reshape", "collect"] as const;
/** Roles that an operation on an account calls. */
const operating = /^(location-service|partition-manager|partition-server|front-end|lock-service)-/;

export class LinkFaults {
  readonly counts: Record<string, number> = {};
  readonly #sim: Simulation;
  readonly #place: TwoStamps;
  readonly #prng: Prng;
  readonly #options: LinkFaultOptions;
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(sim: Simulation, place: TwoStamps, options: LinkFaultOptions) {
    this.#sim = sim;
    this.#place = place;
    this.#prng = sim.prng.fork();
    this.#options = options;
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
      await this.#sim.sleep(this.#prng.float() * 2 * this.#options.everyMs);
      if (!this.#stopped) this.#strike();
    }
  }

  #strike(): void {
    const sim = this.#sim;
    const prng = this.#prng;
    const { north, south } = this.#place.stamps;
    const kind = prng.pick(kinds);
    const lastsMs = prng.float() ** 2 * lastsMaxMs;
    const sides = prng.shuffle([north.processes, south.processes]);
    const [from, to] = kind === "location" ? [this.#place.location, sides[0] ?? []] : [sides[0] ?? [], sides[1] ?? []];
    if (kind === "reshape") {
      if (prng.pick(this.#options.reshapes).begin(prng)) this.#count(kind);
      return;
    }
    if (kind === "collect") {
      sim.background(this.#collect());
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

  /** An operation on the account has made a step. */
  stepped(step: string): void {
    if (this.#stopped || !this.#prng.chance(this.#options.stepCrashChance)) return;
    const victim = this.#prng.pick(this.#place.processes.filter((name) => operating.test(name)));
    this.#sim.crash(victim);
    this.#count(`crash at ${step}`);
  }

  /** Has the collector pass over a range. */
  async #collect(): Promise<void> {
    const cluster = this.#place.stamps[this.#prng.pick(stampNames)];
    const manager = this.#prng.pick(cluster.processes.filter((name) => name.startsWith("partition-manager-")));
    const client = this.#sim.world("operator").transport.client(cluster.addressOf(manager), PartitionManager);
    const map = await client.getMap({}, { timeoutMs: collectMs });
    if (!map.ok) return;
    const { rangeId } = this.#prng.pick(map.value.ranges);
    const done = await client.collectRange({ rangeId }, { timeoutMs: collectMs });
    this.#count(done.ok ? "range collected" : "range not collected");
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }
}
