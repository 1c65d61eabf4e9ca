/** Members whose folders are lost, damaged, put back, of another stamp, or empty: the others give them everything, and nothing is lost. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { type RuleName, toHex, unwrap } from "@stamp/base";
import { Consensus } from "@stamp/wire";
import { begin, followers, inScene, scene, serving, settled, writing } from "../testing/replicated-run.ts";
import { readyWithinMs } from "../testing/several.ts";

/** Faults of the folder of a member that is down. */
const faults: Readonly<Record<string, (name: string) => void>> = {
  lost: (name) => {
    scene.sim.keyValue(name).wipe();
    scene.sim.disk(name).wipe();
  },
  damaged: (name) => scene.sim.keyValue(name).corrupt("consensus-1", "a bit was hurt"),
  "hurt in its identity": (name) => scene.sim.keyValue(name).corrupt("identity", "a bit was hurt"),
};

for (const [fault, strike] of Object.entries(faults)) {
  test(`the folder of each member in turn is ${fault}, while clients write: nothing is lost, and nobody types a command`, async () => {
    for (let seed = 1; seed <= 3; seed++) {
      // A short log: a member without a folder needs a snapshot of many pieces.
      await inScene(
        seed,
        () =>
          writing(async (writer) => {
            for (const name of scene.names) {
              await writer.write(30, 20_000);
              await settled();
              scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
              strike(name);
              scene.sim.restart(name);
              await writer.write(30, 20_000);
              await settled();
              assert.equal(scene.facts(name)?.setAside, fault === "damaged");
              assert.equal(new Set(scene.names.map((each) => scene.facts(each)?.lineage)).size, 1);
            }
          }),
        { settings: { logEntriesMax: 20 } },
      );
    }
  });
}

test("a folder of before is put back in the place of each member's in turn: nothing is lost", async () => {
  for (let seed = 1; seed <= 4; seed++) {
    await inScene(
      seed,
      () =>
        writing(async (writer) => {
          for (const name of scene.names) {
            await writer.write(15, 5_000);
            await settled();
            scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
            const putBack = scene.sim.keyValue(name).saved("consensus-1");
            scene.sim.restart(name);
            await writer.write(40, 5_000);
            await settled();
            scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
            putBack();
            scene.sim.restart(name);
            await writer.write(5);
            await settled();
          }
        }),
      { settings: { logEntriesMax: seed % 2 === 0 ? 20 : 1_000 } },
    );
  }
});

test("a store that lost its last synced batches, or one of its keys, is made good from the others", async () => {
  for (let seed = 1; seed <= 8; seed++) {
    await inScene(seed, () =>
      writing(async (writer) => {
        for (const name of scene.names) {
          await writer.write(20);
          await settled();
          scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
          const { setAside } = scene.facts(name) ?? {};
          scene.sim.keyValue(name).forget(setAside === true ? "consensus-2" : "consensus-1");
          scene.sim.restart(name);
          await writer.write(20);
          await settled();
        }
      }),
    );
  }
});

test("a store of another stamp in a member's folder takes nothing from the others and gives them nothing; it is set aside", async () => {
  await inScene(5, async () => {
    scene.add("other-1", { members: "other-1=other-1" });
    const otherServes = (): Promise<void> =>
      scene.sim.until(() => scene.sim.role("other-1")?.status.state === "serving", readyWithinMs, "a stamp of one is there");
    await otherServes();
    // Its term is higher than that of any member.
    for (let i = 0; i < 30; i++) {
      scene.sim.crash("other-1", { unsynced: "kept", silent: false, stayDown: true });
      scene.sim.restart("other-1");
      await otherServes();
    }
    scene.sim.crash("other-1", { unsynced: "kept", silent: false, stayDown: true });
    await writing(async (writer) => {
      await writer.write(10);
      await settled();
      const [name = "", second = ""] = scene.names;
      const lineage = scene.facts(second)?.lineage;
      for (const each of scene.names) scene.sim.crash(each, { unsynced: "kept", silent: false, stayDown: true });
      scene.sim.keyValue(name).copyFrom(scene.sim.keyValue("other-1"));
      for (const each of scene.names) scene.sim.restart(each);
      await settled();
      assert.deepEqual([scene.facts(name)?.setAside, scene.facts(name)?.lineage], [true, lineage]);
      await writer.write(10);
    });
  });
});

