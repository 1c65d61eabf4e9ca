/** The lock service on a disk that is full or fails: what it refuses, what it goes on with, and when it ends itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, unwrap } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { type Disk, DiskError, type KeyValue, type KeyValueStores } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { lockServiceSchema } from "./config.ts";
import { LockServiceRole } from "./lock-service.ts";
import { keeperOf, lockOf, simOf, write } from "./testing/lock-world.ts";

/** `failure`: of every write of the metadata store, while there is one. */
function failingSim(failure: (disk: Disk) => Promise<Error | undefined> | Error | undefined): Simulation {
  const sim = new Simulation({ seed: 5 });
  sim.addProcess("lock", (world) => {
    const stores: KeyValueStores = {
      destroy: (name) => world.keyValue.destroy(name),
      open: async (name) => {
        const opened = await world.keyValue.open(name);
        if (opened.kind === "corrupt") return opened;
        const { store } = opened;
        const batch: KeyValue["batch"] = async (operations, options) => {
          const error = await failure(world.disk);
          if (error !== undefined) throw error;
          await store.batch(operations, options);
        };
        return {
          kind: "opened",
          store: { get: (key) => store.get(key), batch, range: (range) => store.range(range), close: () => store.close() },
        };
      },
    };
    return new LockServiceRole({ ...world, keyValue: stores }, lockServiceSchema.parse({ listen: "lock", init: true }));
  });
  return sim;
}

test("lock service: a failed sync ends the process, nobody is told that it was done", async () => {
  let failing = false;
  const sim = failingSim(() => (failing ? new Error("input/output error") : undefined));
  await sim.run(async () => {
    await sim.sleep(50);
    failing = true;
    const answer = await lockOf(sim).acquireLease(
      { name: "n", holder: "h", incarnation: 1n, address: "x", termMs: 1_000 },
      { timeoutMs: 500 },
    );
    assert.ok(!answer.ok && answer.failure.applied === "unknown");
    await sim.sleep(10);
    assert.ok(!sim.isUp("lock"));
  });
});

test("lock service: with its disk full it renews leases and reads, refuses what it would have to record, and goes on when there is room", async () => {
  const sim = simOf();
  const lost: string[] = [];
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a", lost);
    const epoch = await keeper.acquire();
    const fence = { leaseName: "leader", leaseEpoch: epoch };
    const metadata = new MetadataClient(sim.world("tester"), "lock");
    const put = (key: string) => metadata.transact({ fence, conditions: [], writes: [write(key, "x")] }, 1_000);
    unwrap(await put("before"));
    const disk = sim.disk("lock");
    const roomy = disk.options;
    disk.options = { ...roomy, totalBytes: disk.usedBytes() + (1 << 20) };
    await sim.sleep(1_000);
    const refused = await put("meanwhile");
    assert.ok(!refused.ok && refused.failure.reason === "diskFull" && refused.failure.applied === "no", JSON.stringify(refused));
    const other = { name: "other", holder: "b", identity: "b", incarnation: 1n, address: "x", termMs: 1_000 };
    const acquired = await lockOf(sim).acquireLease(other, { timeoutMs: 500 });
    assert.ok(!acquired.ok && acquired.failure.reason === "diskFull");
    // A process that did not hear of its grant can't end it now, and does not ask in a storm.
    const [unheard, before] = [keeperOf(sim, "a"), sim.events];
    const giveUp = new AbortController();
    const acquiring = unheard.acquire(giveUp.signal).catch(() => {});
    await sim.sleep(30_000);
    giveUp.abort();
    await acquiring;
    assert.ok(sim.events - before < 5_000, `${sim.events - before} events`);
    assert.ok(keeper.holds(), "renewed all the time");
    assert.equal(unwrap(await metadata.get(["before", "meanwhile"], 1_000)).filter(({ version }) => version > 0).length, 1);
    disk.options = roomy;
    await sim.sleep(1_000);
    unwrap(await put("after"));
    unwrap(await lockOf(sim).acquireLease(other, { timeoutMs: 500 }));
    assert.deepEqual(lost, []);
    await keeper.release();
  });
});

test("lock service: a write that finds no room gets the room that was kept for it, which is kept again when there is more", async () => {
  let full = false;
  let failed = 0;
  const sim = failingSim(async (disk) => {
    if (!full || !(await disk.exists("room-kept"))) return undefined;
    failed += 1;
    return new DiskError("full", "metadata", "no space left on device");
  });
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a");
    const epoch = await keeper.acquire();
    const metadata = new MetadataClient(sim.world("tester"), "lock");
    const put = (key: string) =>
      metadata.transact({ fence: { leaseName: "leader", leaseEpoch: epoch }, conditions: [], writes: [write(key, "x")] }, 1_000);
    for (const key of ["first", "second"]) {
      full = false;
      await sim.sleep(2_500);
      unwrap(await put(`${key}, before`));
      await sim.sleep(100);
      full = true;
      unwrap(await put(key));
    }
    assert.equal(failed, 2);
    await keeper.release();
  });
});

test("lock service: a write that finds no room is tried until there is; leases are renewed meanwhile, and nobody learns of it before", async () => {
  let full = false;
  const sim = failingSim(() => (full ? new DiskError("full", "metadata", "no space left on device") : undefined));
  const lost: string[] = [];
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a", lost);
    const epoch = await keeper.acquire();
    const metadata = new MetadataClient(sim.world("tester"), "lock");
    const put = (key: string, timeoutMs: number) =>
      metadata.transact({ fence: { leaseName: "leader", leaseEpoch: epoch }, conditions: [], writes: [write(key, "x")] }, timeoutMs);
    unwrap(await put("before", 1_000));
    const refusedFull = (outcome: Outcome<unknown>): void =>
      assert.ok(!outcome.ok && outcome.failure.reason === "diskFull" && outcome.failure.applied === "no");
    const lease = (name: string) => ({ name, holder: "b", identity: "b", incarnation: 1n, address: "x", termMs: 1_000 });

    // Somebody takes the last byte between the look and the write.
    full = true;
    const written = put("meanwhile", 60_000);
    await sim.sleep(20_000);
    assert.ok(keeper.holds(), "renewed all the time");
    refusedFull(await metadata.get(["meanwhile"], 1_000));
    refusedFull(await metadata.list("mean", 1_000));
    refusedFull(await put("later", 1_000));
    refusedFull(await lockOf(sim).acquireLease(lease("other"), { timeoutMs: 500 }));
    assert.equal(unwrap(await metadata.get(["before"], 1_000)).length, 1);
    full = false;
    const version = unwrap(await written);
    assert.equal(unwrap(await metadata.get(["meanwhile"], 1_000))[0]?.version, version);

    full = true;
    const granted = lockOf(sim).acquireLease(lease("other"), { timeoutMs: 60_000 });
    await sim.sleep(20_000);
    refusedFull(await lockOf(sim).acquireLease(lease("other"), { timeoutMs: 500 }));
    refusedFull(await lockOf(sim).renewLease({ name: "other", leaseEpoch: 1n }, { timeoutMs: 500 }));
    refusedFull(await lockOf(sim).getLease({ name: "other" }, { timeoutMs: 500 }));
    refusedFull(await lockOf(sim).listLeases({ prefix: "" }, { timeoutMs: 500 }));
    assert.ok(keeper.holds(), "renewed all the time");
    full = false;
    assert.equal(unwrap(await granted).leaseEpoch, 1n);
    unwrap(await put("after", 1_000));
    assert.deepEqual(lost, []);
    await keeper.release();
  });
});
