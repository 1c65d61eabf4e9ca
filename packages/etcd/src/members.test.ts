/** Looks at the members of etcd: a dead one is named, and so is a history that nobody compacts. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { allRules } from "@stamp/base";
import { calmEtcd, EtcdState, SimulatedEtcd, Simulation } from "@stamp/virtual-time";
import { Election, EtcdClient, EtcdKeys, keepCompact, MemberLooks, type Session } from "./index.ts";
import { historyMaxMs, lookEveryMs } from "./members.ts";

const prefix = "/stamp/test/";
const keys = new EtcdKeys(prefix);
const endpoints = ["etcd-1", "etcd-2", "etcd-3"];

async function scene(work: (sim: Simulation, session: Session) => Promise<void>): Promise<void> {
  const sim = new Simulation({ seed: 3, timeLimitMs: 10 * historyMaxMs });
  const prng = sim.prng.fork();
  // Only the first one is called by the session. Clocks of processes differ, so they can share no leases.
  for (const listen of endpoints) {
    const state = new EtcdState();
    sim.addProcess(listen, (world) => new SimulatedEtcd(world, { listen, state, prng, habits: () => calmEtcd }));
  }
  await sim.run(async () => {
    await sim.sleep(50);
    const client = new EtcdClient(sim.world("one"), { endpoints, prefix });
    const options = { keys, name: "one", address: () => "one", ttlSeconds: 3 };
    await work(sim, await new Election(client, options, allRules).campaign(new AbortController().signal));
  });
}

test("a member that is dead is named with the reason until it answers again, and the others are not", async () => {
  await scene(async (sim, session) => {
    const looks = new MemberLooks(session);
    void looks.run();
    await sim.sleep(3 * lookEveryMs);
    assert.deepEqual(looks.facts.silent, []);
    sim.crash("etcd-2", { unsynced: "kept", silent: true, stayDown: true });
    await sim.sleep(4 * lookEveryMs);
    assert.deepEqual(
      looks.facts.silent.map(({ member, why }) => [member, why !== ""]),
      [["etcd-2", true]],
    );
    sim.restart("etcd-2");
    await sim.sleep(3 * lookEveryMs);
    assert.deepEqual(looks.facts.silent, []);
  });
});

test("a history of more than two hours is told, and none if somebody compacts it", async () => {
  for (const isCompacted of [false, true])
    await scene(async (sim, session) => {
      const looks = new MemberLooks(session);
      void looks.run();
      if (isCompacted) void keepCompact(session, 600_000);
      await sim.sleep(historyMaxMs * 1.5);
      assert.equal(looks.facts.oldRevisions > 0, isCompacted === false);
    });
});
