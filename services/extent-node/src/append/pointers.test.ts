/** Large appends: in the extent's file, with only a pointer in the journal; beside small ones, over crashes, cuts, damage and a full disk. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, type RuleName, unwrap } from "@stamp/base";
import { decodeSegmentHeader, frameBytes, scanSegment } from "@stamp/extent";
import { ReplicaState } from "@stamp/wire";
import { checkDisk } from "../check/offline.ts";
import { DiskQueue } from "../disk/disk-queue.ts";
import { ExtentFiles } from "../disk/extent-files.ts";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";

const inPlaceBytesMin = 1_000;

interface Scene {
  readonly off?: readonly RuleName[];
  readonly nodes?: readonly string[];
  readonly config?: object;
}

const clusterOf = (seed: number, { config, ...scene }: Scene = {}): Cluster =>
  new Cluster(seed, { ...scene, config: { inPlaceBytesMin, scrubBytesPerSecond: 0, ...config } });

const pathOf = (id: number): string => `extents/${id.toString(16).padStart(2, "0")}/${id.toString(16).padStart(14, "0")}.extent`;

interface Appended {
  readonly size: number;
  readonly offset: bigint;
}

/** All at once, so that large and small ones wait beside one another. */
async function appendAll(cluster: Cluster, id: number, sizes: readonly number[], from = 0): Promise<{ all: Appended[]; end: number }> {
  let end = from;
  const answers = sizes.map((size, i) => {
    const expected = end;
    end += frameBytes(size);
    return cluster.append("en-1", id, expected, [pattern(size, i)]);
  });
  const all = (await Promise.all(answers)).map((answer, i) => ({
    size: sizes[i] as number,
    offset: unwrap(answer).offsetsBytes[0] as bigint,
  }));
  return { all, end };
}

async function assertContent(cluster: Cluster, name: string, id: number, all: readonly Appended[]): Promise<void> {
  for (const [i, { size, offset }] of all.entries()) {
    assert.deepEqual(unwrap(await cluster.read(name, id, offset, size)).payload, pattern(size, i), `${name}, append ${i}`);
  }
}

/** Returns the bytes that the bodies of appends take in the node's journal. */
function journaledBytes(cluster: Cluster, name: string): number {
  const disk = cluster.sim.disk(name);
  const { crc32c } = cluster.tester.digest;
  let bytes = 0;
  for (const path of disk.paths().filter((each) => each.endsWith(".segment"))) {
    const file = disk.get(path);
    const content = file?.read(0, file.sizeBytes) ?? new Uint8Array(0);
    const decoded = decodeSegmentHeader(crc32c, content);
    if (decoded.kind !== "ok") continue;
    for (const { header } of scanSegment(crc32c, decoded.value, content)) if (header.type === "append") bytes += header.bodyBytes;
  }
  return bytes;
}

test("pointers: large appends are in the file before they are acknowledged and not in the journal; all are read everywhere at once", async () => {
  const cluster = clusterOf(201);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const sizes = [100, 50_000, 200, 60_000, 70_000, 300];
    const { all, end } = await appendAll(cluster, id, sizes);
    for (const name of names) {
      assert.ok((cluster.sim.disk(name).sizeOf(pathOf(id)) ?? 0) >= 8192 + end - frameBytes(300), "the last large one is there");
      assert.equal(journaledBytes(cluster, name), frameBytes(100) + frameBytes(200) + frameBytes(300));
    }
    // Before and after the small ones are in the file as well.
    for (const name of names) await assertContent(cluster, name, id, all);
    await cluster.sim.sleep(1_000);
    assert.equal(cluster.facts("en-2").pendingBytes, 0);
    assert.equal(cluster.facts("en-2").fileBytesWritten, end, "each byte once");
    for (const name of names) await assertContent(cluster, name, id, all);
    const sums = await Promise.all(names.map(async (name) => unwrap(await cluster.seal(name, id, end)).checksum));
    assert.equal(new Set(sums).size, 1);
    assert.equal(cluster.sim.disk("en-2").sizeOf(pathOf(id)), 8192 + end);
    for (const name of names) await assertContent(cluster, name, id, all);
  });
});

