/** The adapter on a simulated etcd, which loses answers, applies late and changes its leader. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { allRules, FailureError, type Rules, rulesWithout, utf8 } from "@stamp/base";
import { DiskError, type KeyValueOperation, type World } from "@stamp/ports";
import { calmEtcd, type EtcdHabits, EtcdState, SimulatedEtcd, Simulation } from "@stamp/virtual-time";
import { Election, EtcdClient, EtcdKeys, EtcdKeyValue, keepCompact, type Session } from "./index.ts";

const prefix = "/stamp/test/";
const keys = new EtcdKeys(prefix);
const ttlSeconds = 2;

interface Scene {
  readonly sim: Simulation;
  readonly state: EtcdState;
  habits: EtcdHabits;
}

async function scene(seed: number, work: (scene: Scene) => Promise<void>): Promise<void> {
  const sim = new Simulation({ seed, timeLimitMs: 600_000 });
  const state = new EtcdState();
  const made: Scene = { sim, state, habits: calmEtcd };
  const prng = sim.prng.fork();
  sim.addProcess("etcd", (world) => new SimulatedEtcd(world, { listen: "etcd", state, prng, habits: () => made.habits }));
  await sim.run(async () => {
    await sim.sleep(50);
    await work(made);
  });
}

const clientOf = (world: World): EtcdClient => new EtcdClient(world, { endpoints: ["etcd"], prefix });

function campaign(world: World, signal: AbortSignal = new AbortController().signal): Promise<Session> {
  const name = `${Math.floor(world.clock.monotonicMs())}`;
  return new Election(clientOf(world), { keys, name, address: () => name, ttlSeconds }, allRules).campaign(signal);
}

const put = (key: string, value: string): KeyValueOperation => ({ kind: "put", key: utf8(key), value: utf8(value) });
const text = (bytes: Uint8Array | undefined): string | undefined => bytes && new TextDecoder().decode(bytes);

async function all(store: EtcdKeyValue): Promise<Record<string, string>> {
  const entries: Record<string, string> = {};
  for await (const [key, value] of store.range({})) entries[text(key) as string] = text(value) as string;
  return entries;
}

async function refusedAs(work: Promise<unknown>, reason: string): Promise<void> {
  await assert.rejects(work, (error) => error instanceof FailureError && error.failure.reason === reason);
}

/** Revokes the etcd lease of the elected process, as its end does. */
function depose(state: EtcdState): void {
  for (const id of [...state.leases.keys()]) state.revoke(id);
}

const leaseIds = (state: EtcdState): number => state.leases.size;

test("batches go on through lost answers, late applications and changes of the leader, each applied once and in order", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    await scene(seed, async (made) => {
      const session = await campaign(made.sim.world("one"));
      const store = new EtcdKeyValue(session, allRules);
      made.habits = { answerLost: 0.2, applyLate: 0.2, leaderChange: 0.1 };
      for (let i = 0; i < 40; i++) await store.batch([put("last", String(i)), put(`k/${i}`, "x")]);
      made.habits = calmEtcd;
      assert.equal(session.ended.aborted, false, session.why);
      await made.sim.sleep(10_000);
      const kept = await all(new EtcdKeyValue(session, allRules));
      assert.equal(kept.last, "39", `seed ${seed}: an attempt that came late changed something`);
      assert.equal(Object.keys(kept).length, 41);
    });
  }
});

test("without the order of batches an attempt that comes late takes the place of a later batch", async () => {
  const broken = await anySeed(rulesWithout("batchesInOrder"), async (made, store) => {
    made.habits = { answerLost: 0, applyLate: 0.4, leaderChange: 0 };
    for (let i = 0; i < 40; i++) await store.batch([put("last", String(i))]);
    made.habits = calmEtcd;
    await made.sim.sleep(10_000);
    return (await all(store)).last !== "39";
  });
  assert.equal(broken, true);
});

test("a deposed process that does not know it writes nothing and confirms nothing", async () => {
  await scene(3, async ({ sim, state }) => {
    const old = new EtcdKeyValue(await campaign(sim.world("one")), allRules);
    await old.batch([put("k", "old")]);
    await old.confirm();
    depose(state);
    const session = await campaign(sim.world("two"));
    const store = new EtcdKeyValue(session, allRules);
    await store.batch([put("k", "new")]);
    await refusedAs(old.confirm(), "notLeader");
    await refusedAs(old.batch([put("k", "late")]), "notLeader");
    assert.deepEqual(await all(store), { k: "new" });
  });
});

