/** Lock services over a simulated etcd: the metadata store's conformance, fail-over, and what a deposed one must not do. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { featureLevel, type RuleName, rulesWithout, unwrap, utf8 } from "@stamp/base";
import type { EtcdFacts } from "@stamp/etcd";
import { encodeLevel, type LeaseKeeper, levelKey, lockServices, MetadataClient } from "@stamp/metadata-store";
import { notedFeatureLevel, type World } from "@stamp/ports";
import { fromWire, LockService, MetadataStore, Status } from "@stamp/wire";
import { type EtcdScene, etcdScene } from "../testing/etcd-harness.ts";
import { conformanceOfSeveral, leaderOf, readyWithinMs, servingIn } from "../testing/several.ts";

let scene: EtcdScene;

const serving = (): Promise<void> => servingIn(scene);
const keeperOf = (world: World, holder: string, incarnation: number, onLost?: () => void): LeaseKeeper =>
  leaderOf(scene.list, world, holder, incarnation, onLost);

conformanceOfSeveral(
  (name, run) => void test(`etcd: ${name}`, run),
  () => {
    scene = etcdScene({ seed: 12 });
    return scene;
  },
);

async function inScene(seed: number, work: () => Promise<void>, options: Partial<Parameters<typeof etcdScene>[0]> = {}): Promise<void> {
  scene = etcdScene({ seed, timeLimitMs: 600_000, ...options });
  await scene.sim.run(async () => {
    await serving();
    await work();
  });
}

const standbyOf = (active: string): string => scene.names.find((name) => name !== active) as string;

test("a standby is ready, refuses every call, and names the active one", async () => {
  await inScene(1, async () => {
    const active = scene.active() as string;
    const standby = standbyOf(active);
    await scene.sim.until(() => scene.sim.role(standby)?.status.state === "standby", readyWithinMs, "the other one stands by");
    assert.equal(scene.sim.role(standby)?.status.ready, true);
    const { transport } = scene.sim.world("client");
    const answers = [
      await transport.client(standby, LockService).getLease({ name: "x" }, { timeoutMs: 1_000 }),
      await transport.client(standby, MetadataStore).getKeys({ keys: ["x"] }, { timeoutMs: 1_000 }),
    ];
    for (const answer of answers) {
      assert.equal(answer.ok, false);
      if (answer.ok) continue;
      const { reason, applied, details } = answer.failure;
      assert.deepEqual([reason, applied, details?.leaderAddress], ["notLeader", "no", active]);
    }
  });
});

test("a standby hears the feature level that is recorded, and notes it before it tells", async () => {
  await inScene(7, async () => {
    const { sim } = scene;
    const standby = standbyOf(scene.active() as string);
    await sim.until(() => sim.role(standby)?.status.state === "standby", readyWithinMs, "the other one stands by");
    const world = sim.world("client");
    const levelOf = async (): Promise<number | undefined> =>
      unwrap(await world.transport.client(standby, Status).getStatus({}, { timeoutMs: 5_000 })).versions?.levelInUse;
    assert.equal((await levelOf()) ?? 0, 0);
    const fence = { leaseName: "leader", leaseEpoch: await keeperOf(world, "leader", 1).acquire() };
    const value = encodeLevel({ level: featureLevel, wallMs: 0, release: "7.3.1" }, world.digest.crc32c);
    unwrap(await new MetadataClient(world, scene.list).transact({ fence, conditions: [], writes: [{ key: levelKey, value }] }, 8_000));
    await sim.sleep(2_000);
    assert.equal(await levelOf(), featureLevel);
    assert.equal(await notedFeatureLevel(sim.world(standby)), featureLevel);
    assert.equal(sim.role(standby)?.status.state, "standby");
  });
});

test("the active one is killed: within a term nobody loses a lease, epochs go on, nothing is lost", async () => {
  for (let seed = 1; seed <= 10; seed++) {
    await inScene(seed, async () => {
      const { sim } = scene;
      let lost = 0;
      const world = sim.world("holder");
      const keeper = keeperOf(world, "holder", 1, () => {
        lost += 1;
      });
      const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
      const store = new MetadataClient(world, scene.list);
      let version = 0;
      for (let round = 0; round < 3; round++) {
        version = unwrap(
          await store.transact({ fence, conditions: [{ key: "k", version }], writes: [{ key: "k", value: utf8(`${round}`) }] }, 8_000),
        );
        // In turns the process is killed and started again, and the machine loses its power and stays away for a while.
        const gone = scene.active() as string;
        sim.crash(gone, { unsynced: "lost", silent: round === 1, stayDown: round === 1 });
        await sim.sleep(100);
        await serving();
        const [entry] = unwrap(await store.get(["k"], 8_000));
        assert.deepEqual([entry?.version, String.fromCharCode(...(entry?.value ?? []))], [version, `${round}`]);
        await sim.sleep(8_000);
        sim.restart(gone);
      }
      assert.equal(lost, 0, `seed ${seed}: the lease was lost`);
      assert.equal(keeper.holds(), true);
      await keeper.release();
    });
  }
});

test("the active one dies with the holder of a lease: the lease ends a term after their death, not after the take-over", async () => {
  for (let seed = 31; seed <= 36; seed++) {
    await inScene(seed, async () => {
      const { sim } = scene;
      const keeper = keeperOf(sim.world("holder"), "holder", 1);
      await keeper.acquire();
      await sim.until(() => sim.role(standbyOf(scene.active() as string))?.status.state === "standby", readyWithinMs, "one stands by");
      await sim.sleep(2_000 + sim.prng.below(1_000));
      const diedMs = sim.nowMs;
      sim.crash(scene.active() as string, { unsynced: "lost", silent: true, stayDown: true });
      // The other host's lock service answers it no more: as if it were dead.
      sim.partition(["holder"], [...scene.names]);
      await keeperOf(sim.world("heir"), "heir", 2).acquire();
      const tookMs = sim.nowMs - diedMs;
      assert.equal(keeper.holds(), false, `seed ${seed}: two hold it`);
      assert.ok(tookMs < 7_500, `seed ${seed}: ${tookMs} ms`);
    });
  }
});

/** Pauses the active one until another is active, and asks the paused one again. Gives what it answers to a renewal that it got meanwhile. */
async function renewalAtDeposed(seed: number, without: readonly RuleName[]): Promise<boolean> {
  let renewed = false;
  await inScene(
    seed,
    async () => {
      const { sim } = scene;
      const world = sim.world("holder");
      const direct = (address: string) => world.transport.client(address, LockService);
      const request = {
        name: "leader",
        holder: "holder",
        incarnation: 1n,
        address: "holder",
        termMs: 60_000,
        identity: "i",
        instance: "s",
        stampId: "",
      };
      const old = scene.active() as string;
      const grant = unwrap(await direct(old).acquireLease(request, { timeoutMs: 5_000 }));
      // Cut off from etcd, the old one is deposed without a word.
      sim.partition([old], ["etcd"]);
      await sim.until(
        () => scene.names.some((name) => name !== old && sim.role(name)?.status.state === "serving"),
        readyWithinMs,
        "another is active",
      );
      const answer = await direct(old).renewLease({ name: "leader", leaseEpoch: grant.leaseEpoch }, { timeoutMs: 2_000 });
      renewed = answer.ok;
      sim.heal();
    },
    { rules: rulesWithout(...without) },
  );
  return renewed;
}

