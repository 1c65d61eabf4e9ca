/** Extent nodes that restart, stay away, come back empty, are slow or silent: what the stream manager does with their replicas. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { ExtentState, ReplicaState } from "@stamp/wire";
import { Cluster, first, nodeNames } from "../testing/cluster.ts";

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
