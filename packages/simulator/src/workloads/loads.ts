/**
 * One partition server reaches the lock service, the partition manager and the front-end, and neither a stream manager nor an extent node:
 * it holds its lease and can load nothing. It was killed, away for a while, or paused for longer than its lease, so it has
 * nothing, and is given ranges. Clients work all the time; now and then another server or the leading partition manager dies as well. Within
 * a bound, and while it is still cut off, every range must be served by another server (rule loadElsewhere), take writes, and have what was
 * written; in half of the runs one of the others then stays away, and its ranges must be served too.
 */
import type { Prng } from "@stamp/base";
import { ObjectClients } from "@stamp/histories";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { blobDoor } from "./blobs.ts";
import type { WholeCluster } from "./cluster.ts";
import { simulatedCluster } from "./cluster.ts";
import { stageOf } from "./run/stage.ts";
import type { Tally } from "./run/workload.ts";

const clientCount = 2;
const pauseMaxMs = 2_000;
const readyWithinMs = 60_000;
/**
 * A load has failed for 30 s before the range is given away, and for 60 s when the server was given it twice; a manager that dies begins
 * to count anew in its successor, a lease of 6 s after it.
 */
const servedWithinMs = 150_000;
const readBackWithinMs = 30_000;
const lookEveryMs = 100;
/** Time until its lease is over and its ranges are served by others. */
const awayMs = { least: 8_000, more: 12_000 } as const;
/** Time until it has a lease, and is being given ranges. */
const joinsMs = 10_000;

interface RangeFact {
  readonly rangeId: string;
  readonly server: string;
  readonly state: string;
}

export async function loadWorkload(sim: Simulation, tally: Tally): Promise<void> {
  const cluster = simulatedCluster(sim, { partitionServers: 3 });
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const names = new Map([["one", ["a", "b", "c"]]]);
  const run = new ObjectClients(stageOf(sim, tally), names, { pauseMaxMs });
  const doors = Array.from({ length: clientCount }, (_, i) => blobDoor(sim, cluster, `client-${i + 1}`, i));
  const [first] = doors;
  if (first === undefined) return;
  await run.createContainer(first, "one");
  let over = false;
  const working = doors.map((door) => run.work(door, sim.prng.fork(), () => !over));
  const cutOff = new CutOff(sim, tally, cluster);
  await cutOff.begin();
  over = true;
  await Promise.all(working);
  await run.readBack(first, sim.prng, readBackWithinMs);
  cutOff.end();
  await run.readBack(first, sim.prng, readBackWithinMs);
  const wrong = run.history.check();
  if (wrong !== undefined) throw new BrokenPromise(wrong);
  for (const name of run.history.undecided) sim.note("not decided", name);
  if (run.history.undecided.length > 0) tally.counts["NOT DECIDED histories"] = run.history.undecided.length;
}

class CutOff {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #prng: Prng;
  readonly #streamLayer: readonly string[];
  readonly #managers: readonly string[];
  readonly #others: readonly string[];
  readonly #victim: string;
  readonly #faults: Record<string, number> = {};
  #stayedAway: string | undefined;
  #served = false;

  constructor(sim: Simulation, tally: Tally, cluster: WholeCluster) {
    const { processes } = cluster;
    this.#sim = sim;
    this.#tally = tally;
    this.#prng = sim.prng.fork();
    this.#streamLayer = processes.filter((name) => /^(stream-manager|extent-node)-/.test(name));
    this.#managers = processes.filter((name) => name.startsWith("partition-manager-"));
    const servers = processes.filter((name) => name.startsWith("partition-server-"));
    this.#victim = this.#prng.pick(servers);
    this.#others = servers.filter((name) => name !== this.#victim);
    tally.faults = this.#faults;
  }

  /** Until every range is served by another. */
  async begin(): Promise<void> {
    const sim = this.#sim;
    const prng = this.#prng;
    const dies = prng.pick(this.#others);
    sim.partition([this.#victim], this.#streamLayer);
    this.#count("cut off from the streams");
    if (prng.chance(0.5)) this.#later(20_000, () => this.#kill(dies));
    if (prng.chance(0.3)) this.#later(40_000, () => this.#kill(this.#leader()));
    await this.#empty();
    await sim.sleep(joinsMs);
    await this.#servedElsewhere();
    if (prng.chance(0.5)) {
      this.#stayedAway = dies;
      this.#count("another stays away");
      sim.crash(dies, { stayDown: true });
      await this.#servedElsewhere();
    }
    this.#served = true;
  }

  end(): void {
    this.#sim.heal();
    if (this.#stayedAway !== undefined) this.#sim.restart(this.#stayedAway);
  }

  /** Stops a server; its loaded ranges would stay with it. Resolves when it runs again, or is about to. */
  async #empty(): Promise<void> {
    const sim = this.#sim;
    const victim = this.#victim;
    const lastsMs = awayMs.least + this.#prng.float() * awayMs.more;
    const how = this.#prng.pick(["killed", "away", "paused"] as const);
    this.#count(how);
    if (how === "paused") sim.pause(victim);
    else sim.crash(victim, { stayDown: how === "away" });
    if (how !== "killed") await sim.sleep(lastsMs);
    if (how === "paused") sim.resume(victim);
    if (how === "away") sim.restart(victim);
  }

  async #servedElsewhere(): Promise<void> {
    const sim = this.#sim;
    const sinceMs = sim.nowMs;
    let waiting = this.#waiting();
    while (waiting.length > 0) {
      if (sim.nowMs - sinceMs > servedWithinMs)
        throw new BrokenPromise(`not served within ${servedWithinMs} ms by another than ${this.#victim}: ${waiting.join()}`);
      await sim.sleep(lookEveryMs);
      waiting = this.#waiting();
    }
    const { most } = this.#tally;
    most["ms until served elsewhere"] = Math.max(most["ms until served elsewhere"] ?? 0, Math.round(sim.nowMs - sinceMs));
  }

  /** Ranges that nobody serves by the leading manager's word, or one that can't; "the map" when nobody leads. */
  #waiting(): readonly string[] {
    const leader = this.#leader();
    const ranges = leader === undefined ? [] : ((this.#sim.role(leader)?.status.facts.ranges ?? []) as readonly RangeFact[]);
    if (ranges.length === 0) return ["the map"];
    const can = new Set(this.#others.filter((name) => name !== this.#stayedAway));
    return ranges.flatMap(({ rangeId, server, state }) => (state === "loaded" && can.has(server) ? [] : [rangeId]));
  }

  #leader(): string | undefined {
    return this.#managers.find((name) => this.#sim.role(name)?.status.state === "leader");
  }

  #kill(name: string | undefined): void {
    if (this.#served || name === undefined || name === this.#stayedAway) return;
    this.#count("crash");
    this.#sim.crash(name);
  }

  #later(withinMs: number, work: () => void): void {
    this.#sim.background(this.#sim.sleep(this.#prng.float() * withinMs).then(work));
  }

  #count(what: string): void {
    this.#faults[what] = (this.#faults[what] ?? 0) + 1;
  }
}
