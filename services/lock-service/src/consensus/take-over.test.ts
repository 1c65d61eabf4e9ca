/** The store of a lock service that was alone, taken over by three. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { metadataOffline, newestMetadata } from "../metadata/offline.ts";
import { whileStopped } from "../metadata/restore.ts";
import { begin, emptied, scene, serving, settled, Writer } from "../testing/replicated-run.ts";
import { readyWithinMs } from "../testing/several.ts";

/** Starts lock-1 with a store of its own, beside two empty folders. */
async function whileAlone(seed: number, work: (writer: Writer) => Promise<void>): Promise<void> {
  begin({ seed, timeLimitMs: 900_000 }, undefined, { metadataStore: "leveldb" });
  const { sim } = scene;
  await sim.run(async () => {
    emptied(["lock-2", "lock-3"]);
    await serving();
    const writer = new Writer(sim.world("writer"));
    await writer.begin();
    await work(writer);
  });
}

/** Starts lock-1 so, and stops it when a writer has written. */
const aloneBefore = (seed: number, work: (writer: Writer) => Promise<void>): Promise<void> =>
  whileAlone(seed, async (writer) => {
    await writer.write(100, 3_000);
    scene.sim.crash("lock-1", { unsynced: "lost", silent: false, stayDown: true });
    scene.settings = { init: false };
    await work(writer);
  });

test("the store of one lock service is taken over by three, whenever that one dies meanwhile, and never opened alone again", async () => {
  for (let seed = 1; seed <= 12; seed++) {
    await aloneBefore(seed, async (writer) => {
      const { sim } = scene;
      for (const name of scene.names) sim.restart(name);
      if (seed === 1) {
        let said = "";
        while (!/: \d\d\d? of about \d+ keys are copied$/.test(said)) {
          await sim.sleep(0.05);
          said = sim.role("lock-1")?.status.waitingFor?.join() ?? "";
        }
      }
      if (seed > 4) {
        await sim.sleep(sim.prng.float() * 60);
        sim.crash("lock-1", { unsynced: "lost", silent: false, stayDown: true });
        sim.restart("lock-1");
      }
      await settled();
      await writer.check();
      await writer.write(10);
      if (seed % 2 === 0) {
        for (const name of scene.names) sim.crash(name, { unsynced: "kept", silent: false, stayDown: true });
        scene.settings = { metadataStore: "leveldb", init: true };
        sim.restart("lock-1");
        await sim.sleep(5_000);
        const { state, waitingFor = [] } = sim.role("lock-1")?.status ?? {};
        assert.equal(state, "starting", "the old store is not served again, and nobody is told to restore a copy");
        assert.match(waitingFor.join(), /as lock services replicate them: start as many lock services as before/);
        return;
      }
      // The folder that held everything alone is lost.
      emptied(["lock-1"]);
      sim.restart("lock-1");
      await settled();
      await writer.check();
      await writer.release();
    });
  }
});

test("host by host: two members wait while the one that is alone serves on, which is taken over when it starts as the first of three", async () => {
  for (let seed = 1; seed <= 3; seed++) {
    await whileAlone(seed, async (writer) => {
      const { sim } = scene;
      await writer.write(20);
      scene.settings = {};
      for (const name of ["lock-2", "lock-3"]) sim.restart(name);
      await sim.sleep(sim.prng.float() * 10_000);
      await writer.write(20);
      assert.equal(scene.active(), "lock-1");
      assert.match(sim.role("lock-2")?.status.waitingFor[0] ?? "", /this one holds nothing yet/);
      sim.crash("lock-1", { unsynced: "lost", silent: false, stayDown: true });
      sim.restart("lock-1");
      await settled();
      await writer.check();
      await writer.write(10);
      assert.equal(writer.lost, 0, "the writer's lease outlives it");
    });
  }
});

test("a member's folder makes and serves no other store, whatever it is told, and goes on as a member", async () => {
  begin({ seed: 4, timeLimitMs: 900_000 });
  const { sim } = scene;
  await sim.run(async () => {
    await settled();
    const writer = new Writer(sim.world("writer"));
    await writer.begin();
    await writer.write(20);
    await writer.release();
    for (const settings of [{ metadataStore: "leveldb" }, { metadataStore: "etcd", etcdEndpoints: "etcd" }]) {
      for (const name of scene.names) sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
      scene.settings = settings;
      sim.restart("lock-1");
      await sim.sleep(5_000);
      const { state, ready, waitingFor = [] } = sim.role("lock-1")?.status ?? {};
      assert.deepEqual([state, ready], ["starting", false], settings.metadataStore);
      assert.match(waitingFor.join(), /start as many lock services as before/);
      const stamp = await new MetadataClient(sim.world("reader"), "lock-1").stampId(1_000);
      assert.ok(!stamp.ok && /as lock services replicate them/.test(stamp.failure.message), "no new stamp");
      sim.crash("lock-1", { unsynced: "lost", silent: false, stayDown: true });
      const restored = await whileStopped(sim.offline("lock-1"), async () => assert.fail("a store beside that of a member"));
      assert.ok(!restored.ok && /also if a majority of them is lost, for a restore/.test(restored.failure.message));
      scene.settings = {};
      for (const name of scene.names) sim.restart(name);
      await settled();
      await writer.check();
    }
  });
});

