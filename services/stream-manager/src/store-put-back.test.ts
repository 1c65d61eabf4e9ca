/** The whole folder of the lock service, store and mark, is put back from an older backup: the stream manager refuses it, the restore works. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, present, type RuleName, refused, unwrap } from "@stamp/base";
import { metadataStoreName } from "@stamp/lock-service";
import { MetadataClient, StoreAge } from "@stamp/metadata-store";
import { type Handlers, markPath, served } from "@stamp/ports";
import { ExtentNode, LockService } from "@stamp/wire";
import { Cluster, first, nodeNames } from "./testing/cluster.ts";
import { copiesFolder, newestCopy, restore } from "./testing/restored-store.ts";

const timeoutMs = 2_000;

/** Copies the whole folder of the lock service, store and mark. Gives what puts it back; the lock service must be stopped then. */
async function backUp({ sim }: Cluster): Promise<() => Promise<void>> {
  sim.world("backup");
  await sim.stop("lock");
  sim.keyValue("backup").copyFrom(sim.keyValue("lock"));
  const mark = present(await sim.offline("lock").disk.readWhole(markPath(metadataStoreName)), "the mark of the store");
  sim.restart("lock");
  return () => {
    sim.keyValue("lock").copyFrom(sim.keyValue("backup"));
    return sim.offline("lock").disk.writeAtomically(markPath(metadataStoreName), mark);
  };
}

/** Streams `/old` before the backup and `/new` after it, copies of both on the nodes, then the backup is put back. */
async function putBack(
  cluster: Cluster,
  managerRestarts: boolean,
  termsBetween = 0,
): Promise<{ readonly newExtent: bigint; readonly before: string[][]; readonly termBefore: number }> {
  const { sim } = cluster;
  await cluster.open("/old", 1);
  await sim.sleep(70_000);
  const putItBack = await backUp(cluster);
  const opened = await cluster.open("/new", 1);
  const extent = first(await cluster.next("/new", 1, opened.extents.at(-1)?.extentId ?? 0n));
  await sim.sleep(70_000);
  for (let i = 0; i < termsBetween; i++) {
    await sim.stop("sm1");
    sim.restart("sm1");
    await cluster.until("it leads once more", async () => sim.role("sm1")?.status.state === "leader");
  }
  const before = await copies(cluster);
  const restarting = managerRestarts ? ["sm1", ...nodeNames] : [];
  for (const name of restarting) await sim.stop(name);
  await sim.stop("lock");
  await putItBack();
  sim.restart("lock");
  await cluster.until("the lock service answers", async () => sim.role("lock")?.status.ready === true);
  const termBefore = await termOf(cluster);
  for (const name of restarting) sim.restart(name);
  return { newExtent: extent.extentId, before, termBefore };
}

const copies = (cluster: Cluster): Promise<string[][]> =>
  Promise.all(nodeNames.map((node) => cluster.sim.world(node).disk.list(copiesFolder)));

for (const { who, managerRestarts, termsBetween } of [
  { who: "a manager that knew the newer one", managerRestarts: false, termsBetween: 0 },
  { who: "everybody who starts with it", managerRestarts: true, termsBetween: 0 },
  { who: "everybody who starts with it, six terms earlier,", managerRestarts: true, termsBetween: 6 },
]) {
  test(`store put back: ${who} refuses it and says what to do; copies stay; the restore brings everything back`, async () => {
    const cluster = new Cluster({ seed: 21 });
    const { sim } = cluster;
    await sim.run(async () => {
      const { newExtent, before, termBefore } = await putBack(cluster, managerRestarts, termsBetween);
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
      assert.ok((await termOf(cluster)) <= termBefore + 2, "nobody goes on taking terms of the older store");

      await restore(cluster);
      await cluster.until("it leads again", async () => status()?.state === "leader", 60_000);
      const found = await cluster.open("/new", 2);
      assert.ok(found.extents.some(({ extentId }) => extentId === newExtent));
    });
  });
}

/** Term that the lock service gave last to a stream manager. */
async function termOf({ sim }: Cluster): Promise<number> {
  const lock = sim.world("watcher").transport.client("lock", LockService);
  return Number(unwrap(await lock.getLease({ name: "stream-manager" }, { timeoutMs })).leaseEpoch);
}

