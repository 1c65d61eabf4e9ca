/** The cluster of the tests of leases, moves, splits and merges: real roles but for the streams, clients with old maps, faults. */
import assert from "node:assert/strict";
import { allRules, compareBytes, fromUtf8, ok, type Rules, refused, toHex, utf8 } from "@stamp/base";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { type BlobName, routeOf } from "@stamp/objects";
import { PartitionManagerRole, partitionManagerConfigSchema } from "@stamp/partition-manager";
import { encodeMapRow, mapKey, type Range } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { type OperationResult, PartitionManager, PartitionServer, type RangePartition } from "@stamp/wire";
import { partitionServerConfigSchema } from "../config.ts";
import { PartitionServerRole } from "../partition-server.ts";
import { TestStreams } from "./streams.ts";

/** Tables of the partition manager, as they are in streams: the newest term owns them. */
export class TestTables {
  readonly #rows = new Map<string, Map<string, { key: Uint8Array; value: Uint8Array }>>();
  readonly #terms = new Map<string, number>();
  readonly #sequences = new Map<string, number>();

  /** A map that is there before anybody starts. */
  fill(ranges: readonly Range[]): void {
    const rows = ranges.map((range) => [toHex(mapKey(range)), { key: mapKey(range), value: encodeMapRow(range) }] as const);
    this.#rows.set("map", new Map(rows));
  }

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
          for (const change of changed) {
            if ("value" in change) rows.set(toHex(change.key), change);
            else rows.delete(toHex(change.key));
          }
          sequences.set(table, (sequences.get(table) ?? 0) + 1);
          await wait(2);
          return ok(sequences.get(table) ?? 0);
        },
        close: async () => {},
        forgetCached: async () => {},
      });
    };
  }
}

export const servers = ["ps-1", "ps-2"];
export const managers = ["pm-1", "pm-2"];
export const lease = { leaseTermMs: 6_000, leaseMarginMs: 1_000, leaseRenewEveryMs: 2_000 };

export function cluster(
  seed: number,
  rules: Rules = allRules,
  pms: readonly string[] = managers,
  ranges: readonly Range[] = [],
  reshapeTimeoutMs = 3_000,
): { sim: Simulation; streams: TestStreams } {
  const sim = new Simulation({
    seed,
    rules,
    clockDriftPpmMax: 100,
    ...(process.env.SHOW
      ? {
          onLogLine: (l: string) => {
            if (/ (log|info|warn|error|crash|started|note|partition|heal|pause|resume|fatal) /.test(l)) console.log(l);
          },
        }
      : {}),
  });
  const streams = new TestStreams();
  const tables = new TestTables();
  if (ranges.length > 0) tables.fill(ranges);
  const restart = { restartAfterMs: 800 };
  const sizes = { reserveBytes: 0, keysMax: 1_000, waitingMax: 1_000, groupMax: 100 };
  const lock = lockServiceSchema.parse({ name: "lock", listen: "lock", dataDir: "", init: true, ...sizes });
  sim.addProcess("lock", (world) => new LockServiceRole(world, lock), restart);
  for (const name of servers) {
    const config = partitionServerConfigSchema.parse({
      name,
      listen: name,
      lockService: "lock",
      operationsMax: 100,
      geoRolesEveryMs: 0,
      ...lease,
    });
    sim.addProcess(name, (world) => new PartitionServerRole(world, config, streams.engines(world)), restart);
  }
  const times = { pollEveryMs: 500, probeEveryMs: 1_000, unreachableAfterMs: 5_000, loadTimeoutMs: 10_000 };
  for (const name of pms) {
    const config = partitionManagerConfigSchema.parse({
      name,
      listen: name,
      lockService: "lock",
      accounts: [{ name: "acct", keys: ["a2V5"] }],
      ...lease,
      ...times,
      reshapeTimeoutMs,
      heldQuestionMs: 2_000,
      balance: false,
    });
    sim.addProcess(name, (world) => new PartitionManagerRole(world, config, tables.opener(world), streams.fence), restart);
  }
  return { sim, streams };
}

export const blob: BlobName = { account: "acct", container: "c", containerIncarnation: 1, blob: "register" };

/** A client that knows the map, perhaps an old one. */
export class Client {
  readonly #world: World;
  readonly #rules: Rules;
  ranges: readonly RangePartition[] = [];
  version = 0n;

  constructor(sim: Simulation, name: string) {
    this.#world = sim.world(name);
    this.#rules = sim.rules;
  }

  /** Refreshes the map from any manager that believes to lead. */
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

export interface Floor {
  acknowledged: number;
  reads: number;
  writes: number;
}

/** Reads anywhere at random, also by an old map; what was read or acknowledged before the read began is never missed. */
export async function readerLoop(sim: Simulation, client: Client, floor: Floor, stop: () => boolean): Promise<void> {
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

export async function writerLoop(
  sim: Simulation,
  client: Client,
  floor: Floor,
  next: { value: number },
  stop: () => boolean,
): Promise<void> {
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

export async function faults(sim: Simulation, count: number): Promise<void> {
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

export async function serveable(sim: Simulation, client: Client): Promise<void> {
  await sim.until(async () => (await client.refresh()) && (await client.read()) !== undefined, 40_000, "the register is served");
}

export function runSeed(seed: number, rules: Rules): Promise<Floor> {
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
