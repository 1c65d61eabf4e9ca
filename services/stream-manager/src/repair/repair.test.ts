/** Lost replicas, nodes that are to be emptied, replicas that nobody explains, and extents that only a person can seal. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { type ExtentLocation, ExtentState, NodeDuty, ReplicaState } from "@stamp/wire";
import { Cluster, first } from "../testing/cluster.ts";

const repairStatus = async (cluster: Cluster) => unwrap(await cluster.sm((sm, timeoutMs) => sm.getRepairStatus({}, { timeoutMs })));
const nodesOf = async (cluster: Cluster) => unwrap(await cluster.sm((sm, timeoutMs) => sm.listNodes({}, { timeoutMs }))).nodes;
const nodeOf = async (cluster: Cluster, nodeId: string) => (await nodesOf(cluster)).find((node) => node.nodeId === nodeId);
const setDuty = (cluster: Cluster, nodeId: string, duty: NodeDuty) =>
  cluster.sm((sm, timeoutMs) => sm.setNodeDuty({ nodeId, duty }, { timeoutMs }));
const quarantineOf = async (cluster: Cluster) => unwrap(await cluster.sm((sm, timeoutMs) => sm.listQuarantine({}, { timeoutMs }))).replicas;

/** So many sealed extents with one block each, and one that is open; the nodes are all known. */
async function fill(cluster: Cluster, count: number, text = "content"): Promise<ExtentLocation[]> {
  await cluster.open("/s", 1);
  await cluster.sim.sleep(3_500);
  const extents: ExtentLocation[] = [];
  for (let i = 0; i <= count; i++) {
    const extent = first(await cluster.next("/s", 1, extents.at(-1)?.extentId ?? 0n));
    unwrap(await cluster.append(extent, 1, 0n, `${i} ${text}`));
    extents.push(extent);
  }
  await cluster.until("all copies sealed", async () =>
    (await cluster.extents()).every((one) => one.state !== ExtentState.SEALED || one.intactCopies === 3),
  );
  return extents;
}

test("drain: a node is emptied while it serves, then decommissioned; with a new disk it comes back as a new node", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3", "en4", "en5"], config: { deletionGraceMs: 3_000 } });
  const { sim } = cluster;
  await sim.run(async () => {
    const extents = await fill(cluster, 12);
    const held = (await cluster.extents()).filter((one) => one.nodeIds.includes("en2")).length;
    assert.ok(held > 0);
    const early = await setDuty(cluster, "en2", NodeDuty.DECOMMISSIONED);
    assert.ok(!early.ok && early.failure.reason === "conflict");
    const draining = unwrap(await setDuty(cluster, "en2", NodeDuty.DRAINING));
    assert.deepEqual([draining.duty, draining.replicas, draining.blocked.length > 0], [NodeDuty.DRAINING, BigInt(held), true]);
    await cluster.until("empty", async () => (await nodeOf(cluster, "en2"))?.replicas === 0n, 60_000);
    for (const one of await cluster.extents()) {
      assert.ok(!one.nodeIds.includes("en2") && (one.state !== ExtentState.SEALED || one.intactCopies === 3));
    }
    const next = first(await cluster.next("/s", 1, extents.at(-1)?.extentId ?? 0n));
    assert.ok(!next.addresses.includes("en2"), "and gets nothing new");
    unwrap(await setDuty(cluster, "en2", NodeDuty.DECOMMISSIONED));
    assert.ok(!(await setDuty(cluster, "en2", NodeDuty.SERVING)).ok);
    sim.crash("en2", { stayDown: true });
    sim.disk("en2").wipe();
    sim.keyValue("en2").wipe();
    sim.restart("en2");
    await cluster.until("a new node", async () => (await nodeOf(cluster, "en2"))?.duty === NodeDuty.SERVING);
  });
});

test("drain: what was allocated ahead for a stream that does not need it yet is made elsewhere, and keeps no node from being empty", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3", "en4"], config: { deletionGraceMs: 3_000 } });
  await cluster.sim.run(async () => {
    await cluster.open("/idle", 1);
    const { extentId } = first(await cluster.next("/idle", 1, 0n));
    unwrap(await cluster.sm((sm, timeoutMs) => sm.allocateAhead({ name: "/idle", ownerEpoch: 1n, extentId }, { timeoutMs })));
    const ahead = async () => (await cluster.extents()).find((one) => one.state === ExtentState.ALLOCATING);
    await cluster.until("allocated ahead", async () => (await ahead())?.nodeIds.length === 3);
    const before = await ahead();
    const nodeId = before?.nodeIds[0] ?? "";
    unwrap(await setDuty(cluster, nodeId, NodeDuty.DRAINING));
    await cluster.until("empty", async () => (await nodeOf(cluster, nodeId))?.replicas === 0n);
    await cluster.until("made elsewhere", async () => (await ahead())?.nodeIds.length === 3);
    assert.ok((await ahead())?.nodeIds.includes(nodeId) === false);
    unwrap(await setDuty(cluster, nodeId, NodeDuty.DECOMMISSIONED));
    const taken = first(await cluster.next("/idle", 1, extentId));
    assert.equal(taken.addresses.length, 3);
  });
});

