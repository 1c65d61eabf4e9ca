/**
 * Owners append to streams and are taken over, as in `streams.ts`, while sealed extents become fragments and replicas again, nodes are drained,
 * fragments are damaged on two machines, and every other fault comes. Readers use the library of the partition layer and keep what they know of
 * places all the time. In the end everything is whole; whichever two machines are gone, every acknowledged record is read; one that stands still
 * delays nobody for long; and of deleted streams nothing is left.
 */
import { Prng } from "@stamp/base";
import { StreamClient } from "@stamp/stream-client";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import type { ExtentLocation } from "@stamp/wire";
import { ExtentState } from "@stamp/wire";
import type { SimulatedCluster } from "../cluster.ts";
import { simulatedStreamLayer } from "../cluster.ts";
import type { Focus } from "../faults/fault-kinds.ts";
import { Faults } from "../faults/faults.ts";
import type { RecordName } from "../judges/stream-judge.ts";
import { recordOf, StreamJudge } from "../judges/stream-judge.ts";
import { RawOwner } from "../raw-owner.ts";
import type { Tally } from "../run/workload.ts";
import { by, isWhole, owners, type Scene, takeOvers } from "../streams.ts";
import { codeAndDecode, deleteStrays, drainNodes, profileName, readPlace, readPlaces, type Stage, takesPart } from "./callers.ts";
import { fragmentsAreThere, fragmentsAreWhole } from "./fragment-judge.ts";
import { graceIsKept } from "./grace-judge.ts";
import { ManagerCaller } from "./manager-caller.ts";
import { restoreOlderMetadata } from "./older-metadata.ts";

const streams = ["one", "second"];
/** Two more than the code needs: one may be drained while another is away. */
const extentNodes = 8;
const lossesMax = 2;
/** In every fourth run the policy codes beside the calls, and codes again what was replicated. */
const eagerPolicy = { profile: profileName, afterSeconds: 2, minBytes: 1 };
const usualWorkMs = 15_000;
const readyWithinMs = 60_000;
const healedWithinMs = 60_000;
/** A node that is away for `repairAfterMs` has its fragments made anew elsewhere; a drained one takes part again. */
const wholeWithinMs = 240_000;
const goneWithinMs = 120_000;
const blocksTimeoutMs = 5_000;
const readableWithinMs = 300_000;
/** Time for reads without two machines: each is decoded, or goes to another replica, after a hedge. */
const readWithoutNodesMs = 2_000;
/** A connection to a machine that lost power without a word is as good as one more lost machine until keep-alive gives it up. */
const connectionsGivenUpMs = 12_000;
const readTimeoutMs = 10_000;
const notedMax = 5;
/** Places that are read without some machines, chosen by the seed. */
const placesMax = 200;

export async function codingWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const habits = new Prng(sim.seed ^ 0x0c0de5);
  const usualGraceMs = habits.pick([1_500, 6_000]);
  const cluster = simulatedStreamLayer(sim, {
    extentNodes,
    streamManager: {
      deletionGraceMs: focus?.deletionGraceMs ?? usualGraceMs,
      repairAfterMs: habits.pick([5_000, 15_000, 60_000]),
      erasureCoding: sim.seed % 4 === 0 && focus?.restoresMetadata !== true ? eagerPolicy : "off",
    },
  });
  await sim.until(() => cluster.ready(), readyWithinMs, "the stream layer is ready");
  await new Run(sim, tally, cluster, habits, focus).run();
}

class Run {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #cluster: SimulatedCluster;
  readonly #nodes: readonly string[];
  readonly #judge: StreamJudge;
  readonly #faults: Faults;
  readonly #client: StreamClient;
  readonly #stage: Stage;
  /** In every fifth run, and where a focus says so. */
  readonly #deletesStrays: boolean;
  readonly #restoresMetadata: boolean;
  /** Undefined: as short as usual, and nobody judges whether it is kept. */
  readonly #graceMs: number | undefined;
  readonly #scene: Scene;
  readonly #prng: Prng;

