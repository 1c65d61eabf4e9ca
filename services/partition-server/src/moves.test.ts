/**
 * Leases, moves and fencing with the real partition servers, partition managers and lock service on virtual time; only the streams are
 * replaced by what they promise. The workload is that of model/move.pml: one register, written with rising numbers under its ETag, read
 * by whoever believes to serve it. Nobody ever reads less than was acknowledged or read before.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, compareBytes, fromUtf8, ok, type RuleName, type Rules, refused, rulesWithout, utf8 } from "@stamp/base";
import { LockServiceRole } from "@stamp/lock-service";
import { type BlobName, routeOf } from "@stamp/objects";
import { PartitionManagerRole } from "@stamp/partition-manager";
import type { World } from "@stamp/ports";
import { Simulation } from "@stamp/simulator";
import { LockService, type OperationResult, PartitionManager, PartitionServer, type RangePartition } from "@stamp/wire";
import { partitionServerConfigSchema } from "./config.ts";
import { PartitionServerRole } from "./partition-server.ts";
import { TestStreams } from "./streams-in-test.ts";

/** Tables of the partition manager, as they are in streams: the newest term owns them. */
class TestTables {
  readonly #rows = new Map<string, Map<string, { key: Uint8Array; value: Uint8Array }>>();
  readonly #terms = new Map<string, number>();
  readonly #sequences = new Map<string, number>();

