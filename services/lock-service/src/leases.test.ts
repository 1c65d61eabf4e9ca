/** Leases: terms, holders that come back, other processes of one name, and restarts of the lock service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { leasesMax, lockServiceHandlers, type OpenStore } from "./server.ts";
import { type Folder, grant, keeperOf, lockOf, restartLock, simOf } from "./testing/lock-world.ts";

test("lease keeper: a lock service that is back within two thirds of a term, killed at any moment between two renewals, costs no lease", async () => {
  const sim = simOf();
  const lost: string[] = [];
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a", lost);
    const epoch = await keeper.acquire();
    for (let phaseMs = 0; phaseMs < 2_000; phaseMs += 50) {
      await sim.sleep(7_000 + phaseMs);
      sim.crash("lock", { unsynced: "lost", silent: false, stayDown: true });
      await sim.sleep(4_000);
      sim.restart("lock");
      await sim.sleep(1_200);
      assert.ok(keeper.holds(), `killed ${phaseMs} ms later in the time between renewals: ${lost[0]}`);
    }
    assert.equal(keeper.epoch, epoch);
    assert.deepEqual(lost, []);
  });
});

test("lease keeper: it holds while it renews, and loses the lease within the term when the lock service is away", async () => {
  const sim = simOf();
  const lost: string[] = [];
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a", lost);
    await keeper.acquire();
    await sim.sleep(60_000);
    assert.ok(keeper.holds());
    const cutMs = sim.nowMs;
    sim.partition(["a"], ["lock"]);
    while (keeper.holds()) await sim.sleep(10);
    assert.ok(sim.nowMs - cutMs <= 5_100, `it believed in it for ${sim.nowMs - cutMs} ms`);
    await sim.sleep(1);
    assert.equal(lost.length, 1);
    sim.heal();
    await sim.sleep(6_000);
    const epoch = await keeper.acquire();
    assert.equal(epoch, 2, "a new epoch, never the old one renewed");
    await keeper.release();
  });
});

test("lease keeper: no step of the wall clock ends a lease", async () => {
  const sim = simOf();
  const lost: string[] = [];
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a", lost);
    const epoch = await keeper.acquire();
    for (const stepMs of [900, 1_100, 3_600_000, -7_200_000, 1e9]) {
      sim.jumpWallClock("a", stepMs);
      sim.jumpWallClock("lock", -stepMs);
      assert.ok(keeper.holds(), `a step by ${stepMs} ms`);
      await sim.sleep(7_000);
      assert.ok(keeper.holds(), `renewed after a step by ${stepMs} ms`);
    }
    assert.equal(keeper.epoch, epoch);
    assert.deepEqual(lost, []);
  });
});

for (const rule of [undefined, "leaseCountsSuspends"] as const) {
  test(`lease keeper: a suspend ${rule ? `without ${rule} leaves two holders` : "of the machine ends the lease it outlasts, a short one does not"}`, async () => {
    const sim = simOf({ without: rule ? [rule] : [] });
    const lost: string[] = [];
    await sim.run(async () => {
      await sim.sleep(50);
      const keeper = keeperOf(sim, "a", lost);
      await keeper.acquire();
      await sim.sleep(4_500);
      sim.suspend("a");
      await sim.sleep(1_500);
      sim.resume("a");
      assert.ok(keeper.holds(), "its renewal comes in time");
      await sim.sleep(4_500);
      assert.ok(keeper.holds());
      sim.suspend("a");
      await keeperOf(sim, "b").acquire();
      sim.resume("a");
      assert.equal(keeper.holds(), rule !== undefined);
      await sim.sleep(6_000);
      assert.ok(!keeper.holds());
      assert.equal(lost.length, 1);
    });
  });
}

test("leases: a successor waits the old lease out, a newer incarnation of the holder does not, an older one is refused", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const first = keeperOf(sim, "a");
    await first.acquire();
    const other = keeperOf(sim, "b");
    const other1 = other.acquire();
    sim.partition(["a"], ["lock"]);
    const cutMs = sim.nowMs;
    await other1;
    assert.ok(!first.holds(), "two holders");
    assert.ok(sim.nowMs - cutMs >= 4_000);
    await other.release();
    sim.heal();
    const again = keeperOf(sim, "a", [], 2);
    await again.acquire();
    const beforeMs = sim.nowMs;
    const newest = keeperOf(sim, "a", [], 3);
    await newest.acquire();
    assert.ok(sim.nowMs - beforeMs < 500, "it need not wait");
    const old = await lockOf(sim).acquireLease(
      { name: "leader", holder: "a", identity: "a", incarnation: 2n, address: "x", termMs: 6_000 },
      { timeoutMs: 500 },
    );
    assert.ok(!old.ok && old.failure.reason === "leaseHeld");
    await newest.release();
    await again.release();
  });
});

test("leases: a lost answer to an acquire does not keep the same process waiting for the term", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a");
    sim.partition(["lock"], ["a"], { oneWay: true });
    const acquiring = keeper.acquire();
    await sim.sleep(1_900);
    sim.heal();
    const healedMs = sim.nowMs;
    await acquiring;
    assert.ok(sim.nowMs - healedMs < 3_000, `waited ${sim.nowMs - healedMs} ms`);
    await keeper.release();
  });
});

test("leases: two processes of one name on two folders do not take the lease from each other", async () => {
  const sim = simOf();
  const lost: string[] = [];
  await sim.run(async () => {
    await sim.sleep(50);
    const first = keeperOf(sim, "a", lost, 1, { id: "one folder" });
    const epoch = await first.acquire();
    const leftOver = keeperOf(sim, "a", lost, 1, { id: "another folder" });
    const waiting = leftOver.acquire();
    await sim.sleep(60_000);
    assert.ok(first.holds(), lost.join());
    assert.equal(first.epoch, epoch);
    assert.match(leftOver.waitingFor, /a at a-address holds/);
    await first.release();
    assert.equal(await waiting, epoch + 1, "it was free then");
    await leftOver.release();
  });
});

test("leases: a process of another stamp gets none, and says so", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const folder: Folder = { id: "f" };
    const own = keeperOf(sim, "a", [], 1, folder);
    await own.acquire();
    assert.equal(folder.stampId, unwrap(await new MetadataClient(sim.world("a"), "lock").stampId(1_000)), "bound at the first grant");
    const standby: Folder = { id: "h" };
    const standsBy = new AbortController();
    const stands = keeperOf(sim, "c", [], 1, standby)
      .acquire(standsBy.signal)
      .catch(() => "cancelled");
    await sim.sleep(1_000);
    assert.equal(standby.stampId, folder.stampId, "a standby is bound too");
    standsBy.abort();
    assert.equal(await stands, "cancelled");
    await own.release();
    const stranger = keeperOf(sim, "b", [], 1, { id: "g", stampId: "another stamp" });
    const stop = new AbortController();
    const waiting = stranger.acquire(stop.signal).catch(() => "cancelled");
    await sim.sleep(10_000);
    assert.match(stranger.waitingFor, /its own stamp .*another stamp/);
    assert.equal(unwrap(await lockOf(sim).getLease({ name: "leader" }, { timeoutMs: 500 })).ended, true);
    stop.abort();
    assert.equal(await waiting, "cancelled");
  });
});

test("leases: a restart extends what ran, never what was told to have ended, and keeps refusals", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const lock = lockOf(sim);
    const epoch = await grant(sim);
    await sim.sleep(900);
    await restartLock(sim);
    await sim.sleep(500);
    assert.ok(!unwrap(await lock.getLease({ name: "ps/x" }, { timeoutMs: 500 })).ended, "extended by a full term");
    assert.ok((await lock.renewLease({ name: "ps/x", leaseEpoch: epoch }, { timeoutMs: 500 })).ok);
    await sim.sleep(1_100);
    assert.ok(unwrap(await lock.getLease({ name: "ps/x" }, { timeoutMs: 500 })).ended);
    await restartLock(sim);
    assert.ok(unwrap(await lock.getLease({ name: "ps/x" }, { timeoutMs: 500 })).ended, "what was said to have ended stays ended");
    const late = await lock.renewLease({ name: "ps/x", leaseEpoch: epoch }, { timeoutMs: 500 });
    assert.ok(!late.ok && late.failure.reason === "leaseEnded");

    const next = await grant(sim);
    assert.equal(next, epoch + 1n);
    unwrap(await lock.refuseRenewals({ name: "ps/x", leaseEpoch: next }, { timeoutMs: 500 }));
    await restartLock(sim);
    const refusedRenewal = await lock.renewLease({ name: "ps/x", leaseEpoch: next }, { timeoutMs: 500 });
    assert.ok(!refusedRenewal.ok && refusedRenewal.failure.reason === "leaseRefused");
  });
});

// Failures that each rule prevents, seen when it is off: a test that could not fail would pass here too.
test("leases: without leasesExtendedOnRestart a running lease is gone after a restart", async () => {
  const sim = simOf({ without: ["leasesExtendedOnRestart"] });
  await sim.run(async () => {
    await sim.sleep(50);
    await grant(sim);
    await restartLock(sim);
    assert.ok(unwrap(await lockOf(sim).getLease({ name: "ps/x" }, { timeoutMs: 500 })).ended);
  });
});

test("leases: without leaseEndRecorded a restart revives what was said to have ended", async () => {
  const sim = simOf({ without: ["leaseEndRecorded"] });
  await sim.run(async () => {
    await sim.sleep(50);
    const epoch = await grant(sim);
    await sim.sleep(1_100);
    assert.ok(unwrap(await lockOf(sim).getLease({ name: "ps/x" }, { timeoutMs: 500 })).ended);
    await restartLock(sim);
    assert.ok((await lockOf(sim).renewLease({ name: "ps/x", leaseEpoch: epoch }, { timeoutMs: 500 })).ok);
  });
});

test("leases: without refusalDurable a restart renews what was refused; without neverRenewEnded a late renewal revives", async () => {
  const sim = simOf({ without: ["refusalDurable"] });
  await sim.run(async () => {
    await sim.sleep(50);
    const epoch = await grant(sim);
    unwrap(await lockOf(sim).refuseRenewals({ name: "ps/x", leaseEpoch: epoch }, { timeoutMs: 500 }));
    await restartLock(sim);
    assert.ok((await lockOf(sim).renewLease({ name: "ps/x", leaseEpoch: epoch }, { timeoutMs: 500 })).ok);
  });
  const other = simOf({ without: ["neverRenewEnded"] });
  await other.run(async () => {
    await other.sleep(50);
    const epoch = await grant(other);
    await other.sleep(1_100);
    assert.ok((await lockOf(other).renewLease({ name: "ps/x", leaseEpoch: epoch }, { timeoutMs: 500 })).ok);
  });
});

test("leases: with half of the room taken, a gateway of a new name gets none and the stamp's own processes still do", async () => {
  const half = leasesMax / 2;
  const acquired = async (size: number, name: string, epoch = 0): Promise<string> => {
    const leases = { size, epochOf: () => epoch, acquire: () => undefined };
    const turn = { leases, nowMs: () => 0, decided: () => ok({ epoch: 1, termMs: 1 }) };
    const committer = { submit: async (_deadlineMs: number, work: (current: unknown, store: unknown) => unknown) => work(turn, {}) };
    const handlers = lockServiceHandlers(() => ok({ stampId: "s", committer } as unknown as OpenStore));
    const request = { name, holder: "x", identity: "x", instance: "x", address: "", stampId: "", termMs: 1, incarnation: 1n, above: 0n };
    const answer = await handlers.acquireLease(request as never, { deadlineMs: 1 } as never);
    return answer.ok ? "granted" : answer.failure.code;
  };
  assert.equal(await acquired(half - 1, "files/new"), "granted");
  assert.equal(await acquired(half, "files/new"), "resourceExhausted");
  assert.equal(await acquired(half, "files/known", 3), "granted");
  assert.equal(await acquired(half, "ps/new"), "granted");
  assert.equal(await acquired(leasesMax, "ps/new"), "resourceExhausted");
});
