/**
 * The whole cluster goes down and comes back on its data, again and again: processes killed, the power gone, clean stops, in any order,
 * also while the last restart is still under way; with machines that lost the disk that only counts their starts, with a second process
 * of the same name, and with processes of another stamp that hold on to the addresses.
 *
 * Promises: after the last restart every range is served within a bound, under a number of owner epochs that is a small multiple of the
 * ranges for each restart, and from then on none is minted; everything that was acknowledged is there.
 */
import { makeToken } from "@stamp/azure-rest";
import type { Prng } from "@stamp/base";
import { fromUtf8 } from "@stamp/base";
import { contentOf, writeOf } from "@stamp/histories";
import { MetadataClient } from "@stamp/metadata-store";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { BlobClient } from "./clients/blob-client.ts";
import type { WholeCluster } from "./cluster.ts";
import { simulatedCluster } from "./cluster.ts";
import type { Focus } from "./faults/fault-kinds.ts";
import { MemberFolders } from "./faults/member-folders.ts";
import type { Tally } from "./run/workload.ts";

const readyWithinMs = 60_000;
/**
 * Bound of the time from the start of the last process, or the end of the last leftover one, until everything is
 * served.
 */
const servedWithinMs = 30_000;
/** Owner epochs of a range for each time that anything of the partition layer was started. */
const epochsPerRangeMax = 6;
/** Long enough that the partition manager has noticed who died last. */
const steadyMs = 3_000;
const quietMs = 20_000;
const checkpointWithinMs = 5_000;
const leaseTermMs = 6_000;
const blobCount = 6;
/** Share of the restarts under a focus that are of the processes it aims at. */
const aimedShare = 0.7;
/** Longest time that a member is down for a fault of its folder, in milliseconds. */
const folderDownMs = 3_000;
const container = "kept";

/** Processes that keep nothing on their disk but a counter of their starts. */
const keepsNothing = /^(stream-manager|partition-manager|partition-server|front-end)-/;
/** Processes that a lease names. */
const holdsLease = /^(stream-manager|partition-manager|partition-server)-/;

/** The faults are restarts. A focus says what lock services there are, which processes go down most, and whether folders of members are hurt. */
export async function restartWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const cluster = simulatedCluster(sim, { partitionServers: sim.prng.pick([2, 2, 3]), restartAfterMs: 300 + sim.prng.below(2_000) });
  const restarts = new Restarts(sim, tally, cluster, focus);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  await restarts.run();
}

interface ServedRange {
  readonly rangeId: string;
  readonly memoryTableFirstSequence: number;
  readonly checkpointedSequence: number;
}

class Restarts {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #cluster: WholeCluster;
  readonly #prng: Prng;
  readonly #client: BlobClient;
  readonly #metadata: MetadataClient;
  /** Keyed by blob: the last write that was acknowledged, and later ones of which nobody knows. */
  readonly #writes = new Map<string, Set<number>>();
  /** Processes that are none of the cluster's: they have to go before it is whole again. */
  readonly #strangers: string[] = [];
  readonly #otherStamps: boolean;
  /** Processes that a focus aims at: most restarts are of these alone. Empty without a focus. */
  readonly #aimedAt: readonly string[];
  /** Folders of members, where a focus hurts them. */
  readonly #folders: MemberFolders | undefined;
  #writeNext = 1;
  #restartsSinceCount = 0;
  #mintedAtCount = 0;

  constructor(sim: Simulation, tally: Tally, cluster: WholeCluster, focus: Focus | undefined) {
    const { processes } = cluster;
    this.#aimedAt = focus?.targets === undefined ? [] : processes.filter((name) => focus.targets?.test(name));
    const members = processes.filter((name) => name.startsWith("lock-service-"));
    const hurtsFolders = (focus?.weights?.["member-folder"] ?? 0) > 0;
    this.#folders = hurtsFolders ? new MemberFolders(sim, sim.prng.fork(), members) : undefined;
    this.#sim = sim;
    this.#tally = tally;
    this.#cluster = cluster;
    this.#prng = sim.prng.fork();
    this.#otherStamps = this.#prng.chance(0.4);
    const world = sim.world("client");
    const token = makeToken(
      { account: cluster.account, expiresMs: world.clock.wallMs() + 24 * 3600_000 },
      cluster.accountKey,
      (key, text) => world.digest.hmacSha256(key, text),
    );
    this.#client = new BlobClient(world, cluster.frontEnd, cluster.account, token);
    this.#metadata = new MetadataClient(sim.world("observer"), cluster.lockService);
  }