test("a message of a member whose rows are of another lineage is not taken up", async () => {
  for (const without of [[], ["consensusSameLineage"]] as RuleName[][]) {
    await inScene(
      5,
      async () => {
        await settled();
        const { transport } = scene.sim.world("stranger");
        const message = { term: 1_000n, session: 5n, full: true, body: { case: "heartbeatAnswer" as const, value: { round: 0n } } };
        const request = { from: "lock-2", to: "lock-1", lineage: new Uint8Array(16).fill(7), messages: [message] };
        const answer = unwrap(await transport.client("lock-1", Consensus).deliver(request, { timeoutMs: 1_000 }));
        assert.equal(toHex(answer.lineage), scene.facts("lock-1")?.lineage);
        assert.equal((scene.facts("lock-1")?.term ?? 0) >= 1_000, without.length > 0);
      },
      { without },
    );
  }
});

test("a member that had rows of another lineage and has set them aside does not count against a third one any more", async () => {
  await inScene(7, async () => {
    await settled();
    const active = scene.active() as string;
    const [first, second] = followers() as [string, string];
    const { transport } = scene.sim.world("stranger");
    const heard = async (from: string): Promise<void> => {
      const request = { from, to: second, lineage: new Uint8Array(16).fill(7), messages: [] };
      unwrap(await transport.client(second, Consensus).deliver(request, { timeoutMs: 1_000 }));
    };
    await heard(first);
    await scene.sim.sleep(5_000);
    await heard(active);
    await scene.sim.sleep(5_000);
    assert.equal(scene.facts(second)?.setAside, false, "two others have had other rows, one after the other");
    await settled();
  });
});

test("a member answers nothing before it has read its folder: it is not taken for an empty one", async () => {
  let refusals = 0;
  for (let seed = 1; seed <= 5; seed++) {
    await inScene(seed, () =>
      writing(async (writer) => {
        await writer.write(20, 5_000);
        await settled();
        const name = scene.names[seed % 3] as string;
        const request = { from: scene.names[(seed + 1) % 3] as string, to: name, lineage: new Uint8Array(0), messages: [] };
        const lineage = scene.facts(name)?.lineage;
        const { transport } = scene.sim.world("asks");
        scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
        scene.sim.restart(name);
        for (let answers = 0; answers < 20; ) {
          const answer = await transport.client(name, Consensus).deliver(request, { timeoutMs: 100 });
          if (answer.ok) {
            assert.equal(toHex(answer.value.lineage), lineage, "its rows are of no lineage, it says");
            answers += 1;
          } else if (answer.failure.reason === "notReady") refusals += 1;
          await scene.sim.sleep(scene.sim.prng.float());
        }
        await settled();
      }),
    );
  }
  assert.ok(refusals > 0, "nobody asked before a folder was read");
});

test("an empty member begins a stamp only as the first of the members, when all others say that they are empty", async () => {
  begin({ seed: 4, timeLimitMs: 600_000 });
  await scene.sim.run(async () => {
    const [, , third = ""] = scene.names;
    scene.sim.crash(third, { stayDown: true });
    await scene.sim.sleep(20_000);
    assert.equal(scene.active(), undefined);
    assert.match(scene.sim.role("lock-1")?.status.waitingFor[0] ?? "", /lock-2 and lock-3/);
    scene.sim.restart(third);
    await serving();
    await settled();
  });
});

test("three lost folders, not told to begin a stamp: nothing is served, and it says why", async () => {
  begin({ seed: 4, timeLimitMs: 600_000 }, undefined, { init: false });
  await scene.sim.run(async () => {
    await scene.sim.sleep(60_000);
    assert.equal(scene.active(), undefined);
    for (const name of scene.names)
      assert.match(scene.sim.role(name)?.status.waitingFor[0] ?? "", /its disks are lost.*with an empty folder.*newest copy/);
  });
});

test("members: one whose rows are hurt while it runs, and which is elected then, takes them from the others, which serve", async () => {
  await inScene(6, () =>
    writing(async (writer) => {
      await writer.write(5);
      await settled();
      const [hurt] = followers() as [string];
      const { values } = scene.sim.keyValue(hurt).store("consensus-1");
      for (const [key, value] of values)
        if (key.startsWith("r/"))
          values.set(
            key,
            value.map((byte) => byte ^ 1),
          );
      const consensus = scene.sim.world("operator").transport.client(scene.active() as string, Consensus);
      unwrap(await consensus.transferLeadership({ to: hurt }, { timeoutMs: 5_000 }));
      await scene.sim.until(() => scene.facts(hurt)?.setAside === true, readyWithinMs, "the hurt store is set aside");
      await writer.write(5);
      await settled();
    }),
  );
});
