/** The whole folder of the lock service, store and mark, is put back from an older backup: the stream manager refuses it, the restore works. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { present, type RuleName, unwrap } from "@stamp/base";
import { metadataStoreName, restoreMetadata } from "@stamp/lock-service";
import { MetadataClient, openSnapshot, StoreAge } from "@stamp/metadata-store";

import { markPath } from "@stamp/ports";
import { Cluster, first, nodeNames } from "./cluster.test.ts";

const timeoutMs = 2_000;
const copiesFolder = "metadata-copies";

/** Streams `/old` before the backup and `/new` after it, copies of both on the nodes, then the backup is put back. */
async function putBack(cluster: Cluster, managerRestarts: boolean): Promise<{ readonly newExtent: bigint; readonly before: string[][] }> {
  const { sim } = cluster;
  sim.world("backup");
  await cluster.open("/old", 1);
  await sim.sleep(70_000);
  await sim.stop("lock");
  sim.keyValue("backup").copyFrom(sim.keyValue("lock"));
  const mark = await sim.offline("lock").disk.readWhole(markPath(metadataStoreName));
  sim.restart("lock");
  const opened = await cluster.open("/new", 1);
  const extent = first(await cluster.next("/new", 1, opened.extents.at(-1)?.extentId ?? 0n));
  await sim.sleep(70_000);
  const before = await copies(cluster);
  const restarting = managerRestarts ? ["sm1", ...nodeNames] : [];
  for (const name of restarting) await sim.stop(name);
  await sim.stop("lock");
  sim.keyValue("lock").copyFrom(sim.keyValue("backup"));
  await sim.offline("lock").disk.writeAtomically(markPath(metadataStoreName), present(mark, "the mark of the store"));
  for (const name of ["lock", ...restarting]) sim.restart(name);
  return { newExtent: extent.extentId, before };
}

const copies = (cluster: Cluster): Promise<string[][]> =>
  Promise.all(nodeNames.map((node) => cluster.sim.world(node).disk.list(copiesFolder)));

for (const managerRestarts of [false, true]) {
  const who = managerRestarts ? "all that start with it" : "a manager that knew the newer one";
  test(`store put back: ${who} refuses it and says what to do; copies stay; the restore brings everything back`, async () => {
    const cluster = new Cluster({ seed: 21 });
    const { sim } = cluster;
    await sim.run(async () => {
      const { newExtent, before } = await putBack(cluster, managerRestarts);
      const status = () => sim.role("sm1")?.status;
      await cluster.until(
        "it is refused",
        async () => {
          assert.ok(!managerRestarts || status()?.state !== "leader", "nothing is served from the older map");
          return status()?.state === "damaged";
        },
        60_000,
      );
      for (let i = 0; i < 100; i++) {
        await sim.sleep(1_000);
        assert.equal(status()?.state, "damaged");
      }
      assert.match(status()?.waitingFor[0] ?? "", /lock is at transaction \d+, but \d+ was seen.*`stamp metadata restore --replace FILE`/);
      assert.equal((await cluster.tryOpen("/other", 1, 3_000)).ok, false);
      assert.deepEqual(await copies(cluster), before);

      await sim.stop("lock");
      sim.keyValue("lock").drop(metadataStoreName);
      const file = await sim.world("en1").disk.open(`${copiesFolder}/${before[0]?.toSorted().at(-1)}`);
      const offline = sim.offline("lock");
      const snapshot = unwrap(await openSnapshot(file, (bytes, seed) => offline.digest.crc32c(bytes, seed)));
      unwrap(await restoreMetadata(offline, snapshot));
      sim.restart("lock");
      await cluster.until("it leads again", async () => status()?.state === "leader", 60_000);
      const found = await cluster.open("/new", 2);
      assert.ok(found.extents.some(({ extentId }) => extentId === newExtent));
    });
  });
}

test("store put back: without the rule the older map is served", async () => {
  const cluster = new Cluster({ seed: 21, without: ["storeNotOlder"] satisfies RuleName[] });
  const { sim } = cluster;
  await sim.run(async () => {
    await putBack(cluster, true);
    await cluster.until("it leads", async () => sim.role("sm1")?.status.state === "leader", 60_000);
    assert.deepEqual(sim.role("sm1")?.status.facts.streams, 1);
  });
});

test("store put back: a leader that two nodes tell of a newer one serves no more; one node's word changes nothing", async () => {
  const cluster = new Cluster({ seed: 23 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const state = (): string | undefined => sim.role("sm1")?.status.state;
    const smTerm = BigInt(Number(sim.role("sm1")?.status.facts.term));
    const tell = async (node: string): Promise<void> => {
      const report = unwrap(await cluster.en(node).getNodeReport({ smTerm }, { timeoutMs }));
      // It says nothing else any more.
      sim.crash(node, { stayDown: true });
      const told = { ...report, reportNumber: report.reportNumber + 100n, metadataVersion: 1_000n };
      unwrap(await cluster.sm((sm, left) => sm.reportNode(told, { timeoutMs: left })));
    };
    await tell("en1");
    await sim.sleep(10_000);
    assert.equal(state(), "leader");
    await tell("en2");
    await cluster.until("it is refused", async () => state() === "damaged", 10_000);
  });
});

test("store age: one node's number, or another stamp's store, refuses nothing; two nodes' do", async () => {
  const cluster = new Cluster({ seed: 22 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const world = sim.world("watcher");
    const own = unwrap(await new MetadataClient(world, "lock").stampId(timeoutMs));
    const age = new StoreAge(world, "lock", timeoutMs, () => own);
    age.reported("en1", Number.MAX_SAFE_INTEGER);
    age.reported("en1", Number.MAX_SAFE_INTEGER);
    assert.equal((await age.look()).ok, true);
    const { highest } = age;
    assert.ok(highest > 0 && highest < 1_000, `${highest}`);
    const late = unwrap(await new MetadataClient(world, "lock").position(timeoutMs));
    age.reported("en2", late.version + 1);
    assert.equal((await age.check(late, highest)).ok, true, "a node told of a later transaction while the store was asked");
    assert.equal((await age.check(late, age.highest)).ok, false);
    age.reported("en2", 0);
    const stranger = new StoreAge(world, "lock", timeoutMs, () => "another stamp");
    stranger.reported("en1", highest + 10);
    stranger.reported("en2", highest + 20);
    assert.equal((await stranger.look()).ok, true);
    assert.equal(stranger.highest, highest + 10, "nothing was learned from another stamp's store");
    age.reported("en2", highest + 1_000);
    const refused = await age.look();
    assert.ok(!refused.ok && refused.failure.reason === "damaged" && age.damage === refused.failure.message);
    age.reported("en2", 0);
    assert.equal((await age.look()).ok, true);
    assert.equal(age.damage, undefined);
  });
});
