/** Hosts that die take an extent node and a stream manager along: how long the next leader waits for the node, and what is made up when it is back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { LockService } from "@stamp/wire";
import { Cluster, first } from "../testing/cluster.ts";

const managers = ["sm1", "sm2"];
const nodes = ["en1", "en2", "en3"];

async function lease(cluster: Cluster) {
  const client = cluster.sim.world("watcher").transport.client("lock", LockService);
  return unwrap(await client.getLease({ name: "stream-manager" }, { timeoutMs: 1_000 }));
}

/** Kills the leader and cuts a node off as the given fault does; returns the end of the leader's lease, in ms of virtual time. */
async function loseHost(cluster: Cluster, node: string, fault: "killed" | "cut off"): Promise<number> {
  const { sim } = cluster;
  const { address, remainingMs } = await lease(cluster);
  const endMs = sim.nowMs + remainingMs;
  sim.crash(address, { stayDown: true });
  if (fault === "killed") sim.crash(node, { stayDown: true });
  else sim.partition([node], [...managers, "owner", ...nodes.filter((each) => each !== node)]);
  return endMs;
}

// A host that is cut off refuses no connection: it is known to be unreachable after the deadline of one call.
for (const [fault, withinMs] of [
  ["killed", 1_000],
  ["cut off", 2_500],
] as const)
  test(`absent nodes: with the leader's host ${fault}, the next leader makes an extent on the two others at once`, async () => {
    const cluster = new Cluster({ managers, nodes });
    const { sim } = cluster;
    await sim.run(async () => {
      await cluster.open("/s", 1);
      await sim.sleep(3_500);
      const extent = first(await cluster.next("/s", 1, 0n));
      assert.equal(extent.addresses.length, 3);
      unwrap(await cluster.append(extent, 1, 0n, "x"));
      const endMs = await loseHost(cluster, extent.addresses[2] as string, fault);
      const next = first(await cluster.next("/s", 1, extent.extentId, 0n));
      assert.equal(next.addresses.length, 2);
      assert.ok(sim.nowMs < endMs + withinMs, `${sim.nowMs - endMs} ms after the end of the lease`);
    });
  });

test("absent nodes: an extent of two replicas that loses one is sealed without a wait for the dead node", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    const { endBytes } = unwrap(await cluster.append(extent, 1, 0n, "x"));
    sim.crash(extent.addresses[1] as string, { stayDown: true });
    cluster.addNode("en3");
    await sim.sleep(500);
    const startMs = sim.nowMs;
    await cluster.next("/s", 1, extent.extentId);
    // The length is told when another node holds the prefix: at the latest when the dead one counts as away (3 s), and is copied then.
    const sealed = (await cluster.extents()).find((one) => one.location?.extentId === extent.extentId);
    assert.equal(sealed?.location?.sealedLengthBytes, endBytes);
    assert.ok(sim.nowMs - startMs < 1_000, `${sim.nowMs - startMs} ms`);
  });
});

test("absent nodes: what was opened with two replicas is followed by three when the third node is back and steady", async () => {
  const cluster = new Cluster({ nodes });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_500);
    sim.crash("en3", { stayDown: true });
    await sim.sleep(3_500);
    const thin = first(await cluster.next("/s", 1, 0n));
    assert.equal(thin.addresses.length, 2);
    const one = unwrap(await cluster.append(thin, 1, 0n, "x"));
    sim.restart("en3");
    await sim.sleep(3_000);
    const two = await cluster.append(thin, 1, one.endBytes, "y");
    assert.ok(two.ok, "not for the sake of a node that may go again");
    await sim.sleep(4_000);
    const refused = await cluster.append(thin, 1, two.value.endBytes, "z");
    assert.ok(!refused.ok && ["extentSealed", "extentFenced"].includes(refused.failure.reason), "it is sealed");
    const next = first(await cluster.next("/s", 1, thin.extentId, two.value.endBytes));
    assert.equal(next.addresses.length, 3);
    await cluster.until("a third copy of what was written to two", async () =>
      (await cluster.extents()).some((one) => one.location?.extentId === thin.extentId && one.intactCopies === 3),
    );
    const { endBytes } = unwrap(await cluster.append(next, 1, 0n, "z"));
    await sim.sleep(10_000);
    assert.ok((await cluster.append(next, 1, endBytes, "z")).ok, "an extent of three stays");
  });
});
