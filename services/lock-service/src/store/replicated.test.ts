/** Lock services that replicate the metadata store: conformance, fail-over, and members that lose or change their folders. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { fromUtf8, type RuleName, rulesWithout, toHex, unwrap, utf8 } from "@stamp/base";
import { LeaseKeeper, MetadataClient, metadataStoreConformance } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { Consensus, LockService, MetadataStore } from "@stamp/wire";
import { type ReplicatedScene, replicatedScene } from "../testing/replicated-harness.ts";

let scene: ReplicatedScene;

/** Longest time until one leads after any single fault, with all members there. */
const readyWithinMs = 30_000;

const serving = (): Promise<void> => scene.sim.until(() => scene.active() !== undefined, readyWithinMs, "a lock service is active");
const followers = (): string[] => scene.names.filter((name) => name !== scene.active());
/** Every member has its standing, and what the leader has committed. */
const settled = (): Promise<void> =>
  scene.sim.until(
    () => {
      const all = scene.names.map((name) => scene.facts(name));
      return scene.active() !== undefined && all.every((facts) => facts?.full === true && facts.applied === all[0]?.applied);
    },
    readyWithinMs,
    "all members have caught up",
  );

metadataStoreConformance(
  (name, run) =>
    void test(`replicated: ${name}`, async () => {
      scene = replicatedScene({ seed: 12 });
      await scene.sim.run(async () => {
        await serving();
        await run();
      });
    }),
  async () => {
    const world = scene.sim.world("leader");
    const store = new MetadataClient(world, scene.list);
    let keeper: LeaseKeeper | undefined;
    let terms = 0;
    return {
      store,
      checksum: world.digest.crc32c,
      stranger: new MetadataClient(world, scene.list, { stampId: "another stamp" }),
      nextTerm: async () => {
        await keeper?.release();
        terms += 1;
        keeper = keeperOf(world, "leader", terms);
        return { leaseName: "leader", leaseEpoch: await keeper.acquire() };
      },
      powerCut: async () => {
        for (const name of scene.names) scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
        for (const name of scene.names) scene.sim.restart(name);
        await serving();
      },
      dispose: async () => keeper?.release(),
    };
  },
);

function keeperOf(world: World, holder: string, incarnation: number, onLost: () => void = () => {}): LeaseKeeper {
  const identity = { id: holder, incarnation, instance: `start ${incarnation}`, stampId: undefined, bindStamp: async () => {} };
  return new LeaseKeeper(world, { lockService: scene.list, leaseName: "leader", holder, identity, address: holder, onLost });
}

interface Setting {
  readonly without?: readonly RuleName[];
  readonly settings?: object;
  readonly names?: readonly string[];
}

async function inScene(seed: number, work: () => Promise<void>, { without = [], settings = {}, names }: Setting = {}): Promise<void> {
  scene = replicatedScene({ seed, timeLimitMs: 900_000, rules: rulesWithout(...without) }, names, settings);
  await scene.sim.run(async () => {
    await serving();
    await work();
  });
}

/** Writes one key after another, and remembers what was acknowledged. */
class Writer {
  readonly acknowledged = new Map<string, string>();
  readonly #store: MetadataClient;
  readonly #keeper: LeaseKeeper;
  lost = 0;
  longestMs = 0;
  #count = 0;
  #epoch = 0;