test("drain: what keeps a node from being empty is listed; undrained it stays as it was, also for the next leader", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"], managers: ["sm1", "sm2"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await fill(cluster, 2);
    unwrap(await setDuty(cluster, "en1", NodeDuty.DRAINING));
    await cluster.until("told", async () =>
      ((await nodeOf(cluster, "en1"))?.blocked ?? []).some((why) =>
        /extents: no node can take a copy \(2 take replicas now: en2, en3/.test(why),
      ),
    );
    assert.ok((await repairStatus(cluster)).blocked.some((why) => why.includes("no node can take a copy")));
    sim.crash(cluster.calls.leader ?? "", { stayDown: true });
    await cluster.until("the next leader knows", async () => (await nodeOf(cluster, "en1"))?.duty === NodeDuty.DRAINING, 30_000);
    unwrap(await setDuty(cluster, "en1", NodeDuty.SERVING));
    await cluster.until("nothing to do", async () => (await repairStatus(cluster)).replicasWaiting === 0n);
    assert.ok((await cluster.extents()).every((one) => one.nodeIds.length === 3));
    const nobody = await setDuty(cluster, "en9", NodeDuty.DRAINING);
    assert.ok(!nobody.ok && /no extent node en9/.test(nobody.failure.message));
  });
});

const domains: Readonly<Record<string, string>> = { en1: "a", en2: "a", en3: "b", en4: "b", en5: "c" };
const isApart = ({ nodeIds }: { readonly nodeIds: readonly string[] }): boolean =>
  new Set(nodeIds.map((nodeId) => domains[nodeId])).size === nodeIds.length;

/** Sealed extents that were made while en5, the only node of host c, was away. */
async function madeWithout(cluster: Cluster): Promise<() => Promise<Awaited<ReturnType<Cluster["extents"]>>>> {
  const sealed = async () => (await cluster.extents()).filter(({ state }) => state === ExtentState.SEALED);
  await fill(cluster, 10);
  assert.deepEqual(
    (await sealed()).filter((one) => !isApart(one)),
    [],
    "all three hosts have room",
  );
  const before = new Set((await sealed()).map((one) => one.location?.extentId));
  cluster.sim.crash("en5", { stayDown: true });
  await cluster.until("away", async () => (await nodeOf(cluster, "en5"))?.up === false);
  await cluster.open("/t", 1);
  let extentId = 0n;
  for (let i = 0; i <= 5; i++) {
    const extent = first(await cluster.next("/t", 1, extentId));
    unwrap(await cluster.append(extent, 1, 0n, `${i}`));
    extentId = extent.extentId;
  }
  const found = (await sealed()).filter(({ location, nodeIds }) => !before.has(location?.extentId) && !nodeIds.includes("en5"));
  const made = new Set(found.map((one) => one.location?.extentId));
  assert.ok(made.size >= 5, `${made.size} extents`);
  const again = async () => (await sealed()).filter((one) => made.has(one.location?.extentId));
  await cluster.until("copies sealed", async () => (await again()).every((one) => one.intactCopies === 3));
  assert.ok(
    (await again()).every((one) => !isApart(one)),
    "three replicas on two hosts",
  );
  return again;
}

test("fault domains: while a host is away two replicas share one; when it is back each lies on a host of its own", async () => {
  const cluster = new Cluster({ nodes: Object.keys(domains), domains, config: { deletionGraceMs: 3_000 } });
  await cluster.sim.run(async () => {
    const made = await madeWithout(cluster);
    const placesOf = async () => (await made()).map((one) => String(one.nodeIds));
    const places = await placesOf();
    await cluster.sim.sleep(15_000);
    assert.deepEqual(await placesOf(), places, "nothing is moved while no third host has room");
    cluster.sim.restart("en5");
    await cluster.until("apart", async () => (await made()).every((one) => isApart(one) && one.intactCopies === 3), 60_000);
  });
});