for (const lost of ["nothing", "the extent table"] as const) {
  test(`pointers: power lost on all nodes during large and small appends, and ${lost}: every acknowledged one is kept`, async () => {
    for (let seed = 300; seed < 320; seed++) {
      const cluster = clusterOf(seed, { config: { journalSegmentsMax: 2 } });
      await cluster.run(async () => {
        await cluster.allReady();
        const id = await cluster.create();
        // Its file has a header: without one, and without the table, a replica is damaged.
        if (lost !== "nothing") await cluster.sim.sleep(100);
        const { prng } = cluster.sim;
        const acknowledged: { size: number; offset: bigint; i: number }[] = [];
        let end = 0;
        const writer = (async (): Promise<void> => {
          const inFlight: Promise<void>[] = [];
          for (let i = 0; i < 60; i++) {
            const size = 1 + (prng.chance(0.5) ? prng.below(1_500) : prng.below(90_000));
            const expected = end;
            end += frameBytes(size);
            inFlight.push(
              cluster.append("en-1", id, expected, [pattern(size, i)], 1, 800).then((outcome) => {
                if (outcome.ok) acknowledged.push({ size, offset: outcome.value.offsetsBytes[0] as bigint, i });
              }),
            );
            if (i % 4 === 3) await Promise.race(inFlight);
          }
          await Promise.all(inFlight);
        })();
        await cluster.sim.sleep(prng.below(30));
        for (const name of names) cluster.sim.crash(name, { unsynced: "lost" });
        if (lost !== "nothing") for (const name of names) cluster.sim.keyValue(name).drop("extents");
        await cluster.sim.sleep(50);
        for (const name of names) cluster.sim.restart(name);
        await writer;
        await cluster.allReady();
        const fences = await Promise.all(names.map(async (name) => unwrap(await cluster.fence(name, id))));
        const length = Math.min(...fences.map((fence) => Number(fence.durableBytes)));
        const sums = await Promise.all(names.map(async (name) => unwrap(await cluster.seal(name, id, length)).checksum));
        assert.equal(new Set(sums).size, 1, `seed ${seed}`);
        for (const { size, offset, i } of acknowledged) {
          for (const name of names) {
            assert.deepEqual(unwrap(await cluster.read(name, id, offset, size)).payload, pattern(size, i), `seed ${seed}`);
          }
        }
      });
    }
  });
}

for (const lost of ["nothing", "the extent table"] as const) {
  test(`pointers: bytes in a file without a pointer mean nothing, also when ${lost} is lost`, async () => {
    const cluster = clusterOf(202, { nodes: ["en-1"] });
    await cluster.run(async () => {
      await cluster.ready("en-1");
      const id = await cluster.create(["en-1"]);
      await cluster.sim.sleep(100);
      const { all, end } = await appendAll(cluster, id, [10_000, 500]);
      await cluster.sim.sleep(100);
      // In the file and synced when the node dies; its pointer is not in the journal.
      const size = cluster.sim.disk("en-1").sizeOf(pathOf(id)) ?? 0;
      const last = cluster.append("en-1", id, end, [pattern(40_000, 2)]);
      for (let i = 0; (cluster.sim.disk("en-1").sizeOf(pathOf(id)) ?? 0) < size + 40_000; i++) {
        assert.ok(i < 100_000, "it is written");
        await cluster.sim.sleep(0.01);
      }
      cluster.sim.crash("en-1", { unsynced: "kept", stayDown: true });
      await cluster.sim.sleep(20);
      if (lost !== "nothing") cluster.sim.keyValue("en-1").drop("extents");
      cluster.sim.restart("en-1");
      assert.equal(reasonOf(await last).startsWith("connection"), true);
      await cluster.ready("en-1");
      assert.equal(Number(unwrap(await cluster.fence("en-1", id)).durableBytes), end);
      unwrap(await cluster.seal("en-1", id, end));
      await assertContent(cluster, "en-1", id, all);
      await cluster.sim.sleep(500);
      assert.equal(cluster.sim.disk("en-1").sizeOf(pathOf(id)), 8192 + end);
    });
  });
}

