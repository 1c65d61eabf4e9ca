/** One leads, others stand by: a leader that died or stands still is replaced, and what it still says later is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import { LockService, StreamManager, toWire } from "@stamp/wire";
import { Cluster, first, nodeNames } from "../testing/cluster.ts";

const managers = ["sm1", "sm2"];

/** By the lock service: who leads, and until when its lease lasts if it is not renewed. */
async function lease(cluster: Cluster) {
  const client = cluster.sim.world("watcher").transport.client("lock", LockService);
  return unwrap(await client.getLease({ name: "stream-manager" }, { timeoutMs: 1_000 }));
}

for (const fault of ["crash", "pause"] as const) {
  test(`failover: after a ${fault} of the leader appends go on, and a new extent is there within a second of the lease's end`, async () => {
    const cluster = new Cluster({ managers });
    const { sim } = cluster;
    await sim.run(async () => {
      await cluster.open("/s", 1);
      await cluster.open("/t", 1);
      const extent = first(await cluster.next("/s", 1, 0n));
      const other = first(await cluster.next("/t", 1, 0n));
      await sim.sleep(5_000);
      const { address: old, remainingMs, leaseEpoch } = await lease(cluster);
      const endMs = sim.nowMs + remainingMs;
      if (fault === "crash") sim.crash(old, { stayDown: true });
      else sim.pause(old);

      const succession = cluster.next("/s", 1, extent.extentId);
      let at = 0n;
      while (sim.nowMs < endMs) {
        const startMs = sim.nowMs;
        at = unwrap(await cluster.append(other, 1, at, "steady")).endBytes;
        assert.ok(sim.nowMs - startMs < 20, `an append took ${sim.nowMs - startMs} ms`);
        await sim.sleep(25);
      }
      await succession;
      assert.ok(sim.nowMs < endMs + 1_000, `${sim.nowMs - endMs} ms after the end of the lease`);
      const now = await lease(cluster);
      assert.ok(now.address !== old && now.leaseEpoch > leaseEpoch);

      if (fault === "pause") {
        sim.resume(old);
        await cluster.until("the old leader stands by", async () => sim.role(old)?.status.state === "standby");
      }
      assert.ok((await cluster.append(other, 1, at, "after")).ok, "the old leader's end changes nothing for an open extent");
    });
  });
}

test("failover: a standby refuses every call, and names the leader and its address", async () => {
  const cluster = new Cluster({ managers });
  await cluster.sim.run(async () => {
    await cluster.open("/s", 1);
    const { address, holder } = await lease(cluster);
    const standby = managers.find((name) => name !== address) as string;
    await cluster.until("it stands by", async () => cluster.sim.role(standby)?.status.state === "standby");
    const refusal = await cluster.sim.world("watcher").transport.client(standby, StreamManager).listStreams({}, { timeoutMs: 1_000 });
    assert.ok(!refusal.ok && refusal.failure.reason === "notLeader" && refusal.failure.applied === "no");
    assert.equal(refusal.failure.message, `this stream manager does not lead: ask ${holder} at ${address}`);
    assert.deepEqual({ ...refusal.failure.details }, { leader: holder, leaderAddress: address });
  });
});

test("failover: every node obeys the new leader at once, and refuses the old one's commands", async () => {
  const cluster = new Cluster({ managers });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    const { address: old, leaseEpoch } = await lease(cluster);
    sim.pause(old);
    await cluster.until("another leads", async () => (await lease(cluster)).leaseEpoch > leaseEpoch);
    await sim.sleep(100);
    for (const node of extent.addresses) {
      const replica = await cluster.replica(node, extent.extentId);
      const answer = await cluster
        .en(node)
        .deleteExtent({ smTerm: leaseEpoch, extentId: extent.extentId, version: toWire(99) }, { timeoutMs: 500 });
      assert.ok(!answer.ok && answer.failure.reason === "staleTerm", `${node} obeys the old leader`);
      assert.ok(replica);
    }
  });
});

test("failover: a term at its maximum, sent to every node, changes nothing: the leader serves on, is replaced, and all restart", async () => {
  const cluster = new Cluster({ managers });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    let extent = first(await cluster.next("/s", 1, 0n));
    const sendMaximum = async (): Promise<void> => {
      for (const node of nodeNames) {
        const answer = await cluster.en(node).getNodeReport({ smTerm: toWire(Number.MAX_SAFE_INTEGER) }, { timeoutMs: 2_000 });
        assert.ok(!answer.ok && answer.failure.reason === "badRequest", `${node} obeys a term that was never given`);
      }
    };
    await sendMaximum();
    unwrap(await cluster.append(extent, 1, 0n, "before"));
    extent = first(await cluster.next("/s", 1, extent.extentId));

    const { address: old, leaseEpoch } = await lease(cluster);
    sim.crash(old);
    sim.restart(old);
    await cluster.until("another term begins", async () => (await lease(cluster)).leaseEpoch > leaseEpoch);
    extent = first(await cluster.next("/s", 1, extent.extentId));

    await sendMaximum();
    for (const name of [...nodeNames, ...managers, "lock"]) sim.crash(name);
    for (const name of ["lock", ...nodeNames, ...managers]) sim.restart(name);
    await cluster.until("it serves again", async () => (await cluster.tryOpen("/s", 2, 2_000)).ok);
    extent = first(await cluster.next("/s", 2, extent.extentId));
    unwrap(await cluster.append(extent, 2, 0n, "after"));
  });
});

