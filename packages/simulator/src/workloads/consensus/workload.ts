/**
 * The metadata store of three or five lock services that replicate it, without the rest of a stamp. Clients read and write a few keys under
 * conditions on their versions, some at one lock service whatever it is, as one with an old list of addresses would. One order must explain
 * all answers (linearizability), and what the members say of themselves must fit (raft-judge.ts). When the faults are over, a member that
 * was cut off comes back and deposes nobody, and each new leader has everything.
 */
import type { Prng } from "@stamp/base";
import { BlobHistory, contentOf, writeOf } from "@stamp/histories";
import type { BlobAnswer, BlobCall, BlobCondition } from "@stamp/linearizability";
import { lockServices, MetadataClient } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { fromWire, LockService } from "@stamp/wire";
import { type SimulatedCluster, simulatedLockServices } from "../cluster.ts";
import type { Focus } from "../faults/fault-kinds.ts";
import { Faults } from "../faults/faults.ts";
import type { Tally } from "../run/workload.ts";
import { RaftJudge } from "./raft-judge.ts";

const store = "store";
const keys = ["a", "b", "c"];
const workMs = 30_000;
const readyWithinMs = 60_000;
const healedWithinMs = 60_000;
const termMs = 60_000;
/** Longer than an election takes. */
const cutMs = 6_000;
const settleMs = 4_000;
const newLeaders = 3;
/** Folders of members are always hurt here. Extent nodes, whose faults are left out, are not there. */
const weights = { "member-folder": 6, "lost-table": 0, "lost-file": 0, "bit-rot": 0, "replaced-disk": 0 } as const;

export async function consensusWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const cluster = simulatedLockServices(sim, { lockServices: sim.prng.pick([3, 3, 5]) });
  await sim.until(() => cluster.ready(), readyWithinMs, "every lock service follows or leads");
  const judge = new RaftJudge(sim, cluster.processes);
  const run = new Run(sim, tally, cluster, judge);
  const everywhere = Array.from({ length: 2 }, (_, i) => new StoreClient(sim.world(`client-${i + 1}`), cluster.lockService));
  const sticky = cluster.processes.map((name) => new StoreClient(sim.world(`client-of-${name}`), cluster.addressOf(name)));
  const clients = [...everywhere, ...sticky];
  const [first] = everywhere as [StoreClient];
  await run.open(first, clients);
  const faults = new Faults(sim, {
    targets: cluster.processes,
    clients: [],
    pace: 1,
    focus: { ...focus, weights: { ...weights, ...focus?.weights } },
    withinMs: workMs,
    matters: () => judge.leader,
  });
  tally.faults = faults.counts;
  const scene = async (): Promise<void> => {
    faults.start();
    const endMs = sim.nowMs + workMs;
    await Promise.all(clients.map((client) => run.work(client, sim.prng.fork(), endMs)));
    await faults.heal();
    await run.whole();
    await run.cutOffAndBack();
    for (let i = 0; i < newLeaders; i++) await run.newLeader(first);
    judge.stop();
  };
  await Promise.all([judge.watch(), scene()]);
  const wrong = run.history.check();
  if (wrong !== undefined) throw new BrokenPromise(wrong);
  for (const name of run.history.undecided) sim.note("not decided", name);
  if (run.history.undecided.length > 0) tally.counts["NOT DECIDED histories"] = run.history.undecided.length;
}

/** A client of the metadata store, with a lease of its own for its fences. */
class StoreClient {
  readonly #world: World;
  readonly #addresses: string;
  readonly #client: MetadataClient;
  /** Epoch of the lease under which every client writes. */
  epoch = 0;

  constructor(world: World, addresses: string) {
    this.#world = world;
    this.#addresses = addresses;
    this.#client = new MetadataClient(world, addresses);
  }

  /** Takes the lease under which every client writes. Returns undefined if that failed, or is unknown. */
  async lease(): Promise<number | undefined> {
    const request = { name: store, holder: store, identity: store, instance: store, incarnation: 1n, address: store, termMs, stampId: "" };
    const taken = await lockServices(this.#world, this.#addresses, LockService).acquireLease(request, { timeoutMs: 1_000 });
    return taken.ok ? fromWire(taken.value.leaseEpoch) : undefined;
  }

  /** Returns undefined if it was not done. */
  async write(key: string, value: Uint8Array | undefined, condition: BlobCondition, timeoutMs: number): Promise<BlobAnswer | undefined> {
    const version = condition.kind === "match" ? Number(condition.etag) : 0;
    const done = await this.#client.transact(
      {
        fence: { leaseName: store, leaseEpoch: this.epoch },
        conditions: condition.kind === "none" ? [] : [{ key, version }],
        writes: [value === undefined ? { key } : { key, value }],
      },
      timeoutMs,
    );
    if (done.ok) return value === undefined ? { kind: "ok" } : { kind: "ok", etag: String(done.value) };
    const { reason, details, applied } = done.failure;
    if (reason === "conflict")
      return { kind: details?.version === "0" ? "noBlob" : condition.kind === "absent" ? "exists" : "conditionNotMet" };
    return applied === "unknown" ? { kind: "unknown" } : undefined;
  }

  async get(key: string, timeoutMs: number): Promise<BlobAnswer | undefined> {
    const got = await this.#client.get([key], timeoutMs);
    const [found] = got.ok ? got.value : [];
    if (found === undefined) return undefined;
    return found.version === 0
      ? { kind: "noBlob" }
      : { kind: "ok", etag: String(found.version), write: writeOf(found.value, `key ${key}`) };
  }
}

class Run {
  readonly history: BlobHistory = new BlobHistory(new Map([[store, keys]]), true);
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #cluster: SimulatedCluster;
  readonly #judge: RaftJudge;
  readonly #versions = new Map<string, string>();
  #writeNext = 1;

