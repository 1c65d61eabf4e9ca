/** The lock service over simulated time: its identity, and the fences of its store. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { leaseEpoch, unwrap } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { keeperOf, lockOf, simOf, write } from "./testing/lock-world.ts";

test("lock service: an empty store without init is never served, with init it keeps one identity", async () => {
  const empty = simOf({ init: false });
  await empty.run(async () => {
    await empty.sleep(50);
    const metadata = new MetadataClient(empty.world("tester"), "lock");
    const stamp = await metadata.stampId(1_000);
    assert.ok(!stamp.ok && stamp.failure.reason === "notReady");
    const lease = await lockOf(empty).getLease({ name: "x" }, { timeoutMs: 1_000 });
    assert.ok(!lease.ok && lease.failure.reason === "notReady");
    const { state, waitingFor } = empty.role("lock")?.status ?? {};
    assert.equal(state, "empty");
    assert.match(waitingFor?.[0] ?? "", /empty.*`stamp health` names the newest copy/);
    assert.doesNotMatch(waitingFor?.[0] ?? "", /init/i, "a new stamp gives up what the extent nodes hold");
  });
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const metadata = new MetadataClient(sim.world("tester"), "lock");
    const id = unwrap(await metadata.stampId(1_000));
    sim.crash("lock", { unsynced: "lost", silent: false, stayDown: true });
    sim.restart("lock");
    await sim.sleep(50);
    assert.equal(unwrap(await metadata.stampId(1_000)), id);
  });
});

test("metadata store: without storeFence a deposed writer writes, without storeCompareAndSet the last one wins", async () => {
  for (const rule of ["storeFence", "storeCompareAndSet"] as const) {
    const sim = simOf({ without: [rule] });
    await sim.run(async () => {
      await sim.sleep(50);
      const keeper = keeperOf(sim, "a");
      const epoch = await keeper.acquire();
      const metadata = new MetadataClient(sim.world("a"), "lock");
      const fence = { leaseName: "leader", leaseEpoch: rule === "storeFence" ? leaseEpoch(epoch + 7) : epoch };
      const version = rule === "storeFence" ? 0 : 99;
      assert.ok((await metadata.transact({ fence, conditions: [{ key: "k", version }], writes: [write("k", "1")] }, 1_000)).ok);
      await keeper.release();
    });
  }
});