  constructor(sim: Simulation, tally: Tally, cluster: SimulatedCluster, habits: Prng, focus: Focus | undefined) {
    const { lockService, processes } = cluster;
    this.#sim = sim;
    this.#tally = tally;
    this.#cluster = cluster;
    this.#prng = sim.prng.fork();
    this.#deletesStrays = focus?.deletesStrays ?? sim.seed % 5 === 0;
    this.#restoresMetadata = focus?.restoresMetadata ?? false;
    this.#graceMs = focus?.deletionGraceMs;
    this.#nodes = processes.filter((name) => name.startsWith("extent-node-"));
    this.#judge = new StreamJudge(tally.counts);
    for (const name of owners) sim.world(name);
    const workMs = focus?.workMs ?? usualWorkMs;
    this.#faults = new Faults(sim, { targets: processes, clients: owners, pace: 1, focus, withinMs: workMs, damagesFragments: true });
    tally.faults = this.#faults.counts;
    this.#client = new StreamClient(sim.world("reader"), { lockService });
    const [judge, endMs] = [this.#judge, sim.nowMs + workMs];
    const manager = new ManagerCaller(sim.world("coder"), lockService);
    const codesOf = focus?.codesOfWeak === true ? this.#faults.fragile[0] : undefined;
    this.#stage = { sim, judge, manager, endMs, codesEveryMs: habits.pick([300, 1_000, 2_000]), codesFew: focus?.codesFew, codesOf };
    const recordBytesMax = focus?.recordBytesMax ?? habits.pick([undefined, undefined, 120_000]);
    const read = (stream: string, extents: readonly ExtentLocation[]) => this.#readList(stream, extents);
    this.#scene = { sim, lockService, faults: this.#faults, judge, endMs, restMs: focus?.ownersRestMs ?? 0, recordBytesMax, read };
  }

  async run(): Promise<void> {
    const [sim, stage] = [this.#sim, this.#stage];
    this.#faults.start();
    const beside = [
      codeAndDecode(stage),
      drainNodes(stage, this.#nodes),
      readPlaces(stage, this.#client.reader),
      fragmentsAreThere(stage, this.#faults.fragile),
      ...(this.#deletesStrays ? [deleteStrays(stage, this.#nodes)] : []),
      ...(this.#graceMs === undefined ? [] : [graceIsKept(stage, this.#graceMs, this.#faults.fragile)]),
    ];
    for (const work of beside) sim.background(work);
    const lasts = await Promise.all(streams.map((stream) => takeOvers(this.#scene, stream)));
    await this.#faults.heal();
    await Promise.all(beside);
    for (const node of this.#nodes) await takesPart(sim, stage.manager, node);
    const healedMs = sim.nowMs;
    for (const [i, stream] of streams.entries()) await this.#lastOwner(stream, (lasts[i] as number) + 1);
    await this.#everythingIsWhole(healedMs);
    if (this.#restoresMetadata) {
      await restoreOlderMetadata(stage, this.#cluster.lockService, this.#nodes);
      await this.#everythingIsWhole(sim.nowMs);
    }
    await sim.sleep(connectionsGivenUpMs);
    await this.#readsWithoutNodes();
    this.#judge.check();
    for (const [i, stream] of streams.entries()) {
      const epoch = BigInt((lasts[i] as number) + 1);
      await by(sim, sim.nowMs + healedWithinMs, `${stream} is deleted`, async () =>
        (await stage.manager.deleteStream(stream, epoch)) ? true : undefined,
      );
    }
    await this.#nothingIsLeft();
  }

  async #lastOwner(stream: string, epoch: number): Promise<void> {
    const [sim, judge] = [this.#sim, this.#judge];
    const habits = { patienceMs: healedWithinMs };
    const owner = new RawOwner(sim.world("last-owner"), this.#cluster.lockService, stream, epoch, judge, habits);
    const byMs = sim.nowMs + healedWithinMs;
    const extents = await by(sim, byMs, `opening ${stream}`, async () => (await owner.open())?.extents);
    judge.given(stream, epoch, await this.#readList(stream, extents));
  }

  /** Returns all records of a list of sealed extents, in order; waits as long as they can't be read. */
  async #readList(stream: string, extents: readonly ExtentLocation[]): Promise<RecordName[]> {
    const sim = this.#sim;
    const { reader } = this.#client;
    const records: RecordName[] = [];
    for (const { extentId, sealedLengthBytes } of extents) {
      const sealedBytes = Number(sealedLengthBytes);
      for (let at = 0; at < sealedBytes; ) {
        const from = at;
        const blocks = await by(sim, sim.nowMs + readableWithinMs, `extent ${extentId} is read at ${at}`, async () => {
          const read = await reader.readBlocks(Number(extentId), from, sealedBytes, 30_000, { timeoutMs: blocksTimeoutMs });
          return read.ok ? read.value : undefined;
        });
        records.push(...blocks.payload.map((bytes) => recordOf(stream, bytes)));
        at = Number(blocks.nextOffsetBytes);
        if (at > sealedBytes) throw new BrokenPromise(`extent ${extentId}: sealed at ${sealedBytes}, read to ${at}`);
        this.#judge.count("block reads");
      }
    }
    return records;
  }

  /** No attempt is under way, and every sealed extent has all its replicas or all its fragments. */
  async #everythingIsWhole(healedMs: number): Promise<void> {
    const [sim, { manager }] = [this.#sim, this.#stage];
    const world = sim.world("judge");
    const say = (problem: string): void => sim.note("not whole", problem);
    const good = new Set<string>();
    await by(sim, healedMs + wholeWithinMs, "every extent is whole", async () => {
      const extents = await manager.extents();
      if (extents === undefined) return undefined;
      for (const extent of extents) {
        const { location, coded, attempt, state } = extent;
        if (state !== ExtentState.SEALED) continue;
        const id = location?.extentId ?? 0n;
        const stored = coded === undefined ? "replicas" : coded.fragments.map(({ version, address }) => `${address} ${version}`).join();
        if (attempt === "" && good.has(`${id} ${stored}`)) continue;
        if (attempt !== "") say(`extent ${id}: an attempt is under way: ${attempt}`);
        const isGood =
          attempt === "" &&
          (coded === undefined
            ? await isWhole(world, manager.leader, id, Number(location?.sealedLengthBytes), say)
            : await fragmentsAreWhole(world, extent, this.#judge, say));
        if (!isGood) return undefined;
        good.add(`${id} ${stored}`);
      }
      return true;
    });
    this.#most("ms until everything was whole", sim.nowMs - healedMs);
  }

  /** Whichever machines are gone, as many as the code bears, or stand still: every acknowledged record is read in time. */
  async #readsWithoutNodes(): Promise<void> {
    const [sim, prng] = [this.#sim, this.#prng];
    const still = prng.pick([...this.#nodes]);
    sim.note("stands still", still);
    sim.pause(still);
    await this.#readEverything(`while ${still} stands still`);
    sim.resume(still);
    await sim.until(() => this.#cluster.ready(), readyWithinMs, "the stream layer is ready again");
    const gone = prng.shuffle([...this.#nodes]).slice(0, lossesMax);
    sim.note("gone", gone.join(", "));
    for (const node of gone) sim.crash(node, { stayDown: true });
    await this.#readEverything(`without ${gone.join(" and ")}`);
    for (const node of gone) sim.restart(node);
    await sim.until(() => this.#cluster.ready(), readyWithinMs, "the stream layer is ready at last");
  }

  async #readEverything(when: string): Promise<void> {
    const sim = this.#sim;
    for (const each of this.#prng.shuffle(this.#judge.places()).slice(0, placesMax)) {
      const startMs = sim.nowMs;
      const why = await readPlace(this.#client.reader, each, readTimeoutMs);
      const tookMs = sim.nowMs - startMs;
      this.#most("ms of a read without some machines", tookMs);
      if (why !== undefined || tookMs > readWithoutNodesMs) {
        const { extent, offsetBytes } = each.place;
        throw new BrokenPromise(`${extent}:${offsetBytes} was not read within ${readWithoutNodesMs} ms ${when}: ${why ?? `${tookMs} ms`}`);
      }
      this.#judge.count("places read without some machines");
    }
  }

  /** Nothing of deleted streams is left on any disk, what is in quarantine apart. */
  async #nothingIsLeft(): Promise<void> {
    const [sim, { manager }] = [this.#sim, this.#stage];
    await by(sim, sim.nowMs + goneWithinMs, "nothing is left of deleted streams", async () => {
      const [extents, quarantined] = [await manager.extents(), await manager.quarantined()];
      if (extents === undefined || quarantined === undefined) return undefined;
      const left = this.#nodes.flatMap((node) => filesOf(sim, node, quarantined));
      if (extents.length > 0) left.push(`${extents.length} records`);
      if (left.length > 0) sim.note("left", `${left.length}: ${left.slice(0, notedMax).join(", ")}`);
      return left.length === 0 ? true : undefined;
    });
  }

  #most(what: string, value: number): void {
    this.#tally.most[what] = Math.max(this.#tally.most[what] ?? 0, Math.round(value));
  }
}

function filesOf(sim: Simulation, node: string, quarantined: ReadonlySet<string>): string[] {
  return sim
    .disk(node)
    .paths()
    .filter((path) => /\.(extent|fragment|making)$/.test(path))
    .filter((path) => !quarantined.has(`${node} ${Number.parseInt(/([0-9a-f]{14})\.extent$/.exec(path)?.[1] ?? "", 16)}`))
    .map((path) => `${node} ${path}`);
}
