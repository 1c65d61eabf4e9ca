import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";

const mebibyte = 1 << 20;

/** Leaves the node's disk this much room beyond its present content. */
function leaveFree(cluster: Cluster, name: string, freeBytes: number): void {
  const disk = cluster.sim.disk(name);
  disk.options = { ...disk.options, totalBytes: disk.usedBytes() + freeBytes };
}

function empty(cluster: Cluster, name: string): void {
  const disk = cluster.sim.disk(name);
  disk.options = { ...disk.options, totalBytes: 2 ** 34 };
}

async function fill(
  cluster: Cluster,
  id: number,
  count: number,
  size: number,
  from = 0,
): Promise<{ end: number; reason: string; places: bigint[] }> {
  let end = from;
  const places: bigint[] = [];
  for (let i = 0; i < count; i++) {
    const answer = await cluster.append("en-1", id, end, [pattern(size, i)]);
    if (!answer.ok) return { end, reason: `${answer.failure.reason} ${answer.failure.message}`, places };
    end = Number(answer.value.endBytes);
    places.push(answer.value.offsetsBytes[0] as bigint);
  }
  return { end, reason: "ok", places };
}

const config = { reserveBytes: 4 * mebibyte, highWaterPercent: 99, journalSegmentsMax: 3 };

test("disk full: a node that comes to its reserve refuses bytes and extents cleanly, serves, seals, and takes them again", async () => {
  const cluster = new Cluster(71, { config: { ...config, highWaterPercent: 60 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const kept = await cluster.create();
    const before = await fill(cluster, kept, 3, 50_000);
    await cluster.sim.sleep(3_000);
    leaveFree(cluster, "en-2", 6 * mebibyte);
    await cluster.sim.sleep(2_500);
    const filled = await fill(cluster, kept, 60, 100_000, before.end);
    assert.match(filled.reason, /en-2: the disk of en-2 is full/);
    assert.ok(filled.places.length >= 10 && filled.places.length < 25, `${filled.places.length} went in`);
    assert.ok(cluster.sim.disk("en-2").usedBytes() <= cluster.sim.disk("en-2").options.totalBytes - 3 * mebibyte, "the reserve is kept");
    assert.equal(reasonOf(await cluster.fence("en-2", kept)), "ok");
    for (const name of names) unwrap(await cluster.seal(name, kept, filled.end));
    for (const [i, place] of filled.places.entries()) {
      assert.deepEqual(unwrap(await cluster.read("en-2", kept, place, 100_000)).payload, pattern(100_000, i));
    }
    await assert.rejects(cluster.create(), /nearly full/);
    await cluster.create(["en-1", "en-3"]);
    assert.equal(cluster.facts("en-2").takesExtents, false);
    empty(cluster, "en-2");
    await cluster.sim.sleep(2_500);
    assert.equal((await fill(cluster, await cluster.create(), 10, 100_000)).reason, "ok");
  });
});

test("disk full: others fill the disk to the last byte: appends fail with the reason, fences and seals are recorded, all is kept", async () => {
  for (const seed of [72, 73, 74]) {
    const cluster = new Cluster(seed, { config: { ...config, pendingBytesMax: 300_000, journalSegmentsMax: 2 } });
    await cluster.run(async () => {
      await cluster.allReady();
      const sealed = await cluster.create();
      const first = await fill(cluster, sealed, 3, 50_000);
      const open = await Promise.all([0, 1, 2, 3, 4, 5].map(() => cluster.create()));
      await cluster.sim.sleep(1_000);
      leaveFree(cluster, "en-1", 0);
      // Until the node has looked it takes more than it has room for.
      const filled = await Promise.all(open.map((id) => fill(cluster, id, 30, 60_000)));
      assert.ok(
        filled.every((each) => /full|not durable everywhere in time|an append .* failed/.test(each.reason)),
        filled.map((each) => each.reason).join(),
      );
      await cluster.sim.until(() => cluster.facts("en-1").diskFull === true, 10_000, "it is full");
      assert.match((await fill(cluster, open[0] as number, 1, 10, filled[0]?.end)).reason, /full|extentFailed|extentFenced/);
      for (const [i, id] of open.entries()) {
        const fence = unwrap(await cluster.fence("en-1", id));
        assert.ok(Number(fence.durableBytes) >= (filled[i]?.end ?? 0), "what was acknowledged is there");
        unwrap(await cluster.seal("en-1", id, Number(fence.durableBytes)));
        // Served from memory until it can be written.
        const { places } = filled[i] as (typeof filled)[number];
        for (const [k, place] of places.entries()) {
          assert.deepEqual(unwrap(await cluster.read("en-1", id, place, 60_000)).payload, pattern(60_000, k));
        }
      }
      unwrap(await cluster.seal("en-1", sealed, first.end));
      // Room comes back: everything is written, and the node takes extents again.
      empty(cluster, "en-1");
      await cluster.sim.until(
        () => cluster.facts("en-1").pendingBytes === 0 && cluster.facts("en-1").diskFull === false,
        20_000,
        "it is written",
      );
      await cluster.sim.sleep(2_000);
      assert.equal((await fill(cluster, await cluster.create(), 20, 100_000)).reason, "ok");
      cluster.sim.crash("en-1", { unsynced: "lost", stayDown: true });
      cluster.sim.restart("en-1");
      await cluster.ready("en-1");
      for (const [i, id] of open.entries()) {
        for (const [k, place] of (filled[i]?.places ?? []).entries()) {
          assert.deepEqual(unwrap(await cluster.read("en-1", id, place, 60_000)).payload, pattern(60_000, k));
        }
      }
    });
  }
});

test("disk full: a copy that does not fit is refused, and leaves nothing behind", async () => {
  const cluster = new Cluster(75, { nodes: [...names, "en-4"], config });
  await cluster.run(async () => {
    await cluster.allReady();
    await cluster.ready("en-4");
    const id = await cluster.create();
    const { end } = await fill(cluster, id, 30, 100_000);
    for (const name of names) unwrap(await cluster.seal(name, id, end));
    leaveFree(cluster, "en-4", 5 * mebibyte);
    await cluster.sim.sleep(2_500);
    const copy = () =>
      cluster.node("en-4").copyExtent(
        {
          smTerm: 1n,
          extentId: BigInt(id),
          sealedLengthBytes: BigInt(end),
          version: 3n,
          ownerEpoch: 1n,
          diskId: String(cluster.facts("en-4").diskId),
          sources: ["en-1"],
          stampId: String(cluster.facts("en-4").stampId),
        },
        { timeoutMs: 10_000 },
      );
    assert.equal(reasonOf(await copy()), "diskFull");
    // It looked as if it would fit, and does not.
    empty(cluster, "en-4");
    await cluster.sim.sleep(2_500);
    leaveFree(cluster, "en-4", mebibyte);
    assert.equal(reasonOf(await copy()), "diskFull");
    assert.equal(reasonOf(await cluster.read("en-4", id, 16n, 1)), "unknownExtent");
    assert.ok(
      !cluster.sim
        .disk("en-4")
        .paths()
        .some((path) => path.endsWith(".copy")),
      "nothing is left",
    );
    empty(cluster, "en-4");
    await cluster.sim.sleep(2_500);
    assert.equal(reasonOf(await copy()), "ok");
  });
});

test("disk full: without free inodes a node takes no extents and refuses bytes at once, says so, and takes both when there are some again", async () => {
  const cluster = new Cluster(77, { config });
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const { end } = await fill(cluster, id, 3, 50_000);
    const disk = cluster.sim.disk("en-1");
    const roomy = disk.options;
    disk.options = { ...roomy, totalFiles: disk.fileCount };
    await cluster.sim.sleep(2_500);
    const { takesExtents, freeFiles, diskFull } = cluster.facts("en-1");
    assert.deepEqual([takesExtents, freeFiles, diskFull], [false, 0, true]);
    const { reason } = await fill(cluster, id, 1, 10, end);
    assert.match(reason, /diskFull.*0 of \d+ inodes/);
    await assert.rejects(cluster.create(), /more files have to be possible/);
    disk.options = roomy;
    await cluster.sim.sleep(2_500);
    assert.equal((await fill(cluster, await cluster.create(), 3, 50_000)).reason, "ok");
  });
});

