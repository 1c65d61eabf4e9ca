import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";

const timeoutMs = 5_000;

async function fill(cluster: Cluster, id: number, count: number, size: number): Promise<{ end: number; places: bigint[] }> {
  let end = 0;
  const places: bigint[] = [];
  for (let i = 0; i < count; i++) {
    const answer = unwrap(await cluster.append("en-1", id, end, [pattern(size, i)]));
    end = Number(answer.endBytes);
    places.push(answer.offsetsBytes[0] as bigint);
  }
  return { end, places };
}

async function assertContent(cluster: Cluster, name: string, id: number, places: readonly bigint[], size: number): Promise<void> {
  for (const [i, place] of places.entries()) {
    assert.deepEqual(unwrap(await cluster.read(name, id, place, size)).payload, pattern(size, i), `${name} place ${i}`);
  }
}

test("recovery: power lost on all nodes during appends keeps every acknowledged one, for many seeds", async () => {
  for (let seed = 100; seed < 130; seed++) {
    const cluster = new Cluster(seed, { config: { journalSegmentsMax: 2 } });
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      const size = 1 + cluster.sim.prng.below(120_000);
      const acknowledged: { offset: bigint; i: number }[] = [];
      let end = 0;
      const writer = (async (): Promise<void> => {
        const inFlight: Promise<void>[] = [];
        for (let i = 0; i < 40; i++) {
          const expected = end;
          end += 16 + 4 * Math.ceil(size / 65_536) + size;
          inFlight.push(
            cluster.append("en-1", id, expected, [pattern(size, i)], 1, 800).then((outcome) => {
              if (outcome.ok) acknowledged.push({ offset: outcome.value.offsetsBytes[0] as bigint, i });
            }),
          );
          if (i % 4 === 3) await Promise.race(inFlight);
        }
        await Promise.all(inFlight);
      })();
      await cluster.sim.sleep(cluster.sim.prng.below(30));
      for (const name of names) cluster.sim.crash(name, { unsynced: "lost" });
      await cluster.sim.sleep(50);
      for (const name of names) cluster.sim.restart(name);
      await writer;
      await cluster.allReady();
      assert.equal(reasonOf(await cluster.append("en-1", id, end, [pattern(1, 1)])), "extentStale");
      const fences = await Promise.all(names.map(async (name) => unwrap(await cluster.fence(name, id))));
      assert.ok(fences.every((fence) => fence.restarted));
      const length = Math.min(...fences.map((fence) => Number(fence.durableBytes)));
      const first = acknowledged[0];
      if (first) assert.equal(reasonOf(await cluster.read("en-2", id, first.offset, size)), "extentStale");
      const sums = await Promise.all(names.map(async (name) => unwrap(await cluster.seal(name, id, length)).checksum));
      assert.equal(new Set(sums).size, 1);
      for (const { offset, i } of acknowledged) {
        for (const name of names) assert.deepEqual(unwrap(await cluster.read(name, id, offset, size)).payload, pattern(size, i));
      }
    });
  }
});

test("recovery: power is lost, and the table with it, before a new extent's file has its header: what was acknowledged is there", async () => {
  for (let seed = 40; seed < 52; seed++) {
    const cluster = new Cluster(seed);
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      const size = seed % 2 === 0 ? 3_000 : 400_000;
      const { end, places } = await fill(cluster, id, 1 + (seed % 3), size);
      cluster.sim.crash("en-2", { unsynced: "lost" });
      cluster.sim.keyValue("en-2").corrupt("extents");
      await cluster.sim.sleep(50);
      cluster.sim.restart("en-2");
      await cluster.ready("en-2");
      assert.equal(cluster.facts("en-2").tableRebuilt, true);
      await cluster.sim.until(async () => (await cluster.fence("en-2", id)).ok, 10_000, "the term is learned");
      const fence = unwrap(await cluster.fence("en-2", id));
      assert.equal(Number(fence.durableBytes), end);
      unwrap(await cluster.seal("en-2", id, end));
      await assertContent(cluster, "en-2", id, places, size);
    });
  }
});

