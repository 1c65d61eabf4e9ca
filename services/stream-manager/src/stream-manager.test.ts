/** The stream manager with a real lock service and real extent nodes, on virtual time: extents, seals, owners, leaders and garbage. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { ExtentNode, ExtentState, ReplicaState } from "@stamp/wire";
import { Cluster, first, nodeNames } from "./testing/cluster.ts";

test("stream manager: a stream gets extents, each sealed before its successor, and every open replica is durable everywhere", async () => {
  const cluster = new Cluster();
  await cluster.sim.run(async () => {
    const stream = await cluster.open("/s", 1);
    assert.deepEqual([stream.extents, stream.ownerEpoch], [[], 1n]);
    const a = first(await cluster.next("/s", 1, 0n));
    assert.equal(new Set(a.addresses).size, 3);
    for (const address of a.addresses) assert.equal((await cluster.replica(address, a.extentId))?.state, ReplicaState.OPEN);
    const again = first(await cluster.next("/s", 1, 0n));
    assert.equal(again.extentId, a.extentId, "idempotent for an empty list");
    const appended = unwrap(await cluster.append(a, 1, 0n, "hello"));
    const next = await cluster.next("/s", 1, a.extentId, appended.committedBytes);
    assert.equal(next.sealedLengthBytes, appended.endBytes);
    const repeated = await cluster.next("/s", 1, a.extentId);
    assert.deepEqual([repeated.sealedLengthBytes, first(repeated).extentId], [next.sealedLengthBytes, first(next).extentId]);
    await cluster.until("all copies sealed", async () =>
      (await cluster.extents()).every((extent) => extent.state !== ExtentState.SEALED || extent.intactCopies === 3),
    );
    for (const address of a.addresses)
      assert.equal((await cluster.replica(address, a.extentId))?.sealedLengthBytes, next.sealedLengthBytes);
    const late = await cluster.append(a, 1, appended.endBytes, "late");
    assert.ok(!late.ok);
  });
});

test("stream manager: failure seen to new extent ready takes 20 ms at most when nodes answer, and one dead node does not change that", async () => {
  const cluster = new Cluster();
  await cluster.sim.run(async () => {
    await cluster.open("/s", 1);
    let extent = first(await cluster.next("/s", 1, 0n));
    await cluster.sim.sleep(5_000);
    for (const dead of ["", "primary"]) {
      const appended = unwrap(await cluster.append(extent, 1, 0n, "x"));
      if (dead === "primary") cluster.sim.crash(extent.addresses[0] ?? "", { stayDown: true, silent: true });
      const startMs = cluster.sim.nowMs;
      const next = await cluster.next("/s", 1, extent.extentId, appended.committedBytes, dead ? [extent.addresses[0] ?? ""] : []);
      const tookMs = cluster.sim.nowMs - startMs;
      assert.ok(tookMs <= 20, `${dead}: ${tookMs} ms`);
      assert.equal(next.sealedLengthBytes, appended.endBytes);
      extent = first(next);
    }
  });
});

test("stream manager: a new owner fences the old one, at the nodes and at the manager", async () => {
  const cluster = new Cluster();
  await cluster.sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    const appended = unwrap(await cluster.append(extent, 1, 0n, "of owner 1"));
    const taken = await cluster.open("/s", 2);
    assert.deepEqual(
      taken.extents.map((one) => one.sealedLengthBytes),
      [appended.endBytes],
    );
    assert.ok(!(await cluster.append(extent, 1, appended.endBytes, "late")).ok);
    const stale = await cluster.tryNext("/s", 1, extent.extentId);
    assert.ok(!stale.ok && stale.failure.reason === "staleOwnerEpoch");
    const reopened = await cluster.sm((sm, timeoutMs) => sm.openStream({ name: "/s", ownerEpoch: 1n }, { timeoutMs }));
    assert.ok(!reopened.ok && reopened.failure.reason === "staleOwnerEpoch");
    const other = await cluster.sm((sm, timeoutMs) => sm.createStream({ name: "/s", ownerEpoch: 3n }, { timeoutMs }));
    assert.ok(!other.ok && other.failure.reason === "streamExists");
    const next = first(await cluster.next("/s", 2, extent.extentId));
    assert.ok((await cluster.append(next, 2, 0n, "of owner 2")).ok);
    assert.deepEqual((await cluster.open("/s", 2)).extents.length, 2, "the same epoch may open again");
  });
});

test("stream manager: another leader takes over with everything, drops what was only allocated and ends the seals", async () => {
  const cluster = new Cluster({ managers: ["sm1", "sm2"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    const appended = unwrap(await cluster.append(extent, 1, 0n, "kept"));
    const leader = cluster.calls.leader ?? "";
    assert.match(leader, /^sm/);
    // Without any node a seal and an allocation are begun and can't be finished; then the leader dies.
    sim.partition(nodeNames, ["sm1", "sm2"]);
    void cluster.tryNext("/s", 1, extent.extentId, appended.committedBytes, [], 2_000);
    await sim.sleep(1_000);
    sim.crash(leader, { stayDown: true });
    sim.heal();
    await cluster.until("another leads", async () => (await cluster.extents()).some((one) => one.state === ExtentState.SEALED));
    assert.notEqual(cluster.calls.leader, leader);
    assert.ok((await cluster.extents()).every((one) => one.state !== ExtentState.ALLOCATING));
    const next = await cluster.next("/s", 1, extent.extentId);
    assert.equal(next.sealedLengthBytes, appended.endBytes);
    const terms = unwrap(await sim.world("owner").transport.client("en1", ExtentNode).listExtentReplicas({}, { timeoutMs: 500 }));
    assert.ok(terms.replicas.length > 0);
  });
});

test("stream manager: a restart of the lock service, also in the middle of a write, costs no acknowledged change", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    let extent = 0n;
    for (let i = 0; i < 12; i++) {
      const next = cluster.next("/s", 1, extent);
      if (i % 3 === 1) {
        await sim.sleep(i / 4);
        sim.crash("lock", { stayDown: true, silent: false });
        await sim.sleep(20);
        sim.restart("lock");
      }
      extent = first(await next).extentId;
    }
    const info = await cluster.open("/s", 2);
    assert.equal(info.extents.length, 12);
    assert.equal(new Set(info.extents.map((one) => one.extentId)).size, 12);
  });
});

test("seal: with one answer it waits 2 s, and the client is told only when a second node holds the prefix", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_000);
    const extent = first(await cluster.next("/s", 1, 0n));
    const appended = unwrap(await cluster.append(extent, 1, 0n, "x"));
    const [a, b, c] = extent.addresses as [string, string, string];
    sim.partition([b, c], ["sm1"]);
    const startMs = sim.nowMs;
    let answeredMs = 0;
    const next = cluster.open("/s", 2).then((info) => {
      answeredMs = sim.nowMs;
      return info;
    });
    await cluster.until("recorded", async () => (await cluster.extents()).some((one) => one.state === ExtentState.SEALED));
    assert.ok(sim.nowMs - startMs >= 2_000, "one answer is taken only after 2 s");
    await sim.sleep(1_000);
    assert.equal(answeredMs, 0, "told with one copy");
    sim.partition([a], ["sm1"]);
    sim.network.heal(b, "sm1");
    sim.network.heal("sm1", b);
    const info = await next;
    assert.equal(info.extents[0]?.sealedLengthBytes, appended.endBytes);
    const intact = await Promise.all([a, b].map((node) => cluster.replica(node, extent.extentId)));
    assert.ok(intact.every((replica) => replica?.sealedLengthBytes === appended.endBytes));
  });
});

test("seal: with no intact answer nothing is sealed, and the status says so", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    for (const node of extent.addresses) sim.crash(node, { stayDown: true });
    const answer = await cluster.tryNext("/s", 1, extent.extentId, 0n, [], 15_000);
    assert.ok(!answer.ok && answer.failure.applied === "unknown");
    const status = sim.role("sm1")?.status.facts as { waits: string[]; extents: Record<string, number> };
    assert.match(status.waits.join(), /can't be sealed/);
    assert.equal(status.extents.sealed, 0);
  });
});

test("garbage: truncated and deleted extents go after the grace, unknown ones never", async () => {
  const cluster = new Cluster({ config: { deletionGraceMs: 5_000 } });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const a = first(await cluster.next("/s", 1, 0n));
    const b = first(await cluster.next("/s", 1, a.extentId));
    const stranger = await cluster.en("en1").createExtent(
      {
        smTerm: BigInt(Number(sim.role("sm1")?.status.facts.term)),
        extentId: 999_999n,
        ownerEpoch: 1n,
        version: 1n,
        replicas: [{ nodeId: "en1", address: "en1", diskId: String(sim.role("en1")?.status.facts.diskId) }],
        stampId: String(sim.role("en1")?.status.facts.stampId),
      },
      { timeoutMs: 500 },
    );
    assert.ok(stranger.ok);
    const truncated = unwrap(
      await cluster.sm((sm, timeoutMs) => sm.truncateStream({ name: "/s", ownerEpoch: 1n, beforeExtentId: b.extentId }, { timeoutMs })),
    );
    assert.deepEqual(
      truncated.extents.map((one) => one.extentId),
      [b.extentId],
    );
    assert.ok(await cluster.replica(a.addresses[1] ?? "", a.extentId), "kept during the grace");
  });
});

test("garbage: replicas of a dropped extent are deleted and the record with them", async () => {
  const cluster = new Cluster({ config: { deletionGraceMs: 5_000 } });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const a = first(await cluster.next("/s", 1, 0n));
    unwrap(await cluster.append(a, 1, 0n, "x"));
    const deletion = () => cluster.sm((sm, timeoutMs) => sm.deleteStream({ name: "/s", ownerEpoch: 1n }, { timeoutMs }));
    unwrap(await deletion());
    unwrap(await deletion());
    await cluster.until("forgotten", async () => (await cluster.extents()).length === 0);
    for (const node of a.addresses) assert.equal(await cluster.replica(node, a.extentId), undefined);
    const gone = await cluster.sm((sm, timeoutMs) => sm.getStream({ name: "/s" }, { timeoutMs }));
    assert.ok(!gone.ok && gone.failure.reason === "streamNotFound");
    await sim.sleep(1);
  });
});