  opener(world: World): ConstructorParameters<typeof PartitionManagerRole>[2] {
    return async (table, pmTerm, onFenced) => {
      if (pmTerm < (this.#terms.get(table) ?? 0)) return refused("failedPrecondition", "staleOwnerEpoch", "a later term has it");
      this.#terms.set(table, pmTerm);
      const rows = this.#rows.get(table) ?? new Map<string, { key: Uint8Array; value: Uint8Array }>();
      this.#rows.set(table, rows);
      const sequences = this.#sequences;
      const owned = (): boolean => this.#terms.get(table) === pmTerm;
      const wait = (ms: number) => new Promise<void>((resolve) => void world.clock.after(ms, resolve));
      return ok({
        get sequence() {
          return sequences.get(table) ?? 0;
        },
        readAll: async () => ok([...rows.values()].sort((a, b) => compareBytes(a.key, b.key))),
        write: async (changed) => {
          await wait(2);
          if (!owned()) {
            onFenced("a later term has it");
            return refused("failedPrecondition", "staleOwnerEpoch", "a later term has it");
          }
          for (const row of changed) rows.set(Buffer.from(row.key).toString("hex"), row);
          sequences.set(table, (sequences.get(table) ?? 0) + 1);
          await wait(2);
          return ok(sequences.get(table) ?? 0);
        },
        close: async () => {},
      });
    };
  }
}

const servers = ["ps-1", "ps-2"];
const managers = ["pm-1", "pm-2"];
const lease = { leaseTermMs: 6_000, leaseMarginMs: 1_000, leaseRenewEveryMs: 2_000 };

function cluster(seed: number, rules: Rules = allRules, pms: readonly string[] = managers): { sim: Simulation; streams: TestStreams } {
  const sim = new Simulation({ seed, rules, clockDriftPpmMax: 100 });
  const streams = new TestStreams();
  const tables = new TestTables();
  const restart = { restartAfterMs: 800 };
  const lock = { name: "lock", listen: "lock", dataDir: "", init: true, waitingMax: 1_000, groupMax: 100 };
  sim.addProcess("lock", (world) => new LockServiceRole(world, lock), restart);
  for (const name of servers) {
    const config = partitionServerConfigSchema.parse({ name, listen: name, lockService: "lock", operationsMax: 100, ...lease });
    sim.addProcess(name, (world) => new PartitionServerRole(world, config, streams.engines(world)), restart);
  }
  const times = { pollEveryMs: 500, probeEveryMs: 1_000, unreachableAfterMs: 5_000, loadTimeoutMs: 10_000 };
  for (const name of pms) {
    const config = {
      name,
      listen: name,
      lockService: "lock",
      dataDir: "",
      accounts: [{ name: "acct", keys: ["a2V5"] }],
      ...lease,
      ...times,
    };
    sim.addProcess(name, (world) => new PartitionManagerRole(world, config, tables.opener(world)), restart);
  }
  return { sim, streams };
}

const blob: BlobName = { account: "acct", container: "c", containerIncarnation: 1, blob: "register" };

/** A client that knows the map, perhaps an old one. */
class Client {
  readonly #world: World;
  readonly #rules: Rules;
  ranges: readonly RangePartition[] = [];
  version = 0n;

  constructor(sim: Simulation, name: string) {
    this.#world = sim.world(name);
    this.#rules = sim.rules;
  }

  /** From any manager that believes to lead. */
  async refresh(): Promise<boolean> {
    for (const manager of managers) {
      const map = await this.#world.transport.client(manager, PartitionManager).getMap({}, { timeoutMs: 300 });
      if (!map.ok || map.value.version < this.version) continue;
      this.ranges = map.value.ranges;
      this.version = map.value.version;
      return true;
    }
    return false;
  }

  /** At the server that the map names, or at any other: who does not serve it says so. */
  async #execute(kind: Parameters<typeof routeOf>[1], at?: string, timeoutMs = 400): Promise<OperationResult | undefined> {
    const route = routeOf(this.#rules, kind);
    const range = this.ranges.find(
      (one) =>
        one.table === route.table &&
        compareBytes(one.lowKey, route.key) <= 0 &&
        (one.highKey.length === 0 || compareBytes(route.key, one.highKey) < 0),
    );
    const address = at ?? range?.serverAddress;
    if (!range || !address) return undefined;
    const request = { rangeId: range.rangeId, rangeVersion: range.rangeVersion, operation: { kind: kind as never } };
    const answer = await this.#world.transport.client(address, PartitionServer).execute(request, { timeoutMs });
    return answer.ok ? answer.value.result : undefined;
  }

  async read(at?: string, timeoutMs?: number): Promise<{ value: number; etag: string } | undefined> {
    const result = await this.#execute({ case: "getBlob", value: { name: blob, withoutContent: false } } as never, at, timeoutMs);
    if (result?.kind.case === "error" && result.kind.value.code === "BlobNotFound") return { value: 0, etag: "" };
    if (result?.kind.case !== "content") return undefined;
    return { value: Number(fromUtf8(result.kind.value.inline)), etag: result.kind.value.blob?.etag ?? "" };
  }

  async write(value: number, etag: string, at?: string): Promise<"done" | "412" | "unknown"> {
    const conditions = etag === "" ? { ifNoneMatch: "*" } : { ifMatch: etag };
    const kind = { case: "putBlob", value: { name: blob, conditions, body: { inline: utf8(String(value)) }, headers: {}, metadata: {} } };
    const result = await this.#execute(kind as never, at);
    if (result?.kind.case === "blob") return "done";
    return result?.kind.case === "error" ? "412" : "unknown";
  }
}

interface Floor {
  acknowledged: number;
  reads: number;
  writes: number;
}

/** Reads anywhere at random, also by an old map; what was read or acknowledged before the read began is never missed. */
async function readerLoop(sim: Simulation, client: Client, floor: Floor, stop: () => boolean): Promise<void> {
  while (!stop()) {
    if (sim.prng.chance(0.2)) await client.refresh();
    const before = floor.acknowledged;
    const at = sim.prng.chance(0.5) ? sim.prng.pick(servers) : undefined;
    // Patient readers hear also what a server says that was paused meanwhile.
    const seen = await client.read(at, sim.prng.chance(0.3) ? 20_000 : undefined);
    if (seen) {
      assert.ok(seen.value >= before, `read ${seen.value} at ${at ?? "the map's server"} after ${before} was acknowledged or read`);
      floor.acknowledged = Math.max(floor.acknowledged, seen.value);
      floor.reads++;
    }
    await sim.sleep(10 + sim.prng.below(60));
  }
}

async function writerLoop(sim: Simulation, client: Client, floor: Floor, next: { value: number }, stop: () => boolean): Promise<void> {
  while (!stop()) {
    if (sim.prng.chance(0.2)) await client.refresh();
    const at = sim.prng.chance(0.3) ? sim.prng.pick(servers) : undefined;
    const before = await client.read(at);
    if (before) {
      const value = ++next.value;
      const outcome = await client.write(value, before.etag, at);
      if (outcome === "done") {
        floor.acknowledged = Math.max(floor.acknowledged, value);
        floor.writes++;
      }
    }
    await sim.sleep(10 + sim.prng.below(60));
  }
}

async function faults(sim: Simulation, count: number): Promise<void> {
  const all = [...servers, ...managers, "lock"];
  for (let i = 0; i < count; i++) {
    await sim.sleep(sim.prng.below(4_000));
    const server = sim.prng.pick(servers);
    switch (sim.prng.below(7)) {
      case 0:
        sim.crash(sim.prng.pick(all));
        break;
      case 1:
        sim.partition([server], ["lock"]);
        break;
      case 2:
        sim.partition([server], managers);
        break;
      case 3:
        sim.partition([sim.prng.pick(managers)], ["lock"]);
        break;
      case 4: {
        sim.pause(server);
        await sim.sleep(1_000 + sim.prng.below(14_000));
        sim.resume(server);
        break;
      }
      case 5:
        sim.partition(["lock"], [server], { oneWay: true });
        break;
      default:
        sim.crash("lock");
        sim.crash(server);
    }
    await sim.sleep(sim.prng.below(12_000));
    if (sim.prng.chance(0.7)) sim.heal();
  }
  sim.heal();
}

async function serveable(sim: Simulation, client: Client): Promise<void> {
  await sim.until(async () => (await client.refresh()) && (await client.read()) !== undefined, 40_000, "the register is served");
}

function runSeed(seed: number, rules: Rules): Promise<Floor> {
  const { sim } = cluster(seed, rules);
  return sim.run(async () => {
    const floor: Floor = { acknowledged: 0, reads: 0, writes: 0 };
    const next = { value: 0 };
    const clients = ["client-1", "client-2", "client-3"].map((name) => new Client(sim, name));
    await serveable(sim, clients[0] as Client);
    let stopped = false;
    const loops = [
      readerLoop(sim, clients[0] as Client, floor, () => stopped),
      readerLoop(sim, clients[1] as Client, floor, () => stopped),
      writerLoop(sim, clients[2] as Client, floor, next, () => stopped),
    ];
    await faults(sim, 8);
    await serveable(sim, new Client(sim, "client-4"));
    stopped = true;
    await Promise.all(loops);
    return floor;
  });
}

test("moves: under crashes, pauses and cut networks nobody reads less than was acknowledged, and all is served again", async () => {
  let reads = 0;
  let writes = 0;
  for (let seed = 1; seed <= 12; seed++) {
    const floor = await runSeed(seed, allRules).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    });
    reads += floor.reads;
    writes += floor.writes;
  }
  assert.ok(reads > 1_000 && writes > 300, `${reads} reads, ${writes} writes: the workload has to work`);
});

