/** The lock service over simulated time, disk and network: group commit, fences, leases over restarts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome, RuleName } from "@stamp/base";
import { leaseEpoch, refused, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { LeaderCalls, LeaseKeeper, MetadataClient } from "@stamp/metadata-store";
import { type Disk, DiskError, type KeyValue, type KeyValueStores } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { LockService } from "@stamp/wire";
import { lockServiceSchema } from "./config.ts";
import { LockServiceRole } from "./lock-service.ts";

function simOf(options: { seed?: number; init?: boolean; without?: RuleName[] } = {}): Simulation {
  const sim = new Simulation({ seed: options.seed ?? 11, rules: rulesWithout(...(options.without ?? [])) });
  const config = lockServiceSchema.parse({ name: "lock", listen: "lock", init: options.init ?? true });
  sim.addProcess("lock", (world) => new LockServiceRole(world, config));
  return sim;
}

interface Folder {
  readonly id: string;
  stampId?: string;
}

const keeperOf = (sim: Simulation, holder: string, lost: string[] = [], incarnation = 1, folder: Folder = { id: holder }): LeaseKeeper =>
  new LeaseKeeper(sim.world(holder), {
    lockService: "lock",
    leaseName: "leader",
    holder,
    identity: {
      id: folder.id,
      incarnation,
      instance: `${folder.id}, start ${incarnation}`,
      get stampId() {
        return folder.stampId;
      },
      bindStamp: async (stampId) => {
        folder.stampId = stampId;
      },
    },
    address: `${holder}-address`,
    onLost: (why) => lost.push(why),
  });

const lockOf = (sim: Simulation, name = "tester") => sim.world(name).transport.client("lock", LockService);
const write = (key: string, text: string) => ({ key, value: utf8(text) });

test("lock service: an empty store without init is never served, with init it keeps one identity", async () => {
  const empty = simOf({ init: false });
  await empty.run(async () => {
    await empty.sleep(50);
    const metadata = new MetadataClient(empty.world("tester"), "lock");
    const stamp = await metadata.stampId(1_000);
    assert.ok(!stamp.ok && stamp.failure.reason === "notReady");
    const lease = await lockOf(empty).getLease({ name: "x" }, { timeoutMs: 1_000 });
    assert.ok(!lease.ok && lease.failure.reason === "notReady");
    const { state, waitingFor } = empty.role("lock")?.status ?? {};
    assert.equal(state, "empty");
    assert.match(waitingFor?.[0] ?? "", /empty.*`stamp health` names the newest copy/);
    assert.doesNotMatch(waitingFor?.[0] ?? "", /init/i, "a new stamp gives up what the extent nodes hold");
  });
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const metadata = new MetadataClient(sim.world("tester"), "lock");
    const id = unwrap(await metadata.stampId(1_000));
    sim.crash("lock", { unsynced: "lost", silent: false, stayDown: true });
    sim.restart("lock");
    await sim.sleep(50);
    assert.equal(unwrap(await metadata.stampId(1_000)), id);
  });
});

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

async function restartLock(sim: Simulation): Promise<void> {
  sim.crash("lock", { unsynced: "lost", silent: false, stayDown: true });
  sim.restart("lock");
  await sim.sleep(20);
}

/** Acquires by hand, so that nothing renews; gives the epoch. */
async function grant(sim: Simulation, termMs = 1_000): Promise<bigint> {
  const request = { name: "ps/x", holder: "x", identity: "x", incarnation: 1n, address: "x", termMs };
  return unwrap(await lockOf(sim).acquireLease(request, { timeoutMs: 500 })).leaseEpoch;
}

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

test("metadata store: without storeFence a deposed writer writes, without storeCompareAndSet the last one wins", async () => {
  for (const rule of ["storeFence", "storeCompareAndSet"] as const) {
    const sim = simOf({ without: [rule] });
    await sim.run(async () => {
      await sim.sleep(50);
      const keeper = keeperOf(sim, "a");
      const epoch = await keeper.acquire();
      const metadata = new MetadataClient(sim.world("a"), "lock");
      const fence = { leaseName: "leader", leaseEpoch: rule === "storeFence" ? leaseEpoch(epoch + 7) : epoch };
      const version = rule === "storeFence" ? 0 : 99;
      assert.ok((await metadata.transact({ fence, conditions: [{ key: "k", version }], writes: [write("k", "1")] }, 1_000)).ok);
      await keeper.release();
    });
  }
});

