/**
 * Disks that do little at once and favour some over others, while somebody reads one file of each without end; and now and then what one
 * of them is asked to read hangs for seconds. A reader who asks one replica after another, each with all the time that is left, must have
 * his bytes in time: nobody starves (rule diskWorkBounded), and who can't answer in time says so at once (rule lateReadsRefused).
 */
import type { Prng } from "@stamp/base";
import { equalBytes } from "@stamp/base";
import { sleep } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import type { ExtentLocation } from "@stamp/wire";
import { ExtentNode } from "@stamp/wire";
import type { SimulatedCluster } from "./cluster.ts";
import { simulatedStreamLayer } from "./cluster.ts";
import type { RecordName, RecordPlace } from "./judges/stream-judge.ts";
import { recordBytes, StreamJudge } from "./judges/stream-judge.ts";
import { RawOwner } from "./raw-owner.ts";
import type { Tally } from "./run/workload.ts";

const stream = "one";
const readyWithinMs = 60_000;
const fillMs = 4_000;
/** Time until all that was appended is in files, and every extent but the last is sealed. */
const settleMs = 5_000;
const workMs = 12_000;
const readWithinMs = 1_500;
/** A disk that has hung for longer than a read may take, with somebody waiting for it, is known to hang. */
const knownToHangMs = readWithinMs + 500;
const hangMs = 4_000;
const greedyReaders = 24;
const patientReaders = 4;

interface Place {
  readonly record: RecordName;
  readonly place: RecordPlace;
}

