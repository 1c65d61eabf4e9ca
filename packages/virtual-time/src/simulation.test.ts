/** The kernel: time, crashes, pauses, cuts, replay. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, utf8 } from "@stamp/base";
import type { Role, World } from "@stamp/ports";
import { served, sleep } from "@stamp/ports";
import { Status } from "@stamp/wire";
import { Simulation } from "./simulation.ts";

/** Counts its calls, in memory and on disk. */
class Counter implements Role {
  readonly address = "counter";
  readonly status = { ready: true, waitingFor: [], state: "", facts: {} };
  readonly #world: World;
  calls = 0;
  constructor(world: World) {
    this.#world = world;
  }
  async start(): Promise<void> {
    await this.#world.transport.serve("counter", [
      served(Status, {
        getStatus: async () => {
          this.calls += 1;
          const number = this.calls;
          await sleep(this.#world.clock, 1);
          return ok({ pid: number });
        },
      }),
    ]);
  }
  async stop(): Promise<void> {}
}

const simOf = (seed = 7): Simulation => {
  const sim = new Simulation({ seed });
  sim.addProcess("counter", (world) => new Counter(world));
  return sim;
};
const call = (sim: Simulation, timeoutMs = 500) => sim.world("tester").transport.client("counter", Status).getStatus({}, { timeoutMs });

test("simulation: a long sleep takes virtual time only", async () => {
  const sim = simOf();
  await sim.run(() => sim.sleep(3_600_000));
  assert.ok(sim.nowMs >= 3_600_000);
});

test("simulation: all microtasks of an event drain before the next event", async () => {
  const sim = new Simulation({ seed: 1 });
  const order: string[] = [];
  await sim.run(async () => {
    const { clock } = sim.world("p");
    clock.after(1, () => {
      void (async () => {
        for (let i = 0; i < 2000; i++) await null;
        order.push("drained");
      })();
    });
    clock.after(1, () => order.push("next"));
    await sim.sleep(5);
  });
  assert.deepEqual(order, ["drained", "next"]);
});

test("simulation: a body that waits for nothing that can come is a deadlock", async () => {
  const sim = new Simulation({ seed: 1 });
  await assert.rejects(
    sim.run(() => new Promise(() => {})),
    /deadlock/,
  );
});

test("simulation: an error in a timer fails the run and names the seed", async () => {
  const sim = new Simulation({ seed: 77 });
  const run = sim.run(async () => {
    sim.world("p").clock.after(1, () => {
      throw new Error("on purpose");
    });
    await sim.sleep(100);
  });
  await assert.rejects(run, /seed 77.*on purpose/);
});

test("simulation: a crash loses memory, an in-flight call is unknown, and the supervisor starts it again", async () => {
  const sim = new Simulation({ seed: 3 });
  sim.addProcess("counter", (world) => new Counter(world), { restartAfterMs: 100 });
  await sim.run(async () => {
    await sim.sleep(5);
    const first = await call(sim);
    assert.ok(first.ok && first.value.pid === 1);
    const pending = call(sim);
    await sim.sleep(0.5);
    sim.crash("counter", { silent: false });
    const outcome = await pending;
    assert.ok(!outcome.ok && outcome.failure.applied === "unknown", "in flight");
    const absent = await call(sim);
    assert.ok(!absent.ok && absent.failure.reason === "connectFailed" && absent.failure.applied === "no");
    await sim.sleep(200);
    const again = await call(sim);
    assert.ok(again.ok && again.value.pid === 1, "a new incarnation");
  });
});

test("simulation: what a dead incarnation waits for never comes", async () => {
  const sim = new Simulation({ seed: 3 });
  await sim.run(async () => {
    const old = sim.world("p");
    let woke = false;
    void sleep(old.clock, 10).then(() => {
      woke = true;
    });
    sim.crash("p");
    sim.restart("p");
    void old.disk.writeAtomically("file", utf8("x")).then(() => {
      woke = true;
    });
    await sim.sleep(1000);
    assert.equal(woke, false);
    assert.equal(await sim.world("p").disk.exists("file"), false);
  });
});

