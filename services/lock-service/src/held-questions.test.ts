/** Questions that the lock service holds until there is news: standbys, lists of leases, and what was written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused, unwrap } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { type CallContext, served } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { LockService } from "@stamp/wire";
import { grant, keeperOf, lockOf, simOf, write } from "./testing/lock-world.ts";
import { WaitingQuestions } from "./waits.ts";

const heldMs = 2_000;
const standbyOf = (sim: Simulation, holder: string) => keeperOf(sim, holder, [], 1, { id: holder }, heldMs);

test("held questions: a standby asks seldom, and has the lease as soon as its holder gives it back or its term is over", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const [a, b] = [keeperOf(sim, "a"), standbyOf(sim, "b")];
    await a.acquire();
    const taking = b.acquire();
    await sim.sleep(60_000);
    assert.equal(b.heldBy?.holder, "a");
    const releasedMs = sim.nowMs;
    await a.release();
    assert.equal(await taking, 2);
    assert.ok(sim.nowMs - releasedMs < 100, `taken ${sim.nowMs - releasedMs} ms after it was given back`);
    const c = standbyOf(sim, "c");
    const next = c.acquire();
    await sim.sleep(10_000);
    sim.partition(["b"], ["lock", "c"]);
    const cutMs = sim.nowMs;
    assert.equal(await next, 3);
    assert.ok(sim.nowMs - cutMs <= 6_100, `taken ${sim.nowMs - cutMs} ms after its holder was cut off`);
    await c.release();
  });
});

test("held questions: a wait takes no lease, so a standby that is cut off in it holds up nobody", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const [a, b] = [keeperOf(sim, "a"), standbyOf(sim, "b")];
    await a.acquire();
    const stop = new AbortController();
    const taking = b.acquire(stop.signal).catch(() => 0);
    await sim.sleep(5_000);
    sim.partition(["b"], ["lock"]);
    await a.release();
    await sim.sleep(10);
    assert.equal((await keeperOf(sim, "c").acquire()) > 1, true);
    stop.abort();
    assert.equal(await taking, 0);
  });
});

test("held questions: with a lock service that holds none, a standby asks four times a second and takes the lease all the same", async () => {
  const sim = new Simulation({ seed: 3 });
  await sim.run(async () => {
    let [asked, free] = [0, false];
    const details = { holder: "a", address: "a-address", instance: "x", leaseEpoch: "7", remainingMs: "900" };
    const handlers = {
      acquireLease: async (): Promise<Outcome<{ leaseEpoch: bigint; termMs: number; stampId: string }>> => {
        asked += 1;
        return free ? ok({ leaseEpoch: 8n, termMs: 6_000, stampId: "s" }) : refused("failedPrecondition", "leaseHeld", "", details);
      },
      getLease: async () => ok({ name: "leader", holder: "a", leaseEpoch: 7n, ended: false }),
      renewLease: async () => ok({ leaseEpoch: 8n, termMs: 6_000 }),
      releaseLease: async () => ok({}),
    };
    await sim.world("lock").transport.serve("lock", [served(LockService, handlers as never)]);
    const b = standbyOf(sim, "b");
    const taking = b.acquire();
    await sim.sleep(10_000);
    assert.ok(asked >= 30 && asked <= 80, `${asked} questions in 10 s`);
    free = true;
    assert.equal(await taking, 8);
    await b.release();
  });
});

test("held questions: a list of leases is answered when one is granted or runs out, and at once if the caller's is an older one", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const lock = lockOf(sim);
    const list = async (knownState: string) => {
      const fromMs = sim.nowMs;
      const answer = unwrap(await lock.listLeases({ prefix: "ps/", knownState, waitMs: heldMs }, { timeoutMs: 5_000 }));
      return { ...answer, tookMs: sim.nowMs - fromMs };
    };
    const none = await list("");
    assert.ok(none.tookMs < 100 && none.leases.length === 0);
    const idle = await list(none.state);
    assert.ok(idle.tookMs >= heldMs && idle.state === none.state);
    const asking = list(idle.state);
    await sim.sleep(500);
    await grant(sim, 1_000);
    const granted = await asking;
    assert.ok(granted.tookMs < 700 && granted.leases[0]?.ended === false);
    assert.ok((await list(idle.state)).tookMs < 100);
    const ran = await list(granted.state);
    assert.ok(ran.leases[0]?.ended === true && ran.tookMs <= 1_100, `${ran.tookMs} ms`);
  });
});

test("held questions: a reader hears of the next write to its keys at once, and of no other", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(50);
    const keeper = keeperOf(sim, "a");
    const leaseEpoch = await keeper.acquire();
    const store = new MetadataClient(sim.world("a"), "lock");
    const put = async (key: string) =>
      unwrap(await store.transact({ fence: { leaseName: "leader", leaseEpoch }, conditions: [], writes: [write(key, "1")] }, 1_000));
    const news = async () => {
      const [fromMs, since] = [sim.nowMs, unwrap(await store.position(1_000))];
      await store.news("sm/", since, { waitMs: heldMs, timeoutMs: 5_000 });
      return sim.nowMs - fromMs;
    };
    const other = news();
    await sim.sleep(300);
    await put("pm/x");
    assert.ok((await other) >= heldMs);
    const own = news();
    await sim.sleep(300);
    await put("sm/x");
    const tookMs = await own;
    assert.ok(tookMs >= 300 && tookMs < 500, `${tookMs} ms`);
    await keeper.release();
  });
});

test("waits: a change between a look and the wait is not missed, and the end of the service ends every wait", async () => {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const waits = new WaitingQuestions(sim.world("lock").clock);
    const context = { signal: new AbortController().signal, deadlineMs: Number.POSITIVE_INFINITY } as CallContext;
    const since = waits.changes;
    waits.told("other");
    const fromMs = sim.nowMs;
    await waits.next((name) => name === "a", fromMs + 5_000, since, context);
    assert.equal(sim.nowMs, fromMs);
    const waiting = waits.next((name) => name === "a", fromMs + 5_000, waits.changes, context);
    waits.told("b");
    await sim.sleep(100);
    waits.end();
    await waiting;
    assert.ok(sim.nowMs - fromMs < 200);
  });
});

test("held questions: those that are held when the service ends are answered, and none is held afterwards", async () => {
  const sim = simOf();
  await sim.run(async () => {
    const { clock } = sim.world("waits");
    const waits = new WaitingQuestions(clock);
    const call = { signal: new AbortController().signal };
    const held = waits.next(() => true, clock.monotonicMs() + 5_000, waits.changes, call);
    const beganMs = sim.nowMs;
    waits.end();
    assert.equal(await held, "waited");
    assert.equal(await waits.next(() => true, clock.monotonicMs() + 5_000, waits.changes, call), "refused");
    assert.equal(sim.nowMs, beganMs);
  });
});