test("recovery: the extent table is deleted or corrupt; it is rebuilt, and the node waits for the stream manager's term", async () => {
  const cluster = new Cluster(7);
  await cluster.run(async () => {
    await cluster.allReady();
    const sealed = await cluster.create();
    const open = await cluster.create();
    const one = await fill(cluster, sealed, 20, 100_000);
    for (const name of names) unwrap(await cluster.seal(name, sealed, one.end));
    const two = await fill(cluster, open, 5, 1_000);
    cluster.smTerm = 9;
    for (const [name, damage] of [
      ["en-2", "corrupt"],
      ["en-3", "wiped"],
    ] as const) {
      await cluster.sim.stop(name);
      if (damage === "corrupt") cluster.sim.keyValue(name).corrupt("extents");
      else cluster.sim.keyValue(name).drop("extents");
      cluster.sim.restart(name);
      await cluster.ready(name);
      assert.equal(cluster.facts(name).tableRebuilt, true);
      assert.equal(reasonOf(await cluster.fence(name, open, 8)), "staleTerm");
      await assertContent(cluster, name, sealed, one.places, 100_000);
      const fence = unwrap(await cluster.fence(name, open));
      assert.equal(Number(fence.durableBytes), two.end);
      unwrap(await cluster.seal(name, open, two.end));
      await assertContent(cluster, name, open, two.places, 1_000);
    }
  });
});

for (const lost of ["nothing", "the extent table"] as const) {
  test(`recovery: a sync fails, the node restarts with ${lost} lost, then the power fails: everything acknowledged is on its disk`, async () => {
    const cluster = new Cluster(12, { config: { journalSegmentsMax: 2, scrubBytesPerSecond: 0 } });
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      const { end, places } = await fill(cluster, id, 3, 50_000);
      // The header with what is written since is read back afterwards, but it is not on the disk, and neither are the blocks.
      cluster.sim.disk("en-2").failNext("sync", "syncFailed", ".extent");
      await cluster.sim.until(() => !cluster.sim.isUp("en-2"), 10_000, "it stops");
      if (lost === "the extent table") cluster.sim.keyValue("en-2").corrupt("extents");
      cluster.sim.restart("en-2");
      await cluster.ready("en-2");
      // Until no segment of the journal is left of before.
      const other = await cluster.create();
      await fill(cluster, other, 30, 100_000);
      for (const name of names) unwrap(await cluster.seal(name, id, end));
      await cluster.sim.sleep(2_000);
      cluster.sim.crash("en-2", { unsynced: "lost" });
      cluster.sim.restart("en-2");
      await cluster.ready("en-2");
      await assertContent(cluster, "en-2", id, places, 50_000);
    });
  });
}

test("recovery: a flipped bit in a synced journal record marks that replica damaged, never shorter", async () => {
  const cluster = new Cluster(8);
  await cluster.run(async () => {
    await cluster.allReady();
    const hurt = await cluster.create();
    const other = await cluster.create();
    await fill(cluster, hurt, 3, 1_000);
    const { end } = await fill(cluster, other, 3, 1_000);
    cluster.sim.crash("en-2", { unsynced: "lost" });
    // Records: header page twice, then one batch a page; create, create, and the third page holds the first append to `hurt`.
    cluster.sim.disk("en-2").corrupt("journal/000001.segment", 8192 + 2 * 4096 + 72 + 500);
    cluster.sim.restart("en-2");
    await cluster.ready("en-2");
    assert.equal(reasonOf(await cluster.fence("en-2", hurt)), "damaged");
    assert.equal(Number(unwrap(await cluster.fence("en-2", other)).durableBytes), end);
  });
});

test("recovery: a destroyed record header marks what was not sealed and can't be shown whole", async () => {
  const cluster = new Cluster(9);
  await cluster.run(async () => {
    await cluster.allReady();
    const hurt = await cluster.create();
    const { end } = await fill(cluster, hurt, 3, 1_000);
    const later = await cluster.create();
    await fill(cluster, later, 2, 1_000);
    cluster.sim.crash("en-2", { unsynced: "lost" });
    // The last append to `hurt`: without a mark, the replica would just be shorter.
    cluster.sim.disk("en-2").corrupt("journal/000001.segment", 8192 + 3 * 4096 + 20);
    cluster.sim.restart("en-2");
    await cluster.ready("en-2");
    assert.equal(reasonOf(await cluster.fence("en-2", hurt)), "damaged");
    assert.ok(end > 0);
    assert.equal(reasonOf(await cluster.fence("en-2", later)), "ok");
  });
});

