/** Rules of the stream manager: each one is switched off, and what it prevents happens. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { ExtentState, ReplicaState } from "@stamp/wire";
import { Cluster, first } from "./testing/cluster.ts";

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