  constructor(world: World) {
    this.#store = new MetadataClient(world, scene.list);
    this.#keeper = keeperOf(world, "leader", 1, () => {
      this.lost += 1;
    });
  }

  async begin(): Promise<void> {
    this.#epoch = await this.#keeper.acquire();
  }

  async write(times: number, bytes = 10): Promise<void> {
    for (let i = 0; i < times; i++) {
      this.#count += 1;
      const key = `k/${this.#count}`;
      const text = `${this.#count} `.padEnd(bytes, "x");
      const startedMs = scene.sim.nowMs;
      for (let tries = 0; ; tries++) {
        assert.ok(tries < 60, `key ${key} is never taken`);
        const fence = { leaseName: "leader", leaseEpoch: this.#epoch };
        const written = await this.#store.transact(
          { fence, conditions: [{ key, version: 0 }], writes: [{ key, value: utf8(text) }] },
          8_000,
        );
        // A conflict is this writer's own attempt, whose answer was lost.
        if (written.ok || written.failure.reason === "conflict") break;
        await scene.sim.sleep(100);
      }
      this.longestMs = Math.max(this.longestMs, scene.sim.nowMs - startedMs);
      this.acknowledged.set(key, text);
    }
  }

  /** Everything that was acknowledged is there. */
  async check(): Promise<void> {
    const keys = [...this.acknowledged.keys()];
    for (let at = 0; at < keys.length; at += 500) {
      const entries = unwrap(await this.#store.get(keys.slice(at, at + 500), 8_000));
      for (const { key, value } of entries) assert.equal(fromUtf8(value ?? new Uint8Array(0)), this.acknowledged.get(key), key);
    }
  }

  release(): Promise<void> {
    return this.#keeper.release();
  }
}

async function writing(work: (writer: Writer) => Promise<void>): Promise<void> {
  const writer = new Writer(scene.sim.world("writer"));
  await writer.begin();
  await work(writer);
  await writer.check();
  await writer.release();
}

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

/** Faults of the folder of a member that is down. */
const faults: Readonly<Record<string, (name: string) => void>> = {
  lost: (name) => {
    scene.sim.keyValue(name).wipe();
    scene.sim.disk(name).wipe();
  },
  damaged: (name) => scene.sim.keyValue(name).corrupt("consensus-1", "a bit was hurt"),
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

test("an empty member begins a stamp only as the first of the members, when all others say that they are empty", async () => {
  scene = replicatedScene({ seed: 4, timeLimitMs: 600_000 });
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

test("the first leaders are cut off while they open the store: one of the next serves", async () => {
  for (let seed = 1; seed <= 25; seed++) {
    scene = replicatedScene({ seed, timeLimitMs: 600_000 });
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
    }),
  );
});

test("three lost folders, not told to begin a stamp: nothing is served, and it says why", async () => {
  scene = replicatedScene({ seed: 4, timeLimitMs: 600_000 }, undefined, { init: false });
  await scene.sim.run(async () => {
    await scene.sim.sleep(60_000);
    assert.equal(scene.active(), undefined);
    for (const name of scene.names) assert.match(scene.sim.role(name)?.status.waitingFor[0] ?? "", /its disks are lost.*newest copy/);
  });
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
          const keeper = keeperOf(sim.world("writer"), "leader", 1);
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

/** Starts lock-1 with a store of its own, and stops it when a writer has written. */
async function aloneBefore(seed: number, work: (writer: Writer) => Promise<void>): Promise<void> {
  scene = replicatedScene({ seed, timeLimitMs: 900_000 }, undefined, { metadataStore: "leveldb" });
  const { sim } = scene;
  await sim.run(async () => {
    emptied(["lock-2", "lock-3"]);
    await serving();
    const writer = new Writer(sim.world("writer"));
    await writer.begin();
    await writer.write(100, 3_000);
    sim.crash("lock-1", { unsynced: "lost", silent: false, stayDown: true });
    scene.settings = { init: false };
    await work(writer);
  });
}

/** Stops members, and makes their folders new ones. */
function emptied(names: readonly string[]): void {
  for (const name of names) {
    scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });
    scene.sim.keyValue(name).wipe();
    scene.sim.disk(name).wipe();
  }
}

test("the store of one lock service is taken over by three, whenever that one dies meanwhile, and never opened alone again", async () => {
  for (let seed = 1; seed <= 12; seed++) {
    await aloneBefore(seed, async (writer) => {
      const { sim } = scene;
      for (const name of scene.names) sim.restart(name);
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
        assert.equal(sim.role("lock-1")?.status.state, "damaged", "the old store is not served again");
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

test("a member that is not the first, and had a store alone, keeps a new stamp from beginning beside it", async () => {
  scene = replicatedScene({ seed: 9, timeLimitMs: 900_000 }, undefined, { metadataStore: "leveldb" });
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
