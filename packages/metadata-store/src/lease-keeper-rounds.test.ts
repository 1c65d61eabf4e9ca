import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, ok } from "@stamp/base";
import { type Clock, type Identity, silentLogger, type World } from "@stamp/ports";
import { LeaseKeeper } from "./lease-keeper.ts";

test("lease keeper: renewals are sent in rounds, and one that failed is tried again without waiting for a round", async () => {
  let nowMs = 10_020;
  let timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  const clock: Clock = {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    suspendedMs: () => 0,
    after: (delayMs, callback) => {
      const timer = { atMs: nowMs + delayMs, callback };
      timers.push(timer);
      const cancel = (): void => {
        timers = timers.filter((each) => each !== timer);
      };
      return { cancel };
    },
    // Rounds are multiples of half a second.
    untilRoundMs: (delayMs) => (delayMs < 450 ? delayMs : delayMs - ((nowMs + delayMs) % 500)),
  };
  const renewedAt: number[] = [];
  let fails = false;
  const client = {
    acquireLease: async () => ok({ leaseEpoch: 1n, termMs: 6_000, stampId: "a" }),
    renewLease: async () => {
      renewedAt.push(nowMs);
      nowMs += 3;
      if (fails) return { ok: false, failure: { code: "unavailable", reason: "connectFailed", message: "", applied: "no" } };
      return ok({ leaseEpoch: 1n, termMs: 6_000 });
    },
    releaseLease: async () => ok({}),
  };
  const random = { uint32: () => 0, float: () => 0.5, bytes: (length: number) => new Uint8Array(length) };
  const world = { clock, random, logger: silentLogger, rules: allRules, transport: { client: () => client } } as unknown as World;
  const identity = { id: "i", incarnation: 1, instance: "x", stampId: "a", bindStamp: async () => {} } as unknown as Identity;
  const keeper = new LeaseKeeper(world, { lockService: "l", leaseName: "one", holder: "h", identity, address: "h:1", onLost: () => {} });
  await keeper.acquire();
  const next = async (): Promise<void> => {
    const [first] = timers.toSorted((a, b) => a.atMs - b.atMs);
    assert.ok(first);
    timers = timers.filter((each) => each !== first);
    nowMs = first.atMs + 1;
    first.callback();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  for (let i = 0; i < 3; i++) await next();
  assert.deepEqual(renewedAt.splice(0), [10_501, 11_001, 11_501], "never more than 500 ms apart");
  fails = true;
  await next();
  await next();
  assert.deepEqual(renewedAt.splice(0), [12_001, 12_105]);
  fails = false;
  await next();
  await next();
  await next();
  assert.deepEqual(renewedAt, [12_209, 12_501, 13_001], "and then in rounds again");
  assert.ok(keeper.holds());
  await keeper.release();
});