test("recovery: bit rot in an extent file is never served; the replica is marked, replaced by a copy, and serves again", async () => {
  const cluster = new Cluster(10);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const { end, places } = await fill(cluster, id, 4, 50_000);
    for (const name of names) unwrap(await cluster.seal(name, id, end));
    await cluster.sim.sleep(1_000);
    const path =
      cluster.sim
        .disk("en-3")
        .paths()
        .find((each) => each.endsWith(".extent")) ?? "";
    cluster.sim.disk("en-3").corrupt(path, 8192 + 50_500);
    assert.equal(reasonOf(await cluster.read("en-3", id, places[1] as bigint, 50_000)), "damaged");
    assert.equal(reasonOf(await cluster.read("en-3", id, places[0] as bigint, 50_000)), "damaged");
    const copy = await copyToThird(cluster, id, end);
    assert.equal(unwrap(copy).checksum, unwrap(await cluster.seal("en-1", id, end)).checksum);
    await assertContent(cluster, "en-3", id, places, 50_000);
    cluster.sim.crash("en-3", { unsynced: "lost" });
    cluster.sim.restart("en-3");
    await cluster.ready("en-3");
    await assertContent(cluster, "en-3", id, places, 50_000);
    assert.equal((await cluster.replica("en-3", id)).version, 3n);
  });
});

function copyToThird(cluster: Cluster, id: number, end: number) {
  const { diskId, stampId } = cluster.facts("en-3");
  const what = { smTerm: 1n, extentId: BigInt(id), sealedLengthBytes: BigInt(end), version: 3n, ownerEpoch: 1n };
  return cluster.node("en-3").copyExtent({ ...what, diskId: String(diskId), sources: ["en-1"], stampId: String(stampId) }, { timeoutMs });
}

test("recovery: a replica that was copied and then deleted is gone, and the node starts", async () => {
  const cluster = new Cluster(12);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const { end, places } = await fill(cluster, id, 4, 50_000);
    for (const name of names) unwrap(await cluster.seal(name, id, end));
    // The journal begins anew: it does not make the file once more.
    cluster.sim.crash("en-3", { unsynced: "kept" });
    cluster.sim.restart("en-3");
    await cluster.ready("en-3");
    const disk = cluster.sim.disk("en-3");
    disk.corrupt(disk.paths().find((each) => each.endsWith(".extent")) ?? "", 8192 + 50_500);
    assert.equal(reasonOf(await cluster.read("en-3", id, places[1] as bigint, 50_000)), "damaged");
    unwrap(await copyToThird(cluster, id, end));
    unwrap(await cluster.node("en-3").deleteExtent({ smTerm: 1n, extentId: BigInt(id), version: 4n }, { timeoutMs }));
    for (const unsynced of ["kept", "lost"] as const) {
      cluster.sim.crash("en-3", { unsynced });
      cluster.sim.restart("en-3");
      await cluster.ready("en-3");
      assert.equal(reasonOf(await cluster.read("en-3", id, places[1] as bigint, 50_000)), "unknownExtent");
    }
  });
});

async function sealedAfterRot(off: readonly RuleName[]): Promise<{ rotten: string; good: string }> {
  const cluster = new Cluster(11, { off });
  let told = { rotten: "", good: "" };
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const { end } = await fill(cluster, id, 4, 50_000);
    for (const name of names) await cluster.fence(name, id);
    await cluster.sim.sleep(1_000);
    // The restarted node knows how much content it has to read.
    for (const name of names) {
      cluster.sim.crash(name, { unsynced: "kept" });
      cluster.sim.restart(name);
      await cluster.ready(name);
    }
    const disk = cluster.sim.disk("en-3");
    disk.corrupt(disk.paths().find((each) => each.endsWith(".extent")) ?? "", 8192 + 50_500);
    told = { rotten: reasonOf(await cluster.seal("en-3", id, end)), good: reasonOf(await cluster.seal("en-1", id, end)) };
  });
  return told;
}

test("recovery: a replica that rotted before it was sealed says so, and tells no checksum that good ones would be measured by", async () => {
  assert.deepEqual(await sealedAfterRot([]), { rotten: "damaged", good: "ok" });
  assert.deepEqual(await sealedAfterRot(["checksumOfVerified"]), { rotten: "ok", good: "ok" });
});