test("leader calls: they follow the leader, come back with its refusals, and say unknown when it is unknown", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const calls = new LeaderCalls(sim.world("tester"), { lockService: "lock", leaseName: "leader" });
    const nobody = await calls.call(300, async () => ({ ok: true as const, value: 1 }));
    assert.ok(!nobody.ok && nobody.failure.reason === "notLeader" && nobody.failure.applied === "no");
    const a = keeperOf(sim, "a");
    await a.acquire();
    const seen: string[] = [];
    const ask = (timeoutMs: number) =>
      calls.call(timeoutMs, async (address) => {
        seen.push(address);
        if (address === "a-address" && seen.length > 1) {
          return { ok: false, failure: { code: "unavailable", reason: "notLeader", message: "", applied: "no" } } as const;
        }
        return { ok: true as const, value: address };
      });
    assert.equal(unwrap(await ask(1_000)), "a-address");
    const b = keeperOf(sim, "b");
    const taking = b.acquire();
    await a.release();
    await taking;
    assert.equal(unwrap(await ask(1_000)), "b-address");
    let attempts = 0;
    const unknown = { ok: false, failure: { code: "unavailable", reason: "connectionLost", message: "", applied: "unknown" } } as const;
    const once = await calls.call<number>(1_000, async () => (++attempts > 0 ? unknown : unknown));
    assert.ok(!once.ok && once.failure.applied === "unknown" && attempts === 1);
    const refusal = { ok: false, failure: { code: "unavailable", reason: "notLeader", message: "", applied: "no" } } as const;
    attempts = 0;
    const then = await calls.call<number>(1_000, async () => (++attempts === 1 ? unknown : refusal), { idempotent: true });
    assert.ok(!then.ok && then.failure.applied === "unknown" && attempts > 2, "an earlier attempt may still have done it");
    await b.release();
  });
});

test("leader calls: a process of another role or another stamp at the leader's old address is left as soon as the lease names another", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const strangers = [
      refused("unimplemented", "unknownMethod", "it is not served here"),
      refused("unauthenticated", "unauthorized", "it has another secret"),
    ];
    for (const stranger of strangers) {
      const calls = new LeaderCalls(sim.world("tester"), { lockService: "lock", leaseName: "leader" });
      const a = keeperOf(sim, "a");
      await a.acquire();
      const ask = () => calls.call(1_000, async (address) => (address === "a-address" ? stranger : { ok: true as const, value: address }));
      const refusal = await ask();
      assert.ok(!refusal.ok && refusal.failure.reason === stranger.failure.reason && refusal.failure.applied === "no");
      const asked = ask();
      await sim.sleep(100);
      const b = keeperOf(sim, "b");
      const taking = b.acquire();
      await a.release();
      await taking;
      assert.equal(unwrap(await asked), "b-address");
      await b.release();
    }
  });
});

test("leader calls: a caller that has another way hears at once that a method is not served, and who leads is looked up again", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const a = keeperOf(sim, "a");
    await a.acquire();
    const calls = new LeaderCalls(sim.world("tester"), { lockService: "lock", leaseName: "leader" });
    let attempts = 0;
    const lacking = async () => {
      attempts++;
      return refused("unimplemented", "unknownMethod", "");
    };
    const lacked = await calls.call<number>(1_000, lacking, { mayLackMethod: true });
    assert.ok(!lacked.ok && lacked.failure.reason === "unknownMethod");
    assert.deepEqual([attempts, calls.leader], [1, undefined]);
    await a.release();
  });
});

/** `failure`: of every write of the metadata store, while there is one. */
function failingSim(failure: (disk: Disk) => Promise<Error | undefined> | Error | undefined): Simulation {
  const sim = new Simulation({ seed: 5 });
  sim.addProcess("lock", (world) => {
    const stores: KeyValueStores = {
      destroy: (name) => world.keyValue.destroy(name),
      open: async (name) => {
        const opened = await world.keyValue.open(name);
        if (opened.kind === "corrupt") return opened;
        const { store } = opened;
        const batch: KeyValue["batch"] = async (operations, options) => {
          const error = await failure(world.disk);
          if (error !== undefined) throw error;
          await store.batch(operations, options);
        };
        return {
          kind: "opened",
          store: { get: (key) => store.get(key), batch, range: (range) => store.range(range), close: () => store.close() },
        };
      },
    };
    return new LockServiceRole({ ...world, keyValue: stores }, lockServiceSchema.parse({ listen: "lock", init: true }));
  });
  return sim;
}

test("lock service: a failed sync ends the process, nobody is told that it was done", async () => {
  let failing = false;
  const sim = failingSim(() => (failing ? new Error("input/output error") : undefined));
  await sim.run(async () => {
    await sim.sleep(50);
    failing = true;
    const answer = await lockOf(sim).acquireLease(
      { name: "n", holder: "h", incarnation: 1n, address: "x", termMs: 1_000 },
      { timeoutMs: 500 },
    );
    assert.ok(!answer.ok && answer.failure.applied === "unknown");
    await sim.sleep(10);
    assert.ok(!sim.isUp("lock"));
  });
});