test("an active one that is cut off from etcd and deposed renews nothing; without confirmation it would", async () => {
  assert.equal(await renewalAtDeposed(4, []), false);
  assert.equal(await renewalAtDeposed(4, ["answersConfirmed"]), true);
});

test("a lock service that is stopped while it is elected ends in time", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    await inScene(seed, async () => {
      const { sim } = scene;
      const active = scene.active() as string;
      const standby = standbyOf(active);
      await sim.until(() => sim.role(standby)?.status.state === "standby", readyWithinMs, "the other one stands by");
      const sinceMs = sim.nowMs;
      await Promise.all([sim.stop(active), sim.sleep(sim.prng.float() * 3).then(() => sim.stop(standby))]);
      assert.ok(sim.nowMs - sinceMs < 5_000, `seed ${seed}: ${sim.nowMs - sinceMs} ms`);
    });
  }
});

test("etcd without a leader for longer than a term: calls end in time, and it goes on by itself", async () => {
  await inScene(5, async () => {
    const { sim } = scene;
    const world = sim.world("holder");
    const keeper = keeperOf(world, "holder", 1);
    const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
    const store = new MetadataClient(world, scene.list);
    sim.partition(["etcd"], [...scene.names]);
    const cutMs = sim.nowMs;
    const answer = await store.transact({ fence, conditions: [], writes: [{ key: "k", value: utf8("1") }] }, 5_000);
    assert.equal(answer.ok, false);
    assert.ok(sim.nowMs - cutMs < 5_100);
    await sim.sleep(20_000);
    assert.equal(keeper.holds(), false);
    sim.heal();
    await serving();
    const epoch = await keeperOf(world, "holder", 2).acquire();
    assert.ok(epoch > fence.leaseEpoch);
  });
});

test("an etcd without room: leases are renewed and everything is read, writes are refused, and it goes on when there is room", async () => {
  await inScene(6, async () => {
    const world = scene.sim.world("holder");
    const keeper = keeperOf(world, "holder", 1);
    const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
    const store = new MetadataClient(world, scene.list);
    const transact = (value: string) => store.transact({ fence, conditions: [], writes: [{ key: "k", value: utf8(value) }] }, 3_000);
    unwrap(await transact("1"));
    scene.state.quotaBytes = 0;
    // The first one finds it out, and is decided when there is room again; the next ones are refused.
    const first = transact("2");
    await scene.sim.sleep(200);
    const second = await store.transact({ fence, conditions: [], writes: [{ key: "other", value: utf8("1") }] }, 3_000);
    assert.ok(!second.ok && second.failure.reason === "diskFull" && second.failure.applied === "no");
    await scene.sim.sleep(10_000);
    assert.equal(keeper.holds(), true);
    assert.equal((await first).ok, false);
    scene.state.quotaBytes = Number.POSITIVE_INFINITY;
    await scene.sim.until(async () => (await transact("3")).ok, 10_000, "a write succeeds");
    await keeper.release();
  });
});