test("recovery: a new disk of the same node refuses what was meant for the old one, and knows nothing", async () => {
  const cluster = new Cluster(11);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    await fill(cluster, id, 2, 100);
    const old = await cluster.replicas();
    cluster.sim.crash("en-2");
    cluster.sim.disk("en-2").wipe();
    cluster.sim.keyValue("en-2").wipe();
    cluster.sim.restart("en-2");
    await cluster.ready("en-2");
    const create = {
      smTerm: 1n,
      extentId: 50n,
      ownerEpoch: 1n,
      version: 1n,
      replicas: old,
      stampId: String(cluster.facts("en-1").stampId),
    };
    assert.equal(reasonOf(await cluster.node("en-2").createExtent(create, { timeoutMs })), "wrongDisk");
    const fence = { smTerm: 1n, extentId: BigInt(id), diskId: old[1]?.diskId ?? "" };
    assert.equal(reasonOf(await cluster.node("en-2").fenceExtent(fence, { timeoutMs })), "wrongDisk");
    assert.equal(reasonOf(await cluster.fence("en-2", id)), "unknownExtent");
    assert.equal(reasonOf(await cluster.append("en-1", id, 0, [pattern(1, 1)])), "offsetGap");
  });
});

test("recovery: a disk of another stamp refuses to serve and says so, and serves when its own answers again", async () => {
  const cluster = new Cluster(12);
  await cluster.run(async () => {
    await cluster.allReady();
    await cluster.create();
    await cluster.sim.stop("en-1");
    const own = cluster.stamp;
    cluster.stamp = "another";
    cluster.sim.restart("en-1");
    await cluster.sim.sleep(2_000);
    const status = cluster.sim.role("en-1")?.status;
    assert.equal(status?.ready, false);
    assert.equal(status?.state, "refusing");
    assert.match(status?.waitingFor[0] ?? "", /belongs to stamp/);
    assert.equal(reasonOf(await cluster.fence("en-1", 1)), "wrongStamp");
    cluster.stamp = own;
    await cluster.sim.until(() => cluster.sim.role("en-1")?.status.ready === true, 5_000, "it serves its own stamp again");
  });
});

test("recovery: names that a killed process had not synced are made durable before anything is built on them", async () => {
  for (let step = 0; step < 60; step++) {
    const cluster = new Cluster(500 + step, { config: { journalSegmentsMax: 2 } });
    await cluster.run(async () => {
      // Killed while it makes its journal: the machine goes on, so the next process sees names that no power cut has tested.
      await cluster.sim.sleep(step / 4);
      cluster.sim.crash("en-1", { unsynced: "kept" });
      cluster.sim.restart("en-1");
      await cluster.allReady();
      const id = await cluster.create();
      const size = 100_000;
      const { places } = await fill(cluster, id, 22, size);
      for (const name of names) cluster.sim.crash(name, { unsynced: "lost" });
      for (const name of names) cluster.sim.restart(name);
      await cluster.allReady();
      const fence = unwrap(await cluster.fence("en-1", id));
      unwrap(await cluster.seal("en-1", id, Number(fence.durableBytes)));
      await assertContent(cluster, "en-1", id, places, size);
    });
  }
});

test("recovery: records that a killed process had not synced are made durable before anything is made of them", async () => {
  let replayed = 0;
  for (let step = 0; step < 60; step++) {
    const cluster = new Cluster(700 + step);
    const { sim } = cluster;
    const files = (): readonly string[] =>
      sim
        .disk("en-1")
        .paths()
        .filter((path) => path.endsWith(".extent"));
    await cluster.run(async () => {
      await cluster.allReady();
      const creating = cluster.create(["en-1"]).catch(() => undefined);
      await sim.sleep(step / 20);
      sim.crash("en-1", { unsynced: "kept", stayDown: true });
      await creating;
      const before = files().length;
      sim.restart("en-1");
      for (let i = 0; i < 1_000 && files().length === before; i++) await sim.sleep(0.02);
      if (files().length > before) replayed++;
      await sim.sleep((step % 12) * 0.1);
      sim.crash("en-1", { unsynced: "lost" });
      sim.restart("en-1");
      await cluster.ready("en-1");
      const known = unwrap(await cluster.node("en-1").listExtentReplicas({}, { timeoutMs })).replicas.length;
      assert.equal(files().length, known, `step ${step}: ${files().join(", ")}`);
    });
  }
  assert.ok(replayed > 0, "some record was replayed that was not synced");
});