test("fault domains: without the rule replicas stay where a missing host has put them", async () => {
  const cluster = new Cluster({ nodes: Object.keys(domains), domains, without: ["replicasApart"] });
  await cluster.sim.run(async () => {
    const made = await madeWithout(cluster);
    cluster.sim.restart("en5");
    await cluster.sim.sleep(60_000);
    assert.ok((await made()).some((one) => !isApart(one)));
  });
});

test("repair: copies are not begun faster than the rate, progress and time left are told, and a third copy waits for the grace", async () => {
  const bytes = 20_000;
  const cluster = new Cluster({ config: { repairAfterMs: 8_000, repairBytesPerSecond: bytes, repairCopiesMax: 8 } });
  const { sim } = cluster;
  await sim.run(async () => {
    await fill(cluster, 12, "x".repeat(bytes));
    const dead = "en3";
    const lost = (await cluster.extents()).filter((one) => one.state === ExtentState.SEALED && one.nodeIds.includes(dead)).length;
    assert.ok(lost >= 5, `${lost} replicas on ${dead}`);
    sim.crash(dead, { stayDown: true });
    await cluster.until("seen", async () => (await repairStatus(cluster)).replicasInGrace > 0n);
    const facts = sim.role("sm1")?.status.facts.repair;
    assert.deepEqual(facts, {
      waiting: 0,
      blocked: 0,
      inGrace: Number((await repairStatus(cluster)).replicasInGrace),
      endangered: 0,
      unreachable: 0,
    });
    assert.equal((await repairStatus(cluster)).replicasWaiting, 0n);
    await cluster.until("begun", async () => (await repairStatus(cluster)).replicasDone > 1n, 30_000);
    const startMs = sim.nowMs;
    const begun = await repairStatus(cluster);
    assert.ok(begun.bytesWaiting > 0n && (begun.etaMs ?? 0n) > 500n, `${begun.etaMs} ms for ${begun.bytesWaiting} bytes`);
    await cluster.until("done", async () => (await repairStatus(cluster)).replicasWaiting === 0n, 60_000);
    const tookMs = sim.nowMs - startMs;
    assert.ok(tookMs > 1_000 * (lost - 5), `${lost} copies of a second each took only ${tookMs} ms`);
    for (const one of await cluster.extents()) assert.ok(one.state !== ExtentState.SEALED || one.intactCopies === 3);
  });
});

test("repair: what can't be copied now keeps nothing waiting that can, and no time left is told for it", async () => {
  const bytes = 20_000;
  const cluster = new Cluster({ config: { repairBytesPerSecond: bytes, repairCopiesMax: 1 } });
  await cluster.sim.run(async () => {
    await fill(cluster, 24, "x".repeat(bytes));
    const sealed = (await cluster.extents()).filter((one) => one.state === ExtentState.SEALED);
    const both = sealed.filter(({ nodeIds }) => nodeIds.includes("en1") && nodeIds.includes("en2")).length;
    const one = sealed.length - both;
    assert.ok(both > 5 && one > 5, `${both} extents on both, ${one} on one of them`);
    for (const nodeId of ["en1", "en2"]) unwrap(await setDuty(cluster, nodeId, NodeDuty.DRAINING));
    // One replica can move for each extent on both nodes; then it has nowhere to go, like those on one.
    await cluster.until("done", async () => (await repairStatus(cluster)).replicasDone >= BigInt(both), 1_000 * (both + 4));
    await cluster.until("all others are known to be blocked", async () => {
      const { copiesRunning, etaMs, replicasWaiting, blocked } = await repairStatus(cluster);
      const told = blocked.some((why) => why.startsWith(`${replicasWaiting} extents: no node can take a copy`));
      return told && replicasWaiting >= BigInt(sealed.length) && copiesRunning === 0 && etaMs === undefined;
    });
  });
});

test("repair: a replica that a node lost without a word is found when the node is compared, and made again", async () => {
  const cluster = new Cluster({ config: { syncEveryMs: 5_000 } });
  const { sim } = cluster;
  await sim.run(async () => {
    const [extent] = await fill(cluster, 3);
    assert.ok(extent);
    const victim = extent.addresses[1] ?? "";
    const smTerm = BigInt(Number(sim.role("sm1")?.status.facts.term));
    const recorded = (await cluster.extents()).find((one) => one.location?.extentId === extent.extentId);
    const version = recorded?.location?.version ?? 0n;
    const creation = await cluster.creationOf(extent);
    unwrap(await cluster.en(victim).deleteExtent({ smTerm, extentId: extent.extentId, version, creation }, { timeoutMs: 500 }));
    await cluster.until("again three", async () => {
      const [location] = unwrap(
        await cluster.sm((sm, timeoutMs) => sm.locateExtents({ extentIds: [extent.extentId] }, { timeoutMs })),
      ).extents;
      const replicas = await Promise.all((location?.addresses ?? []).map((address) => cluster.replica(address, extent.extentId)));
      return replicas.length === 3 && replicas.every((replica) => replica?.state === ReplicaState.SEALED);
    });
  });
});

