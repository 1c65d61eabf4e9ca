/** Hurt journals. Each way to be hurt has an end of its own, and none is a replica that is silently shorter. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import { encodeNodeIdentity } from "@stamp/extent";
import { ReplicaState } from "@stamp/wire";
import { checkJournalDisk, journalIdentityFile } from "../disk/node-disk.ts";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";

interface Filled {
  readonly id: number;
  readonly end: number;
  readonly places: bigint[];
}

async function fill(cluster: Cluster, id: number, count: number, size: number, from = 0): Promise<Filled> {
  let end = from;
  const places: bigint[] = [];
  for (let i = 0; i < count; i++) {
    const answer = unwrap(await cluster.append("en-1", id, end, [pattern(size, i)]));
    end = Number(answer.endBytes);
    places.push(answer.offsetsBytes[0] as bigint);
  }
  return { id, end, places };
}

const segmentsOf = (cluster: Cluster, name: string): string[] =>
  cluster.sim
    .disk(name)
    .paths()
    .filter((path) => /^journal\/\d+\.segment$/.test(path));

function contentOf(cluster: Cluster, name: string, path: string): Uint8Array {
  const file = cluster.sim.disk(name).get(path);
  assert.ok(file !== undefined, path);
  return file.read(0, file.sizeBytes);
}

function put(cluster: Cluster, name: string, path: string, content: Uint8Array): void {
  const disk = cluster.sim.disk(name);
  const file = disk.get(path) ?? disk.create(path);
  file.setSize(content.length);
  file.write(0, content);
}

const generationOf = (segment: Uint8Array): number => new DataView(segment.buffer, segment.byteOffset).getUint32(16, true);

async function down(cluster: Cluster, name: string): Promise<void> {
  cluster.sim.crash(name, { unsynced: "kept", stayDown: true });
  await cluster.sim.sleep(5);
}

async function up(cluster: Cluster, name: string): Promise<void> {
  cluster.sim.restart(name);
  await cluster.ready(name);
}

/** It is made before the table is told of it. */
async function untilFile(cluster: Cluster, name: string, id: number): Promise<void> {
  for (let i = 0; i < 100_000; i++) {
    if (
      cluster.sim
        .disk(name)
        .paths()
        .some((path) => path.endsWith(`${id.toString(16).padStart(14, "0")}.extent`))
    )
      return;
    await cluster.sim.sleep(0.01);
  }
  assert.fail(`no file of ${id}`);
}

/** A sealed extent whose content is in its file, and an open one whose newest data are in the journal only. */
async function withData(cluster: Cluster): Promise<{ sealed: Filled; open: Filled }> {
  await cluster.allReady();
  const sealed = await fill(cluster, await cluster.create(), 3, 20_000);
  for (const name of names) unwrap(await cluster.seal(name, sealed.id, sealed.end));
  await cluster.sim.sleep(500);
  const open = await fill(cluster, await cluster.create(), 4, 1_000);
  return { sealed, open };
}

test("journal, torn tail: what was never known to be synced is forgotten; the replica is whole up to it", async () => {
  const cluster = new Cluster(61);
  await cluster.run(async () => {
    const { open } = await withData(cluster);
    await down(cluster, "en-2");
    const [path] = segmentsOf(cluster, "en-2") as [string];
    const bytes = contentOf(cluster, "en-2", path);
    let last = 0;
    for (let at = 8192; at < bytes.length; at += 4096) if (bytes[at + 12] !== 0) last = at;
    cluster.sim.disk("en-2").corrupt(path, last + 72 + 10);
    await up(cluster, "en-2");
    const fence = unwrap(await cluster.fence("en-2", open.id));
    assert.equal(Number(fence.durableBytes), open.end - 1_020);
    assert.equal((await cluster.replica("en-2", open.id)).state, ReplicaState.CLOSED);
  });
});

test("journal, damage in the middle: the replica it concerns is damaged, others are whole", async () => {
  const cluster = new Cluster(62);
  await cluster.run(async () => {
    const { sealed, open } = await withData(cluster);
    await down(cluster, "en-2");
    const [path] = segmentsOf(cluster, "en-2") as [string];
    const bytes = contentOf(cluster, "en-2", path);
    let last = 0;
    for (let at = 8192; at < bytes.length; at += 4096) if (bytes[at + 12] !== 0) last = at;
    // The batch before the last is corrupted: the last one says that it was synced.
    cluster.sim.disk("en-2").corrupt(path, last - 4096 + 72 + 10);
    await up(cluster, "en-2");
    assert.equal(reasonOf(await cluster.fence("en-2", open.id)), "damaged");
    unwrap(await cluster.read("en-2", sealed.id, sealed.places[0] as bigint, 20_000));
  });
});