test("store put back from before a restore: its terms are refused, the managers find it damaged, and the restore brings all back", async () => {
  const cluster = new Cluster({ seed: 24, managers: ["sm1", "sm2"] });
  const { sim } = cluster;
  const states = (): (string | undefined)[] => ["sm1", "sm2"].map((name) => sim.role(name)?.status.state);
  await sim.run(async () => {
    await cluster.open("/old", 1);
    await sim.sleep(70_000);
    const putItBack = await backUp(cluster);
    await cluster.until("the lock service answers", async () => sim.role("lock")?.status.ready === true);
    await restore(cluster);
    await cluster.open("/new", 1);
    await sim.sleep(70_000);
    const all = ["sm1", "sm2", ...nodeNames];
    for (const name of [...all, "lock"]) await sim.stop(name);
    await putItBack();
    sim.restart("lock");
    await cluster.until("the lock service answers", async () => sim.role("lock")?.status.ready === true);
    const termBefore = await termOf(cluster);
    for (const name of all) sim.restart(name);
    await cluster.until("one is damaged", async () => states().includes("damaged"), 10_000);
    for (let i = 0; i < 100; i++) {
      await sim.sleep(1_000);
      assert.ok(!states().includes("leader"), states().join());
    }
    // Whoever has found it damaged takes no term any more; each of the two managers took at most a few.
    const taken = (await termOf(cluster)) - termBefore;
    assert.ok(taken <= 4, `${taken} terms were taken of the older store`);
    const why = ["sm1", "sm2"].flatMap((name) => sim.role(name)?.status.waitingFor ?? []).join();
    assert.match(why, /it was put back from an older backup.*`stamp metadata restore --replace FILE`/);

    await restore(cluster);
    await cluster.until("one leads again", async () => states().includes("leader"), 60_000);
    await cluster.open("/new", 2);
  });
});

test("restored twice from one copy: extents, terms and transactions get no number again", async () => {
  const cluster = new Cluster({ seed: 25 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/old", 1);
    await sim.sleep(70_000);
    const copy = await newestCopy(cluster);
    const content = await sim.world("en1").disk.readWhole(`${copiesFolder}/${copy}`);
    assert.ok(content);
    const seen: { readonly extent: bigint; readonly term: number; readonly copy: string }[] = [];
    for (const stream of ["/first", "/second"]) {
      const file = await sim.world("en1").disk.open(`${copiesFolder}/${copy}`, { create: true });
      await file.write(0, [content]);
      await file.close();
      await restore(cluster, copy);
      await cluster.until("a stream is opened", async () => (await cluster.tryOpen(stream, 1, 3_000)).ok, 60_000);
      const { extentId } = first(await cluster.next(stream, 1, 0n));
      await sim.sleep(70_000);
      seen.push({ extent: extentId, term: await termOf(cluster), copy: await newestCopy(cluster) });
    }
    const [once, again] = seen;
    assert.ok(
      once && again && again.extent > once.extent + 1_000_000n,
      seen.map(({ extent, term, copy: newest }) => `${extent} ${term} ${newest}`).join("; "),
    );
    assert.ok(again.term > once.term + 1_000_000);
    assert.ok(again.copy > once.copy, "the copy of the second restore is the newest");
  });
});

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
      // Another process answers in its place from here on.
      sim.crash(node, { stayDown: true });
      const told = { ...report, reportNumber: report.reportNumber + 100n, metadataVersion: 1_000n };
      const none = async (): Promise<Outcome<never>> => refused("unavailable", "notReady", "not in this test");
      const methods = Object.fromEntries(Object.keys(ExtentNode.method).map((name) => [name, none]));
      const answers = { ...(methods as unknown as Handlers<typeof ExtentNode>), getNodeReport: async () => ok(told) };
      await sim.world(`instead of ${node}`).transport.serve(node, [served(ExtentNode, answers)]);
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

