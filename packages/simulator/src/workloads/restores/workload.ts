/**
 * The lock services lose the metadata, and an older copy is restored on a stamp of six extent nodes while owners write to streams. The first
 * term takes back the extents that began after the copy. Each fourth seed has ranges (ranges.ts), and the one before it ranges that are
 * split and merged; else three scenes, by seed:
 *   - plain: owners write and truncate; the managers may die while extents are taken back;
 *   - deleted: a stream is deleted and made anew before the copy, and a disk that still has a replica of it comes back;
 *   - histories: all nodes of the newest extent are away at the first restore, the stream goes on without it, and a second restore begins from
 *     the same copy.
 * The lists that owners are given are judged (list-judge.ts).
 */
import type { Prng } from "@stamp/base";
import type { SnapshotSource } from "@stamp/metadata-store";
import { lockServiceAddresses } from "@stamp/metadata-store";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { type ExtentLocation, ExtentNode, StreamManager } from "@stamp/wire";
import { type SimulatedCluster, simulatedStreamLayer } from "../cluster.ts";
import { ManagerCaller } from "../coding/manager-caller.ts";
import { type RecordName, recordOf, StreamJudge } from "../judges/stream-judge.ts";
import { RawOwner } from "../raw-owner.ts";
import type { Tally } from "../run/workload.ts";
import { by, fromAny, owners } from "../streams.ts";
import { ListJudge } from "./list-judge.ts";
import { rangesScene } from "./ranges.ts";
import { copyOfNow, restoreCopy } from "./restored-metadata.ts";

/** Each seed that is a multiple of this has the scene of ranges. */
const rangesEvery = 4;
const streams = ["one", "second"];
const remade = "remade";
const extentNodes = 6;
const readyWithinMs = 60_000;
/** A first term waits for ten minutes for nodes that are away. */
const leadsWithinMs = 800_000;
const ownedWithinMs = 90_000;
const deletedWithinMs = 120_000;
const recordBytesMax = 1_500;
const readTimeoutMs = 1_000;

export async function restoreWorkload(sim: Simulation, tally: Tally): Promise<void> {
  if (sim.seed % rangesEvery === 0) return rangesScene(sim, tally, false);
  if (sim.seed % rangesEvery === rangesEvery - 1) return rangesScene(sim, tally, true);
  const cluster = simulatedStreamLayer(sim, { extentNodes, streamManager: { deletionGraceMs: 1_500 } });
  await sim.until(() => cluster.ready(), readyWithinMs, "the stream layer is ready");
  await new Run(sim, tally, cluster).run();
}

class Run {
  readonly #sim: Simulation;
  readonly #cluster: SimulatedCluster;
  readonly #prng: Prng;
  readonly #judge: StreamJudge;
  readonly #lists: ListJudge;
  readonly #manager: ManagerCaller;
  readonly #nodes: readonly string[];
  readonly #managers: readonly string[];
  readonly #epochs = new Map<string, number>();
  /** True when every owner is to end. */
  #over = false;

  constructor(sim: Simulation, tally: Tally, cluster: SimulatedCluster) {
    const named = (kind: string): string[] => cluster.processes.filter((name) => name.startsWith(kind));
    this.#sim = sim;
    this.#cluster = cluster;
    this.#prng = sim.prng.fork();
    this.#judge = new StreamJudge(tally.counts);
    this.#lists = new ListJudge(this.#judge, (stream, extent) => this.#read(stream, extent));
    this.#manager = new ManagerCaller(sim.world("person"), cluster.lockService);
    this.#nodes = named("extent-node-");
    this.#managers = named("stream-manager-");
  }

  async run(): Promise<void> {
    const scene = this.#prng.pick([this.#plain, this.#deleted, this.#histories]);
    await scene.call(this);
    this.#over = true;
    for (const stream of streams) await this.#own(stream, 1);
    this.#judge.check();
  }

  async #plain(): Promise<void> {
    const copy = await this.#written(this.#prng.pick(this.#nodes));
    await this.#write(8_000);
    await this.#restored(copy, []);
    await this.#write(4_000);
    if (this.#prng.chance(0.5)) return;
    const next = this.#prng.chance(0.5) ? copy : await this.#written(this.#prng.pick(this.#nodes));
    await this.#write(4_000);
    await this.#restored(next, []);
  }