test("journal, a segment twice: the copy that says more counts, nothing is lost, an outdated one changes nothing", async () => {
  const cluster = new Cluster(63, { config: { journalSegmentsMax: 2, pendingBytesMax: 300_000 } });
  await cluster.run(async () => {
    const { open } = await withData(cluster);
    const [path] = segmentsOf(cluster, "en-2") as [string];
    const early = contentOf(cluster, "en-2", path);
    const more = await fill(cluster, open.id, 3, 1_000, open.end);
    await down(cluster, "en-2");
    // Sorted behind and before the real one.
    for (const name of ["journal/000099.segment", "journal/000000.segment"]) put(cluster, "en-2", name, early);
    await up(cluster, "en-2");
    assert.equal(Number(unwrap(await cluster.fence("en-2", open.id)).durableBytes), more.end);
    // Restored long after the real one was used again: older than what is needed.
    const next = await fill(cluster, await cluster.create(), 20, 200_000);
    await down(cluster, "en-2");
    put(cluster, "en-2", "journal/000098.segment", early);
    await up(cluster, "en-2");
    const fence = unwrap(await cluster.fence("en-2", next.id));
    assert.equal(Number(fence.durableBytes), next.end);
  });
});

for (const off of [[], ["journalBegunRecorded"]] as readonly (readonly RuleName[])[]) {
  test(`journal, the newest segment is gone${off.length > 0 ? ", without its generation on record: silently shorter" : ": what was not sealed is damaged, what was is whole"}`, async () => {
    const cluster = new Cluster(64, { off, config: { journalSegmentsMax: 3, journalBatchBytesMax: 300_000 } });
    await cluster.run(async () => {
      const { sealed, open } = await withData(cluster);
      // On into the next segments, until the newest holds something of `open` that no other does.
      const other = await fill(cluster, await cluster.create(), 8, 150_000);
      const more = await fill(cluster, open.id, 3, 1_000, open.end);
      await cluster.sim.sleep(500);
      const young = await cluster.create();
      await untilFile(cluster, "en-2", young);
      await down(cluster, "en-2");
      const segments = segmentsOf(cluster, "en-2");
      assert.ok(segments.length >= 2, "there is an older one");
      const newest = segments.toSorted(
        (a, b) => generationOf(contentOf(cluster, "en-2", b)) - generationOf(contentOf(cluster, "en-2", a)),
      )[0] as string;
      cluster.sim.disk("en-2").remove(newest);
      await up(cluster, "en-2");
      unwrap(await cluster.read("en-2", sealed.id, sealed.places[0] as bigint, 20_000));
      const fence = await cluster.fence("en-2", open.id);
      if (off.length > 0) assert.ok(Number(unwrap(fence).durableBytes) < more.end);
      else {
        assert.equal(reasonOf(fence), "damaged");
        assert.equal(reasonOf(await cluster.fence("en-2", other.id)), "damaged");
        assert.equal(reasonOf(await cluster.fence("en-2", young)), "damaged", "its file tells that it was here");
        // It goes on, and what it writes now survives.
        const later = await fill(cluster, await cluster.create(), 3, 1_000);
        await down(cluster, "en-2");
        await up(cluster, "en-2");
        assert.equal(Number(unwrap(await cluster.fence("en-2", later.id)).durableBytes), later.end);
      }
    });
  });
}

test("extent node: its status does not say serving while every replica is damaged, and names what to do", async () => {
  const cluster = new Cluster(70, { config: { journalSegmentsMax: 2, pendingBytesMax: 300_000, scrubBytesPerSecond: 0 } });
  await cluster.run(async () => {
    const { sealed } = await withData(cluster);
    const status = () => cluster.sim.role("en-2")?.status;
    assert.deepEqual([status()?.state, status()?.waitingFor], ["serving", []]);
    await fill(cluster, await cluster.create(), 20, 200_000);
    await down(cluster, "en-2");
    const disk = cluster.sim.disk("en-2");
    const lose = (folder: string): void => {
      for (const path of disk.paths().filter((each) => each.startsWith(folder))) disk.remove(path);
    };
    lose("extents/01/");
    await up(cluster, "en-2");
    assert.equal((await cluster.replica("en-2", sealed.id)).state, ReplicaState.DAMAGED);
    assert.equal(status()?.state, "serving", "it has others");
    assert.match(status()?.waitingFor.join() ?? "", /^the repair of 1 of its 3 replicas; .*stamp scrub status/);
    await down(cluster, "en-2");
    lose("extents/");
    await up(cluster, "en-2");
    assert.equal(status()?.state, "damaged");
    assert.match(status()?.waitingFor.join() ?? "", /^the repair of its replicas, all 3 damaged; .*stamp repair status/);
    assert.equal(status()?.ready, true, "it takes new extents and copies");
    await cluster.create();
    assert.equal(status()?.state, "serving");
  });
});