export const seedsUntilFailure = async (off: readonly RuleName[], seedsMax: number): Promise<number | undefined> => {
  for (let seed = 1; seed <= seedsMax; seed++) {
    try {
      await runSeed(seed, rulesWithout(...off));
    } catch (error) {
      if (process.env.STAMP_SHOW_FAILURES) console.log(off.join("+"), seed, String(error));
      return seed;
    }
  }
  return undefined;
};

async function servedBy(client: Client): Promise<string | undefined> {
  await client.refresh();
  return client.ranges.find((range) => range.table === "Blob")?.server;
}

test("moves: four ranges are spread over two servers, and the account of the configuration is there", async () => {
  const { sim } = cluster(1);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.until(
      async () => {
        await client.refresh();
        const counts = servers.map((server) => client.ranges.filter((range) => range.server === server && range.loaded).length);
        return counts.every((count) => count === 2);
      },
      10_000,
      "two ranges each",
    );
    await sim.until(() => sim.role("pm-1")?.status.ready === true && sim.role("pm-2")?.status.ready === true, 10_000, "managers ready");
    const states = managers.map((name) => sim.role(name)?.status.state).sort();
    assert.deepEqual(states, ["leader", "standby"]);
  });
});

/** Virtual time from the fault until the register is served again. */
async function downtimeMs(fault: (sim: Simulation, server: string) => void): Promise<number> {
  const { sim } = cluster(3);
  return sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.sleep(10_000);
    const server = (await servedBy(client)) as string;
    fault(sim, server);
    const from = sim.nowMs;
    await sim.until(async () => (await client.refresh()) && (await client.read()) !== undefined, 30_000, "served again");
    return sim.nowMs - from;
  });
}

