/** Metadata restored from a copy that is older than a coding, after the replicas were deleted: what an operator sees, and how the extent is served again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import { fragmentBytesOf, fragmentContentOffset } from "@stamp/extent";
import type { Cluster } from "../testing/cluster.ts";
import { clusterOf, code, contentOf, filesOf, infoOf, isCoded, type Sealed, sealed } from "../testing/coding-harness.ts";
import { newestCopy, restore } from "../testing/restored-store.ts";

const adopt = (cluster: Cluster, extentId: bigint) => cluster.sm((sm, left) => sm.adoptFragments({ extentId }, { timeoutMs: left }));
const statusOf = async (cluster: Cluster) => unwrap(await cluster.sm((sm, left) => sm.getCodingStatus({}, { timeoutMs: left })));
const fragmentFile = ({ sim }: Cluster, name: string): string =>
  sim
    .disk(name)
    .paths()
    .find((path) => path.endsWith(".fragment")) ?? "";

const leadsAgain = (cluster: Cluster): Promise<void> =>
  cluster.until("it leads again", async () => cluster.sim.role("sm1")?.status.state === "leader", 120_000);

function emptyDisk({ sim }: Cluster, name: string): void {
  sim.crash(name, { stayDown: true });
  sim.disk(name).wipe();
  sim.keyValue(name).wipe();
  sim.restart(name);
}

/** Codes an extent, lets its replicas go, and restores metadata of before the coding. */
async function forgotten(cluster: Cluster): Promise<{ readonly extent: Sealed; readonly holders: readonly string[] }> {
  const extent = await sealed(cluster);
  await cluster.sim.sleep(70_000);
  const before = await newestCopy(cluster);
  unwrap(await code(cluster, extent.id));
  await cluster.until("coded", () => isCoded(cluster, extent.id));
  const holders = (await infoOf(cluster, extent.id))?.fragmentNodeIds ?? [];
  await cluster.until("the replicas are gone", async () => !filesOf(cluster).some((file) => file.endsWith(".extent")), 30_000);
  await restore(cluster, before);
  await leadsAgain(cluster);
  return { extent, holders };
}

const isTold = async (cluster: Cluster, id: bigint): Promise<boolean> => {
  const { adoptable, adoptableExtents } = await statusOf(cluster);
  return adoptableExtents === 1n && adoptable[0] === id && ((await infoOf(cluster, id))?.newerFragments ?? 0) > 0;
};

test("restored metadata of before a coding, after the grace: the extent is told, adopted, read, and whole again after losses", async () => {
  for (const lost of [0, 2]) {
    const cluster = clusterOf(192 + lost);
    await cluster.sim.run(async () => {
      const { extent, holders } = await forgotten(cluster);
      for (const name of holders.slice(0, lost)) emptyDisk(cluster, name);
      await cluster.until("told", () => isTold(cluster, extent.id), 30_000);
      await cluster.until("no replica is left", async () => (await infoOf(cluster, extent.id))?.intactCopies === 0, 30_000);
      await cluster.until("adopted", async () => (await adopt(cluster, extent.id)).ok, 30_000);
      await cluster.until("six intact fragments", async () => (await infoOf(cluster, extent.id))?.intactFragments === 6, 60_000);
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
      assert.equal((await statusOf(cluster)).adoptableExtents, 0n);
      const again = await adopt(cluster, extent.id);
      assert.ok(!again.ok && /can be read as its record says/.test(again.failure.message));
      // The next leader finds the same, also what was missing.
      cluster.sim.crash("sm1", { stayDown: true });
      cluster.sim.restart("sm1");
      await leadsAgain(cluster);
      await cluster.until("intact", async () => (await infoOf(cluster, extent.id))?.intactFragments === 6, 30_000);
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
    });
  }
});

test("adopt fragments: too few are refused with the count, and the nodes that are away; then they come back", async () => {
  const cluster = clusterOf(195);
  const { sim } = cluster;
  await sim.run(async () => {
    const { extent, holders } = await forgotten(cluster);
    await cluster.until("told", () => isTold(cluster, extent.id), 30_000);
    for (const name of holders.slice(0, 3)) sim.crash(name, { stayDown: true });
    await sim.sleep(5_000);
    const few = await adopt(cluster, extent.id);
    const away = holders.slice(0, 3).toSorted().join(", ");
    assert.ok(
      !few.ok && few.failure.message.includes("3 of rs-4-2, which needs 4") && few.failure.message.includes(away),
      JSON.stringify(few),
    );
    for (const name of holders.slice(0, 3)) sim.restart(name);
    await cluster.until("adopted", async () => (await adopt(cluster, extent.id)).ok, 30_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});

test("adopt fragments: content that rotted is not taken, and the extent comes back from the others", async () => {
  const cluster = clusterOf(196);
  const { sim } = cluster;
  await sim.run(async () => {
    const { extent, holders } = await forgotten(cluster);
    await cluster.until("told", () => isTold(cluster, extent.id), 30_000);
    const at = fragmentContentOffset(fragmentBytesOf(extent.content.length, 4)) + 9;
    for (const name of holders.slice(1, 3)) sim.disk(name).corrupt(fragmentFile(cluster, name), at);
    const first = await adopt(cluster, extent.id);
    assert.ok(!first.ok && /damaged/.test(first.failure.message), "a node finds it while it reads");
    assert.equal((await infoOf(cluster, extent.id))?.coded, undefined, "the record is as it was");
    await cluster.until("adopted", async () => (await adopt(cluster, extent.id)).ok, 30_000);
    await cluster.until("six intact fragments", async () => (await infoOf(cluster, extent.id))?.intactFragments === 6, 60_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});

/** Codes an extent again whose coding restored metadata do not know, and returns the number of the first coding's fragments that are left. */
async function leftOfFirst(off: RuleName[]): Promise<number> {
  const graceMs = 12_000;
  const cluster = clusterOf(197, ["sm1"], off, { deletionGraceMs: graceMs });
  const { sim } = cluster;
  let left = 0;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    await sim.sleep(70_000);
    const before = await newestCopy(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const files = [...cluster.nodes].map((name) => [name, fragmentFile(cluster, name)] as const).filter(([, file]) => file !== "");
    assert.equal(files.length, 6);
    await restore(cluster, before);
    await leadsAgain(cluster);
    await cluster.until("the coding is forgotten", async () => (await infoOf(cluster, extent.id))?.coded === undefined, 30_000);
    const again = async (): Promise<boolean> => {
      await code(cluster, extent.id);
      await sim.sleep(2_000);
      return isCoded(cluster, extent.id);
    };
    await cluster.until("coded again", again, 120_000);
    await sim.sleep(graceMs + 5_000);
    assert.ok(Buffer.from(await contentOf(cluster, extent)).equals(extent.content), `rules off: ${off.join()}`);
    left = files.filter(([name, file]) => sim.disk(name).paths().includes(file)).length;
  });
  return left;
}

test("restored metadata, rule attemptVersionAboveHeld: no attempt meets a newer fragment, and nothing deletes it; without it one does", async () => {
  assert.equal(await leftOfFirst([]), 6);
  assert.ok((await leftOfFirst(["attemptVersionAboveHeld"])) < 6);
});
