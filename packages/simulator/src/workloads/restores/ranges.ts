/**
 * The scene of ranges: clients write rows to a whole stamp of six extent nodes, the lock services lose the metadata, and an older copy is restored.
 * In most runs one extent that began after the copy is lost, of a log or of checkpoints: all nodes with a replica of it stay away at the restore.
 * Extents behind it in the stream come back. Every range must be loaded again. Only rows that were written after the copy may be lost; a range that
 * has lost an acknowledged row, but has one that was written later, must report the loss.
 * In some runs ranges are split, merged and moved after the copy, and no node stays away: then no row may be lost, and no streams may be left of
 * ranges that are no more.
 */
import type { Prng } from "@stamp/base";
import { utf8 } from "@stamp/base";
import { lockServiceAddresses, type SnapshotSource } from "@stamp/metadata-store";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import { type ExtentInfo, ExtentState } from "@stamp/wire";
import { HttpClient } from "../clients/http-client.ts";
import { simulatedCluster, type WholeCluster } from "../cluster.ts";
import { ManagerCaller } from "../coding/manager-caller.ts";
import { Reshapes } from "../reshapes.ts";
import type { Tally } from "../run/workload.ts";
import { by } from "../streams.ts";
import { copyOfNow, restoreCopy } from "./restored-metadata.ts";
import { RowJudge } from "./row-judge.ts";

const kibibyte = 1024;
const container = "rows";
const clientCount = 2;
const keysPerClient = 6;
const pauseMaxMs = 250;
const rowBytesMax = 3_000;
const extentNodes = 6;
const readyWithinMs = 60_000;
/** A first term waits for ten minutes for nodes that are away. */
const leadsWithinMs = 800_000;
const beginsWithinMs = 120_000;
const backWithinMs = 180_000;
const range = "blob-1";

type Lost = "commit-log" | "row-data" | "nothing";

/** `reshapes`: true to split and merge ranges after the copy. */
export async function rangesScene(sim: Simulation, tally: Tally, reshapes: boolean): Promise<void> {
  const lost: Lost = reshapes ? "nothing" : sim.prng.pick(["commit-log", "row-data", "nothing"] as const);
  // A log is lost that is in no checkpoint, or checkpoints that follow one another.
  const memoryBytes = lost === "commit-log" ? 512 * kibibyte : 32 * kibibyte;
  const sizes = { extentTargetBytes: 16 * kibibyte, memoryTableBytesMax: memoryBytes, logBytesMax: 2 * memoryBytes };
  const cluster = simulatedCluster(sim, { extentNodes, partitionServer: sizes });
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  await new Scene(sim, tally, cluster, reshapes).run(lost);
}

class Scene {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #cluster: WholeCluster;
  readonly #prng: Prng;
  readonly #manager: ManagerCaller;
  readonly #http: HttpClient;
  readonly #judge = new RowJudge();
  readonly #reshapes: Reshapes | undefined;
  #isWriting = false;

  constructor(sim: Simulation, tally: Tally, cluster: WholeCluster, reshapes: boolean) {
    this.#reshapes = reshapes ? new Reshapes(sim, { cluster, table: "Blob", key: () => undefined, weight: 0 }) : undefined;
    this.#sim = sim;
    this.#tally = tally;
    this.#cluster = cluster;
    this.#prng = sim.prng.fork();
    this.#manager = new ManagerCaller(sim.world("person"), cluster.lockService);
    this.#http = new HttpClient(sim, sim.world("client"), "client", cluster, "blob");
  }