test("moves: a server that is killed and started again serves within 3 s of it", async () => {
  const took = await downtimeMs((sim, server) => sim.crash(server, { unsynced: "kept", silent: false }));
  assert.ok(took < 3_000, `${took} ms`);
});

test("moves: the ranges of a server that stays dead are served elsewhere within 8 s", async () => {
  const took = await downtimeMs((sim, server) => sim.crash(server, { stayDown: true }));
  assert.ok(took < 8_000, `${took} ms`);
});

test("moves: a server that only the managers can't reach is given up, and its ranges are served elsewhere", async () => {
  const took = await downtimeMs((sim, server) => {
    sim.partition([server], managers);
    sim.partition([server], ["client"]);
  });
  assert.ok(took > 5_000 && took < 20_000, `${took} ms`);
});

test("moves: traffic does not notice that the leading manager dies, and the next one goes on with the same map", async () => {
  const { sim, streams } = cluster(5);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.sleep(10_000);
    await client.refresh();
    const before = client.version;
    const loads = streams.loads;
    const leader = managers.find((name) => sim.role(name)?.status.state === "leader") as string;
    sim.crash(leader, { stayDown: true });
    for (let i = 0; i < 200; i++) {
      assert.ok(await client.read(), `read ${i}`);
      await sim.sleep(50);
    }
    assert.ok(await client.refresh());
    assert.equal(client.version, before);
    assert.equal(streams.loads, loads, "nothing was loaded again");
  });
});

/** What is left over of another cluster: a process of a name that is taken, on a folder and an address of its own. */
function leftOver(sim: Simulation, streams: TestStreams, name: string): void {
  const config = partitionServerConfigSchema.parse({ name, listen: `left-over-${name}`, lockService: "lock", ...lease });
  sim.addProcess(`left-over-${name}`, (world) => new PartitionServerRole(world, config, streams.engines(world)), { restartAfterMs: 800 });
}

test("moves: processes of the same names do not take the leases from each other, and the ranges stay where they are", async () => {
  const { sim, streams } = cluster(6);
  for (const name of servers) leftOver(sim, streams, name);
  await sim.run(async () => {
    const client = new Client(sim, "client");
    await serveable(sim, client);
    await sim.sleep(120_000);
    await client.refresh();
    assert.ok(await client.read());
    const epochs = client.ranges.map((range) => Number(range.ownerEpoch));
    assert.ok(Math.max(...epochs) <= 2 * client.ranges.length, `owner epochs ${epochs.join(", ")} for ${client.ranges.length} ranges`);
  });
});

test("moves: servers whose leases come and go are not chased with one owner epoch after another", async () => {
  const { sim } = cluster(7);
  for (const name of servers) sim.crash(name, { stayDown: true });
  await sim.run(async () => {
    const lock = sim.world("churn").transport.client("lock", LockService);
    // Leases of processes that nobody can call: taken, and taken over by the next start 200 ms later.
    for (let incarnation = 100n; sim.nowMs < 120_000; incarnation++) {
      for (const name of servers) {
        const instance = `${name} ${incarnation}`;
        const request = { name: `ps/${name}`, holder: name, identity: "churn", instance, incarnation, address: "nobody", termMs: 6_000 };
        await lock.acquireLease(request, { timeoutMs: 500 });
      }
      await sim.sleep(200);
    }
    const client = new Client(sim, "client");
    await client.refresh();
    const highest = Math.max(...client.ranges.map((range) => Number(range.ownerEpoch)));
    assert.ok(highest <= 40 * client.ranges.length, `owner epoch ${highest} after 120 s with ${client.ranges.length} ranges`);
    assert.ok(highest > client.ranges.length, "the leases were seen");
  });
});