  constructor(sim: Simulation, tally: Tally, cluster: SimulatedCluster, judge: RaftJudge) {
    this.#sim = sim;
    this.#tally = tally;
    this.#cluster = cluster;
    this.#judge = judge;
  }

  /** The lease is taken before faults come. A later lock service knows its epoch, and nobody else takes it. */
  async open(first: StoreClient, clients: readonly StoreClient[]): Promise<void> {
    const endMs = this.#sim.nowMs + readyWithinMs;
    for (;;) {
      const epoch = await first.lease();
      if (epoch !== undefined) {
        for (const client of clients) client.epoch = epoch;
        return;
      }
      if (this.#sim.nowMs > endMs) throw new BrokenPromise(`the lease can't be had within ${readyWithinMs} ms`);
      await this.#sim.sleep(50);
    }
  }

  async work(client: StoreClient, prng: Prng, endMs: number): Promise<void> {
    // Whoever waits long for an answer may get one of a leader that was paused meanwhile.
    const timeoutMs = prng.pick([500, 2_000, 8_000]);
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(prng.float() * prng.pick([50, 400]));
      const key = prng.pick(keys);
      const dice = prng.below(100);
      if (dice < 45) await this.#get(client, key, timeoutMs);
      else if (dice < 65) await this.#put(client, key, { kind: "none" }, timeoutMs);
      else if (dice < 90) await this.#put(client, key, this.#match(key), timeoutMs);
      else if (dice < 95) await this.#put(client, key, { kind: "absent" }, timeoutMs);
      else await this.#delete(client, key, timeoutMs);
    }
  }

  /** Every member is there, and has its standing. */
  async whole(): Promise<void> {
    const byMs = this.#sim.nowMs + healedWithinMs;
    while (!this.#cluster.ready() || !this.#judge.allStand) {
      if (this.#sim.nowMs > byMs)
        throw new BrokenPromise(`not every lock service has its standing within ${healedWithinMs} ms after the faults`);
      await this.#sim.sleep(50);
    }
    await this.#sim.sleep(settleMs);
  }

  /** A member that hears nobody for longer than an election takes comes back, and the leader goes on (rule raftPreVote). */
  async cutOffAndBack(): Promise<void> {
    const sim = this.#sim;
    const before = this.#judge.leadership;
    const others = this.#cluster.processes.filter((name) => name !== before?.leader);
    const away = sim.prng.pick(others);
    sim.partition(
      [away],
      this.#cluster.processes.filter((name) => name !== away),
    );
    await sim.sleep(cutMs);
    sim.heal();
    await this.whole();
    const after = this.#judge.leadership;
    if (before === undefined || after?.leader !== before.leader || after.term !== before.term) {
      const shown = (of: typeof before): string => (of === undefined ? "nobody" : `${of.leader} in term ${of.term}`);
      throw new BrokenPromise(`${away} was cut off and came back: before ${shown(before)} led, afterwards ${shown(after)}`);
    }
    this.#count("cut off and back");
  }

  /** The leader dies, and its successor has everything. */
  async newLeader(client: StoreClient): Promise<void> {
    const { leader } = this.#judge;
    if (leader !== undefined) this.#sim.crash(leader, { unsynced: "lost" });
    await this.whole();
    for (const key of keys) {
      const byMs = this.#sim.nowMs + healedWithinMs;
      while (!(await this.#get(client, key, 1_000))) {
        if (this.#sim.nowMs > byMs) throw new BrokenPromise(`key ${key} can't be read within ${healedWithinMs} ms after the last fault`);
        await this.#sim.sleep(100);
      }
    }
    this.#count("new leaders that were asked for everything");
  }

  #get(client: StoreClient, key: string, timeoutMs: number): Promise<boolean> {
    const act = (): Promise<BlobAnswer | undefined> => client.get(key, timeoutMs);
    return this.#seen(key, act, (answer) => ({ kind: "get", answer }));
  }

  async #put(client: StoreClient, key: string, condition: BlobCondition, timeoutMs: number): Promise<void> {
    const write = this.#writeNext++;
    const act = (): Promise<BlobAnswer | undefined> => client.write(key, contentOf(write, 12), condition, timeoutMs);
    await this.#seen(key, act, (answer) => ({ kind: "put", write, condition, answer }));
  }

  async #delete(client: StoreClient, key: string, timeoutMs: number): Promise<void> {
    const condition = this.#match(key);
    // A deletion of what is not there is none to the store, and an error to the model.
    if (condition.kind !== "match") return;
    const act = (): Promise<BlobAnswer | undefined> => client.write(key, undefined, condition, timeoutMs);
    await this.#seen(key, act, (answer) => ({ kind: "delete", condition, answer }));
  }

  #match(key: string): BlobCondition {
    const etag = this.#versions.get(key);
    return etag === undefined ? { kind: "none" } : { kind: "match", etag };
  }

  async #seen(key: string, act: () => Promise<BlobAnswer | undefined>, toCall: (answer: BlobAnswer) => BlobCall): Promise<boolean> {
    const calledAt = this.#sim.nowMs;
    const answer = await act();
    if (answer === undefined) return false;
    if (answer.kind === "ok" && answer.etag !== undefined) this.#versions.set(key, answer.etag);
    const call = toCall(answer);
    this.#count(`${call.kind} ${answer.kind}`);
    const returnedAt = answer.kind === "unknown" ? undefined : this.#sim.nowMs;
    this.history.blob(store, key, { call, calledAt, returnedAt });
    return true;
  }

  #count(what: string): void {
    this.#tally.counts[what] = (this.#tally.counts[what] ?? 0) + 1;
  }
}