test("lock service: with its disk full it renews leases and reads, refuses what it would have to record, and goes on when there is room", async () => {
  const sim = simOf();
  const lost: string[] = [];
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a", lost);
    const epoch = await keeper.acquire();
    const fence = { leaseName: "leader", leaseEpoch: epoch };
    const metadata = new MetadataClient(sim.world("tester"), "lock");
    const put = (key: string) => metadata.transact({ fence, conditions: [], writes: [write(key, "x")] }, 1_000);
    unwrap(await put("before"));
    const disk = sim.disk("lock");
    const roomy = disk.options;
    disk.options = { ...roomy, totalBytes: disk.usedBytes() + (1 << 20) };
    await sim.sleep(1_000);
    const refused = await put("meanwhile");
    assert.ok(!refused.ok && refused.failure.reason === "diskFull" && refused.failure.applied === "no", JSON.stringify(refused));
    const other = { name: "other", holder: "b", identity: "b", incarnation: 1n, address: "x", termMs: 1_000 };
    const acquired = await lockOf(sim).acquireLease(other, { timeoutMs: 500 });
    assert.ok(!acquired.ok && acquired.failure.reason === "diskFull");
    // A process that did not hear of its grant can't end it now, and does not ask in a storm.
    const [unheard, before] = [keeperOf(sim, "a"), sim.events];
    const giveUp = new AbortController();
    const acquiring = unheard.acquire(giveUp.signal).catch(() => {});
    await sim.sleep(30_000);
    giveUp.abort();
    await acquiring;
    assert.ok(sim.events - before < 5_000, `${sim.events - before} events`);
    assert.ok(keeper.holds(), "renewed all the time");
    assert.equal(unwrap(await metadata.get(["before", "meanwhile"], 1_000)).filter(({ version }) => version > 0).length, 1);
    disk.options = roomy;
    await sim.sleep(1_000);
    unwrap(await put("after"));
    unwrap(await lockOf(sim).acquireLease(other, { timeoutMs: 500 }));
    assert.deepEqual(lost, []);
    await keeper.release();
  });
});

test("lock service: a write that finds no room gets the room that was kept for it, which is kept again when there is more", async () => {
  let full = false;
  let failed = 0;
  const sim = failingSim(async (disk) => {
    if (!full || !(await disk.exists("room-kept"))) return undefined;
    failed += 1;
    return new DiskError("full", "metadata", "no space left on device");
  });
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a");
    const epoch = await keeper.acquire();
    const metadata = new MetadataClient(sim.world("tester"), "lock");
    const put = (key: string) =>
      metadata.transact({ fence: { leaseName: "leader", leaseEpoch: epoch }, conditions: [], writes: [write(key, "x")] }, 1_000);
    for (const key of ["first", "second"]) {
      full = false;
      await sim.sleep(2_500);
      unwrap(await put(`${key}, before`));
      await sim.sleep(100);
      full = true;
      unwrap(await put(key));
    }
    assert.equal(failed, 2);
    await keeper.release();
  });
});

test("lock service: a write that finds no room is tried until there is; leases are renewed meanwhile, and nobody learns of it before", async () => {
  let full = false;
  const sim = failingSim(() => (full ? new DiskError("full", "metadata", "no space left on device") : undefined));
  const lost: string[] = [];
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a", lost);
    const epoch = await keeper.acquire();
    const metadata = new MetadataClient(sim.world("tester"), "lock");
    const put = (key: string, timeoutMs: number) =>
      metadata.transact({ fence: { leaseName: "leader", leaseEpoch: epoch }, conditions: [], writes: [write(key, "x")] }, timeoutMs);
    unwrap(await put("before", 1_000));
    const refusedFull = (outcome: Outcome<unknown>): void =>
      assert.ok(!outcome.ok && outcome.failure.reason === "diskFull" && outcome.failure.applied === "no");
    const lease = (name: string) => ({ name, holder: "b", identity: "b", incarnation: 1n, address: "x", termMs: 1_000 });

    // Somebody takes the last byte between the look and the write.
    full = true;
    const written = put("meanwhile", 60_000);
    await sim.sleep(20_000);
    assert.ok(keeper.holds(), "renewed all the time");
    refusedFull(await metadata.get(["meanwhile"], 1_000));
    refusedFull(await metadata.list("mean", 1_000));
    refusedFull(await put("later", 1_000));
    refusedFull(await lockOf(sim).acquireLease(lease("other"), { timeoutMs: 500 }));
    assert.equal(unwrap(await metadata.get(["before"], 1_000)).length, 1);
    full = false;
    const version = unwrap(await written);
    assert.equal(unwrap(await metadata.get(["meanwhile"], 1_000))[0]?.version, version);

    full = true;
    const granted = lockOf(sim).acquireLease(lease("other"), { timeoutMs: 60_000 });
    await sim.sleep(20_000);
    refusedFull(await lockOf(sim).acquireLease(lease("other"), { timeoutMs: 500 }));
    refusedFull(await lockOf(sim).renewLease({ name: "other", leaseEpoch: 1n }, { timeoutMs: 500 }));
    refusedFull(await lockOf(sim).getLease({ name: "other" }, { timeoutMs: 500 }));
    refusedFull(await lockOf(sim).listLeases({ prefix: "" }, { timeoutMs: 500 }));
    assert.ok(keeper.holds(), "renewed all the time");
    full = false;
    assert.equal(unwrap(await granted).leaseEpoch, 1n);
    unwrap(await put("after", 1_000));
    assert.deepEqual(lost, []);
    await keeper.release();
  });
});