test("a transaction that etcd could not take is refused; many lease ends at once are recorded in several batches", async () => {
  await inScene(7, async () => {
    const { sim } = scene;
    const world = sim.world("holder");
    const keeper = keeperOf(world, "holder", 1);
    const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
    const store = new MetadataClient(world, scene.list);
    const writes = (count: number) => Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: new Uint8Array(8_000) }));
    const large = await store.transact({ fence, conditions: [], writes: writes(126) }, 3_000);
    assert.ok(!large.ok && large.failure.code === "invalidArgument" && large.failure.applied === "no");
    unwrap(await store.transact({ fence, conditions: [], writes: writes(125) }, 3_000));
    // Together larger than one request to etcd.
    const many = await Promise.all(
      writes(40).map((write) => store.transact({ fence, conditions: [], writes: [{ ...write, value: new Uint8Array(100_000) }] }, 5_000)),
    );
    assert.equal(
      many.every(({ ok }) => ok),
      true,
    );
    const leases = lockServices(world, scene.list, LockService);
    const names = Array.from({ length: 300 }, (_, i) => `many/${String(i).padStart(3, "0")}`);
    await Promise.all(
      names.map(async (name) => {
        const request = { name, holder: name, incarnation: 1n, address: name, termMs: 500, identity: name, instance: name, stampId: "" };
        unwrap(await leases.acquireLease(request, { timeoutMs: 5_000 }));
      }),
    );
    await sim.sleep(1_000);
    const listed = unwrap(await leases.listLeases({ prefix: "many/" }, { timeoutMs: 5_000 })).leases;
    assert.equal(listed.filter(({ ended }) => ended).length, 300);
    sim.crash(scene.active() as string, { unsynced: "lost" });
    await sim.sleep(100);
    await serving();
    const after = unwrap(await leases.listLeases({ prefix: "many/" }, { timeoutMs: 5_000 })).leases;
    assert.deepEqual([after.length, after.every(({ ended }) => ended)], [300, true], "what was told is recorded");
    assert.equal(fromWire(after[0]?.leaseEpoch ?? 0n), 1);
  });
});

test("a store in etcd that lost a key, or went back, is not served", async () => {
  await inScene(8, async () => {
    const { sim, state } = scene;
    const world = sim.world("holder");
    const keeper = keeperOf(world, "holder", 1);
    const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
    const store = new MetadataClient(world, scene.list);
    const put = async (key: string): Promise<void> => {
      unwrap(await store.transact({ fence, conditions: [], writes: [{ key, value: utf8("1") }] }, 3_000));
    };
    await put("a");
    const older = state.saved();
    await put("b");
    const damaged = (): boolean => scene.names.some((name) => sim.role(name)?.status.state === "damaged");
    const anew = (names: readonly string[]): void => {
      for (const name of scene.names) sim.crash(name, { unsynced: "kept", stayDown: true });
      for (const name of names) sim.restart(name);
    };
    const whole = state.saved();
    state.forget(utf8("/stamp/d/k/a"));
    anew(scene.names);
    await sim.until(damaged, readyWithinMs, "a lost key is found");
    state.putBack(whole);
    await sim.until(() => scene.active() !== undefined, readyWithinMs, "the whole store is served");
    const acknowledgedMore = scene.active() as string;
    state.putBack(older);
    // Another lock service, which has seen no more than this, would serve it: there the managers refuse (rule storeNotOlder).
    anew([acknowledgedMore]);
    await sim.until(damaged, readyWithinMs, "an older store is refused by whoever acknowledged more");
  });
});

test("history of etcd, which others may share, is compacted only if a setting says so", async () => {
  for (const [settings, isCompacted] of [
    [{}, false],
    [{ etcdCompactEveryMs: 300_000 }, true],
  ] as const) {
    scene = etcdScene({ seed: 5, timeLimitMs: 3_600_000 }, ["lock-1"], settings);
    await scene.sim.run(async () => {
      await serving();
      await scene.sim.sleep(1_200_000);
      assert.equal(scene.state.compacted > 0n, isCompacted);
    });
  }
});

test("a member of etcd that does not answer is told among the facts of the active lock service", async () => {
  await inScene(6, async () => {
    const factsOf = () => scene.sim.role(scene.active() as string)?.status.facts as { readonly etcd: EtcdFacts };
    assert.deepEqual(factsOf().etcd, { silent: [], members: 1, oldRevisions: 0 });
  });
});
