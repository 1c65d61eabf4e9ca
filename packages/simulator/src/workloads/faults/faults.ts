/**
 * Faults by the seed: a crash of any process, of some or of all, a cut between one process and some of the rest (both ways or one) or
 * between two halves, a pause, a bad network, a slow disk, a failed fsync. They come one after another, overlap at times, and end with `heal`: everything runs,
 * nothing is cut.
 *
 * Every seed has a temper of its own: which kinds are likely, whom they like to hit, how fast they come and how long they last. Many
 * different tempers find more than one average one, because some promises are broken only by the same two faults again and again.
 */
import type { Prng } from "@stamp/base";
import type { NetworkOptions, Simulation } from "@stamp/virtual-time";
import { defaultDiskOptions, defaultFailpoints } from "@stamp/virtual-time";
import { Reshapes } from "../reshapes.ts";
import { DiskFaults } from "./disk-faults.ts";
import { type FaultKind, type FaultOptions, focusedOnly, usualWeights } from "./fault-kinds.ts";

const clusterPoints = /^(lock-service|stream-manager|extent-node|partition-manager|partition-server|front-end|location-service) /;

export class Faults {
  readonly counts: Record<string, number> = {};
  readonly #sim: Simulation;
  readonly #options: FaultOptions;
  readonly #prng: Prng;
  readonly #weights: (readonly [FaultKind, number])[];
  readonly reshapes: Reshapes | undefined;
  readonly #targets: readonly (readonly [string, number])[];
  readonly #everyMs: number;
  readonly #lastsMaxMs: number;
  readonly #paused = new Set<string>();
  /** The machine that may lose what was durable. */
  readonly #weak: string;
  readonly #disks: DiskFaults;
  /** Machines that may lose a fragment that was durable; the first one may lose everything. */
  readonly fragile: readonly string[];
  #usualNetwork: NetworkOptions;
  /** True if a lone answer is under way. */
  #alone = false;
  #onStrike: (() => void)[] = [];
  #stopped = false;
  #running: Promise<void> | undefined;

