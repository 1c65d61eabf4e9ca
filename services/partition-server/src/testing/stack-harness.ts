/** The whole partition layer over the real stream layer on virtual time, and a client of it, for tests. */
import assert from "node:assert/strict";
import { compareBytes, type RuleName, rulesWithout } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { routeOf } from "@stamp/objects";
import { PartitionManagerRole, partitionManagerConfigSchema } from "@stamp/partition-manager";
import type { Role, World } from "@stamp/ports";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";
import { Simulation } from "@stamp/virtual-time";
import { executeFields, type OperationResult, PartitionManager, PartitionServer, type Place, type RangePartition } from "@stamp/wire";
import { partitionServerConfigSchema } from "../config.ts";
import { PartitionServerRole } from "../partition-server.ts";

/** Changes the lock service's disk before it starts. */
export interface LockHook {
  beforeStart?: (world: World) => Promise<void>;
}

function hooked(role: Role, before: () => Promise<void> | undefined): Role {
  return {
    get address() {
      return role.address;
    },
    get status() {
      return role.status;
    },
    start: async () => {
      await before();
      await role.start();
    },
    stop: () => role.stop(),
  };
}

export function stamp(seed: number, servers: object = {}, without: readonly RuleName[] = [], lock: LockHook = {}): Simulation {
  const sim = new Simulation({ seed, rules: rulesWithout(...without) });
  const of = (name: string) => ({ name, listen: name, lockService: "lock", dataDir: "data" });
  const restart = { restartAfterMs: 800 };
  sim.addProcess(
    "lock",
    (world) => hooked(new LockServiceRole(world, lockServiceSchema.parse({ ...of("lock"), init: true })), () => lock.beforeStart?.(world)),
    restart,
  );
  sim.addProcess("sm", (world) => new StreamManagerRole(world, streamManagerSchema.parse(of("sm"))), restart);
  for (const name of ["en-1", "en-2", "en-3", "en-4"]) {
    sim.addProcess(name, (world) => new ExtentNodeRole(world, extentNodeSchema.parse(of(name))), restart);
  }
  for (const name of ["ps-1", "ps-2"]) {
    sim.addProcess(
      name,
      (world) => new PartitionServerRole(world, partitionServerConfigSchema.parse({ ...of(name), geoRolesEveryMs: 0, ...servers })),
      restart,
    );
  }
  sim.addProcess("pm", (world) => new PartitionManagerRole(world, partitionManagerConfigSchema.parse(of("pm"))), restart);
  return sim;
}

/** Finds the range that has the blobs. */
export const blobRange = (sim: Simulation): Promise<RangePartition> => tableRange(sim, "Blob");

/** The first range of a table. */
export async function tableRange(sim: Simulation, name: string): Promise<RangePartition> {
  const map = await sim.world("operator").transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 500 });
  const range = map.ok ? map.value.ranges.find(({ table }) => table === name) : undefined;
  assert.ok(range);
  return range;
}

export class Client {
  readonly world: World;
  #ranges: readonly RangePartition[] = [];

  constructor(sim: Simulation) {
    this.world = sim.world("client");
  }

  async #range(kind: object): Promise<RangePartition | undefined> {
    const route = routeOf(this.world.rules, kind as never);
    const map = await this.world.transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 500 });
    if (map.ok) this.#ranges = map.value.ranges;
    return this.#ranges.find(
      (one) =>
        one.table === route.table &&
        compareBytes(one.lowKey, route.key) <= 0 &&
        (one.highKey.length === 0 || compareBytes(route.key, one.highKey) < 0),
    );
  }

  /** Until it is answered; only for what may be done twice. */
  async execute(kind: object): Promise<OperationResult["kind"]> {
    const endMs = this.world.clock.monotonicMs() + 30_000;
    for (;;) {
      const range = await this.#range(kind);
      if (range && range.serverAddress !== "") {
        const request = { rangeId: range.rangeId, rangeVersion: range.rangeVersion, ...executeFields({ kind: kind as never }) };
        const answer = await this.world.transport.client(range.serverAddress, PartitionServer).execute(request, { timeoutMs: 3_000 });
        if (answer.ok && answer.value.result) return answer.value.result.kind;
      }
      assert.ok(
        this.world.clock.monotonicMs() < endMs,
        `no answer within 30 s to ${JSON.stringify(kind, (_, v) => (typeof v === "bigint" ? Number(v) : v))}`,
      );
      await new Promise<void>((resolve) => void this.world.clock.after(50, resolve));
    }
  }

  async write(kind: object, payload: Uint8Array): Promise<readonly Place[]> {
    const range = (await this.#range(kind)) as RangePartition;
    const request = { rangeId: range.rangeId, rangeVersion: range.rangeVersion, payload };
    const answer = await this.world.transport.client(range.serverAddress, PartitionServer).writeData(request, { timeoutMs: 3_000 });
    assert.ok(answer.ok, answer.ok ? "" : answer.failure.message);
    return answer.value.places;
  }
}

export const name = (blob: string, containerIncarnation: bigint) => ({
  account: "devstoreaccount1",
  container: "c",
  containerIncarnation,
  blob,
});
export const container = { account: "devstoreaccount1", container: "c" };

export async function container1(client: Client): Promise<bigint> {
  const made = await client.execute({ case: "createContainer", value: container });
  if (made.case === "container") return made.value.incarnation;
  const held = await client.execute({ case: "getContainer", value: container });
  assert.ok(held.case === "container", String(held.case));
  return held.value.incarnation;
}
