/** Epochs, versions and incarnations at their maximum, sent to the lock service and its metadata store: nobody is locked out for good. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, unwrap, utf8 } from "@stamp/base";
import { leaseAheadMax } from "@stamp/lease";
import { MetadataClient } from "@stamp/metadata-store";
import { Simulation } from "@stamp/virtual-time";
import { LockService, MetadataStore } from "@stamp/wire";
import { lockServiceSchema } from "./config.ts";
import { LockServiceRole } from "./lock-service.ts";

const timeoutMs = 1_000;
const most = BigInt(Number.MAX_SAFE_INTEGER);
const told = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.failure.reason);

async function withLockService(body: (sim: Simulation, lock: ReturnType<typeof lockOf>) => Promise<void>): Promise<void> {
  const sim = new Simulation({ seed: 5 });
  const config = lockServiceSchema.parse({ name: "lock", listen: "lock", dataDir: "data", init: true });
  sim.addProcess("lock", (world) => new LockServiceRole(world, config));
  await sim.run(async () => {
    await sim.sleep(100);
    await body(sim, lockOf(sim));
  });
}

const lockOf = (sim: Simulation) => sim.world("caller").transport.client("lock", LockService);
const storeOf = (sim: Simulation) => sim.world("caller").transport.client("lock", MetadataStore);
const lease = { name: "stream-manager", holder: "sm", identity: "folder", instance: "1", incarnation: 1n, address: "sm", termMs: 1_000 };

test("far epochs: who asks for an epoch above the maximum is given one a little above the last, durably, and so is who comes next", async () => {
  await withLockService(async (sim, lock) => {
    const acquire = async (incarnation: bigint, above: bigint): Promise<number> =>
      Number(unwrap(await lock.acquireLease({ ...lease, incarnation, above }, { timeoutMs })).leaseEpoch);
    assert.equal(await acquire(1n, 0n), 1);
    assert.equal(await acquire(2n, most), 2 + leaseAheadMax);
    assert.equal(await acquire(3n, 0n), 3 + leaseAheadMax);
    assert.equal(told(await lock.acquireLease({ ...lease, incarnation: 4n, above: 2n ** 64n - 1n }, { timeoutMs })), "badRequest");
    sim.crash("lock", { unsynced: "lost", silent: false, stayDown: true });
    sim.restart("lock");
    await sim.sleep(2_000);
    assert.equal(await acquire(5n, 7n), 4 + leaseAheadMax);
    assert.equal(await acquire(6n, BigInt(10 + leaseAheadMax)), 11 + leaseAheadMax);
  });
});

test("far epochs: every other call with an epoch at its maximum is refused, and the holder goes on", async () => {
  await withLockService(async (sim, lock) => {
    const { leaseEpoch } = unwrap(await lock.acquireLease(lease, { timeoutMs }));
    const { name } = lease;
    const far = { name, leaseEpoch: most };
    const metadata = new MetadataClient(sim.world("caller"), "lock");
    const writes = [{ key: "a", value: utf8("1") }];
    const transact = (epoch: number, version: number) =>
      metadata.transact({ fence: { leaseName: name, leaseEpoch: epoch }, conditions: [{ key: "a", version }], writes }, timeoutMs);
    assert.deepEqual(
      [
        told(await lock.renewLease(far, { timeoutMs })),
        told(await lock.releaseLease(far, { timeoutMs })),
        told(await lock.refuseRenewals(far, { timeoutMs })),
        told(await transact(Number(most), 0)),
        told(await transact(Number(leaseEpoch), Number(most))),
      ],
      ["leaseEnded", "leaseEnded", "leaseEnded", "staleTerm", "conflict"],
    );
    assert.equal(told(await lock.renewLease({ name, leaseEpoch }, { timeoutMs })), "ok");
    assert.equal(told(await transact(Number(leaseEpoch), 0)), "ok");
  });
});

test("far epochs: an incarnation at its maximum costs later ones the wait for the lease's end, no more", async () => {
  await withLockService(async (sim, lock) => {
    const far = unwrap(await lock.acquireLease({ ...lease, incarnation: most }, { timeoutMs }));
    assert.equal(told(await lock.acquireLease({ ...lease, incarnation: 2n }, { timeoutMs })), "leaseHeld");
    await sim.sleep(lease.termMs);
    const next = unwrap(await lock.acquireLease({ ...lease, incarnation: 2n }, { timeoutMs }));
    assert.equal(next.leaseEpoch, far.leaseEpoch + 1n);
    assert.equal(
      told(await lock.acquireLease({ ...lease, incarnation: 3n }, { timeoutMs })),
      "ok",
      "a restart of it takes over at once again",
    );
  });
});

test("far epochs: a number that is none refuses its call, and the lock service goes on", async () => {
  await withLockService(async (sim, lock) => {
    const { name } = lease;
    const { leaseEpoch } = unwrap(await lock.acquireLease(lease, { timeoutMs }));
    const { instance } = unwrap(await storeOf(sim).readChanges({}, { timeoutMs }));
    const over = 2n ** 64n - 1n;
    const reference = { name, leaseEpoch: over };
    const fence = { leaseName: name, leaseEpoch: over };
    const write = { key: "a", value: utf8("1") };
    const calls = {
      above: lock.acquireLease({ ...lease, above: over }, { timeoutMs }),
      incarnation: lock.acquireLease({ ...lease, incarnation: over }, { timeoutMs }),
      renew: lock.renewLease(reference, { timeoutMs }),
      release: lock.releaseLease(reference, { timeoutMs }),
      refuse: lock.refuseRenewals(reference, { timeoutMs }),
      fence: storeOf(sim).transact({ fence, writes: [write] }, { timeoutMs }),
      condition: storeOf(sim).transact({ fence: { ...fence, leaseEpoch }, conditions: [{ key: "a", version: over }] }, { timeoutMs }),
      changes: storeOf(sim).readChanges({ afterVersion: over, instance }, { timeoutMs }),
      snapshot: storeOf(sim).readSnapshot({ offsetBytes: over }, { timeoutMs }),
    };
    for (const [call, answer] of Object.entries(calls)) assert.equal(told(await answer), "badRequest", call);
    assert.equal(told(await lock.renewLease({ name, leaseEpoch }, { timeoutMs })), "ok");
  });
});
