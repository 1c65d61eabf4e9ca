/**
 * Faults by the seed: a crash of any process, of some or of all, a cut between one process and some of the rest (both ways or one) or
 * between two halves, a pause, a bad network, a slow disk, a failed fsync. They come one after another, overlap at times, and end with `heal`: everything runs,
 * nothing is cut.
 *
 * Every seed has a temper of its own: which kinds are likely, whom they like to hit, how fast they come and how long they last. Many
 * different tempers find more than one average one, because some promises are broken only by the same two faults again and again.
 */
import type { Prng } from "@stamp/base";
import { decodeSegmentHeader, segmentRecordsOffset } from "@stamp/extent";
import type { FailpointOptions, NetworkOptions, Simulation } from "@stamp/virtual-time";
import { defaultDiskOptions, defaultFailpoints, digest } from "@stamp/virtual-time";
import { type ReshapeOptions, Reshapes } from "../reshapes.ts";
import { damageFragment } from "./fragment-faults.ts";
import { forgetTables, loseTable } from "./table-faults.ts";

export type FaultKind =
  | "crash"
  | "rack-loss"
  | "power-loss"
  | "partition"
  | "partition-one-way"
  | "split"
  /** Between two processes only. */
  | "cut-pair"
  /** A connection of one process to another breaks, and both live; only where a focus says so. */
  | "broken-connection"
  | "pause"
  /** Like a pause, but monotonic time stands still meanwhile; only where a focus says so. */
  | "suspend"
  | "bad-network"
  | "slow-disk"
  | "failed-fsync"
  | "full-disk"
  | "clock-jump"
  | "lost-table"
  | "swizzle"
  /** Somebody splits, merges or moves a range; only where the workload says which. */
  | "reshape"
  /** A file of an extent, or the newest segment of a journal, is gone when the machine comes back. */
  | "lost-file"
  /** These, and the one above, destroy what was durable; they hit one machine of a run only, the others must be enough. */
  | "bit-rot"
  | "replaced-disk"
  | "old-replica"
  | "lying-disk"
  /** A fragment rots or is gone, on one of two machines; only where the workload says so. */
  | "fragment-damage"
  /**
   * The leading stream manager reaches one extent node only, which often reaches no other; that one loses its disk; and the manager may be
   * deposed meanwhile, with what it sent still on its way. Only where a focus says so.
   */
  | "lone-answer"
  /**
   * The lock service's store opens, but has lost its last batches or a key. Where it is refused, a person puts the disk's content back. Only
   * where a focus says so.
   */
  | "forgetful-store"
  /** The tables of some extent nodes, or of all, open, but have lost their last batches. Only where a focus says so. */
  | "forgetful-table";

/** Makes some faults likely, so that a mutant is found with few seeds. Kinds that are not named come as usual, but seldom. */
export interface Focus {
  readonly weights?: Partial<Record<FaultKind, number>>;
  /** Processes hit most. */
  readonly targets?: RegExp;
  readonly everyMs?: number;
  readonly lastsMaxMs?: number;
  /** Multiplies the chance of kinds that are not named. */
  readonly others?: number;
  readonly failpoints?: Partial<FailpointOptions>;
  /** Pairs of processes that are cut from each other. */
  readonly pairs?: readonly (readonly [RegExp, RegExp])[];
  /** How often a lone answer has its manager deposed; a half when absent. */
  readonly deposedChance?: number;
  /** While faults come. */
  readonly network?: Partial<NetworkOptions>;
  /** Owners of streams rest for up to so long between appends, at times. */
  readonly ownersRestMs?: number;
  /** Largest record that owners of streams append, in bytes; small ones, and at times up to 40,000, when absent. */
  readonly recordBytesMax?: number;
  /** How long owners of streams work, in milliseconds of virtual time; 25,000 when absent. */
  readonly workMs?: number;
  /** The stamp has two lock services over a simulated etcd. */
  readonly overEtcd?: boolean;
  /** Callers of workload `coding` ask for so many extents, the oldest, again and again; any extents when absent. */
  readonly codesFew?: number;
  /** They ask for extents whose first replica is on the machine that may lose what was durable, as long as there are some. */
  readonly codesOfWeak?: boolean;
  /** A person asks for the deletion of any fragment all the time; in every fifth run when absent. */
  readonly deletesStrays?: boolean;
  /** Grace of deletions in workload `coding`, in milliseconds; the seed's choice when absent. */
  readonly deletionGraceMs?: number;
  /** In the end metadata of before a coding are restored, then those of after it (older-metadata.ts). */
  readonly restoresMetadata?: boolean;
  /** Once the folder of the lock service is put back from a backup (older-folder.ts). */
  readonly putsFolderBack?: boolean;
  /** Once every extent node is down, and a person accepts what is lost by it (accepted-loss.ts). */
  readonly acceptsLoss?: boolean;
}

