/** A server of fixed speed with an open flood of requests, on counted time: what a light tenant feels, with and without shedding. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import { Throttle } from "./throttle.ts";

interface Tenant {
  readonly account: string;
  readonly partitions: number;
  readonly perSecond: number;
}

interface Felt {
  served: number;
  refused: number;
  waitsMs: number[];
}

/** Serves `capacity` requests a second, one after another; requests arrive evenly. */
function run(tenants: readonly Tenant[], capacity: number, seconds: number, throttled: boolean): Map<string, Felt> {
  const throttle = new Throttle(new Prng(7), { overloadedAt: 100 });
  const prng = new Prng(3);
  const felt = new Map(tenants.map(({ account }) => [account, { served: 0, refused: 0, waitsMs: [] } as Felt]));
  const queue: { account: string; sinceMs: number }[] = [];
  const due = tenants.map(() => 0);
  let served = 0;
  for (let nowMs = 0; nowMs < seconds * 1_000; nowMs += 1) {
    for (const [i, { account, partitions, perSecond }] of tenants.entries()) {
      due[i] = (due[i] as number) + perSecond / 1_000;
      for (; (due[i] as number) >= 1; due[i] = (due[i] as number) - 1) {
        const partition = `${account}/${prng.below(partitions)}`;
        if (!throttled || throttle.admit(nowMs, queue.length, account, partition)) queue.push({ account, sinceMs: nowMs });
        else (felt.get(account) as Felt).refused++;
      }
    }
    for (served += capacity / 1_000; served >= 1 && queue.length > 0; served -= 1) {
      const { account, sinceMs } = queue.shift() as { account: string; sinceMs: number };
      const one = felt.get(account) as Felt;
      one.served++;
      // Only once it has settled.
      if (nowMs > 3_000) one.waitsMs.push(nowMs - sinceMs);
    }
    served = Math.min(served, 1);
  }
  return felt;
}

const p99 = ({ waitsMs }: Felt): number => waitsMs.sort((a, b) => a - b)[Math.floor(waitsMs.length * 0.99)] as number;

test("throttle: the one who floods is shed, another keeps its latency and is hardly ever refused", () => {
  const tenants: Tenant[] = [
    { account: "flood", partitions: 50, perSecond: 5_000 },
    { account: "light", partitions: 20, perSecond: 100 },
  ];
  const without = run(tenants, 1_000, 20, false).get("light") as Felt;
  const both = run(tenants, 1_000, 20, true);
  const [light, flood] = [both.get("light") as Felt, both.get("flood") as Felt];
  assert.ok(p99(without) > 5_000, `unthrottled, the queue grows: ${p99(without)} ms`);
  assert.ok(p99(light) < 300, `p99 ${p99(light)} ms`);
  assert.ok(light.refused < 0.02 * light.served, `${light.refused} of ${light.served} refused`);
  assert.ok(flood.served > 0.6 * 20 * 1_000, `the server stays busy: ${flood.served}`);
});

test("throttle: one hot PartitionName is shed, the rest of its account is not", () => {
  const throttle = new Throttle(new Prng(1), { overloadedAt: 10 });
  for (let nowMs = 0; nowMs < 3_000; nowMs++) for (let i = 0; i < 4; i++) throttle.admit(nowMs, 50, "hot", "hot/one");
  assert.deepEqual(
    throttle.shed.map(({ who }) => who),
    ["hot/one"],
  );
  assert.ok(throttle.admit(3_001, 50, "hot", "hot/other"), "the account itself is not shed");
});

test("throttle: without overload nobody is refused, and who was shed is let in again", () => {
  const throttle = new Throttle(new Prng(1), { overloadedAt: 10 });
  for (let nowMs = 0; nowMs < 1_000; nowMs++) throttle.admit(nowMs, 50, "a", "a/1");
  assert.equal(throttle.shed.length, 1);
  for (let nowMs = 1_000; nowMs < 6_000; nowMs += 10) throttle.admit(nowMs, 1, "a", "a/1");
  assert.deepEqual(throttle.shed, []);
  for (let nowMs = 6_000; nowMs < 7_000; nowMs++) assert.ok(throttle.admit(nowMs, 5, "a", "a/1"));
});

test("throttle: when nobody stands out nobody is picked on", () => {
  const throttle = new Throttle(new Prng(1), { overloadedAt: 10 });
  for (let nowMs = 0; nowMs < 2_000; nowMs++) for (let i = 0; i < 20; i++) throttle.admit(nowMs, 50, `t${i}`, `t${i}/1`);
  assert.deepEqual(throttle.shed, []);
});
