import assert from "node:assert/strict";
import { test } from "node:test";
import { ok } from "@stamp/base";
import type { World } from "@stamp/ports";
import { LeaderCalls } from "./leader-calls.ts";

test("leader calls: a look-up of the leader that throws is told to those who wait for it, and is not kept", async () => {
  let lookups = 0;
  const getLease = (): Promise<unknown> => {
    lookups += 1;
    if (lookups === 1) return Promise.reject(new Error("too many open files"));
    return Promise.resolve(ok({ leaseEpoch: 2n, ended: false, address: "leader:1" }));
  };
  const clock = { monotonicMs: () => 0, wallMs: () => 0, after: () => ({ cancel: () => {} }) };
  const world = { clock, transport: { client: () => ({ getLease }) } } as unknown as World;
  const calls = new LeaderCalls(world, { lockService: "lock:1", leaseName: "leader" });
  const call = () => calls.call(1_000, async (address) => ok(address));
  await Promise.all([assert.rejects(call(), /too many open files/), assert.rejects(call(), /too many open files/)]);
  assert.equal(lookups, 1);
  assert.deepEqual(await call(), ok("leader:1"));
});
