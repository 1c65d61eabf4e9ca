/** Moves of the metadata store between a folder and etcd, on simulated disks and a simulated etcd. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { unwrap, utf8 } from "@stamp/base";
import { LeaseKeeper, MetadataClient, type StoredKey } from "@stamp/metadata-store";
import type { Simulation } from "@stamp/virtual-time";
import { fromWire, LockService } from "@stamp/wire";
import { lockServiceSchema } from "../config.ts";
import { LockServiceRole } from "../lock-service.ts";
import { type EtcdScene, etcdScene } from "../testing/etcd-harness.ts";
import { type MetadataPlace, migrateMetadata } from "./migrate.ts";

const name = "lock-level";
const config = lockServiceSchema.parse({ name, listen: name, init: true, etcdEndpoints: "etcd" });
const readyWithinMs = 30_000;
const keyCount = 300;

interface Content {
  readonly keys: readonly StoredKey[];
  readonly epoch: number;
  readonly stampId: string;
}

/** A stamp in a folder, and no lock service over etcd yet. */
async function inScene(work: (scene: EtcdScene) => Promise<void>): Promise<void> {
  const scene = etcdScene({ seed: 3, timeLimitMs: 600_000 });
  const { sim, names } = scene;
  sim.addProcess(name, (world) => new LockServiceRole(world, config));
  await sim.run(async () => {
    for (const other of names) sim.crash(other, { unsynced: "kept", stayDown: true });
    await sim.until(() => sim.role(name)?.status.ready === true, readyWithinMs, "the folder is served");
    const world = sim.world("client");
    const identity = { id: "leader", incarnation: 1, instance: "start", stampId: undefined, bindStamp: async () => {} };
    const lease = { lockService: name, leaseName: "leader", holder: "leader", address: "leader" };
    const keeper = new LeaseKeeper(world, { ...lease, identity, onLost: () => {} });
    const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
    const store = new MetadataClient(world, name);
    for (let i = 0; i < keyCount; i++) {
      const write = { key: `k/${i}`, value: new Uint8Array(i * 20).fill(i) };
      unwrap(await store.transact({ fence, conditions: [], writes: [write] }, 5_000));
    }
    await keeper.release();
    await work(scene);
  });
}

async function contentAt(sim: Simulation, list: string): Promise<Content> {
  const world = sim.world("client");
  const store = new MetadataClient(world, list);
  const keys = unwrap(await store.list("", 10_000));
  const [address = ""] = list.split(",");
  const lease = unwrap(await world.transport.client(address, LockService).getLease({ name: "leader" }, { timeoutMs: 5_000 }));
  return { keys, epoch: fromWire(lease.leaseEpoch), stampId: unwrap(await store.stampId(5_000)) };
}

const migrate = (sim: Simulation, to: MetadataPlace, replace = false) => migrateMetadata(sim.offline(name), config, {}, to, replace);

async function serveFromEtcd(scene: EtcdScene): Promise<Content> {
  for (const other of scene.names) scene.sim.restart(other);
  await scene.sim.until(() => scene.active() !== undefined, readyWithinMs, "a lock service over etcd is active");
  return contentAt(scene.sim, scene.active() as string);
}