  async #deleted(): Promise<void> {
    const epoch = this.#nextEpoch(remade);
    const owner = this.#owner(remade, epoch);
    const opened = await owner.open();
    const enough = this.#after(3_000);
    await owner.write(opened?.extents.at(-1)?.extentId ?? 0n, enough, recordBytesMax);
    const held = this.#lists.extentsOf(remade).flatMap((id) => this.#judge.begunExtents.get(id)?.addresses ?? []);
    const node = this.#prng.pick(held);
    const putBack = await this.#newDisk(node);
    this.#lists.unwanted(this.#lists.extentsOf(remade));
    await this.#until("the stream is deleted", deletedWithinMs, () => this.#manager.deleteStream(remade, BigInt(epoch)));
    await this.#until("its extents are deleted", deletedWithinMs, async () => {
      const deleted = this.#lists.deletedNow();
      return (await this.#manager.extents())?.every(({ location }) => !deleted.has(location?.extentId ?? 0n)) === true;
    });
    await this.#own(remade, 0);
    const copy = await this.#written(this.#prng.pick(this.#nodes.filter((each) => each !== node)));
    await this.#write(3_000);
    await this.#restored(copy, [], putBack);
    await this.#own(remade, 0);
  }

  async #histories(): Promise<void> {
    const [stream = ""] = streams;
    const copy = await this.#written(this.#prng.pick(this.#nodes));
    const known = new Set(this.#lists.extentsOf(stream));
    await this.#until("extents begin after the copy", ownedWithinMs, async () => {
      await this.#write(1_000);
      return this.#lists.extentsOf(stream).some((id) => !known.has(id));
    });
    const newest = this.#lists.extentsOf(stream).at(-1) as bigint;
    await this.#restored(copy, this.#judge.begunExtents.get(newest)?.addresses ?? []);
    await this.#write(6_000);
    await this.#restored(copy, []);
  }

  /** Owners write, and a copy is taken meanwhile. */
  async #written(keeper: string): Promise<Copied> {
    await this.#write(4_000);
    const deleted = this.#lists.deletedNow();
    let isTaken = false;
    const taken = copyOfNow(this.#sim, this.#cluster.lockService, keeper).finally(() => {
      isTaken = true;
    });
    while (!isTaken) await this.#write(3_000);
    return { deleted, source: await taken };
  }

  /** Each stream gets an owner, which goes on until the next one comes; at times they truncate. */
  async #write(forMs: number): Promise<void> {
    const waitMs = forMs * (0.5 + this.#prng.float());
    await Promise.all(streams.map((stream) => this.#own(stream, waitMs)));
    const stream = this.#prng.pick(streams);
    const extents = this.#lists.extentsOf(stream);
    if (this.#prng.chance(0.3) && extents.length > 2) await this.#truncate(stream, extents.slice(0, this.#prng.below(extents.length - 1)));
  }

  /** A new owner takes the stream over, and writes for so long at least. */
  async #own(stream: string, forMs: number): Promise<void> {
    const sim = this.#sim;
    const epoch = this.#nextEpoch(stream);
    const extents = (await this.#owner(stream, epoch, ownedWithinMs).open())?.extents ?? [];
    await this.#lists.told(stream, extents, this.#over);
    this.#judge.count("lists judged");
    if (forMs === 0) return;
    // Some owners never stop by themselves.
    const enough = this.#prng.chance(0.3) ? () => this.#over : this.#after(forMs);
    const work = this.#owner(stream, epoch).write(extents.at(-1)?.extentId ?? 0n, enough, recordBytesMax);
    if (this.#over) return;
    sim.background(work);
    await sim.sleep(forMs);
  }

  async #truncate(stream: string, extents: readonly bigint[]): Promise<void> {
    const last = extents.at(-1);
    const before = this.#lists.extentsOf(stream)[extents.length];
    if (last === undefined || before === undefined) return;
    this.#lists.unwanted(extents);
    const request = { name: stream, ownerEpoch: BigInt(this.#epochs.get(stream) ?? 1), beforeExtentId: before };
    await this.#until("the stream is truncated", ownedWithinMs, async () => {
      const done = await this.#manager.leader.call(
        2_000,
        (address, timeoutMs) => this.#manager.world.transport.client(address, StreamManager).truncateStream(request, { timeoutMs }),
        { idempotent: true },
      );
      return done.ok;
    });
    this.#judge.count("truncations");
  }

  /** The folders of the lock services are lost, and the copy is restored; `absent` nodes are down until extents were taken back. */
  async #restored({ deleted, source }: Copied, absent: readonly string[], meanwhile?: () => Promise<void>): Promise<void> {
    const [sim, prng] = [this.#sim, this.#prng];
    const { lockService } = this.#cluster;
    const members = prng.shuffle([...lockServiceAddresses(lockService)]);
    for (const name of members.slice(0, 2)) {
      sim.crash(name, { unsynced: "lost", stayDown: true });
      await sim.sleep(prng.float() * 1_500);
    }
    for (const node of absent) sim.crash(node, { unsynced: "kept", stayDown: true });
    const rest = prng.pick([[], this.#managers, [...this.#managers, ...this.#nodes]]).filter((name) => !absent.includes(name));
    for (const name of rest) await sim.stop(name);
    await meanwhile?.();
    await restoreCopy(sim, lockService, source);
    this.#lists.restored(deleted, absent);
    for (const name of [...members, ...rest]) sim.restart(name);
    if (prng.chance(0.5)) sim.background(this.#managersDie());
    await sim.until(() => this.#leads(), leadsWithinMs, "a stream manager leads by the restored metadata");
    for (const node of absent) sim.restart(node);
    this.#judge.count("restores");
  }

  async #managersDie(): Promise<void> {
    for (let i = this.#prng.below(4); i > 0; i--) {
      await this.#sim.sleep(this.#prng.float() * 9_000);
      const name = this.#prng.pick(this.#managers);
      if (this.#sim.isUp(name)) this.#sim.crash(name);
    }
  }

  #leads(): boolean {
    return this.#managers.some((name) => this.#sim.isUp(name) && this.#sim.role(name)?.status.state === "leader");
  }

  /** A node gets a new disk. Returns what puts the old one back while the node is down. */
  async #newDisk(node: string): Promise<() => Promise<void>> {
    const sim = this.#sim;
    await sim.stop(node);
    const [disk, stores] = [sim.disk(node), sim.keyValue(node)];
    sim.world("shelf");
    sim.keyValue("shelf").copyFrom(stores);
    const files = disk.paths().map((path) => disk.saved(path));
    disk.wipe();
    stores.wipe();
    sim.restart(node);
    await sim.until(() => this.#cluster.ready(), readyWithinMs, "the node with a new disk is ready");
    return async () => {
      const wasUp = sim.isUp(node);
      if (wasUp) await sim.stop(node);
      disk.wipe();
      for (const putBack of files) putBack();
      stores.copyFrom(sim.keyValue("shelf"));
      if (wasUp) sim.restart(node);
    };
  }

  #owner(stream: string, epoch: number, patienceMs?: number): RawOwner {
    const world = this.#sim.world(this.#prng.pick(owners));
    return new RawOwner(world, this.#cluster.lockService, stream, epoch, this.#judge, patienceMs === undefined ? {} : { patienceMs });
  }

  #nextEpoch(stream: string): number {
    const epoch = (this.#epochs.get(stream) ?? 0) + 1;
    this.#epochs.set(stream, epoch);
    return epoch;
  }

  #after(forMs: number): () => boolean {
    const endMs = this.#sim.nowMs + forMs;
    return () => this.#over || this.#sim.nowMs >= endMs;
  }

  async #until(what: string, withinMs: number, isSo: () => Promise<boolean>): Promise<void> {
    await by(this.#sim, this.#sim.nowMs + withinMs, what, async () => ((await isSo()) ? true : undefined));
  }

  async #read(stream: string, extent: ExtentLocation): Promise<ReadonlyMap<number, RecordName>> {
    const world = this.#sim.world("reader");
    const { extentId } = extent;
    const sealedBytes = Number(extent.sealedLengthBytes);
    const records = new Map<number, RecordName>();
    for (let at = 0; at < sealedBytes; ) {
      const blocks = await fromAny(
        world,
        extent,
        (address) =>
          world.transport
            .client(address, ExtentNode)
            .readBlocks({ extentId, offsetBytes: BigInt(at), maxBytes: 30_000 }, { timeoutMs: readTimeoutMs }),
        (answer) => Number(answer.nextOffsetBytes) > at,
      );
      for (const [i, bytes] of blocks.payload.entries()) records.set(Number(blocks.offsetsBytes[i]), recordOf(stream, bytes));
      at = Number(blocks.nextOffsetBytes);
      if (at > sealedBytes) throw new BrokenPromise(`extent ${extentId}: sealed at ${sealedBytes}, read to ${at}`);
    }
    return records;
  }
}

/** A copy, and the extents that were deleted before it was taken. */
interface Copied {
  readonly deleted: ReadonlySet<bigint>;
  readonly source: SnapshotSource;
}
