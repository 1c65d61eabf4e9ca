/** The metadata are restored from a copy of before or after an extent was coded: every byte is read, and nothing that a record needs is deleted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, unwrap } from "@stamp/base";
import type { Cluster } from "../testing/cluster.ts";
import { clusterOf, code, contentOf, filesOf, infoOf, isCoded, type Sealed, sealed, timeoutMs } from "../testing/coding-harness.ts";
import { newestCopy, restore } from "../testing/restored-store.ts";

async function leadsAgain(cluster: Cluster): Promise<void> {
  await cluster.until("it leads again", async () => cluster.sim.role("sm1")?.status.state === "leader", 120_000);
}

async function replicaOf(cluster: Cluster, { id, content }: Sealed): Promise<Uint8Array> {
  const address = (await infoOf(cluster, id))?.location?.addresses[0] ?? "";
  const parts: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += parts.at(-1)?.length ?? 0) {
    const request = { extentId: id, offsetBytes: BigInt(at), lengthBytes: 1 << 20 };
    parts.push(unwrap(await cluster.en(address).readRaw(request, { timeoutMs })).payload);
  }
  return concatBytes(parts);
}

test("restored metadata of after a coding: the extent is read from its fragments, and a lost one is made anew", async () => {
  const cluster = clusterOf(191);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    await sim.sleep(90_000);
    assert.ok(!filesOf(cluster).some((file) => file.endsWith(".extent")), "its replicas are gone");
    await restore(cluster);
    await leadsAgain(cluster);
    assert.ok(await isCoded(cluster, extent.id));
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    const lost = (await infoOf(cluster, extent.id))?.fragmentNodeIds[2] ?? "";
    const version = (await infoOf(cluster, extent.id))?.coded?.fragments[2]?.version;
    sim.crash(lost, { stayDown: true });
    sim.disk(lost).wipe();
    sim.keyValue(lost).wipe();
    sim.restart(lost);
    const isNew = async (): Promise<boolean> => (await infoOf(cluster, extent.id))?.coded?.fragments[2]?.version !== version;
    await cluster.until("made anew", isNew, 60_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});

test("restored metadata of before a coding, within the grace: the replicas serve, the fragments stay, and the extent is coded again", async () => {
  const cluster = clusterOf(192, ["sm1"], [], { deletionGraceMs: 120_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    await sim.sleep(70_000);
    const before = await newestCopy(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    await sim.sleep(20_000);
    await restore(cluster, before);
    await leadsAgain(cluster);
    await cluster.until("replicated", async () => (await infoOf(cluster, extent.id))?.intactCopies === 3, 60_000);
    assert.equal((await infoOf(cluster, extent.id))?.coded, undefined);
    assert.deepEqual(await replicaOf(cluster, extent), extent.content);
    await sim.sleep(200_000);
    assert.deepEqual(await replicaOf(cluster, extent), extent.content, "the old grace deletes no replica");
    assert.equal(filesOf(cluster).filter((file) => file.endsWith(".fragment")).length, 6, "nothing explains them: they are left alone");
    // The versions of the restored record were given before: the attempt gets one above every fragment that nodes hold.
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded again, by the first attempt", () => isCoded(cluster, extent.id), 200_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    await cluster.until("the replicas are gone", async () => !filesOf(cluster).some((file) => file.endsWith(".extent")), 300_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});
