/** The stream manager with a real lock service and real extent nodes, on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
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

test("nodes: a restarted node ends its open extents by its report, without any client", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    const appended = unwrap(await cluster.append(extent, 1, 0n, "x"));
    sim.crash(extent.addresses[1] ?? "", { stayDown: true });
    sim.restart(extent.addresses[1] ?? "");
    await cluster.until("sealed and complete", async () =>
      (await cluster.extents()).some((one) => one.state === ExtentState.SEALED && one.intactCopies === 3),
    );
    assert.equal((await cluster.open("/s", 1)).extents[0]?.sealedLengthBytes, appended.endBytes);
  });
});

test("repair: replicas of a node that stays away are made again, the list is updated, and the old one is deleted when it returns", async () => {
  const cluster = new Cluster({ config: { repairAfterMs: 10_000, deletionGraceMs: 5_000 } });
  const { sim } = cluster;
  await sim.run(async () => {
    await sim.sleep(3_000);
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    const appended = unwrap(await cluster.append(extent, 1, 0n, "content"));
    const dead = extent.addresses[2] ?? "";
    await cluster.next("/s", 1, extent.extentId);
    await sim.sleep(1_000);
    sim.crash(dead, { stayDown: true });
    await cluster.until(
      "a new third copy",
      async () => {
        const [location] = unwrap(
          await cluster.sm((sm, timeoutMs) => sm.locateExtents({ extentIds: [extent.extentId] }, { timeoutMs })),
        ).extents;
        return location?.addresses.length === 3 && !location.addresses.includes(dead) && (location.version ?? 0n) >= 3n;
      },
      60_000,
    );
    const fresh = nodeNames.find((name) => !extent.addresses.includes(name)) ?? "";
    assert.equal((await cluster.replica(fresh, extent.extentId))?.sealedLengthBytes, appended.endBytes);
    sim.restart(dead);
    await cluster.until(
      "the replaced replica is deleted",
      async () => (await cluster.replica(dead, extent.extentId)) === undefined,
      60_000,
    );
    assert.equal((await cluster.replica(fresh, extent.extentId))?.state, ReplicaState.SEALED);
  });
});

test("placement: with fewer nodes than copies it goes down to minCopies, repairs later, and below that says what it waits for", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    assert.equal(extent.addresses.length, 2);
    const next = await cluster.next("/s", 1, extent.extentId);
    sim.addProcess(
      "en3",
      (world) =>
        new ExtentNodeRole(
          world,
          extentNodeSchema.parse({
            name: "en3",
            listen: "en3",
            lockService: "lock",
            journalSegmentBytes: 1 << 20,
            appendBytesMax: 900_000,
          }),
        ),
    );
    await cluster.until("a third copy of the sealed one", async () =>
      (await cluster.extents()).some((one) => one.location?.extentId === extent.extentId && one.intactCopies === 3),
    );
    sim.crash("en2", { stayDown: true });
    sim.crash("en3", { stayDown: true });
    await sim.sleep(4_000);
    await cluster.tryNext("/s", 1, first(next).extentId, 0n, [], 3_000);
    const status = sim.role("sm1")?.status;
    assert.equal(status?.ready, false);
    assert.match(status?.waitingFor.join() ?? "", /extent nodes: 1 of at least 2/);
  });
});

test("placement: who waits for an extent is told that there is no room: on the metadata store's disk, or on the nodes', also when they don't answer a fence", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    let extent = first(await cluster.next("/s", 1, 0n));
    const fill = (name: string): (() => void) => {
      const disk = sim.disk(name);
      const roomy = disk.options;
      disk.options = { ...roomy, totalBytes: disk.usedBytes() };
      return () => {
        disk.options = roomy;
      };
    };
    const cut = (name: string): (() => void) => {
      sim.partition([name], ["sm1"]);
      return () => sim.heal();
    };
    const lacks = async (): Promise<string> => unwrap(await cluster.sm((sm, timeoutMs) => sm.getRoom({}, { timeoutMs }))).lacks.join("; ");
    assert.equal(await lacks(), "");
    for (const [away, names, why, lacking] of [
      [fill, ["lock"], /nothing is recorded: the disk of the metadata store is full/, /nothing is recorded/],
      [fill, nodeNames, /0 of them have room/, /^0 of 4 extent nodes that are up have room/],
      [cut, nodeNames, /can't be sealed: no intact replica answers/, /^0 of 0 extent nodes that are up/],
    ] as const) {
      const back = names.map(away);
      await sim.sleep(15_000);
      void cluster.tryNext("/s", 1, extent.extentId, 0n, [], 500);
      await sim.sleep(15_000);
      const refused = await cluster.tryNext("/s", 1, extent.extentId, 0n, [], 5_000);
      assert.ok(!refused.ok);
      assert.deepEqual([refused.failure.reason, refused.failure.applied], ["noPlacement", "unknown"]);
      assert.match(refused.failure.message, why);
      assert.match(JSON.stringify(sim.role("sm1")?.status.facts.waits), why);
      assert.match(await lacks(), lacking);
      for (const one of back) one();
      extent = first(await cluster.next("/s", 1, extent.extentId));
      await cluster.until("there is room", async () => (await lacks()) === "");
    }
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

test("nodes: one that comes back with a new, empty disk is no length; its replicas are made anew", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_000);
    const extent = first(await cluster.next("/s", 1, 0n));
    const appended = unwrap(await cluster.append(extent, 1, 0n, "kept"));
    const wiped = extent.addresses[1] ?? "";
    sim.crash(wiped, { stayDown: true });
    sim.disk(wiped).wipe();
    sim.keyValue(wiped).wipe();
    sim.restart(wiped);
    const next = await cluster.next("/s", 1, extent.extentId, appended.committedBytes);
    assert.equal(next.sealedLengthBytes, appended.endBytes);
    await cluster.until(
      "a copy on the new disk",
      async () => (await cluster.replica(wiped, extent.extentId))?.sealedLengthBytes === appended.endBytes,
    );
    await cluster.until("known", async () =>
      (await cluster.extents()).some((one) => one.location?.extentId === extent.extentId && one.intactCopies === 3),
    );
  });
});

test("nodes: one that was slow for a moment is not left out when an extent would have fewer copies without it", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const { extent: first } = await cluster.next("/s", 1, 0n);
    assert.ok(first);
    const slow = first.addresses[1] ?? "";
    sim.pause(slow);
    const second = cluster.next("/s", 1, first.extentId);
    await sim.sleep(40);
    sim.resume(slow);
    const { extent } = await second;
    assert.equal(extent?.addresses.length, 2, "it was not waited for");
    const { extent: third } = await cluster.next("/s", 1, extent?.extentId ?? 0n);
    assert.equal(third?.addresses.length, 3);
  });
});

test("nodes: a silent node is passed over before its deadline, when the seal finds that it does not answer", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_000);
    let extent = first(await cluster.next("/s", 1, 0n));
    let worstMs = 0;
    for (let i = 0; i < 6; i++) {
      const silent = extent.addresses[1] ?? "";
      sim.pause(silent);
      const startMs = sim.nowMs;
      extent = first(await cluster.next("/s", 1, extent.extentId));
      worstMs = Math.max(worstMs, sim.nowMs - startMs);
      assert.ok(!extent.addresses.includes(silent));
      sim.resume(silent);
      await sim.sleep(2_500);
    }
    assert.ok(worstMs < 100, `${worstMs} ms`);
  });
});

// Failures that the rules of this service prevent, seen with each rule switched off.
test("rules: without ownerEpochAtManager a deposed owner gets a new extent", async () => {
  const cluster = new Cluster({ without: ["ownerEpochAtManager"] });
  await cluster.sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    await cluster.open("/s", 2);
    assert.ok((await cluster.tryNext("/s", 1, extent.extentId)).ok);
  });
});

test("rules: without minCopiesBeforeTelling a length is told that one disk holds", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"], without: ["minCopiesBeforeTelling"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_000);
    const extent = first(await cluster.next("/s", 1, 0n));
    unwrap(await cluster.append(extent, 1, 0n, "x"));
    sim.partition(extent.addresses.slice(1), ["sm1"]);
    const info = await cluster.open("/s", 2);
    assert.equal(info.extents.length, 1);
    const replicas = await Promise.all(extent.addresses.map((address) => cluster.replica(address, extent.extentId)));
    assert.ok(replicas.filter((replica) => replica?.state === ReplicaState.SEALED).length < 2);
  });
});

test("rules: without fenceBeforeLength an unfenced replica goes on and acknowledges beyond the sealed length", async () => {
  for (const without of [[], ["fenceBeforeLength"]] as const) {
    const cluster = new Cluster({ without: [...without] });
    const { sim } = cluster;
    await sim.run(async () => {
      await cluster.open("/s", 1);
      const extent = first(await cluster.next("/s", 1, 0n));
      let at = 0n;
      let acknowledged = 0n;
      const appending = (async () => {
        for (;;) {
          const appended = await cluster.append(extent, 1, at, "x");
          if (!appended.ok) return;
          at = appended.value.endBytes;
          acknowledged = at;
        }
      })();
      await sim.sleep(50);
      const opened = await cluster.open("/s", 2);
      await appending;
      const lost = acknowledged > (opened.extents[0]?.sealedLengthBytes ?? 0n);
      assert.equal(lost, without.length > 0);
    });
  }
});

test("rules: without recordSealBeforeTelling replicas are sealed at a length that nobody recorded", async () => {
  const cluster = new Cluster({ without: ["recordSealBeforeTelling"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    unwrap(await cluster.append(extent, 1, 0n, "x"));
    void cluster.open("/s", 2).catch(() => {});
    let seen = false;
    for (let i = 0; i < 200 && !seen; i++) {
      await sim.sleep(0.1);
      const replica = await cluster.replica(extent.addresses[0] ?? "", extent.extentId);
      seen = replica?.state === ReplicaState.SEALED && !(await cluster.extents()).some((one) => one.state === ExtentState.SEALED);
    }
    assert.ok(seen);
  });
});