test("journal, all of it is gone: the node does not start on that by itself; told to, what was not sealed is damaged", async () => {
  for (const accept of [false, true]) {
    const cluster = new Cluster(65, { config: { acceptJournalLoss: String(accept) } });
    await cluster.run(async () => {
      const { sealed, open } = await withData(cluster);
      // Until its file is there: before, not even that it was here is known, and unknown is no length either.
      await cluster.sim.sleep(500);
      await down(cluster, "en-2");
      for (const path of cluster.sim.disk("en-2").paths()) if (path.startsWith("journal/")) cluster.sim.disk("en-2").remove(path);
      cluster.sim.restart("en-2");
      if (!accept) {
        await cluster.sim.sleep(3_000);
        const status = cluster.sim.role("en-2")?.status;
        assert.equal(status?.state, "refusing");
        assert.match(status?.waitingFor.join() ?? "", /the journal is gone.*acceptJournalLoss/);
        assert.equal(reasonOf(await cluster.fence("en-2", open.id)), "damaged", "nothing is answered");
        return;
      }
      await cluster.ready("en-2");
      assert.equal(reasonOf(await cluster.fence("en-2", open.id)), "damaged");
      unwrap(await cluster.read("en-2", sealed.id, sealed.places[0] as bigint, 20_000));
    });
  }
});

test("journal, two journals in one folder, or the disk of another node's: the node does not start", async () => {
  const cluster = new Cluster(66);
  await cluster.run(async () => {
    await withData(cluster);
    await down(cluster, "en-2");
    const [path] = segmentsOf(cluster, "en-1") as [string];
    put(cluster, "en-2", "journal/000077.segment", contentOf(cluster, "en-1", path));
    cluster.sim.restart("en-2");
    await cluster.sim.sleep(2_000);
    assert.match(cluster.sim.role("en-2")?.status.waitingFor.join() ?? "", /two journals are mixed/);

    const world = cluster.sim.world("journal-disk");
    const identity = { stampId: "s", nodeId: "en-1", diskId: "d1" };
    unwrap(await checkJournalDisk(world, world.disk, identity));
    unwrap(await checkJournalDisk(world, world.disk, identity));
    assert.equal(reasonOf(await checkJournalDisk(world, world.disk, { ...identity, nodeId: "en-2", diskId: "d2" })), "wrongDisk");
    await world.disk.writeAtomically(journalIdentityFile, encodeNodeIdentity(world.digest.crc32c, identity).subarray(0, 20));
    assert.equal(reasonOf(await checkJournalDisk(world, world.disk, identity)), "damaged");
  });
});

test("extent node: its incarnation never goes back, whichever of the places it is kept in is lost", async () => {
  const cluster = new Cluster(67);
  const incarnation = async (): Promise<number> => {
    const answer = await cluster.node("en-2").getNodeReport({ smTerm: BigInt(cluster.smTerm) }, { timeoutMs: 1_000 });
    return Number(unwrap(answer).incarnation);
  };
  await cluster.run(async () => {
    const { sealed } = await withData(cluster);
    let before = await incarnation();
    for (const lose of [
      () => cluster.sim.keyValue("en-2").wipe(),
      () => cluster.sim.keyValue("en-2").corrupt("identity"),
      () => cluster.sim.disk("en-2").remove("starts"),
    ]) {
      await down(cluster, "en-2");
      lose();
      await up(cluster, "en-2");
      const now = await incarnation();
      assert.ok(now > before, `${before} → ${now}`);
      before = now;
      unwrap(await cluster.read("en-2", sealed.id, sealed.places[0] as bigint, 20_000));
    }
  });
});

test("extent node: only its files are lost and the table remains: it is a new, empty disk, not one that claims what is gone", async () => {
  const cluster = new Cluster(68);
  await cluster.run(async () => {
    const { sealed } = await withData(cluster);
    const disk = cluster.facts("en-2").diskId;
    await down(cluster, "en-2");
    cluster.sim.disk("en-2").wipe();
    await up(cluster, "en-2");
    assert.notEqual(cluster.facts("en-2").diskId, disk);
    assert.equal(reasonOf(await cluster.read("en-2", sealed.id, sealed.places[0] as bigint, 1)), "unknownExtent");
  });
});

for (const off of [[], ["missingFileIsDamage"]] as readonly (readonly RuleName[])[]) {
  test(`extent node: a sealed extent's file is gone while the node was down: ${off.length > 0 ? "unnoticed without the rule" : "damaged from the start"}`, async () => {
    const cluster = new Cluster(69, { off, config: { journalSegmentsMax: 2, pendingBytesMax: 300_000, scrubBytesPerSecond: 0 } });
    await cluster.run(async () => {
      const { sealed } = await withData(cluster);
      // So much that nothing of it is replayed from the journal.
      await fill(cluster, await cluster.create(), 20, 200_000);
      await down(cluster, "en-2");
      const path = cluster.sim
        .disk("en-2")
        .paths()
        .find((each) => each.startsWith("extents/01/")) as string;
      cluster.sim.disk("en-2").remove(path);
      await up(cluster, "en-2");
      const { state } = await cluster.replica("en-2", sealed.id);
      assert.equal(state, off.length > 0 ? ReplicaState.SEALED : ReplicaState.DAMAGED);
    });
  });
}
