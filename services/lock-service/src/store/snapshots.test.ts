/** Snapshots that nodes copy: one for everybody, whole while others write, bounded, and never one of a damaged store. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, unwrap } from "@stamp/base";
import { inMemory, LeaseKeeper, MetadataClient, verifySnapshot } from "@stamp/metadata-store";
import { Simulation } from "@stamp/virtual-time";
import { lockServiceSchema } from "../config.ts";
import { LockServiceRole } from "../lock-service.ts";
import type { SnapshotFacts } from "./snapshots.ts";

interface Stage {
  readonly sim: Simulation;
  readonly metadata: MetadataClient;
  put(key: string, bytes: number, absent?: boolean): ReturnType<MetadataClient["transact"]>;
  facts(): { readonly keys: number; readonly snapshot: SnapshotFacts };
}

async function staged(body: (stage: Stage) => Promise<void>, config: Record<string, number> = {}): Promise<void> {
  const sim = new Simulation({ seed: 5 });
  const parsed = lockServiceSchema.parse({ name: "lock", listen: "lock", init: true, reserveBytes: 0, ...config });
  sim.addProcess("lock", (world) => new LockServiceRole(world, parsed));
  await sim.run(async () => {
    await sim.sleep(50);
    const world = sim.world("leader");
    const identity = { id: "leader", incarnation: 1, instance: "start", stampId: undefined, bindStamp: async () => {} };
    const options = { lockService: "lock", leaseName: "leader", holder: "leader", identity, address: "leader", onLost: () => {} };
    const fence = { leaseName: "leader", leaseEpoch: await new LeaseKeeper(world, options).acquire() };
    const metadata = new MetadataClient(world, "lock");
    await body({
      sim,
      metadata,
      put: (key, bytes, absent = false) =>
        metadata.transact(
          { fence, conditions: absent ? [{ key, version: 0 }] : [], writes: [{ key, value: new Uint8Array(bytes).fill(7) }] },
          5_000,
        ),
      facts: () => sim.role("lock")?.status.facts as ReturnType<Stage["facts"]>,
    });
  });
}

async function read(metadata: MetadataClient): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  unwrap(
    await metadata.readSnapshot(async (bytes, offsetBytes) => {
      if (offsetBytes === 0) parts.length = 0;
      parts.push(bytes);
    }, 30_000),
  );
  return concatBytes(parts);
}

test("snapshots: many parts are of one moment while others write; readers at the same time get the same one", async () => {
  await staged(async ({ sim, metadata, put, facts }) => {
    for (let i = 0; i < 12; i++) unwrap(await put(`k${i}`, 400_000));
    const writing = (async () => {
      for (let i = 0; i < 40; i++) unwrap(await put(`k${i % 12}`, 400_000));
    })();
    const [one, two] = await Promise.all([read(metadata), read(new MetadataClient(sim.world("other"), "lock"))]);
    await writing;
    assert.ok(one.length > 4_000_000);
    assert.deepEqual(one, two);
    const { crc32c } = sim.world("lock").digest;
    const verified = unwrap(await verifySnapshot(inMemory(one), crc32c));
    assert.equal(verified.count, 12 + 3, "keys, stamp, version and lease");
    assert.equal(facts().snapshot.bytes, one.length);
    const later = unwrap(await verifySnapshot(inMemory(await read(metadata)), crc32c));
    assert.ok(later.version >= verified.version);
    const { takenAtMs } = facts().snapshot;
    await sim.sleep(60_000);
    await read(metadata);
    assert.equal(facts().snapshot.takenAtMs, takenAtMs, "nothing changed: none is taken");
    assert.equal(later.lineage, verified.lineage);
    assert.ok(
      sim
        .disk("lock")
        .paths()
        .filter((path) => path.startsWith("snapshot")).length <= 2,
    );
  });
});

test("snapshots: without room there is none, and that is told; the store goes on", async () => {
  await staged(async ({ sim, metadata, put, facts }) => {
    const disk = sim.disk("lock");
    unwrap(await put("k", 300_000));
    disk.options = { ...disk.options, totalBytes: disk.usedBytes() + 100_000 };
    const refused = await metadata.readSnapshot(async () => {}, 1_000);
    assert.ok(!refused.ok && refused.failure.reason === "diskFull", JSON.stringify(refused));
    assert.match(facts().snapshot.failure, /was not written/);
    unwrap(await put("k2", 1_000));
    disk.options = { ...disk.options, totalBytes: 2 ** 40 };
    assert.ok((await read(metadata)).length > 300_000);
    assert.equal(facts().snapshot.failure, "");
  });
});

test("snapshots: of a store that changed on its disk none is given, and the process ends", async () => {
  await staged(async ({ sim, metadata, put }) => {
    unwrap(await put("k", 1_000));
    sim.keyValue("lock").store("metadata").values.delete("k/k");
    const answer = await metadata.readSnapshot(async () => assert.fail("a part of it was given"), 2_000);
    assert.ok(!answer.ok);
    assert.equal(sim.isUp("lock"), false);
    sim.restart("lock");
    await sim.sleep(100);
    assert.match(sim.role("lock")?.status.waitingFor[0] ?? "", /something in it was lost or changed/);
  });
});

test("metadata store: from keysMax on no key is made, and what is there is changed and deleted", async () => {
  await staged(
    async ({ metadata, put }) => {
      // The stamp, the version and the lease are keys, too.
      for (let i = 0; i < 4; i++) unwrap(await put(`k${i}`, 10, true));
      const refused = await put("more", 10, true);
      assert.ok(!refused.ok && refused.failure.code === "resourceExhausted" && refused.failure.applied === "no");
      assert.match(refused.failure.message, /holds 7 keys, and 7 are the most/);
      unwrap(await put("k1", 20));
      assert.equal(unwrap(await metadata.get(["more"], 1_000))[0]?.version, 0);
    },
    { keysMax: 7 },
  );
});