test("simulation: a paused process answers late, after its caller gave up", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(5);
    await call(sim);
    sim.pause("counter");
    const outcome = await call(sim);
    assert.ok(!outcome.ok && outcome.failure.reason === "timeout");
    sim.resume("counter");
    await sim.sleep(100);
    assert.equal((sim.role("counter") as Counter).calls, 2, "the late call ran");
  });
});

test("simulation: behind a cut a call times out, and arrives late when it heals", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(5);
    await call(sim);
    sim.partition(["counter"], ["tester"], { oneWay: true });
    const outcome = await call(sim);
    assert.ok(!outcome.ok && outcome.failure.applied === "unknown");
    assert.equal((sim.role("counter") as Counter).calls, 2, "the way there was open");
    sim.heal();
    sim.partition(["counter"], ["tester"]);
    const second = await call(sim);
    assert.ok(!second.ok);
    assert.equal((sim.role("counter") as Counter).calls, 2, "no way was open");
    sim.heal();
    await sim.sleep(1000);
    assert.equal((sim.role("counter") as Counter).calls, 3, "late");
    assert.ok((await call(sim)).ok);
  });
});

test("simulation: a cut that lasts ends the connection; calls on it are unknown, not waiting for ever", async () => {
  const sim = simOf();
  await sim.run(async () => {
    await sim.sleep(5);
    await call(sim);
    sim.partition(["counter"], ["tester"]);
    const outcome = await call(sim, 600_000);
    assert.ok(!outcome.ok && outcome.failure.reason === "connectionLost" && outcome.failure.applied === "unknown");
    const next = await call(sim, 600_000);
    assert.ok(!next.ok && next.failure.reason === "connectFailed" && next.failure.applied === "no");
  });
});

/** A busy hour of everything that can go wrong. */
async function storm(seed: number): Promise<string> {
  const sim = new Simulation({ seed, clockDriftPpmMax: 300, network: { breakChance: 0.01, silenceChance: 0.002, slowChance: 0.02 } });
  sim.addProcess("counter", (world) => new Counter(world), { restartAfterMs: 300 });
  await sim.run(async () => {
    for (let i = 0; i < 300; i++) {
      void call(sim, 50 + sim.prng.below(500));
      const file = await sim.world("tester").disk.open("f", { create: true });
      await file.write(sim.prng.below(20_000), [sim.prng.bytes(100)]);
      if (sim.prng.chance(0.05)) sim.crash("counter");
      if (sim.prng.chance(0.05)) sim.partition(["counter"], ["tester"], { oneWay: sim.prng.chance(0.5) });
      if (sim.prng.chance(0.1)) sim.heal();
      await sim.sleep(sim.prng.below(100));
    }
  });
  return `${sim.log.hash} ${sim.events}`;
}

test("simulation: a connection that breaks by itself delivers nothing behind what it lost", async () => {
  const sim = simOf();
  await sim.run(async () => {
    assert.ok((await call(sim)).ok);
    const counter = sim.role("counter") as Counter;
    const { options } = sim.network;
    // Its ends hear of the break a second later.
    sim.network.options = { ...options, breakChance: 1, delayMinUs: 1_000_000, delayMaxUs: 1_000_000 };
    const lost = call(sim, 3_000);
    await sim.sleep(1);
    sim.network.options = options;
    const behind = call(sim, 3_000);
    await sim.sleep(500);
    assert.equal(counter.calls, 1);
    assert.deepEqual([(await lost).ok, (await behind).ok], [false, false]);
    assert.ok((await call(sim)).ok, "the next connection");
  });
});

test("simulation: one seed gives one run, another seed another", async () => {
  const first = await storm(11);
  assert.equal(await storm(11), first);
  assert.notEqual(await storm(12), first);
});