export async function diskWorkload(sim: Simulation, tally: Tally): Promise<void> {
  const cluster = simulatedStreamLayer(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the stream layer is ready");
  const judge = new StreamJudge(tally.counts);
  const extents = await written(sim, cluster, judge);
  await new Disks(sim, tally, cluster, extents, judge.places()).run();
}

/** Returns the extents of a stream, sealed and in files. */
async function written(sim: Simulation, cluster: SimulatedCluster, judge: StreamJudge): Promise<readonly ExtentLocation[]> {
  const endMs = sim.nowMs + fillMs;
  const owner = new RawOwner(sim.world("owner"), cluster.lockService, stream, 1, judge);
  const opened = await owner.open();
  if (opened) await owner.write(0n, () => sim.nowMs >= endMs, 6_000);
  const extents = (await new RawOwner(sim.world("reader"), cluster.lockService, stream, 2, judge).open())?.extents ?? [];
  await sim.sleep(settleMs);
  return extents;
}

class Disks {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #prng: Prng;
  readonly #nodes: readonly string[];
  readonly #extents: ReadonlyMap<bigint, ExtentLocation>;
  readonly #places: readonly Place[];
  /** Keyed by node: the extent of which somebody always wants more. */
  readonly #wanted = new Map<string, bigint>();
  /** The last of them. */
  #hanging: { readonly sinceMs: number; readonly untilMs: number } | undefined;
  #endMs = 0;

  constructor(sim: Simulation, tally: Tally, cluster: SimulatedCluster, extents: readonly ExtentLocation[], places: readonly Place[]) {
    this.#sim = sim;
    this.#tally = tally;
    this.#prng = sim.prng.fork();
    this.#nodes = cluster.processes.filter((name) => name.startsWith("extent-node-"));
    this.#extents = new Map(extents.map((extent) => [extent.extentId, extent]));
    this.#places = places;
  }

  async run(): Promise<void> {
    const sim = this.#sim;
    for (const node of this.#nodes) this.#slow(node);
    this.#endMs = sim.nowMs + workMs;
    for (const node of this.#nodes) {
      const extent = this.#prng.pick([...this.#extents.values()].filter(({ addresses }) => addresses.includes(node)));
      this.#wanted.set(node, extent.extentId);
      for (let i = 0; i < greedyReaders; i++) sim.background(this.#readGreedily(node, extent));
    }
    const wanted = new Set(this.#wanted.values());
    const others = this.#places.filter(({ place }) => !wanted.has(place.extent));
    const readers = Array.from({ length: patientReaders }, () => this.#readPatiently(others, this.#prng.fork()));
    await Promise.all([this.#hangAtTimes(this.#prng.fork()), ...readers]);
  }

  #slow(node: string): void {
    const disk = this.#sim.disk(node);
    const lanes = this.#prng.pick([1, 1, 2]);
    disk.options = { ...disk.options, lanes, readUs: 2_000 + this.#prng.below(3_000), writeUs: 1_000, syncUs: 2_000 };
  }

  async #readGreedily(node: string, { extentId }: ExtentLocation): Promise<void> {
    const world = this.#sim.world(`greedy-${node}`);
    const client = world.transport.client(node, ExtentNode);
    while (this.#sim.nowMs < this.#endMs) {
      const read = await client.readBlocks({ extentId, offsetBytes: 0n, maxBytes: 30_000 }, { timeoutMs: 3_000 });
      this.#count(read.ok ? "greedy reads" : `greedy ${read.failure.reason}`);
      if (!read.ok) await sleep(world.clock, 20);
    }
  }

  async #readPatiently(places: readonly Place[], prng: Prng): Promise<void> {
    while (this.#sim.nowMs < this.#endMs) {
      await this.#sim.sleep(prng.float() * 200);
      await this.#readOne(prng.pick(places), prng);
    }
  }

  async #readOne({ record, place }: Place, prng: Prng): Promise<void> {
    const sim = this.#sim;
    const world = sim.world("reader");
    const { addresses } = this.#extents.get(place.extent) as ExtentLocation;
    const sentMs = sim.nowMs;
    const why: string[] = [];
    for (const node of prng.shuffle([...addresses])) {
      const timeoutMs = sentMs + readWithinMs - sim.nowMs;
      if (timeoutMs <= 0) break;
      const request = { extentId: place.extent, offsetBytes: BigInt(place.offsetBytes), lengthBytes: place.lengthBytes };
      const read = await world.transport.client(node, ExtentNode).read(request, { timeoutMs });
      this.#count(read.ok ? "patient reads" : `patient ${read.failure.reason}`);
      if (read.ok) {
        if (!equalBytes(read.value.payload, recordBytes(stream, record, place.lengthBytes))) throw new BrokenPromise("other bytes");
        this.#most("ms of a patient read", Math.round(sim.nowMs - sentMs));
        return;
      }
      why.push(`${node} after ${Math.round(sim.nowMs - sentMs)} ms: ${read.failure.message}`);
    }
    if (this.#nothingNew(sentMs)) {
      throw new BrokenPromise(`${place.extent}:${place.offsetBytes} could not be read within ${readWithinMs} ms (${why.join("; ")})`);
    }
    this.#count("patient reads beside a new hang");
  }

  /** Since then no disk has hung but one that its node knew of before: a hang that is new takes reads with it. */
  #nothingNew(sinceMs: number): boolean {
    const hanging = this.#hanging;
    return hanging === undefined || hanging.untilMs < sinceMs || hanging.sinceMs + knownToHangMs < sinceMs;
  }

  /** One disk at a time. */
  async #hangAtTimes(prng: Prng): Promise<void> {
    const sim = this.#sim;
    while (sim.nowMs < this.#endMs - hangMs) {
      await sim.sleep(1_000 + prng.float() * 3_000);
      const node = prng.pick(this.#nodes);
      this.#hanging = { sinceMs: sim.nowMs, untilMs: sim.nowMs + hangMs };
      sim.note("reads hang", node);
      sim.disk(node).readsHangUntilUs = this.#hanging.untilMs * 1_000;
      this.#count("disks that hung");
      await sim.sleep(hangMs);
    }
  }

  #count(what: string): void {
    this.#tally.counts[what] = (this.#tally.counts[what] ?? 0) + 1;
  }

  #most(what: string, value: number): void {
    this.#tally.most[what] = Math.max(this.#tally.most[what] ?? 0, value);
  }
}