  async run(): Promise<void> {
    const prng = this.#prng;
    await this.#write(6);
    this.#mintedAtCount = await this.#minted();
    const rounds = 3 + prng.below(5);
    for (let round = 1; round <= rounds; round++) {
      await this.#restart();
      if (prng.chance(0.3)) continue;
      if (prng.chance(0.3)) {
        await this.#sim.sleep(prng.float() * 12_000);
        continue;
      }
      await this.#served();
      await this.#write(1 + prng.below(12));
    }
    await this.#served();
    await this.#readBack();
    await this.#quiet();
  }

  // ---- one restart of everything

  async #restart(): Promise<void> {
    const prng = this.#prng;
    const sim = this.#sim;
    this.#count("restarts");
    this.#restartsSinceCount += 1;
    const way = prng.pick(["killed", "power lost", "stopped", "mixed"]);
    sim.note("whole restart", way);
    const aimed = this.#aimedAt.length > 0 && prng.chance(aimedShare);
    if (aimed) this.#count("restarts of those aimed at");
    await this.#hurtFolder();
    const down = prng.shuffle([...(aimed ? this.#aimedAt : this.#cluster.processes)]);
    const staggered = prng.chance(0.5);
    for (const name of down) {
      if (staggered) await sim.sleep(prng.float() * 1_500);
      this.#takeDown(name, way === "mixed" ? prng.pick(["killed", "power lost", "stopped"]) : way);
    }
    await sim.until(() => down.every((name) => !sim.isUp(name)), 30_000, "everything stopped");
    if (!aimed) await this.#betweenRestarts();
    await this.#bringBack(down);
  }

  /** A member whose folder was hurt is back right before the restart, and may lack its standing. */
  async #hurtFolder(): Promise<void> {
    if (this.#folders === undefined) return;
    const downMs = this.#prng.float() * folderDownMs;
    if (!this.#folders.strike(downMs)) return;
    this.#count("folders hurt");
    await this.#sim.sleep(downMs);
  }

  #takeDown(name: string, how: string): void {
    const sim = this.#sim;
    this.#count(how);
    if (how === "stopped") {
      // A supervisor does not wait for ever for a process to leave.
      const start = sim.starts(name);
      sim.background(sim.stop(name));
      sim.background(
        sim.sleep(10_000).then(() => {
          if (sim.starts(name) === start) sim.crash(name, { unsynced: "kept", silent: false, stayDown: true });
        }),
      );
    } else {
      sim.crash(name, { unsynced: how === "killed" ? "kept" : "lost", stayDown: true });
    }
  }

  /** All are down: what may have been done to the machines meanwhile. */
  async #betweenRestarts(): Promise<void> {
    const prng = this.#prng;
    const sim = this.#sim;
    for (const name of this.#cluster.processes) {
      // A process that starts with an empty disk beside another stamp may become a member of that stamp.
      if (this.#otherStamps || !keepsNothing.test(name) || !prng.chance(0.05)) continue;
      this.#count("emptied disks");
      sim.note("emptied disk", name);
      sim.disk(name).wipe();
      sim.keyValue(name).wipe();
    }
    if (this.#otherStamps && prng.chance(0.3)) await this.#otherStamp();
    if (prng.chance(0.15)) this.#secondProcess();
    if (prng.chance(0.5)) await sim.sleep(prng.float() * 8_000);
  }

  /** In any order, some late, some dying once more soon after. */
  async #bringBack(down: readonly string[]): Promise<void> {
    const prng = this.#prng;
    const sim = this.#sim;
    const spreadMs = prng.pick([1, 500, 5_000, 15_000]);
    await Promise.all(
      prng.shuffle([...down]).map(async (name) => {
        const [waitMs, again, livesMs] = [prng.float() * spreadMs, prng.chance(0.15), prng.float() ** 2 * 5_000];
        await sim.sleep(waitMs);
        sim.restart(name);
        if (!again) return;
        await sim.sleep(livesMs);
        sim.crash(name);
        this.#count("died again");
      }),
    );
  }

  /** Another cluster runs on the same addresses; some of its processes are still there when ours come back, and go later. */
  async #otherStamp(): Promise<void> {
    const prng = this.#prng;
    const sim = this.#sim;
    const number = this.#strangers.length;
    const names = this.#cluster.processes.map((of) => {
      const process = `other-${number}-${of}`;
      this.#cluster.twin(of, process);
      sim.restart(process);
      return process;
    });
    this.#strangers.push(...names);
    this.#count("other stamps");
    await sim.sleep(prng.float() * 10_000);
    const stay = new Set(prng.shuffle([...names]).slice(0, 1 + prng.below(4)));
    for (const name of names) if (!stay.has(name)) sim.crash(name, { unsynced: "kept", silent: false, stayDown: true });
    // Fences name a lease and its epoch, not the stamp: whoever leads there must have lost its lease before ours come back.
    if (!stay.has(names[0] as string)) await sim.sleep(leaseTermMs + 1_000);
    for (const name of stay) this.#goesLater(name, 15_000);
  }

  /** Starts a second process under the name of one that runs: another machine, with an empty disk or a copy of the first one's. */
  #secondProcess(): void {
    const sim = this.#sim;
    const of = this.#prng.pick(this.#cluster.processes.filter((name) => holdsLease.test(name)));
    const process = `second-${this.#strangers.length}-${of}`;
    // Behind another door under the same address: a container, or another machine's loopback.
    const advertise = this.#prng.chance(0.5) ? of : process;
    this.#cluster.twin(of, process, { listen: process, advertise });
    this.#strangers.push(process);
    if (this.#prng.chance(0.5)) {
      this.#count("copied processes");
      sim.keyValue(process).copyFrom(sim.keyValue(of));
    } else {
      this.#count("second processes");
    }
    sim.restart(process);
    this.#goesLater(process, 20_000);
  }

  #goesLater(name: string, withinMs: number): void {
    const cleanly = this.#prng.chance(0.5);
    const afterMs = this.#prng.float() * withinMs;
    const sim = this.#sim;
    sim.background(
      sim.sleep(afterMs).then(async () => {
        if (cleanly) sim.background(sim.stop(name));
        await sim.sleep(cleanly ? 3_000 : 0);
        sim.crash(name, { unsynced: "kept", silent: false, stayDown: true });
      }),
    );
  }

  // ---- what must hold

  /** Within the bound everything is served, and the restarts since the last time have cost no more than their owner epochs. */
  async #served(): Promise<void> {
    const sim = this.#sim;
    await sim.until(() => this.#strangers.every((name) => !sim.isUp(name)), 60_000, "what does not belong here is gone");
    const fromMs = sim.nowMs;
    let sinceMs: number | undefined;
    while (sinceMs === undefined || sim.nowMs - sinceMs < steadyMs) {
      if (sim.nowMs - fromMs > servedWithinMs + steadyMs) {
        throw new BrokenPromise(`not served within ${servedWithinMs} ms: ${await this.#why()}`);
      }
      sinceMs = this.#cluster.ready() && this.#ranges() > 0 ? (sinceMs ?? sim.nowMs) : undefined;
      await sim.sleep(20);
    }
    const tookMs = sinceMs - fromMs;
    this.#most("ms until served, at most", Math.round(tookMs));
    const minted = await this.#minted();
    const ranges = this.#ranges();
    const perRange = (minted - this.#mintedAtCount) / ranges;
    this.#most(
      "owner epochs of a range in one restart, at most ×100",
      Math.round((100 * perRange) / Math.max(1, this.#restartsSinceCount)),
    );
    if (perRange > epochsPerRangeMax * (1 + this.#restartsSinceCount)) {
      throw new BrokenPromise(`${minted - this.#mintedAtCount} owner epochs for ${ranges} ranges in ${this.#restartsSinceCount} restarts`);
    }
    this.#mintedAtCount = minted;
    this.#restartsSinceCount = 0;
    await this.#memoryTablesAreNew();
  }

  /** A load reads no more into memory than its checkpoints lack (rule replayBySequence). */
  async #memoryTablesAreNew(): Promise<void> {
    const endMs = this.#sim.nowMs + checkpointWithinMs;
    for (;;) {
      const old = this.#servedRanges().find(
        (range) => range.memoryTableFirstSequence !== 0 && range.memoryTableFirstSequence <= range.checkpointedSequence,
      );
      if (!old) return;
      // A checkpoint that was recorded a moment ago may still have its table in memory.
      if (this.#sim.nowMs > endMs) {
        throw new BrokenPromise(
          `${old.rangeId} holds commit ${old.memoryTableFirstSequence} in memory, its checkpoints go up to ${old.checkpointedSequence}`,
        );
      }
      await this.#sim.sleep(100);
    }
  }

  #servedRanges(): readonly ServedRange[] {
    return this.#cluster.processes
      .filter((name) => name.startsWith("partition-server-"))
      .flatMap((name) => (this.#sim.role(name)?.status.facts.ranges ?? []) as readonly ServedRange[]);
  }

  /** Nothing happens, so nothing is assigned; a range may still move once to even things out. */
  async #quiet(): Promise<void> {
    await this.#sim.sleep(quietMs);
    const minted = await this.#minted();
    const more = minted - this.#mintedAtCount;
    if (more > this.#ranges()) throw new BrokenPromise(`${more} owner epochs minted within ${quietMs} ms in which nothing happened`);
    if (!this.#cluster.ready()) throw new BrokenPromise(`no longer served: ${await this.#why()}`);
  }

  /** Returns the number of ranges that the leading manager has; 0 if nobody leads. */
  #ranges(): number {
    for (const name of this.#cluster.processes) {
      const facts = name.startsWith("partition-manager-") ? this.#sim.role(name)?.status.facts : undefined;
      if (Array.isArray(facts?.ranges)) return facts.ranges.length;
    }
    return 0;
  }

  /** Returns how many owner epochs the metadata store has given out. */
  async #minted(): Promise<number> {
    for (;;) {
      const held = await this.#metadata.get(["partition-manager/owner-epoch"], 1_000);
      if (held.ok) return Number(fromUtf8(held.value[0]?.value ?? new Uint8Array(0)) || "0");
      await this.#sim.sleep(50);
    }
  }

  async #why(): Promise<string> {
    const waiting = this.#cluster.processes.map((name) => {
      const status = this.#sim.role(name)?.status;
      return status?.ready
        ? ""
        : `${name}: ${status === undefined ? "down" : `${status.state}, waits for ${status.waitingFor.join(", ")}`}`;
    });
    const minted = this.#sim.isUp(this.#cluster.lockService) ? await this.#minted() : -1;
    return `${waiting.filter((text) => text !== "").join("; ")}; ${minted - this.#mintedAtCount} owner epochs since`;
  }

  // ---- data

  async #write(count: number): Promise<void> {
    await this.#client.createContainer(container);
    for (let i = 0; i < count; i++) {
      const blob = `b${this.#prng.below(blobCount)}`;
      const write = this.#writeNext++;
      const size = this.#prng.chance(0.2) ? this.#prng.below(100_000) : 12 + this.#prng.below(14_000);
      const answer = await this.#client.put(container, blob, contentOf(write, size), { kind: "none" });
      this.#count(`put ${answer.kind}`);
      if (answer.kind === "ok") this.#writes.set(blob, new Set([write]));
      else if (answer.kind === "unknown") this.#writes.set(blob, (this.#writes.get(blob) ?? new Set([0])).add(write));
    }
  }

  /** One client wrote, one thing after another: what is there is the last acknowledged write, or a later one. */
  async #readBack(): Promise<void> {
    for (const [blob, may] of this.#writes) {
      const endMs = this.#sim.nowMs + servedWithinMs;
      for (;;) {
        const answer = await this.#client.get(container, blob);
        if (answer.kind === "ok" && "bytes" in answer) {
          const write = writeOf(answer.bytes, blob);
          if (!may.has(write)) throw new BrokenPromise(`${blob} is write ${write}, acknowledged or possible are ${[...may].join(", ")}`);
          break;
        }
        if (answer.kind === "noBlob" && may.has(0)) break;
        if (answer.kind === "noBlob" || answer.kind === "noContainer") throw new BrokenPromise(`${blob} is gone (${answer.kind})`);
        if (this.#sim.nowMs > endMs)
          throw new BrokenPromise(`${blob} can't be read within ${servedWithinMs} ms: ${JSON.stringify(answer)}`);
        await this.#sim.sleep(200);
      }
      this.#count("blobs read back");
    }
  }

  #count(what: string, more = 1): void {
    this.#tally.counts[what] = (this.#tally.counts[what] ?? 0) + more;
  }

  #most(what: string, value: number): void {
    this.#tally.most[what] = Math.max(this.#tally.most[what] ?? 0, value);
  }
}