/** A cluster whose node en1 obeys a term that no leader can have, as its journal may hold since a release without `givenTermsOnly`. */
function withFarNode(more: readonly RuleName[]): Cluster {
  return new Cluster({ managers, seed: 7, without: ["givenTermsOnly", ...more] });
}

test("failover: one node obeys a term that no leader can have: the leader names it, leads on and takes other nodes, also after a restart", async () => {
  const cluster = withFarNode([]);
  const { sim } = cluster;
  await sim.run(async () => {
    const leader = async () => sim.role((await lease(cluster)).address)?.status;
    await cluster.open("/s", 1);
    unwrap(await cluster.en("en1").getNodeReport({ smTerm: 5_000n }, { timeoutMs: 1_000 }));
    let extent = first(await cluster.next("/s", 1, 0n));
    const { leaseEpoch } = await lease(cluster);
    for (let i = 0; i < 10; i++) {
      extent = first(await cluster.next("/s", 1, extent.extentId));
      assert.ok(!extent.addresses.includes("en1"), "the node is not chosen");
      unwrap(await cluster.append(extent, 1, 0n, "here"));
    }
    assert.equal((await lease(cluster)).leaseEpoch, leaseEpoch, "the term goes on");
    const named = /extent node en1 obeys stream manager term 5000, far above \d+: start it once with STAMP_TAKE_LOWER_TERM=true/;
    assert.match(JSON.stringify((await leader())?.facts.waits), named);

    for (const name of managers) {
      await sim.stop(name);
      sim.restart(name);
    }
    await cluster.until("it leads again", async () => (await leader())?.state === "leader", 30_000);
    assert.match(JSON.stringify((await leader())?.facts.waits), named);
    const term = (await lease(cluster)).leaseEpoch;
    extent = first(await cluster.next("/s", 1, extent.extentId));
    await sim.sleep(20_000);
    assert.equal((await lease(cluster)).leaseEpoch, term);

    // The node comes back with a disk that holds no such term.
    sim.crash("en1", { stayDown: true });
    sim.disk("en1").wipe();
    sim.keyValue("en1").wipe();
    sim.restart("en1");
    await cluster.until("it is not named any more", async () => !named.test(JSON.stringify((await leader())?.facts.waits)));
  });
});

test("failover: too few nodes obey the leader: it is not ready and names them", async () => {
  const cluster = withFarNode([]);
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const { address } = await lease(cluster);
    for (const node of nodeNames.slice(1)) unwrap(await cluster.en(node).getNodeReport({ smTerm: 5_000n }, { timeoutMs: 1_000 }));
    void cluster.tryNext("/s", 1, 0n);
    await cluster.until("it is not ready", async () => sim.role(address)?.status.ready === false);
    const waitingFor = sim.role(address)?.status.waitingFor.join("\n") ?? "";
    for (const node of nodeNames.slice(1)) assert.match(waitingFor, new RegExp(`extent node ${node} obeys stream manager term 5000`));
  });
});

test("failover: without the rule one node with such a term ends every leader's", async () => {
  const cluster = withFarNode(["farTermsEndNothing"]);
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const { leaseEpoch } = await lease(cluster);
    unwrap(await cluster.en("en1").getNodeReport({ smTerm: 5_000n }, { timeoutMs: 1_000 }));
    for (const name of managers) {
      await sim.stop(name);
      sim.restart(name);
    }
    await sim.sleep(20_000);
    assert.ok((await lease(cluster)).leaseEpoch > leaseEpoch + 10n);
  });
});

test("failover: a term a little ahead, which the nodes obey, costs the leader one change of term, not sixteen", async () => {
  const cluster = new Cluster({ managers: ["sm1"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    let extent = first(await cluster.next("/s", 1, 0n));
    // The lock service has vouched for no term at these nodes so far.
    const ahead = 16n;
    for (const node of nodeNames) unwrap(await cluster.en(node).getNodeReport({ smTerm: ahead }, { timeoutMs: 2_000 }));
    await cluster.until("it serves again", async () => (await cluster.tryOpen("/s", 2, 2_000)).ok);
    extent = first(await cluster.next("/s", 2, extent.extentId));
    unwrap(await cluster.append(extent, 2, 0n, "after"));
    // A leader that climbs by one a try stops at the term that the nodes obey; this one went above it.
    assert.equal((await lease(cluster)).leaseEpoch, ahead + 1n);
  });
});