  constructor(sim: Simulation, options: FaultOptions) {
    this.#sim = sim;
    this.#options = options;
    this.#usualNetwork = sim.network.options;
    const prng = sim.prng.fork();
    this.#prng = prng;
    const focus = options.focus ?? {};
    const temper = (): number => prng.pick([0, 0.3, 1, 1, 3, 10]) * (focus.others ?? 1);
    const weightOf = (kind: FaultKind, usual: number): readonly [FaultKind, number] => [kind, focus.weights?.[kind] ?? usual * temper()];
    this.#weights = (Object.keys(usualWeights) as (keyof typeof usualWeights)[]).map((kind) => weightOf(kind, usualWeights[kind]));
    this.#targets = options.targets.map((name) => [name, prng.pick([0.2, 1, 1, 5]) * (focus.targets?.test(name) ? 20 : 1)] as const);
    const usualEveryMs = options.pace * prng.pick([400, 1_200, 1_200, 3_000]);
    this.#everyMs = focus.everyMs ?? usualEveryMs;
    const usualLastsMs = prng.pick([1_500, 6_000, 6_000, 15_000]);
    this.#lastsMaxMs = focus.lastsMaxMs ?? usualLastsMs;
    const nodes = options.targets.filter((name) => name.startsWith("extent-node-"));
    // Any process, if there are lock services alone: their disks have other faults (member-folders.ts).
    this.#weak = prng.pick(nodes.length > 0 ? nodes : options.targets);
    for (const kind of focusedOnly) {
      const weight = focus.weights?.[kind];
      if (weight !== undefined) this.#weights.push([kind, weight]);
    }
    if (options.reshapes) {
      this.reshapes = new Reshapes(sim, options.reshapes);
      this.#weights.push(weightOf("reshape", options.reshapes.weight));
    }
    this.fragile = [this.#weak];
    if (options.damagesFragments) {
      const others = options.targets.filter((name) => name.startsWith("extent-node-") && name !== this.#weak);
      this.fragile = [this.#weak, prng.pick(others)];
      this.#weights.push(weightOf("fragment-damage", 2));
    }
    this.#disks = new DiskFaults(sim, prng, { weak: this.#weak, fragile: this.fragile, targets: options.targets });
  }

  /** Half of the runs strike failpoints too; a third explore by priorities, the others by chance. */
  start(): void {
    const prng = this.#prng;
    const failpoints = prng.chance(0.5);
    const priorities = prng.chance(0.33);
    const { focus, withinMs } = this.#options;
    this.#usualNetwork = this.#sim.network.options;
    this.#sim.network.options = { ...this.#usualNetwork, ...focus?.network };
    if (failpoints || focus?.failpoints) this.#sim.failpoints.arm({ ...defaultFailpoints, only: clusterPoints, ...focus?.failpoints });
    if (priorities) {
      this.#sim.explorePriorities(prng.below(4), withinMs);
      this.#count("priorities");
    }
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
    this.#sim.failpoints.disarm();
    this.#sim.endPriorities();
    for (const [name, count] of Object.entries(this.reshapes?.counts ?? {})) this.#count(name, count);
    for (const { struck } of Object.values(this.#sim.failpoints.hits())) if (struck > 0) this.#count("failpoint", struck);
    this.#sim.network.options = this.#usualNetwork;
    this.#calm();
    this.#sim.heal();
    for (const name of this.#paused) this.#sim.resume(name);
    for (const name of this.#options.targets) {
      const disk = this.#sim.disk(name);
      disk.slowFactor = 1;
      disk.lying = false;
      disk.options = { ...disk.options, totalBytes: defaultDiskOptions.totalBytes };
      disk.forgetPlans();
      this.#sim.restart(name);
    }
    await this.#disks.remembered;
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
    this.#count(kind);
    const woken = this.#onStrike;
    this.#onStrike = [];
    for (const wake of woken) wake();
  }

  #count(what: string, more = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + more;
  }

  #inflict(kind: FaultKind): boolean {
    const prng = this.#prng;
    const sim = this.#sim;
    const { targets, clients, focus } = this.#options;
    const target = this.#thatMatters(focus?.targets, 0.6) ?? (weighted(prng, this.#targets) as string);
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
      case "cut-pair": {
        const [one, other] = this.#pair();
        sim.partition([one], [other], { oneWay: prng.chance(0.3) });
        void sim.sleep(lastsMs).then(() => sim.healPair(one, other));
        return true;
      }
      case "broken-connection":
        return sim.breakConnections(...this.#pair());
      case "split": {
        const [one, other]: [string[], string[]] = [[], []];
        for (const name of [...targets, ...clients]) (prng.chance(0.5) ? one : other).push(name);
        sim.partition(one, other);
        void sim.sleep(lastsMs).then(() => sim.heal());
        return true;
      }
      case "pause":
        return this.#pause(target, lastsMs);
      case "suspend":
        return this.#pause(target, lastsMs, true);
      case "bad-network":
        sim.note("bad-network");
        sim.network.options = { ...sim.network.options, breakChance: 0.003, silenceChance: 0.0005, slowChance: 0.05, slowUs: 400_000 };
        void sim.sleep(lastsMs).then(() => this.#calm());
        return true;
      case "clock-jump":
        sim.jumpWallClock(target, Math.round((prng.float() - 0.5) * 10 ** prng.pick([3, 4, 5, 6])));
        return true;
      case "swizzle":
        return this.#swizzle(prng.shuffle([...targets]).slice(0, 2 + prng.below(targets.length - 1)));
      case "reshape":
        return this.reshapes?.begin(prng) ?? false;
      case "lone-answer":
        return this.#loneAnswer();
      default:
        return this.#disks.inflict(kind, target, lastsMs);
    }
  }

  #pair(): [string, string] {
    const { targets, focus } = this.#options;
    const [a, b] = focus?.pairs ? this.#prng.pick(focus.pairs) : [/./, /./];
    const one = this.#prng.pick(targets.filter((name) => a.test(name)));
    return [one, this.#thatMatters(b, 0.7) ?? this.#prng.pick(targets.filter((name) => name !== one && b.test(name)))];
  }

  #thatMatters(kind: RegExp | undefined, chance: number): string | undefined {
    const name = kind === undefined ? undefined : this.#options.matters?.();
    return name !== undefined && kind?.test(name) && this.#prng.chance(chance) ? name : undefined;
  }

  /** Some go down one after another, and come back one after another in another order. */
  #swizzle(names: readonly string[]): boolean {
    const sim = this.#sim;
    const prng = this.#prng;
    sim.note("swizzle", names.join(", "));
    void (async () => {
      for (const name of names) {
        sim.crash(name, { stayDown: true });
        await sim.sleep(prng.float() * 400);
      }
      for (const name of prng.shuffle([...names])) {
        await sim.sleep(prng.float() * 400);
        sim.restart(name);
      }
    })();
    return true;
  }

  #pause(name: string, lastsMs: number, suspend = false): boolean {
    const sim = this.#sim;
    if (!sim.isUp(name)) return false;
    if (suspend) sim.suspend(name);
    else sim.pause(name);
    this.#paused.add(name);
    void sim.sleep(lastsMs).then(() => {
      this.#paused.delete(name);
      sim.resume(name);
    });
    return true;
  }

  /** A seal is decided by one answer after 2 s; a leader is deposed 6 s after it stopped. */
  #loneAnswer(): boolean {
    const { targets } = this.#options;
    const sim = this.#sim;
    const prng = this.#prng;
    const lone = this.#weak;
    const leader = targets.find((name) => name.startsWith("stream-manager-") && sim.role(name)?.status.state === "leader");
    if (this.#alone || leader === undefined) return false;
    this.#alone = true;
    sim.note("lone-answer", `${lone} for ${leader}`);
    const others = targets.filter((name) => name.startsWith("extent-node-") && name !== lone);
    const cut = prng.chance(0.7) ? [leader, lone] : [leader];
    sim.partition(cut, others, { oneWay: prng.chance(0.2) });
    const [diskMs, deposed] = [prng.float() * 5_000, prng.chance(this.#options.focus?.deposedChance ?? 0.5)];
    const pauseMs = 2_000 + prng.float() * 2_000;
    const lastsMs = deposed ? pauseMs + 5_000 + prng.float() * 5_000 : 2_000 + prng.float() * 6_000;
    void sim.sleep(diskMs).then(() => !this.#stopped && this.#disks.empty(lone, prng.float() * 1_000));
    if (deposed) void sim.sleep(pauseMs).then(() => !this.#stopped && this.#pause(leader, prng.float() * 15_000));
    void sim.sleep(lastsMs).then(() => {
      for (const one of cut) for (const other of others) sim.healPair(one, other);
      this.#alone = false;
    });
    return true;
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
