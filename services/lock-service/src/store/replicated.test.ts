/** Lock services that replicate the metadata store: conformance, fail-over, and leaders that are cut off. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { fromUtf8, type RuleName, unwrap, utf8 } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { LockService, MetadataStore } from "@stamp/wire";
import { begin, followers, inScene, scene, serving, settled, writing } from "../testing/replicated-run.ts";
import { conformanceOfSeveral, leaderOf, readyWithinMs } from "../testing/several.ts";

conformanceOfSeveral(
  (name, run) => void test(`replicated: ${name}`, run),
  () => begin({ seed: 12 }),
);

test("followers are ready, refuse every call, and name the active one", async () => {
  await inScene(1, async () => {
    await settled();
    const active = scene.active() as string;
    const { transport } = scene.sim.world("client");
    for (const name of followers()) {
      assert.deepEqual([scene.sim.role(name)?.status.ready, scene.sim.role(name)?.status.state], [true, "standby"]);
      const answers = [
        await transport.client(name, LockService).getLease({ name: "x" }, { timeoutMs: 1_000 }),
        await transport.client(name, MetadataStore).getKeys({ keys: ["x"] }, { timeoutMs: 1_000 }),
      ];
      for (const answer of answers) {
        assert.equal(answer.ok, false);
        if (answer.ok) continue;
        const { reason, applied, details } = answer.failure;
        assert.deepEqual([reason, applied, details?.leaderAddress], ["notLeader", "no", active]);
      }
    }
  });
});

test("the leader is killed again and again: nobody loses a lease, nothing acknowledged is lost", async () => {
  for (let seed = 1; seed <= 5; seed++) {
    await inScene(seed, () =>
      writing(async (writer) => {
        for (let round = 0; round < 4; round++) {
          await writer.write(10);
          await settled();
          const gone = scene.active() as string;
          scene.sim.crash(gone, { unsynced: "lost", silent: round % 2 === 1, stayDown: true });
          await writer.write(10);
          scene.sim.restart(gone);
        }
        assert.equal(writer.lost, 0, `seed ${seed}: the lease was lost`);
      }),
    );
  }
});

test("a planned stop of the leader hands over before it: no election timeout passes", async () => {
  await inScene(3, () =>
    writing(async (writer) => {
      await writer.write(5);
      await settled();
      const gone = scene.active() as string;
      const sinceMs = scene.sim.nowMs;
      await scene.sim.stop(gone);
      await serving();
      assert.ok(scene.sim.nowMs - sinceMs < 1_000, `${scene.sim.nowMs - sinceMs} ms`);
      await writer.write(5);
      scene.sim.restart(gone);
      await settled();
    }),
  );
});

test("the first leaders are cut off while they open the store: one of the next serves", async () => {
  for (let seed = 1; seed <= 25; seed++) {
    begin({ seed, timeLimitMs: 600_000 });
    const { sim } = scene;
    await sim.run(async () => {
      for (let round = 0; round < 3; round++) {
        const leads = (): string | undefined => scene.names.find((name) => scene.facts(name)?.role === "leader");
        await sim.until(() => leads() !== undefined, readyWithinMs, "a member leads");
        await sim.sleep(sim.prng.float() * 12);
        const leader = leads() ?? "lock-1";
        sim.partition([leader], [...scene.names.filter((name) => name !== leader)]);
        await sim.sleep(4_000);
        sim.heal();
      }
      await serving();
      await settled();
    });
  }
});

test("a follower is not ready before its start is recorded and it has what the others have", async () => {
  await inScene(2, () =>
    writing(async (writer) => {
      await writer.write(20, 5_000);
      await settled();
      const [name = "", other = ""] = followers();
      for (const each of [name, other]) scene.sim.crash(each, { unsynced: "kept", silent: false, stayDown: true });
      // Without a quorum nothing is recorded: the leader steps down.
      await scene.sim.until(() => scene.active() === undefined, readyWithinMs, "nobody serves");
      scene.sim.restart(name);
      await scene.sim.sleep(10_000);
      assert.equal(scene.facts(name)?.full, false);
      assert.equal(scene.sim.role(name)?.status.ready, false);
      assert.equal(scene.active(), undefined, "one with its standing and one without are no wide quorum");
      scene.sim.restart(other);
      await serving();
      await settled();
      for (const each of followers()) assert.equal(scene.sim.role(each)?.status.ready, true);
      // Also while it hears the leader, which is to record its start.
      const again = followers()[0] as string;
      scene.sim.crash(again, { unsynced: "kept", silent: false, stayDown: true });
      scene.sim.restart(again);
      let heard = 0;
      while (scene.facts(again)?.full !== true) {
        const status = scene.sim.role(again)?.status;
        if (status?.state === "standby") heard += 1;
        assert.notEqual(status?.ready, true);
        await scene.sim.sleep(scene.sim.prng.float());
      }
      assert.ok(heard > 0, "it hears the leader before its start is recorded");
    }),
  );
});

test("the leader's disk is full: another one takes over, no write hangs, and it catches up when there is room", async () => {
  await inScene(6, () =>
    writing(async (writer) => {
      await writer.write(10);
      await settled();
      const gone = scene.active() as string;
      const disk = scene.sim.disk(gone);
      const { options } = disk;
      disk.options = { ...options, totalBytes: disk.usedBytes() + 1_000 };
      await writer.write(30);
      assert.notEqual(scene.active(), gone);
      disk.options = options;
      await settled();
    }),
  );
});

test("all were stopped and one is away: the others say that they need it, or an empty one under its name", async () => {
  await inScene(8, () =>
    writing(async (writer) => {
      await writer.write(5);
      await settled();
      for (const name of scene.names) scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
      const [away = "", ...others] = scene.names;
      for (const name of others) scene.sim.restart(name);
      await scene.sim.sleep(20_000);
      assert.equal(scene.active(), undefined);
      for (const name of others)
        assert.match(scene.sim.role(name)?.status.waitingFor[0] ?? "", /3 of 3 have to answer.*start those that are away/);
      scene.sim.keyValue(away).wipe();
      scene.sim.disk(away).wipe();
      scene.sim.restart(away);
      await settled();
      await writer.write(5);
    }),
  );
});

test("a leader that is cut off answers nothing as the active one, and the others elect another one", async () => {
  for (const without of [[], ["answersConfirmed"]] as RuleName[][]) {
    let stale = 0;
    for (let seed = 1; seed <= 6; seed++) {
      await inScene(
        seed,
        async () => {
          await settled();
          const old = scene.active() as string;
          const { sim } = scene;
          const keeper = leaderOf(scene.list, sim.world("writer"), "leader", 1);
          const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
          const store = new MetadataClient(sim.world("writer"), scene.list);
          const put = async (text: string) =>
            unwrap(await store.transact({ fence, conditions: [], writes: [{ key: "k", value: utf8(text) }] }, 20_000));
          await put("old");
          // The reader sees the old leader alone; the writer the others.
          sim.partition([old], [...scene.names.filter((name) => name !== old), "writer"]);
          const reading = sim.world("reader").transport.client(old, MetadataStore);
          const others = scene.names.filter((name) => name !== old);
          let wrote = false;
          const write = new MetadataClient(sim.world("writer"), others.join());
          const done = (async () => {
            while (!(await write.transact({ fence, conditions: [], writes: [{ key: "k", value: utf8("new") }] }, 5_000)).ok)
              await sim.sleep(50);
            wrote = true;
          })();
          for (let i = 0; i < 400 && !(wrote && i > 200); i++) {
            const after = wrote;
            const answer = await reading.getKeys({ keys: ["k"] }, { timeoutMs: 1_000 });
            if (answer.ok && after && fromUtf8(answer.value.entries[0]?.value ?? new Uint8Array(0)) === "old") stale += 1;
            await sim.sleep(10);
          }
          await done;
          sim.heal();
          await keeper.release();
        },
        { without },
      );
    }
    assert.equal(stale > 0, without.length > 0, "old content was answered after new content was acknowledged");
  }
});

test("power fails everywhere at once, again and again: nothing acknowledged is lost", async () => {
  const rounds = (seed: number, without: readonly RuleName[]): Promise<void> =>
    inScene(
      seed,
      () =>
        writing(async (writer) => {
          for (let round = 0; round < 3; round++) {
            await writer.write(10);
            for (const each of scene.names) scene.sim.crash(each, { unsynced: "lost", silent: false, stayDown: true });
            for (const each of scene.names) scene.sim.restart(each);
            await serving();
          }
        }),
      { without },
    );
  for (let seed = 1; seed <= 5; seed++) await rounds(seed, []);
  const failed = (seed: number): Promise<boolean> =>
    rounds(seed, ["consensusWritesSynced"]).then(
      () => false,
      () => true,
    );
  let failures = 0;
  for (let seed = 1; seed <= 5; seed++) if (await failed(seed)) failures += 1;
  assert.ok(failures > 0, "without synced writes a seed fails");
});
