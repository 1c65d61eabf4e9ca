/** Several lock services seen by one client: the active one falls silent, is slow, or another one is active. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused, unknownOutcome } from "@stamp/base";
import { lockServices } from "@stamp/metadata-store";
import type { CallOptions, World } from "@stamp/ports";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { LockService } from "@stamp/wire";

type Answer = (options: CallOptions) => Promise<Outcome<object>>;

/** Lock services whose answers the test sets, by address, and the calls that reached them. */
class Scene {
  readonly sim = new Simulation({ seed: 1 });
  readonly asked: string[] = [];
  readonly answers = new Map<string, Answer>();

  get world(): Pick<World, "clock" | "transport"> {
    const { clock } = this.sim.world("client");
    const client = (address: string) => ({
      renewLease: (_: object, options: CallOptions) => this.#answer(address, options),
      transact: (_: object, options: CallOptions) => this.#answer(address, options),
      acquireLease: (_: object, options: CallOptions) => this.#answer(address, options),
    });
    return { clock, transport: { client } as unknown as World["transport"] };
  }

  #answer(address: string, options: CallOptions): Promise<Outcome<object>> {
    this.asked.push(address);
    return (this.answers.get(address) as Answer)(options);
  }

  /** No answer until the deadline, as of a host that is cut off. */
  silent(address: string): void {
    this.answers.set(address, async ({ timeoutMs }) => {
      await sleep(this.sim.world("client").clock, timeoutMs);
      return unknownOutcome("deadlineExceeded", "timeout", "no answer in time");
    });
  }

  active(address: string, afterMs = 1): void {
    this.answers.set(address, async ({ timeoutMs }) => {
      await sleep(this.sim.world("client").clock, Math.min(afterMs, timeoutMs));
      return afterMs <= timeoutMs ? ok({ from: address }) : unknownOutcome("deadlineExceeded", "timeout", "no answer in time");
    });
  }

  standby(address: string, names: string): void {
    this.answers.set(address, async () => refused("unavailable", "notLeader", "this lock service does not lead", { leaderAddress: names }));
  }
}

const renewal = { name: "x", leaseEpoch: 1n };

test("lock services: the active one falls silent, another one is found as soon as a standby names it", async () => {
  const scene = new Scene();
  const { sim } = scene;
  await sim.run(async () => {
    const client = lockServices(scene.world, "a,b,c", LockService);
    scene.active("a");
    scene.standby("b", "a");
    scene.standby("c", "a");
    assert.ok((await client.renewLease(renewal, { timeoutMs: 2_000 })).ok);
    scene.silent("a");
    sim.world("client").clock.after(1_200, () => {
      scene.standby("b", "c");
      scene.active("c");
    });
    const startMs = sim.nowMs;
    const answer = await client.renewLease(renewal, { timeoutMs: 4_000 });
    assert.deepEqual(answer.ok && answer.value, { from: "c" });
    assert.ok(sim.nowMs - startMs < 1_200 + 600, `${sim.nowMs - startMs} ms`);
    scene.asked.length = 0;
    assert.ok((await client.renewLease(renewal, { timeoutMs: 2_000 })).ok);
    assert.deepEqual(scene.asked, ["c"], "the next call goes there at once");
  });
});

test("lock services: one that is slow is not left while the others name it", async () => {
  const scene = new Scene();
  const { sim } = scene;
  await sim.run(async () => {
    const client = lockServices(scene.world, "a,b,c", LockService);
    for (const standby of ["b", "c"]) scene.standby(standby, "a");
    scene.active("a", 1_500);
    const late = await client.renewLease(renewal, { timeoutMs: 1_000 });
    assert.ok(!late.ok && late.failure.applied === "unknown");
    // etcd's disk takes 700 ms for each write, after one that took longer than an attempt.
    scene.active("a", 700);
    for (let i = 0; i < 5; i++) {
      const startMs = sim.nowMs;
      const answer = await client.renewLease(renewal, { timeoutMs: 2_000 });
      assert.deepEqual(answer.ok && answer.value, { from: "a" });
      assert.ok(sim.nowMs - startMs < 900, `${sim.nowMs - startMs} ms`);
    }
  });
});

test("lock services: what must not be done twice waits for its one process, but goes where renewals of the same process succeed", async () => {
  const scene = new Scene();
  const { sim } = scene;
  await sim.run(async () => {
    const { world } = scene;
    const leases = lockServices(world, "a,b", LockService);
    const others = lockServices(world, "a,b", LockService);
    scene.silent("a");
    scene.active("b");
    const request = { name: "x", holder: "h", incarnation: 1n, address: "h", instance: "i" };
    const taken = await others.acquireLease(request, { timeoutMs: 1_500 });
    assert.ok(!taken.ok && taken.failure.applied === "unknown");
    assert.deepEqual(scene.asked, ["a"]);
    scene.active("a");
    scene.standby("a", "b");
    assert.ok((await leases.renewLease(renewal, { timeoutMs: 1_000 })).ok);
    scene.asked.length = 0;
    assert.ok((await others.acquireLease(request, { timeoutMs: 1_000 })).ok);
    assert.deepEqual(scene.asked, ["b"]);
  });
});
