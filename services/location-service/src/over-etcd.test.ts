/** The location service over two lock services and a simulated etcd: whole transactions fit, and a lost lock service costs nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { calmEtcd, EtcdState, SimulatedEtcd, Simulation } from "@stamp/virtual-time";
import { LocationService } from "@stamp/wire";
import { locationServiceSchema } from "./config.ts";
import { LocationServiceRole } from "./location-service.ts";
import { FakeStamp, stampState } from "./testing/fake-stamp.ts";

const call = { timeoutMs: 20_000 };
const locks = ["lock-1:1", "lock-2:1"] as const;
const address = "location:1";

test("location service over etcd: accounts are pinned and created while the active lock service is lost again and again", async () => {
  const sim = new Simulation({ seed: 21, timeLimitMs: 600_000 });
  const state = new EtcdState();
  const prng = sim.prng.fork();
  sim.addProcess("etcd:1", (world) => new SimulatedEtcd(world, { listen: "etcd:1", state, prng, habits: () => calmEtcd }));
  for (const name of locks) {
    const config = lockServiceSchema.parse({ name, listen: name, init: true, metadataStore: "etcd", etcdEndpoints: "etcd:1" });
    sim.addProcess(name, (world) => new LockServiceRole(world, config), { restartAfterMs: 500 });
  }
  const config = locationServiceSchema.parse({ name: "location", listen: address, lockService: locks.join(",") });
  sim.addProcess(address, (world) => new LocationServiceRole(world, config, () => world.transport), { restartAfterMs: 500 });
  const names = Array.from({ length: 250 }, (_, at) => `account${String(at).padStart(3, "0")}`);
  const stamp = stampState("id-1", 100, names);
  sim.addProcess("north-1:1", (world) => new FakeStamp(world, "north-1:1", stamp));
  const active = (): string | undefined => locks.find((name) => sim.isUp(name) && sim.role(name)?.status.state === "serving");
  const leads = () => sim.until(() => sim.isUp(address) && sim.role(address)?.status.state === "leader", 60_000, "it leads");

  await sim.run(async () => {
    await leads();
    const location = sim.world("tester").transport.client(address, LocationService);
    unwrap(await location.addStamp({ name: "north-1", location: "north", lockService: "north-1:1" }, call));
    const pinned = new Set<string>();
    for (let round = 0; round < 4; round++) {
      const account = `fresh${round}`;
      const made = location.createAccount({ account, location: "north" }, call);
      await sim.sleep(round * 3);
      const lost = active();
      assert.ok(lost !== undefined, "a lock service is active");
      sim.crash(lost, { unsynced: "lost", silent: round % 2 === 0 });
      const outcome = await made;
      if (outcome.ok) pinned.add(account);
      await sim.until(() => active() !== undefined, 60_000, "a lock service is active again");
      await leads();
      if (!outcome.ok) {
        const again = await location.createAccount({ account, location: "north" }, call);
        assert.ok(again.ok || again.failure.code === "alreadyExists", again.ok ? "" : again.failure.message);
      }
    }
    await sim.sleep(30_000);
    const { accounts } = unwrap(await location.listAccounts({}, call));
    assert.deepEqual(
      accounts.map(({ name, state: now, stamp: home }) => [name, now, home]),
      [...names, "fresh0", "fresh1", "fresh2", "fresh3"].sort().map((name) => [name, "single", "north-1"]),
    );
    for (const name of pinned) assert.equal(stamp.accounts.get(name)?.length, 2);
    assert.deepEqual([...stamp.created.values()], [1, 1, 1, 1], "each was created once");
  });
});