export interface FaultOptions {
  /** Processes that faults may hit. */
  readonly targets: readonly string[];
  /** Processes without a role: their crash is for good, whoever uses one starts a new one. */
  readonly clients: readonly string[];
  /** Multiplies the time between faults: what recovers slowly must have time to. */
  readonly pace: number;
  readonly focus?: Focus | undefined;
  /** Process that the workload depends on now: under a focus it is hit more often than others of its kind. */
  readonly matters?: () => string | undefined;
  /** Ranges that may be split, merged and moved; none when absent. */
  readonly reshapes?: ReshapeOptions;
  /** Extents are coded: fragments on two machines may be damaged. */
  readonly damagesFragments?: boolean;
  /** How long faults go on, for the moments at which priorities change. */
  readonly withinMs: number;
}

/** Only where a focus names them. */
const focusedOnly = ["broken-connection", "suspend", "lone-answer", "forgetful-store", "forgetful-table"] as const;

const usualWeights: Record<Exclude<FaultKind, "reshape" | "fragment-damage" | (typeof focusedOnly)[number]>, number> = {
  crash: 10,
  "rack-loss": 2,
  "power-loss": 1,
  partition: 6,
  "partition-one-way": 4,
  split: 4,
  "cut-pair": 4,
  pause: 4,
  "bad-network": 2,
  "slow-disk": 2,
  "failed-fsync": 1,
  "full-disk": 1,
  "clock-jump": 1,
  "lost-table": 1,
  swizzle: 1,
  "lost-file": 1,
  "bit-rot": 1,
  "replaced-disk": 1,
  "old-replica": 0,
  "lying-disk": 0,
};