test("without the condition on its election a deposed process writes, and without confirmation it answers", async () => {
  await scene(3, async ({ sim, state }) => {
    const old = new EtcdKeyValue(await campaign(sim.world("one")), rulesWithout("electionConditional", "answersConfirmed"));
    await old.batch([put("k", "old")]);
    depose(state);
    const store = new EtcdKeyValue(await campaign(sim.world("two")), allRules);
    await old.batch([put("k", "late")]);
    await old.confirm();
    assert.deepEqual(await all(store), { k: "late" });
  });
});

test("one of several candidates is elected at a time, also when answers are lost, and no lease of an attempt stays", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    await scene(seed, async (made) => {
      made.habits = { answerLost: 0.3, applyLate: 0.3, leaderChange: 0.1 };
      const revisions: bigint[] = [];
      let active = 0;
      const candidate = async (name: string): Promise<void> => {
        for (let times = 0; times < 4; times++) {
          const session = await campaign(made.sim.world(name));
          revisions.push(session.createRevision);
          const store = new EtcdKeyValue(session, allRules);
          await store.confirm();
          assert.equal(active, 0, `seed ${seed}: two are active`);
          active += 1;
          await made.sim.sleep(300);
          active -= 1;
          await session.resign();
          if (made.sim.prng.chance(0.5)) await made.sim.sleep(500);
        }
      };
      await Promise.all(["one", "two", "three"].map(candidate));
      assert.equal(new Set(revisions).size, 12, "each election has a revision of its own");
      made.habits = calmEtcd;
      await made.sim.sleep(20_000);
      assert.equal(leaseIds(made.state), 0);
    });
  }
});

test("an etcd without room refuses with a full disk, certainly nothing is written, and it goes on when there is room", async () => {
  await scene(5, async ({ sim, state }) => {
    const store = new EtcdKeyValue(await campaign(sim.world("one")), allRules);
    await store.batch([put("a", "1")]);
    state.quotaBytes = 0;
    await assert.rejects(store.batch([put("b", "1")]), (error) => error instanceof DiskError && error.kind === "full");
    assert.notEqual(store.fullSinceMs, undefined);
    await store.confirm();
    assert.deepEqual(await all(store), { a: "1" });
    state.quotaBytes = Number.POSITIVE_INFINITY;
    await store.batch([put("b", "2")]);
    assert.equal(store.fullSinceMs, undefined);
    assert.deepEqual(await all(store), { a: "1", b: "2" });
  });
});

test("compaction goes on behind, and a standby whose watch is compacted away is elected all the same", async () => {
  await scene(6, async ({ sim, state }) => {
    const session = await campaign(sim.world("one"));
    void keepCompact(session, 1_000);
    const store = new EtcdKeyValue(session, allRules);
    const next = campaign(sim.world("two"));
    for (let i = 0; i < 50; i++) {
      await store.batch([put("k", String(i))]);
      await sim.sleep(100);
    }
    assert.ok(state.compacted > 0n && state.compacted < state.revision);
    state.compact(state.revision);
    await session.resign();
    assert.ok((await next).createRevision > session.createRevision);
  });
});

test("of what was read or written only a bounded part is kept in memory, and all of it is right", async () => {
  await scene(7, async ({ sim }) => {
    const store = new EtcdKeyValue(await campaign(sim.world("one")), allRules, 2_000);
    for (let i = 0; i < 60; i++) await store.batch([put(`k/${i % 30}`, `${i}`.padStart(50, "."))]);
    for (let i = 0; i < 30; i++) assert.equal(text(await store.get(utf8(`k/${i}`))), `${i + 30}`.padStart(50, "."));
    assert.equal(await store.get(utf8("none")), undefined);
  });
});

/** Whether with these rules some seed breaks what `work` looks at. */
async function anySeed(rules: Rules, work: (made: Scene, store: EtcdKeyValue) => Promise<boolean>): Promise<boolean> {
  let broken = false;
  for (let seed = 1; seed <= 30 && !broken; seed++) {
    await scene(seed, async (made) => {
      const store = new EtcdKeyValue(await campaign(made.sim.world("one")), rules);
      broken = await work(made, store).catch((error: unknown) => {
        if (error instanceof FailureError) return false;
        throw error;
      });
    });
  }
  return broken;
}
