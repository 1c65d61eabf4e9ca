import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { ReplicaState } from "@stamp/wire";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";

interface Facts {
  readonly pass: number;
  readonly extents: number;
  readonly findings: number;
  readonly running: boolean;
  readonly extentsLeft: number;
  readonly finished: { readonly number: number; readonly extents: number; readonly findings: number } | undefined;
  readonly recent: readonly { readonly extentId: number; readonly why: string }[];
}

const scrubOf = (cluster: Cluster, name: string): Facts => cluster.facts(name).scrub as Facts;

async function sealedExtents(cluster: Cluster, count: number, bytes: number): Promise<{ id: number; place: bigint; end: number }[]> {
  const made: { id: number; place: bigint; end: number }[] = [];
  for (let i = 0; i < count; i++) {
    const id = await cluster.create();
    const answer = unwrap(await cluster.append("en-1", id, 0, [pattern(bytes, i)]));
    const end = Number(answer.endBytes);
    for (const name of names) unwrap(await cluster.seal(name, id, end));
    made.push({ id, place: answer.offsetsBytes[0] as bigint, end });
  }
  await cluster.sim.sleep(2_000);
  return made;
}

test("scrub: a flipped bit on disk is found, the replica never served again, reported as damaged, and whole after a copy", async () => {
  const cluster = new Cluster(51, { config: { scrubPauseMs: 1_000 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const extents = await sealedExtents(cluster, 6, 70_000);
    const { id, place, end } = extents[3] as (typeof extents)[number];
    const path = `extents/${id.toString(16).padStart(2, "0")}/${id.toString(16).padStart(14, "0")}.extent`;
    cluster.sim.disk("en-2").corrupt(path, 8192 + 69_000, 0x40);
    await cluster.sim.until(() => scrubOf(cluster, "en-2").recent?.length > 0, 60_000, "the scrub finds it");
    const finding = scrubOf(cluster, "en-2").recent[0];
    assert.equal(finding?.extentId, id);
    assert.match(finding?.why ?? "", /payload checksum/);
    assert.equal(reasonOf(await cluster.read("en-2", id, place, 10)), "damaged", "not even bytes that are whole");
    assert.equal((await cluster.replica("en-2", id)).state, ReplicaState.DAMAGED);
    for (const name of ["en-1", "en-3"]) unwrap(await cluster.read(name, id, place, 70_000));
    const diskId = String(cluster.facts("en-2").diskId);
    const stampId = String(cluster.facts("en-2").stampId);
    const copy = { smTerm: 1n, extentId: BigInt(id), sealedLengthBytes: BigInt(end), version: 3n, ownerEpoch: 1n, diskId, stampId };
    unwrap(await cluster.node("en-2").copyExtent({ ...copy, sources: ["en-1"] }, { timeoutMs: 5_000 }));
    assert.deepEqual(unwrap(await cluster.read("en-2", id, place, 70_000)).payload, pattern(70_000, 3));
    const { pass } = scrubOf(cluster, "en-2");
    await cluster.sim.until(() => (scrubOf(cluster, "en-2").finished?.number ?? 0) > pass, 120_000, "the next pass ends");
    assert.equal(scrubOf(cluster, "en-2").finished?.findings, 0);
    assert.equal(scrubOf(cluster, "en-2").finished?.extents, 6);
  });
});

test("scrub: whatever part of a sealed extent file is hurt, it is found: any byte of the content, a cut end, the file gone", async () => {
  // Few handles stay open: that of a file that is gone would still read it.
  const cluster = new Cluster(52, { config: { scrubPauseMs: 3_000, openFilesMax: 8 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const extents = await sealedExtents(cluster, 12, 3_000);
    const prng = cluster.sim.prng.fork();
    for (const [i, { id, end }] of extents.entries()) {
      const path = `extents/${id.toString(16).padStart(2, "0")}/${id.toString(16).padStart(14, "0")}.extent`;
      const disk = cluster.sim.disk("en-3");
      if (i === 0) disk.remove(path);
      else if (i === 1) disk.get(path)?.setSize(8192 + end - 1);
      else disk.corrupt(path, 8192 + prng.below(end), 1 << prng.below(8));
    }
    await cluster.sim.until(() => scrubOf(cluster, "en-3").finished !== undefined, 120_000, "a pass ends");
    for (const { id } of extents) assert.equal((await cluster.replica("en-3", id)).state, ReplicaState.DAMAGED, `extent ${id}`);
  });
});

test("scrub: a pass goes on after a restart where it was, in its own order", async () => {
  // 1 MiB/s: an extent of 300 kB takes a third of a second.
  const cluster = new Cluster(53, { config: { scrubBytesPerSecond: 1 << 20, scrubPauseMs: 1_000 } });
  await cluster.run(async () => {
    await cluster.allReady();
    await sealedExtents(cluster, 40, 300_000);
    const ran = (): boolean => scrubOf(cluster, "en-1").extents >= 15;
    await cluster.sim.until(() => scrubOf(cluster, "en-1").running && ran(), 120_000, "half a pass");
    const before = scrubOf(cluster, "en-1");
    await cluster.sim.stop("en-1");
    cluster.sim.restart("en-1");
    await cluster.ready("en-1");
    await cluster.sim.sleep(500);
    const after = scrubOf(cluster, "en-1");
    assert.equal(after.pass, before.pass);
    assert.ok(after.extents >= before.extents && after.extents <= before.extents + 4, `${before.extents} → ${after.extents}`);
    assert.ok(after.extentsLeft <= 25);
    await cluster.sim.until(() => scrubOf(cluster, "en-1").finished?.number === before.pass, 120_000, "the pass ends");
    assert.equal(scrubOf(cluster, "en-1").finished?.extents, 40, "every extent once");
    // A damaged state begins anew.
    await cluster.sim.stop("en-1");
    cluster.sim.disk("en-1").corrupt("scrub-state", 3, 0x20);
    cluster.sim.restart("en-1");
    await cluster.ready("en-1");
    await cluster.sim.until(() => scrubOf(cluster, "en-1").finished !== undefined, 120_000, "it scrubs anyway");
  });
});