const clusterPoints = /^(lock-service|stream-manager|extent-node|partition-manager|partition-server|front-end) /;

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
  /** Machines that may lose a fragment that was durable; the first one may lose everything. */
  readonly fragile: readonly string[];
  #replacedTimes = 0;
  #usualNetwork: NetworkOptions;
  /** A lone answer is under way. */
  #alone = false;
  /** A store has forgotten something, until it is served nevertheless or all of it is put back. */
  #forgetful: Promise<void> | undefined;
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
    this.#weak = prng.pick(options.targets.filter((name) => name.startsWith("extent-node-")));
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
    await this.#forgetful;
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
      case "full-disk":
        sim.note("full-disk", target);
        this.#fill(target, lastsMs);
        return true;
      case "clock-jump":
        sim.jumpWallClock(target, Math.round((prng.float() - 0.5) * 10 ** prng.pick([3, 4, 5, 6])));
        return true;
      case "lost-table":
        loseTable(sim, prng.pick(targets.filter((name) => name.startsWith("extent-node-"))));
        return true;
      case "swizzle":
        return this.#swizzle(prng.shuffle([...targets]).slice(0, 2 + prng.below(targets.length - 1)));
      case "reshape":
        return this.reshapes?.begin(prng) ?? false;
      case "bit-rot":
        return this.#rot();
      case "lost-file":
        return this.#loseFile();
      case "replaced-disk":
        return this.#replaceDisk();
      case "old-replica":
        return this.#oldReplica(lastsMs);
      case "fragment-damage":
        return damageFragment(sim, prng, prng.pick(this.fragile));
      case "lying-disk":
        return this.#lie(lastsMs);
      case "lone-answer":
        return this.#loneAnswer();
      case "forgetful-table":
        return forgetTables(
          sim,
          prng,
          targets.filter((name) => name.startsWith("extent-node-")),
        );
      case "forgetful-store":
        return this.#forgetStore(targets.find((name) => name.startsWith("lock-service-")) as string);
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

  #fill(name: string, lastsMs: number): void {
    const disk = this.#sim.disk(name);
    disk.options = { ...disk.options, totalBytes: disk.usedBytes() + this.#prng.below(40_000) };
    void this.#sim.sleep(lastsMs).then(() => {
      disk.options = { ...disk.options, totalBytes: defaultDiskOptions.totalBytes };
    });
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

  #rot(): boolean {
    const disk = this.#sim.disk(this.#weak);
    const files = disk.paths().filter((path) => path.endsWith(".extent") && (disk.sizeOf(path) ?? 0) > firstBlockBytes);
    if (files.length === 0) return false;
    const path = this.#prng.pick(files);
    const at = firstBlockBytes + this.#prng.below((disk.sizeOf(path) as number) - firstBlockBytes);
    this.#sim.note("bit-rot", `${this.#weak} ${path} at ${at}`);
    disk.corrupt(path, at, 1 << this.#prng.below(8));
    return true;
  }

  /** Never the only segment that is left: without a journal a node waits for a person. */
  #loseFile(): boolean {
    const sim = this.#sim;
    const name = this.#weak;
    const disk = sim.disk(name);
    const paths = disk.paths();
    const [newest, other] = paths
      .filter((path) => path.endsWith(".segment"))
      .flatMap((path) => {
        const header = decodeSegmentHeader(digest.crc32c, disk.headOf(path, segmentRecordsOffset));
        return header.kind === "ok" ? [{ path, generation: header.value.generation }] : [];
      })
      .sort((a, b) => b.generation - a.generation);
    const extents = paths.filter((path) => path.endsWith(".extent"));
    const lost = this.#prng.chance(0.5) && other ? newest?.path : extents.length > 0 ? this.#prng.pick(extents) : undefined;
    if (lost === undefined) return false;
    sim.note("lost-file", `${name} ${lost}`);
    sim.crash(name, { unsynced: "kept", stayDown: true });
    disk.lose(lost);
    void sim.sleep(this.#prng.float() * 3_000).then(() => sim.restart(name));
    return true;
  }

  #forgetStore(name: string): boolean {
    const sim = this.#sim;
    if (this.#forgetful !== undefined || !sim.isUp(name)) return false;
    sim.crash(name, { unsynced: "kept", stayDown: true });
    const putBack = sim.keyValue(name).forget("metadata");
    sim.restart(name);
    if (putBack === undefined) return false;
    sim.note("forgetful-store", name);
    this.#forgetful = this.#untilPutBack(name, putBack).then(() => {
      this.#forgetful = undefined;
    });
    return true;
  }

  /** The lost part may never have been acknowledged: then the store is served. */
  async #untilPutBack(name: string, putBack: () => void): Promise<void> {
    const sim = this.#sim;
    for (;;) {
      await sim.sleep(50);
      const status = sim.role(name)?.status;
      if (status?.ready === true) return;
      if (status?.state !== "damaged") continue;
      sim.crash(name, { unsynced: "kept", stayDown: true });
      putBack();
      sim.restart(name);
      return;
    }
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

  #replaceDisk(): boolean {
    if (this.#replacedTimes >= 2) return false;
    this.#replacedTimes += 1;
    this.#emptyDisk(this.#weak, this.#prng.float() * 3_000);
    return true;
  }

  #emptyDisk(name: string, backAfterMs: number): void {
    const sim = this.#sim;
    sim.note("replaced-disk", name);
    sim.crash(name, { unsynced: "lost", stayDown: true });
    sim.disk(name).wipe();
    sim.keyValue(name).wipe();
    void sim.sleep(backAfterMs).then(() => sim.restart(name));
  }

  #oldReplica(lastsMs: number): boolean {
    const sim = this.#sim;
    sim.note("old-replica", this.#weak);
    sim.crash(this.#weak, { unsynced: "lost", stayDown: true });
    void sim.sleep(lastsMs).then(() => sim.restart(this.#weak));
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
    void sim.sleep(diskMs).then(() => !this.#stopped && this.#emptyDisk(lone, prng.float() * 1_000));
    if (deposed) void sim.sleep(pauseMs).then(() => !this.#stopped && this.#pause(leader, prng.float() * 15_000));
    void sim.sleep(lastsMs).then(() => {
      for (const one of cut) for (const other of others) sim.healPair(one, other);
      this.#alone = false;
    });
    return true;
  }

  #lie(lastsMs: number): boolean {
    const sim = this.#sim;
    const name = this.#weak;
    sim.note("lying-disk", name);
    sim.disk(name).lying = true;
    void sim.sleep(lastsMs).then(() => {
      if (sim.disk(name).lying) sim.crash(name, { unsynced: "lost" });
    });
    return true;
  }

  #calm(): void {
    this.#sim.network.options = { ...this.#sim.network.options, breakChance: 0, silenceChance: 0, slowChance: 0 };
  }
}

/** Bits of a header are another fault: the whole file is not what it says. */
const firstBlockBytes = 4_096;

function weighted<T>(prng: Prng, items: readonly (readonly [T, number])[]): T | undefined {
  let left = prng.float() * items.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [item, weight] of items) {
    left -= weight;
    if (left < 0) return item;
  }
  return undefined;
}