test("a store goes to etcd and back: keys, versions, epochs and the stamp are the same, and the source serves no more", async () => {
  await inScene(async (scene) => {
    const { sim, state, names } = scene;
    const before = await contentAt(sim, name);
    assert.equal(before.keys.length, keyCount);
    const running = await migrateMetadata(sim.world(name), config, {}, "etcd");
    assert.ok(!running.ok && running.failure.reason === "conflict", "while its lock service runs");
    await sim.stop(name);
    const { keys } = unwrap(await migrate(sim, "etcd"));
    assert.ok(keys > keyCount);
    const twice = await migrate(sim, "etcd");
    assert.ok(!twice.ok && twice.failure.reason === "conflict", "a second time");
    assert.deepEqual(await serveFromEtcd(scene), before);
    const active = await migrate(sim, "leveldb");
    assert.ok(!active.ok && active.failure.reason === "conflict", "while a lock service is active over etcd");
    for (const other of names) await sim.stop(other);
    await sim.offline(name).keyValue.destroy("metadata");
    unwrap(await migrate(sim, "leveldb"));
    sim.restart(name);
    await sim.until(() => sim.role(name)?.status.ready === true, readyWithinMs, "the folder is served again");
    assert.deepEqual(await contentAt(sim, name), before);
    assert.ok(state.bytes > 0, "what was in etcd stays there");
    for (const other of names) sim.restart(other);
    await sim.until(() => names.some((other) => sim.role(other)?.status.state === "damaged"), readyWithinMs, "etcd is not served any more");
  });
});

test("a migration that was cut short is begun anew, and its rest is never served", async () => {
  await inScene(async (scene) => {
    const { sim, state } = scene;
    const before = await contentAt(sim, name);
    await sim.stop(name);
    // No room in the middle of it.
    state.quotaBytes = 200_000;
    await assert.rejects(migrate(sim, "etcd"));
    assert.ok(state.bytes > 0);
    state.quotaBytes = Number.POSITIVE_INFINITY;
    for (const other of scene.names) sim.restart(other);
    await sim.until(
      () => scene.names.some((other) => sim.role(other)?.status.state === "damaged"),
      readyWithinMs,
      "the rest is not served",
    );
    for (const other of scene.names) await sim.stop(other);
    unwrap(await migrate(sim, "etcd"));
    assert.deepEqual(await serveFromEtcd(scene), before);
  });
});

test("a store in etcd that lost something is replaced by the one of the folder when that is said, and is kept as it was", async () => {
  await inScene(async (scene) => {
    const { sim, state, names } = scene;
    const before = await contentAt(sim, name);
    await sim.stop(name);
    unwrap(await migrate(sim, "etcd"));
    await serveFromEtcd(scene);
    for (const other of names) await sim.stop(other);
    state.forget(utf8("/stamp/d/k/k/7"));
    const refusedOne = await migrate(sim, "etcd");
    assert.ok(!refusedOne.ok, "without being told to");

    // No room in the middle of it: the rest is not served, and the next attempt needs no --replace.
    let puts = 0;
    state.garble = (_key, value) => {
      puts += 1;
      if (puts > 100) state.quotaBytes = 0;
      return value;
    };
    await assert.rejects(migrate(sim, "etcd", true));
    state.garble = (_key, value) => value;
    state.quotaBytes = Number.POSITIVE_INFINITY;
    for (const other of names) sim.restart(other);
    await sim.until(() => names.some((other) => sim.role(other)?.status.state === "damaged"), readyWithinMs, "the rest is not served");
    for (const other of names) await sim.stop(other);
    unwrap(await migrate(sim, "etcd"));
    assert.deepEqual(await serveFromEtcd(scene), before);
    for (const other of names) await sim.stop(other);
    const again = unwrap(await migrate(sim, "etcd", true));
    const aside = await sim.offline(name).keyValue.open(again.replaced ?? "");
    assert.ok(aside.kind === "opened");
    let count = 0;
    for await (const _ of aside.store.range({})) count += 1;
    assert.equal(count, again.keys + 1, "every key, and the proof");
  });
});

test("a copy in which something differs gives nothing up", async () => {
  await inScene(async ({ sim, state }) => {
    await sim.stop(name);
    // A faulty etcd: it stores something else than it was told.
    state.garble = (key, value) => (new TextDecoder().decode(key).endsWith("k/k/7") ? utf8("garbled") : value);
    const outcome = await migrate(sim, "etcd");
    assert.ok(!outcome.ok && outcome.failure.code === "dataLoss" && outcome.failure.message.includes("k/k/7"));
    sim.restart(name);
    await sim.until(() => sim.role(name)?.status.ready === true, readyWithinMs, "the folder is served");
  });
});