test("store put back that no copy is newer than: numbers are given twice, and the first extents' content stays until a person deletes it", async () => {
  const cluster = new Cluster({ seed: 27, nodes: ["en1", "en2", "en3"], config: { deletionGraceMs: 1_000, syncEveryMs: 3_000 } });
  const { sim } = cluster;
  const nodes = [...cluster.nodes];
  const lengths = (id: bigint) => Promise.all(nodes.map(async (node) => (await cluster.replica(node, id))?.durableBytes));
  const inQuarantine = async () => unwrap(await cluster.sm((sm, left) => sm.listQuarantine({}, { timeoutMs: left }))).replicas;
  await sim.run(async () => {
    await cluster.open("/old", 1);
    await sim.stop("sm1");
    const putItBack = await backUp(cluster);
    sim.restart("sm1");
    await cluster.open("/new", 1);
    const extent = first(await cluster.next("/new", 1, 0n));
    unwrap(await cluster.append(extent, 1, 0n, "acknowledged"));
    const stored = await lengths(extent.extentId);
    for (const name of ["sm1", ...nodes, "lock"]) await sim.stop(name);
    await putItBack();
    for (const name of ["lock", "sm1", ...nodes]) sim.restart(name);

    await cluster.open("/newer", 1);
    const again = first(await cluster.next("/newer", 1, 0n));
    unwrap(await cluster.append(again, 1, 0n, "more"));
    await cluster.until("its number was passed over and forgotten", async () => {
      const known = (await cluster.extents()).map(({ location }) => location?.extentId);
      return known.includes(again.extentId) && !known.includes(extent.extentId);
    });
    assert.ok(again.extentId > extent.extentId, "the same number came first");
    assert.deepEqual(await lengths(extent.extentId), stored, "nothing is deleted for the extent that was never opened");
    const held = async () => (await inQuarantine()).filter(({ extentId }) => extentId === extent.extentId).map(({ nodeId }) => nodeId);
    await cluster.until("in quarantine", async () => (await held()).length === 3);
    const remove = { nodeId: "en1", extentId: extent.extentId };
    unwrap(await cluster.sm((sm, left) => sm.deleteQuarantined(remove, { timeoutMs: left })));
    assert.deepEqual(await lengths(extent.extentId), [undefined, ...stored.slice(1)]);
  });
});

/** Time between two copies of the metadata on a node is longer than all that this does. */
async function putBackAtOnce(cluster: Cluster, work: () => Promise<void>): Promise<void> {
  const { sim } = cluster;
  const putItBack = await backUp(cluster);
  await cluster.until("the lock service answers", async () => sim.role("lock")?.status.ready === true);
  await work();
  const all = ["sm1", ...nodeNames];
  for (const name of [...all, "lock"]) await sim.stop(name);
  await putItBack();
  sim.restart("lock");
  await cluster.until("the lock service answers", async () => sim.role("lock")?.status.ready === true);
  for (const name of all) sim.restart(name);
  await cluster.until("it leads", async () => sim.role("sm1")?.status.state === "leader", 60_000);
}

const laterOf = ({ sim }: Cluster) =>
  (sim.role("sm1")?.status.facts.later as { readonly nodeId: string; readonly sample: readonly number[]; readonly why: string }[]) ?? [];

test("store put back before any node copied the newer one: the manager tells the replicas that only that one can have made", async () => {
  const cluster = new Cluster({ seed: 26 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/old", 1);
    const { extentId: old } = first(await cluster.next("/old", 1, 0n));
    await sim.sleep(70_000);
    assert.deepEqual(laterOf(cluster), []);
    await putBackAtOnce(cluster, async () => {
      await cluster.next("/old", 1, old);
      await cluster.until("the nodes know of the seal", async () => (await cluster.replica("en1", old))?.version !== 1n, 5_000);
    });
    await cluster.until("it is told", async () => laterOf(cluster).length > 0);
    const [found] = laterOf(cluster);
    assert.match(found?.why ?? "", new RegExp(`it knows version 2 of extent ${old}, and the records only version 1`));
    // The seal makes the record as new as the replicas: nothing comes back by that.
    await cluster.open("/old", 2);
    await sim.sleep(700_000);
    assert.ok(laterOf(cluster).some(({ sample }) => sample.includes(Number(old))));
  });
});