test("repair: a copy with another checksum than the recorded one is refused, a sealed replica with another one is damaged", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  await sim.run(async () => {
    const [extent] = await fill(cluster, 2);
    assert.ok(extent);
    const infoOf = async () => (await cluster.extents()).find((one) => one.location?.extentId === extent.extentId);
    await cluster.until("it is recorded", async () => (await infoOf())?.checksum !== undefined);
    const info = await infoOf();
    assert.ok(info?.checksum !== undefined && info.location !== undefined);
    const other = ["en1", "en2", "en3", "en4"].find((name) => !extent.addresses.includes(name)) ?? "";
    const facts = sim.role(other)?.status.facts;
    const request = {
      smTerm: BigInt(Number(sim.role("sm1")?.status.facts.term)),
      extentId: extent.extentId,
      sealedLengthBytes: info.location.sealedLengthBytes ?? 0n,
      version: info.location.version,
      ownerEpoch: 1n,
      diskId: String(facts?.diskId),
      sources: [...extent.addresses],
      stampId: String(facts?.stampId),
      creation: await cluster.creationOf(extent),
    };
    const refused = await cluster.en(other).copyExtent({ ...request, checksum: (info.checksum + 1) % 2 ** 32 }, { timeoutMs: 2_000 });
    assert.ok(!refused.ok && refused.failure.reason === "damaged");
    assert.equal(await cluster.replica(other, extent.extentId), undefined, "nothing of it is served");
    assert.equal(
      unwrap(await cluster.en(other).copyExtent({ ...request, checksum: info.checksum }, { timeoutMs: 2_000 })).checksum,
      info.checksum,
    );
    const again = { ...request, checksum: (info.checksum + 1) % 2 ** 32 };
    assert.ok(!(await cluster.en(other).copyExtent(again, { timeoutMs: 2_000 })).ok);
    assert.equal((await cluster.replica(other, extent.extentId))?.state, ReplicaState.DAMAGED);
  });
});

test("quarantine: a replica that no record explains is kept and listed until a person deletes it", async () => {
  const cluster = new Cluster({ config: { deletionGraceMs: 1_000, syncEveryMs: 3_000 } });
  const { sim } = cluster;
  await sim.run(async () => {
    const [known] = await fill(cluster, 1);
    const facts = sim.role("en1")?.status.facts;
    const smTerm = BigInt(Number(sim.role("sm1")?.status.facts.term));
    const stranger = {
      smTerm,
      extentId: 999_999n,
      ownerEpoch: 1n,
      version: 1n,
      replicas: [{ nodeId: "en1", address: "en1", diskId: String(facts?.diskId) }],
      stampId: String(facts?.stampId),
    };
    unwrap(await cluster.en("en1").createExtent(stranger, { timeoutMs: 500 }));
    unwrap(await cluster.en("en1").append({ extentId: 999_999n, ownerEpoch: 1n, payload: [new Uint8Array(100)] }, { timeoutMs: 500 }));
    unwrap(
      await cluster
        .en("en1")
        .sealExtent(
          { smTerm, extentId: 999_999n, sealedLengthBytes: 116n + 4n, version: 2n, diskId: String(facts?.diskId) },
          { timeoutMs: 500 },
        ),
    );
    await cluster.until("listed", async () => (await quarantineOf(cluster)).length === 1);
    await sim.sleep(10_000);
    const [listed] = await quarantineOf(cluster);
    assert.deepEqual([listed?.nodeId, listed?.extentId, listed?.durableBytes, listed?.version], ["en1", 999_999n, 120n, 2n]);
    assert.ok(await cluster.replica("en1", 999_999n), "nothing deletes it");
    const remove = (nodeId: string, extentId: bigint) =>
      cluster.sm((sm, timeoutMs) => sm.deleteQuarantined({ nodeId, extentId }, { timeoutMs }));
    assert.ok(!(await remove(known?.addresses[0] ?? "", known?.extentId ?? 0n)).ok, "not what the records know");
    assert.ok(!(await remove("en2", 999_999n)).ok);
    unwrap(await remove("en1", 999_999n));
    assert.equal(await cluster.replica("en1", 999_999n), undefined);
    assert.deepEqual(await quarantineOf(cluster), []);
  });
});