test("pointers: what is pointed to rots or is cut off while the node is down: fsck says so, the replica is damaged, not shorter", async () => {
  for (const hurt of ["rot", "cut", "file"] as const) {
    const cluster = clusterOf(203);
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      const { end } = await appendAll(cluster, id, [500, 50_000, 400]);
      cluster.sim.crash("en-2", { unsynced: "kept", stayDown: true });
      await cluster.sim.sleep(5);
      const disk = cluster.sim.disk("en-2");
      if (hurt === "rot") disk.corrupt(pathOf(id), 8192 + 30_000);
      else if (hurt === "cut") disk.get(pathOf(id))?.setSize(8192 + 30_000);
      else disk.remove(pathOf(id));
      const { problems } = await checkDisk({ world: cluster.sim.offline("en-2"), nodeId: "en-2" }, false);
      assert.ok(
        problems.some((each) => each.extentId === id && /that the journal points to/.test(each.what)),
        `${hurt}: ${problems.map((each) => each.what).join("; ")}`,
      );
      cluster.sim.restart("en-2");
      await cluster.ready("en-2");
      assert.equal((await cluster.replica("en-2", id)).state, ReplicaState.DAMAGED, hurt);
      assert.equal(reasonOf(await cluster.fence("en-2", id)), "damaged");
      assert.equal(Number(unwrap(await cluster.fence("en-3", id)).durableBytes), end);
    });
  }
});

test("pointers: the bytes beyond a seal are cut off; a crash before the header says so damages nothing", async () => {
  for (let seed = 210; seed < 222; seed++) {
    const cluster = clusterOf(seed);
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      const { all } = await appendAll(cluster, id, [300, 20_000, 30_000, 40_000]);
      const end = frameBytes(300) + frameBytes(20_000);
      for (const name of names) unwrap(await cluster.seal(name, id, end));
      await cluster.sim.sleep(cluster.sim.prng.float() * 30);
      for (const name of names) cluster.sim.crash(name, { unsynced: "lost" });
      for (const name of names) cluster.sim.restart(name);
      await cluster.allReady();
      for (const name of names) {
        assert.equal((await cluster.replica(name, id)).state, ReplicaState.SEALED, `seed ${seed}`);
        await assertContent(cluster, name, id, all.slice(0, 2));
      }
    });
  }
});

test("pointers: a fence waits for what is on its way into the file, and answers with it; other extents do not wait", async () => {
  const cluster = clusterOf(208, { nodes: ["en-1"] });
  await cluster.run(async () => {
    await cluster.ready("en-1");
    const [id, other] = [await cluster.create(["en-1"]), await cluster.create(["en-1"])];
    // Their files are there.
    for (const each of [id, other]) await appendAll(cluster, each, [2_000]);
    const begin = frameBytes(2_000);
    const disk = cluster.sim.disk("en-1");
    disk.slowFactor = 200;
    const large = cluster.append("en-1", id, begin, [pattern(50_000, 1)]);
    const behind = cluster.append("en-1", id, begin + frameBytes(50_000), [pattern(10, 2)]);
    // Both have arrived, and the large one is on its way into its file: payloads may come later than a fence that was sent behind them.
    await cluster.sim.sleep(1.5);
    disk.slowFactor = 1;
    const fence = cluster.fence("en-1", id);
    let ended = "";
    for (const [name, one] of [
      ["large", large],
      ["behind", behind],
      ["fence", fence],
    ] as const)
      void one.then(() => (ended += ` ${name}`));
    await cluster.append("en-1", other, begin, [pattern(10, 3)]).then(() => (ended += " other"));
    assert.equal(Number(unwrap(await fence).durableBytes), begin + frameBytes(50_000) + frameBytes(10));
    assert.match(ended, /^ other .*fence/);
    assert.deepEqual([(await large).ok, (await behind).ok], [true, true]);
  });
});

test("pointers: no room for a large append: it and those behind it fail, nothing is claimed, what was there is sealed and read", async () => {
  for (const seed of [205, 206, 207]) {
    const cluster = clusterOf(seed, { nodes: ["en-1"], config: { highWaterPercent: 100 } });
    await cluster.run(async () => {
      await cluster.ready("en-1");
      const id = await cluster.create(["en-1"]);
      const { all, end } = await appendAll(cluster, id, [500, 20_000, 400]);
      await cluster.sim.sleep(1_000);
      const disk = cluster.sim.disk("en-1");
      disk.options = { ...disk.options, totalBytes: disk.usedBytes() + 30_000 };
      const answers = await Promise.all([
        cluster.append("en-1", id, end, [pattern(100, 3)]),
        cluster.append("en-1", id, end + frameBytes(100), [pattern(50_000, 4)]),
        cluster.append("en-1", id, end + frameBytes(100) + frameBytes(50_000), [pattern(100, 5)]),
        cluster.append("en-1", id, end + 2 * frameBytes(100) + frameBytes(50_000), [pattern(5_000, 6)]),
      ]);
      assert.deepEqual(
        answers.map((each) => reasonOf(each)),
        ["ok", "extentFailed", "extentFailed", "extentFailed"],
      );
      const { durableBytes } = unwrap(await cluster.fence("en-1", id));
      assert.equal(Number(durableBytes), end + frameBytes(100));
      unwrap(await cluster.seal("en-1", id, Number(durableBytes)));
      await cluster.sim.sleep(1_000);
      assert.equal(disk.sizeOf(pathOf(id)), 8192 + Number(durableBytes));
      await assertContent(cluster, "en-1", id, all);
      cluster.sim.crash("en-1", { unsynced: "lost" });
      cluster.sim.restart("en-1");
      await cluster.ready("en-1");
      assert.equal((await cluster.replica("en-1", id)).state, ReplicaState.SEALED);
      await assertContent(cluster, "en-1", id, all);
    });
  }
});