test("store put back before any node copied the newer one: bytes in an extent that was never opened are told, too", async () => {
  const cluster = new Cluster({ seed: 27 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/old", 1);
    const { extentId: old } = first(await cluster.next("/old", 1, 0n));
    await sim.sleep(70_000);
    let opened = 0n;
    await putBackAtOnce(cluster, async () => {
      // Another term gives numbers of another block, which the older store never gave.
      await sim.stop("sm1");
      sim.restart("sm1");
      const next = first(await cluster.next("/old", 1, old));
      opened = next.extentId;
      unwrap(await cluster.append(next, 1, 0n, "acknowledged"));
    });
    // The number is given again, the node refuses it, and the extent is dropped without having been opened.
    await cluster.open("/old", 2);
    await cluster.tryNext("/old", 2, old);
    const names = (): boolean => laterOf(cluster).some(({ sample }) => sample.includes(Number(opened)));
    await cluster.until("it is told", async () => names(), 900_000);
  });
});

for (const without of [[], ["commandsNameCreations"]] satisfies RuleName[][])
  test(`store put back on six nodes: both extents of one number are acknowledged, and ${without.length === 0 ? "repair of the second leaves the first alone" : "without the rule repair of the second takes the place of the first"}`, async () => {
    const names = ["en1", "en2", "en3", "en4", "en5", "en6"];
    const cluster = new Cluster({ seed: 27, without, nodes: names, config: { deletionGraceMs: 1_000, syncEveryMs: 3_000 } });
    const { sim } = cluster;
    /** Returns the text of the extent on a node, as the node would give it to another one. */
    const text = async (node: string, extentId: bigint): Promise<string> => {
      const creation = (await cluster.replica(node, extentId))?.creation ?? 0n;
      const read = await cluster.en(node).readRaw({ extentId, offsetBytes: 0n, lengthBytes: 1_000, creation }, { timeoutMs: 500 });
      return read.ok ? (/of the (first|second)/.exec(new TextDecoder().decode(read.value.payload))?.[0] ?? "") : read.failure.reason;
    };
    await sim.run(async () => {
      await cluster.open("/old", 1);
      await sim.stop("sm1");
      const putItBack = await backUp(cluster);
      sim.restart("sm1");
      await cluster.open("/new", 1);
      const extent = first(await cluster.next("/new", 1, 0n));
      unwrap(await cluster.append(extent, 1, 0n, "of the first"));
      for (const name of ["sm1", ...names, "lock"]) await sim.stop(name);
      await putItBack();
      for (const name of ["lock", "sm1", ...names]) sim.restart(name);

      await cluster.open("/newer", 1);
      const again = first(await cluster.next("/newer", 1, 0n, 0n, [...extent.addresses]));
      assert.equal(again.extentId, extent.extentId, "the number is given twice");
      const { endBytes } = unwrap(await cluster.append(again, 1, 0n, "of the second, and longer"));
      await cluster.next("/newer", 1, again.extentId, endBytes);
      const lost = again.addresses[1] ?? "";
      sim.crash(lost, { stayDown: true });
      const firsts = () => Promise.all(extent.addresses.map((node) => text(node, extent.extentId)));
      const isMine = (answers: readonly string[]): boolean => answers.every((each) => each === "of the first");
      if (without.length > 0) {
        await cluster.until("a replica of the first is gone", async () => !isMine(await firsts()), 600_000);
        return;
      }
      for (let i = 0; i < 60; i++) {
        await sim.sleep(5_000);
        assert.deepEqual(await firsts(), ["of the first", "of the first", "of the first"]);
      }
      const held = unwrap(await cluster.sm((sm, left) => sm.listQuarantine({}, { timeoutMs: left }))).replicas;
      const ofFirst = held.filter(({ extentId }) => extentId === extent.extentId);
      assert.deepEqual(ofFirst.map(({ nodeId }) => nodeId).sort(), [...extent.addresses].sort());
      const status = unwrap(await cluster.sm((sm, left) => sm.getRepairStatus({}, { timeoutMs: left })));
      assert.match(status.blocked.join(), /no node can take a copy/);
      sim.restart(lost);
      await cluster.until("the second has its replicas", async () => (await text(lost, again.extentId)) === "of the second");
    });
  });