test("accepted loss: a person seals what no intact replica is left of, at the longest that is, and it is recorded for ever", async () => {
  const cluster = new Cluster({ managers: ["sm1", "sm2"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    const { endBytes } = unwrap(await cluster.append(extent, 1, 0n, "what is left"));
    const known = endBytes + 1_000n;
    const waiting = cluster.tryNext("/s", 1, extent.extentId, known, [], 60_000);
    await sim.sleep(3_000);
    assert.equal((await cluster.extents())[0]?.state, ExtentState.SEALING, "it is not sealed by itself");
    const accept = (note: string) =>
      cluster.sm((sm, timeoutMs) => sm.sealAcceptingLoss({ extentId: extent.extentId, note }, { timeoutMs }));
    const silent = await accept(" ");
    assert.ok(!silent.ok && silent.failure.reason === "badRequest");
    const sealed = unwrap(await accept("both racks burnt; ada"));
    assert.equal(sealed.loss?.note, "both racks burnt; ada");
    assert.equal(unwrap(await waiting).sealedLengthBytes, endBytes);
    assert.ok(!(await accept("again")).ok, "once");
    sim.crash(cluster.calls.leader ?? "", { stayDown: true });
    await cluster.until("the next leader knows", async () => (await cluster.extents())[0]?.loss?.note === "both racks burnt; ada", 30_000);
    assert.equal((await cluster.extents())[0]?.loss?.knownCommittedBytes, known);
    assert.equal(sim.role(cluster.calls.leader ?? "")?.status.facts.sealedWithLoss, 1);
    await cluster.until("three copies of what is left", async () => (await cluster.extents())[0]?.intactCopies === 3);
  });
});

test("accepted loss: with nothing left at all the extent is sealed empty and gets its copies, so that the stream goes on", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_500);
    const extent = first(await cluster.next("/s", 1, 0n));
    unwrap(await cluster.append(extent, 1, 0n, "lost"));
    for (const name of extent.addresses) {
      sim.crash(name, { stayDown: true });
      sim.disk(name).wipe();
      sim.keyValue(name).wipe();
      sim.restart(name);
    }
    const waiting = cluster.tryNext("/s", 1, extent.extentId, 0n, [], 60_000);
    await sim.sleep(5_000);
    const request = { extentId: extent.extentId, note: "all three disks replaced" };
    assert.equal(unwrap(await cluster.sm((sm, timeoutMs) => sm.sealAcceptingLoss(request, { timeoutMs }))).state, ExtentState.SEALED);
    const next = unwrap(await waiting);
    assert.equal(next.sealedLengthBytes, 0n);
    assert.ok((await cluster.append(next.extent, 1, 0n, "on")).ok);
  });
});

test("nodes: one that was wiped while it held open and sealed extents is accepted with its new identity, and all copies come back", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3", "en4"] });
  const { sim } = cluster;
  await sim.run(async () => {
    const extents = await fill(cluster, 8);
    const before = (await nodeOf(cluster, "en2"))?.diskId;
    sim.crash("en2", { stayDown: true });
    sim.disk("en2").wipe();
    sim.keyValue("en2").wipe();
    await sim.sleep(200);
    sim.restart("en2");
    await cluster.until("accepted", async () => {
      const node = await nodeOf(cluster, "en2");
      return node?.up === true && node.diskId !== before;
    });
    await cluster.until(
      "three live copies of all",
      async () =>
        (await repairStatus(cluster)).replicasWaiting === 0n &&
        (await cluster.extents()).every((one) => one.state !== ExtentState.SEALED || one.intactCopies === 3),
    );
    const all = await cluster.extents();
    for (const one of all.filter((each) => each.state === ExtentState.SEALED)) {
      for (const address of one.location?.addresses ?? []) {
        const replica = await cluster.replica(address, one.location?.extentId ?? 0n);
        assert.equal(replica?.sealedLengthBytes, one.location?.sealedLengthBytes);
      }
    }
    assert.ok(extents.length > 0 && all.length >= extents.length);
  });
});

test("repair: a manager that has just begun to lead tells no extent as unreachable before nodes had time to report; then it does", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await fill(cluster, 3);
    for (const name of ["en1", "en2", "en3", "sm1"]) sim.crash(name, { stayDown: true });
    await sim.sleep(10_000);
    sim.restart("sm1");
    await cluster.until("a leader", async () => (await cluster.sm((sm, timeoutMs) => sm.getRepairStatus({}, { timeoutMs }))).ok);
    for (const endMs = sim.nowMs + 2_000; sim.nowMs < endMs; await sim.sleep(100))
      assert.equal((await repairStatus(cluster)).unreachable, 0n);
    await cluster.until("told", async () => (await repairStatus(cluster)).unreachable === 3n, 10_000);
  });
});