test("disk full: inodes that run out between two looks hold acknowledged data in the journal, and it is written when there are some again", async () => {
  const cluster = new Cluster(78, { config });
  await cluster.run(async () => {
    await cluster.allReady();
    await cluster.sim.sleep(1_000);
    const ids = await Promise.all([0, 1, 2, 3].map(() => cluster.create()));
    for (const name of names)
      cluster.sim.disk(name).options = { ...cluster.sim.disk(name).options, totalFiles: cluster.sim.disk(name).fileCount };
    const filled = await Promise.all(ids.map((id) => fill(cluster, id, 1, 50_000)));
    await cluster.sim.sleep(5_000);
    for (const name of names) cluster.sim.disk(name).options = { ...cluster.sim.disk(name).options, totalFiles: 1_000 };
    await cluster.sim.until(() => names.every((name) => cluster.facts(name).pendingBytes === 0), 20_000, "it is written");
    for (const [i, id] of ids.entries())
      for (const [k, place] of (filled[i]?.places ?? []).entries())
        assert.deepEqual(unwrap(await cluster.read("en-1", id, place, 50_000)).payload, pattern(50_000, k));
    await cluster.sim.sleep(2_500);
    assert.equal((await fill(cluster, await cluster.create(), 3, 50_000)).reason, "ok");
  });
});