  /** Runs the scene. The parameter `lost` names the kind of stream that loses an extent. */
  async run(lost: Lost): Promise<void> {
    const sim = this.#sim;
    await this.#by("the container is made", async () => {
      const made = await this.#http.request("PUT", `/${container}?restype=container`, {});
      return made?.status === 201 || made?.status === 409;
    });
    const stop = this.#write();
    await sim.sleep(4_000 + this.#prng.below(8_000));
    if (this.#reshapes !== undefined && this.#prng.chance(0.5)) await this.#reshape(this.#reshapes);
    const copiedMs = sim.nowMs;
    const copy = await copyOfNow(sim, this.#cluster.lockService, this.#prng.pick(this.#named("extent-node-")));
    for (let i = this.#reshapes === undefined ? 0 : 1 + this.#prng.below(4); i > 0; i--) await this.#reshape(this.#reshapes);
    const absent = lost === "nothing" ? await this.#sleeps() : await this.#holdersOf(lost, copiedMs);
    await stop();
    await this.#restore(copy, absent);
    await this.#everythingIsBack();
    await this.#read(absent.length === 0 ? undefined : copiedMs);
    this.#lossIsTold();
    await this.#write(3_000)();
    for (const name of this.#named("partition-")) sim.crash(name);
    await this.#everythingIsBack();
    await this.#read(undefined);
    if (this.#reshapes !== undefined) await this.#by("no streams of other ranges are left", () => this.#onlyStreamsOfRanges());
    for (const [what, count] of Object.entries(this.#reshapes?.counts ?? {})) this.#count(what, count);
  }

  async #reshape(reshapes: Reshapes | undefined): Promise<void> {
    reshapes?.begin(this.#prng);
    await this.#sim.sleep(this.#prng.below(6_000));
  }

  async #onlyStreamsOfRanges(): Promise<boolean> {
    const [ranges, streams] = [await this.#reshapes?.ranges(), await this.#manager.streams("/ps/blob-")];
    const known = new Set(ranges?.flatMap((each) => Object.values(each.streams ?? {})));
    return ranges !== undefined && streams?.every((name) => known.has(name)) === true;
  }

  /** Clients write until the returned function is called, which resolves when they have ended. */
  #write(leastMs = 0): () => Promise<void> {
    this.#isWriting = true;
    const leastUntilMs = this.#sim.nowMs + leastMs;
    const work = Promise.all(Array.from({ length: clientCount }, (_, i) => this.#client(`${i}`, this.#prng.fork(), leastUntilMs)));
    this.#sim.background(work);
    return async () => {
      this.#isWriting = false;
      await work;
    };
  }

  async #client(name: string, prng: Prng, leastUntilMs: number): Promise<void> {
    while (this.#isWriting || this.#sim.nowMs < leastUntilMs) {
      await this.#sim.sleep(prng.float() * pauseMaxMs);
      const key = `${name}-${prng.below(keysPerClient)}`;
      const { value, acknowledged } = this.#judge.writes(key, this.#sim.nowMs);
      const body = utf8(`${value}`.padEnd(prng.below(rowBytesMax), "."));
      const answer = await this.#http.request("PUT", `/${container}/${key}`, { "x-ms-blob-type": "BlockBlob" }, body);
      if (answer?.status === 201) acknowledged(this.#sim.nowMs);
      this.#count(`put ${answer?.status ?? "unknown"}`);
    }
  }

  async #sleeps(): Promise<string[]> {
    await this.#sim.sleep(8_000);
    return [];
  }

  /** Waits until a stream of the range has an extent that began after the copy and is not its last. Returns the nodes that have the extent. */
  async #holdersOf(kind: string, copiedMs: number): Promise<string[]> {
    const known = new Set((await this.#extentsOf(kind)).map(({ location }) => location?.extentId));
    const found = await by(this.#sim, copiedMs + 2 * beginsWithinMs, `extents of ${kind} begin`, async () => {
      const later = (await this.#extentsOf(kind)).filter(({ location }) => !known.has(location?.extentId));
      // A log goes on behind its last but one; the last one of checkpoints has the newest.
      return later.length < 3 ? undefined : later.at(kind === "commit-log" ? -2 : -1);
    });
    this.#count(`restores that lose an extent of ${kind}`);
    return [...(found.location?.addresses ?? [])];
  }

  async #extentsOf(kind: string): Promise<readonly ExtentInfo[]> {
    return by(this.#sim, this.#sim.nowMs + beginsWithinMs, "extents are listed", async () =>
      (await this.#manager.extents())?.filter(({ state, stream }) => stream === `/ps/${range}/${kind}` && state !== ExtentState.DROPPED),
    );
  }

  /** Everything is stopped, the folders of the lock services are lost, and the copy is restored; `absent` nodes are away until somebody leads. */
  async #restore(copy: SnapshotSource, absent: readonly string[]): Promise<void> {
    const sim = this.#sim;
    const { lockService, processes } = this.#cluster;
    for (const name of lockServiceAddresses(lockService)) sim.crash(name, { unsynced: "lost", stayDown: true });
    for (const name of processes) {
      if (!sim.isUp(name)) continue;
      sim.crash(name, { stayDown: true });
    }
    await restoreCopy(sim, lockService, copy);
    for (const name of processes) if (!absent.includes(name)) sim.restart(name);
    const leads = (): boolean => this.#named("stream-manager-").some((name) => sim.role(name)?.status.state === "leader");
    await this.#by("a stream manager leads by the restored metadata", async () => leads(), leadsWithinMs);
    for (const name of absent) sim.restart(name);
    this.#count("restores");
  }

  #everythingIsBack(): Promise<void> {
    return this.#by("every process is ready and every range is loaded", async () => this.#cluster.ready(), backWithinMs);
  }

  /** `copiedMs` as in `RowJudge.read`. */
  async #read(copiedMs: number | undefined): Promise<void> {
    for (const key of this.#judge.keys) {
      const value = await by(this.#sim, this.#sim.nowMs + backWithinMs, `${key} is read`, async () => {
        const read = await this.#http.request("GET", `/${container}/${key}`, {});
        if (read?.status === 404) return 0;
        return read?.status === 200 && !read.short ? Number.parseInt(new TextDecoder().decode(read.body), 10) : undefined;
      });
      this.#judge.read(key, value, copiedMs);
    }
  }

  #lossIsTold(): void {
    this.#count("acknowledged writes lost with an extent", this.#judge.lost);
    const ranges = this.#named("partition-server-").flatMap((name) => {
      const facts = this.#sim.role(name)?.status.facts.ranges as readonly { rangeId: string; losses?: unknown }[] | undefined;
      return facts ?? [];
    });
    const isTold = ranges.some(({ losses, rangeId }) => rangeId === range && losses !== undefined);
    if (isTold) this.#count("ranges that tell of a loss");
    if (this.#judge.lacksBetween && !isTold)
      throw new BrokenPromise(`${range} lacks acknowledged rows before later ones, and does not tell`);
  }

  async #by(what: string, isSo: () => Promise<boolean>, withinMs = backWithinMs): Promise<void> {
    await by(this.#sim, this.#sim.nowMs + withinMs, what, async () => ((await isSo()) ? true : undefined));
  }

  #named(kind: string): string[] {
    return this.#cluster.processes.filter((name) => name.startsWith(kind));
  }

  #count(what: string, count = 1): void {
    this.#tally.counts[what] = (this.#tally.counts[what] ?? 0) + count;
  }
}
