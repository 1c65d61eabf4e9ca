/** Calls to whoever leads: they follow the leader, and say what happened when it is known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { refused, unwrap } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import { keeperOf, simOf } from "./testing/lock-world.ts";

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
