/** A lease is its holder's: another process of the same role, with a certificate of its own, neither renews nor ends it, nor writes under it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, unwrap } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { LockService, MetadataStore } from "@stamp/wire";
import { restartLock, simOf, write } from "./testing/lock-world.ts";

const call = { timeoutMs: 500 };
const said = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : `${outcome.failure.code} ${outcome.failure.reason}`);
const forbidden = "permissionDenied unauthorized";

/** A process that does nothing by itself; its name stands for that in its certificate. */
function addCaller(sim: Simulation, name: string): void {
  sim.addProcess(name, () => ({ start: async () => {}, stop: async () => {}, status: { ready: true, facts: {} } }) as never);
}

function callsOf(sim: Simulation, name: string) {
  const { transport } = sim.world(name);
  const [locks, store] = [transport.client("lock", LockService), transport.client("lock", MetadataStore)];
  return {
    acquire: (lease: string) =>
      locks.acquireLease({ name: lease, holder: name, identity: name, incarnation: 1n, address: name, termMs: 5_000 }, call),
    renew: (lease: string, leaseEpoch: bigint) => locks.renewLease({ name: lease, leaseEpoch }, call),
    release: (lease: string, leaseEpoch: bigint) => locks.releaseLease({ name: lease, leaseEpoch }, call),
    transact: (leaseName: string, leaseEpoch: bigint, key: string) =>
      store.transact({ fence: { leaseName, leaseEpoch }, conditions: [], writes: [write(key, "x")] }, call),
  };
}

test("holders: a standby of the same role can't use the lease of the leader", async () => {
  const sim = simOf();
  for (const name of ["stream-manager-1", "stream-manager-2"]) addCaller(sim, name);
  await sim.run(async () => {
    await sim.sleep(50);
    const [leader, standby] = [callsOf(sim, "stream-manager-1"), callsOf(sim, "stream-manager-2")];
    const { leaseEpoch } = unwrap(await leader.acquire("stream-manager"));
    assert.equal(said(await standby.renew("stream-manager", leaseEpoch)), forbidden);
    assert.equal(said(await standby.release("stream-manager", leaseEpoch)), forbidden);
    assert.equal(said(await standby.transact("stream-manager", leaseEpoch, "sm/a")), forbidden);
    assert.equal(said(await leader.renew("stream-manager", leaseEpoch)), "ok");
    assert.equal(said(await leader.transact("stream-manager", leaseEpoch, "sm/a")), "ok");
    assert.equal(said(await leader.release("stream-manager", leaseEpoch)), "ok");
    const next = unwrap(await standby.acquire("stream-manager")).leaseEpoch;
    assert.equal(said(await leader.renew("stream-manager", leaseEpoch)), "failedPrecondition leaseEnded", "a former leader is told so");
    assert.equal(said(await leader.transact("stream-manager", leaseEpoch, "sm/a")), "failedPrecondition staleTerm");
    assert.equal(said(await standby.renew("stream-manager", next)), "ok");
  });
});

test("holders: leases that were granted before the stamp had certificates, to other names, run out, and the certified ones go on", async () => {
  const sim = simOf();
  // A name that is no role's proves nothing, as without TLS.
  for (const name of ["before", "stream-manager-1", "partition-server-1"]) addCaller(sim, name);
  await sim.run(async () => {
    await sim.sleep(50);
    const before = callsOf(sim, "before");
    const leases = [
      ["stream-manager", callsOf(sim, "stream-manager-1")],
      ["ps/partition-server-1", callsOf(sim, "partition-server-1")],
    ] as const;
    const granted = new Map<string, bigint>();
    for (const [lease] of leases) granted.set(lease, unwrap(await before.acquire(lease)).leaseEpoch);
    // Every process of the stamp starts again, the lock service too.
    await restartLock(sim);
    const isBack = async (): Promise<boolean> => said(await before.release("stream-manager", 99n)) === "notFound leaseEnded";
    await sim.until(isBack, 5_000, "the lock service answers");
    for (const [lease, certified] of leases) {
      const epoch = granted.get(lease) ?? 0n;
      const renewed = async (): Promise<boolean> => said(await certified.renew(lease, epoch)) === forbidden;
      await sim.until(renewed, 1_000, "it was granted to another name");
      let next: bigint | undefined;
      const isGranted = async (): Promise<boolean> => {
        const asked = await certified.acquire(lease);
        next = asked.ok ? asked.value.leaseEpoch : undefined;
        return asked.ok;
      };
      await sim.until(isGranted, 30_000, `${lease} runs out`);
      assert.ok((next ?? 0n) > epoch, lease);
      assert.equal(said(await certified.renew(lease, next ?? 0n)), "ok");
      assert.equal(said(await before.renew(lease, epoch)), "failedPrecondition leaseEnded");
      if (lease === "stream-manager") assert.equal(said(await certified.transact(lease, next ?? 0n, "sm/a")), "ok");
    }
  });
});