test("pointers: a sync of the file that fails stops the node; nothing of the append is claimed at its next start", async () => {
  const cluster = clusterOf(208, { nodes: ["en-1"] });
  await cluster.run(async () => {
    await cluster.ready("en-1");
    const id = await cluster.create(["en-1"]);
    const { all, end } = await appendAll(cluster, id, [500, 20_000]);
    await cluster.sim.sleep(1_000);
    cluster.sim.disk("en-1").failNext("sync", "syncFailed", ".extent");
    assert.equal((await cluster.append("en-1", id, end, [pattern(50_000, 2)])).ok, false);
    await cluster.sim.until(() => !cluster.sim.isUp("en-1"), 10_000, "it stops");
    cluster.sim.restart("en-1");
    await cluster.ready("en-1");
    assert.equal(Number(unwrap(await cluster.fence("en-1", id)).durableBytes), end);
    unwrap(await cluster.seal("en-1", id, end));
    await assertContent(cluster, "en-1", id, all);
  });
});

test("pointers: segments are used again when what they point to is in headers and table", async () => {
  const cluster = clusterOf(209, { config: { journalSegmentsMax: 2 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const sealed: { id: number; all: Appended[] }[] = [];
    // More than two segments may point to.
    for (let i = 0; i < 20; i++) {
      const id = await cluster.create();
      const { all, end } = await appendAll(cluster, id, [800_000, 500, 800_000]);
      for (const name of names) unwrap(await cluster.seal(name, id, end));
      sealed.push({ id, all });
    }
    await cluster.sim.sleep(2_000);
    for (const name of names) cluster.sim.crash(name, { unsynced: "lost" });
    for (const name of names) cluster.sim.restart(name);
    await cluster.allReady();
    for (const { id, all } of sealed) await assertContent(cluster, "en-2", id, all);
    assert.ok(Number(cluster.facts("en-2").replayedRecords) < 100, `${cluster.facts("en-2").replayedRecords} records`);
  });
});

test("pointers: who makes an extent's file first makes it alone, whoever else writes to it", async () => {
  const cluster = clusterOf(223, { nodes: ["en-1"] });
  await cluster.run(async () => {
    const world = cluster.sim.world("alone");
    let looked = 0;
    const exists = (path: string): Promise<boolean> => {
      looked += 1;
      return world.disk.exists(path);
    };
    const disk = new Proxy(world.disk, { get: (of, key) => (key === "exists" ? exists : Reflect.get(of, key).bind(of)) });
    const counted = { ...world, disk };
    const files = new ExtentFiles(counted, new DiskQueue(counted), 8, { stampId: "s", diskId: "d" });
    await Promise.all([1, 2, 3].map(() => files.ensure(extentId(7))));
    assert.equal(looked, 1);
  });
});

test("pointers: a node that was stopped in the middle of a large append takes others afterwards", async () => {
  const cluster = clusterOf(61);
  await cluster.run(async () => {
    await cluster.allReady();
    const first = await cluster.create();
    cluster.sim.disk("en-1").slowFactor = 20;
    const stopped = cluster.append("en-1", first, 0, [pattern(20_000, 1)], 1, 60_000);
    await cluster.sim.sleep(3);
    cluster.sim.pause("en-1");
    await cluster.sim.sleep(30_000);
    cluster.sim.resume("en-1");
    await stopped;
    cluster.sim.disk("en-1").slowFactor = 1;
    await cluster.sim.sleep(1_000);
    const id = await cluster.create();
    let end = 0;
    for (let i = 0; i < 3; i++) end = Number(unwrap(await cluster.append("en-1", id, end, [pattern(20_000, i)], 1, 800)).endBytes);
  });
});