test("the folders of all members are lost: each says that it is empty, and none does before all have answered, or while a store is taken over", async () => {
  begin({ seed: 6, timeLimitMs: 900_000 }, undefined, { init: false });
  const { sim } = scene;
  const states = () => scene.names.map((name) => sim.role(name)?.status.state);
  await sim.run(async () => {
    emptied(["lock-3"]);
    await sim.sleep(10_000);
    assert.deepEqual(states().slice(0, 2), ["starting", "starting"], "the third may hold everything");
    sim.restart("lock-3");
    await sim.until(() => states().every((state) => state === "empty"), readyWithinMs, "all say that they are empty");
    const stamp = await new MetadataClient(sim.world("reader"), "lock-1").stampId(1_000);
    assert.ok(!stamp.ok, "no stamp begins by itself");
  });
  await aloneBefore(7, async (writer) => {
    const { sim } = scene;
    for (const name of scene.names) sim.restart(name);
    const seen = new Set<string | undefined>();
    for (let i = 0; i < 3_000; i++) {
      for (const name of scene.names) seen.add(sim.role(name)?.status.state);
      await sim.sleep(2);
    }
    await settled();
    assert.ok(!seen.has("empty"), [...seen].join());
    await writer.check();
    await writer.release();
  });
});

test("a member has served metadata in etcd: no new stamp is begun beside them, and a store that was moved into the folder is taken over", async () => {
  for (const servedBy of ["lock-1", "lock-3"]) {
    begin({ seed: 8, timeLimitMs: 900_000 });
    const { sim, names } = scene;
    await sim.run(async () => {
      emptied(names);
      await sim.offline(servedBy).disk.writeAtomically("etcd-mark", new Uint8Array(1));
      for (const name of names) sim.restart(name);
      await sim.sleep(10_000);
      assert.equal(scene.active(), undefined);
      const why = sim.role("lock-1")?.status.waitingFor.join() ?? "";
      assert.match(
        why,
        new RegExp(`^${servedBy} served metadata in etcd before, and no new stamp is begun .* set metadataStore to etcd as it was`),
      );
    });
  }
  await aloneBefore(9, async (writer) => {
    for (const name of scene.names) await scene.sim.offline(name).disk.writeAtomically("etcd-mark", new Uint8Array(1));
    for (const name of scene.names) scene.sim.restart(name);
    await settled();
    await writer.check();
    await writer.release();
  });
});

test("metadata of a stopped stamp: those of the history that most members have, the newest of it; before a take-over the old store's", async () => {
  const found = (lineage: string, applied: number) => ({ entries: [], lineage, applied });
  assert.equal(newestMetadata([]), undefined);
  assert.equal(newestMetadata([found("a", 3), found("a", 9), found("a", 4)])?.applied, 9);
  const restored = newestMetadata([found("b", 7), found("before the restore", 900), found("b", 8)]);
  assert.deepEqual([restored?.lineage, restored?.applied], ["b", 8]);
  await aloneBefore(21, async (writer) => {
    const { sim } = scene;
    const read = async (name: string) => metadataOffline(sim.offline(name), "k/", true);
    const before = unwrap(await read("lock-1"));
    assert.deepEqual([before.entries.length, before.applied], [writer.acknowledged.size, 0]);
    assert.ok(!(await read("lock-2")).ok, "it holds nothing");
    for (const name of scene.names) sim.restart(name);
    await settled();
    await writer.write(5);
    await settled();
    for (const name of scene.names) sim.crash(name, { unsynced: "kept", silent: false, stayDown: true });
    const after = await Promise.all(scene.names.map(async (name) => unwrap(await read(name))));
    const newest = newestMetadata(after);
    assert.equal(newest?.entries.length, writer.acknowledged.size);
    assert.deepEqual(new Set(after.map(({ lineage }) => lineage)), new Set([before.lineage]), "a take-over keeps the history");
  });
});

test("a lock service that only waited as a member, and took nothing, serves the store that it has alone", async () => {
  begin({ seed: 5, timeLimitMs: 900_000 }, undefined, { metadataStore: "leveldb" });
  const { sim } = scene;
  await sim.run(async () => {
    emptied(["lock-2", "lock-3"]);
    await serving();
    const writer = new Writer(sim.world("writer"));
    await writer.begin();
    await writer.write(20);
    await writer.release();
    for (const settings of [{ init: false }, { metadataStore: "leveldb" }]) {
      sim.crash("lock-1", { unsynced: "lost", silent: false, stayDown: true });
      scene.settings = settings;
      sim.restart("lock-1");
      await sim.sleep(5_000);
    }
    await serving();
    await writer.check();
  });
});

test("a member that is not the first, and had a store alone, keeps a new stamp from beginning beside it", async () => {
  begin({ seed: 9, timeLimitMs: 900_000 }, undefined, { metadataStore: "leveldb" });
  const { sim } = scene;
  await sim.run(async () => {
    await sim.until(() => sim.role("lock-2")?.status.state === "serving", readyWithinMs, "it serves alone");
    sim.crash("lock-2", { unsynced: "kept", silent: false, stayDown: true });
    emptied(["lock-1", "lock-3"]);
    scene.settings = {};
    for (const name of scene.names) sim.restart(name);
    await sim.sleep(30_000);
    assert.equal(scene.active(), undefined);
    assert.match(sim.role("lock-2")?.status.waitingFor[0] ?? "", /name this lock service first in `members`/);
  });
});
