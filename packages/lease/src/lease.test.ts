/** Leases as machines: dialogues, the rules of partition-layer.md one by one, and what no schedule may bring about. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { Rules } from "@stamp/base";
import { allRules, leaseEpoch, refused, rulesWithout, unwrap } from "@stamp/base";
import fc from "fast-check";
import { LeaseHolder } from "./holder.ts";
import type { LeaseRecord } from "./record.ts";
import { decodeLease, encodeLease } from "./record.ts";
import type { LeaseDecision } from "./table.ts";
import { LeaseTable, leaseAheadMax } from "./table.ts";

const request = (holder: string, incarnation = 1, termMs = 1_000, identity = `folder of ${holder}`) => ({
  name: "n",
  holder,
  identity,
  instance: `${identity}, start ${incarnation}`,
  incarnation,
  address: `${holder}:1`,
  termMs,
});
const reason = (decision: LeaseDecision<unknown>): string => (decision.outcome.ok ? "ok" : decision.outcome.failure.reason);

/** A table with a disk: what is decided is durable before it is told; `restart` begins with what was durable. */
class Lock {
  readonly disk = new Map<string, LeaseRecord>();
  #rules = allRules;
  table: LeaseTable;
  constructor(rules = allRules) {
    this.#rules = rules;
    this.table = new LeaseTable([], 0, rules);
  }
  /** Fills its disk, or empties it. */
  full(isFull: boolean): void {
    this.table.cannotRecord = isFull ? refused("resourceExhausted", "diskFull", "no room") : undefined;
  }
  told<T>(decision: LeaseDecision<T>): LeaseDecision<T> {
    assert.ok(decision.persist === undefined || this.table.cannotRecord === undefined, "to be recorded on a full disk");
    if (decision.persist) this.disk.set(decision.persist.name, decision.persist);
    return decision;
  }
  restart(nowMs: number): void {
    const { cannotRecord } = this.table;
    this.table = new LeaseTable(this.disk.values(), nowMs, this.#rules);
    this.table.cannotRecord = cannotRecord;
  }
}

test("lease table: a dialogue of two holders, a restart and a refusal", () => {
  const lock = new Lock();
  const say: string[] = [];
  const step = (text: string, decision: LeaseDecision<unknown>): void => {
    lock.told(decision);
    say.push(`${text}: ${reason(decision)}${decision.persist ? " (durable first)" : ""}`);
  };
  step("a acquires", lock.table.acquire(request("a"), 0));
  step("b acquires", lock.table.acquire(request("b"), 10));
  step("a renews", lock.table.renew("n", 1, 900));
  step("a again, same incarnation", lock.table.acquire(request("a"), 910));
  step("b at 1899", lock.table.acquire(request("b"), 1_899));
  step("b at 1900", lock.table.acquire(request("b"), 1_900));
  step("a renews its old one", lock.table.renew("n", 1, 1_901));
  step("a releases its old one", lock.table.release("n", 1, 1_902));
  step("refuse b's renewals", lock.table.refuseRenewals("n", 2, 1_903));
  step("b renews", lock.table.renew("n", 2, 1_904));
  lock.restart(2_000);
  step("b renews after a restart", lock.table.renew("n", 2, 2_001));
  step("a acquires while b's is extended", lock.table.acquire(request("a"), 2_999));
  step("look", lock.table.get("n", 3_000));
  step("look again", lock.table.get("n", 3_001));
  step("b restarted, newer incarnation", lock.table.acquire(request("b", 2), 3_002));
  step("b's older incarnation", lock.table.acquire(request("b", 1), 3_003));
  step("b is replaced at once", lock.table.acquire(request("b", 3), 3_004));
  step("b releases", lock.table.release("n", 4, 3_005));
  step("b's older incarnation, lease free", lock.table.acquire(request("b", 2), 3_006));
  step("a epoch that never was", lock.table.release("n", 9, 3_007));
  assert.deepEqual(say, [
    "a acquires: ok (durable first)",
    "b acquires: leaseHeld",
    "a renews: ok",
    "a again, same incarnation: leaseHeld",
    "b at 1899: leaseHeld",
    "b at 1900: ok (durable first)",
    "a renews its old one: leaseEnded",
    "a releases its old one: ok",
    "refuse b's renewals: ok (durable first)",
    "b renews: leaseRefused",
    "b renews after a restart: leaseRefused",
    "a acquires while b's is extended: leaseHeld",
    "look: ok (durable first)",
    "look again: ok",
    "b restarted, newer incarnation: ok (durable first)",
    "b's older incarnation: leaseHeld",
    "b is replaced at once: ok (durable first)",
    "b releases: ok (durable first)",
    "b's older incarnation, lease free: ok (durable first)",
    "a epoch that never was: leaseEnded",
  ]);
  assert.equal(lock.table.epochOf("n"), 5);
});

test("lease table: a process of the same name on another folder is another holder, whatever its incarnation", () => {
  const { table } = new Lock();
  assert.equal(reason(table.acquire(request("a", 5), 0)), "ok");
  assert.equal(reason(table.acquire(request("a", 6, 1_000, "another folder"), 10)), "leaseHeld");
  assert.equal(reason(table.renew("n", 1, 900)), "ok");
  // Once the lease has ended a folder made anew takes it, though its counter began again.
  assert.equal(reason(table.acquire(request("a", 1, 1_000, "another folder"), 1_900)), "ok");
});

test("lease table: with a full disk leases are renewed and shown, and nothing is granted, ended or refused", () => {
  const lock = new Lock();
  lock.told(lock.table.acquire(request("a"), 0));
  lock.full(true);
  assert.equal(reason(lock.told(lock.table.renew("n", 1, 500))), "ok");
  assert.equal(reason(lock.told(lock.table.get("n", 600))), "ok");
  assert.equal(reason(lock.told(lock.table.acquire(request("b"), 700))), "leaseHeld");
  for (const [what, decision] of [
    ["another lease", lock.table.acquire({ ...request("b"), name: "m" }, 700)],
    ["a newer incarnation", lock.table.acquire(request("a", 2), 700)],
    ["release", lock.table.release("n", 1, 700)],
    ["refuse", lock.table.refuseRenewals("n", 1, 700)],
    ["its end, asked for", lock.table.get("n", 1_500)],
    ["its end, at a renewal", lock.table.renew("n", 1, 1_501)],
    ["its end, at a grant", lock.table.acquire(request("b"), 1_502)],
  ] as const) {
    assert.equal(reason(lock.told<unknown>(decision)), "diskFull", what);
  }
  assert.equal(lock.table.epochOf("n"), 1);
  lock.full(false);
  assert.equal(reason(lock.told(lock.table.renew("n", 1, 1_600))), "leaseEnded");
  assert.equal(reason(lock.told(lock.table.acquire(request("b"), 1_601))), "ok");
});

test("lease table: terms out of bounds are refused", () => {
  const table = new LeaseTable([], 0, allRules);
  assert.equal(reason(table.acquire(request("a", 1, 10), 0)), "badRequest");
  assert.equal(reason(table.acquire(request("a", 1, 1e9), 0)), "badRequest");
});

const anySchedule = (rules: Rules) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("acquire" as const), holder: fc.constantFrom("a", "b"), incarnation: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constantFrom("renew" as const, "release" as const, "refuse" as const), back: fc.integer({ min: 0, max: 2 }) }),
    fc.record({ kind: fc.constant("get" as const) }),
    fc.record({ kind: fc.constant("restart" as const) }),
    fc.record({ kind: fc.constant("room" as const), full: fc.boolean() }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 700 }) }),
  );
  return fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const lock = new Lock(rules);
    let nowMs = 0;
    let epoch = 0;
    // The holders' own clocks: until when the last grant or renewal lets its holder believe.
    let believesUntilMs = 0;
    let believer = "";
    let runsUntilMs = 0;
    const ended = new Set<number>();
    const refusedEpochs = new Set<number>();
    for (const one of steps) {
      const at = Math.max(1, epoch - ("back" in one ? one.back : 0));
      switch (one.kind) {
        case "acquire": {
          const decision = lock.told(lock.table.acquire(request(one.holder, one.incarnation), nowMs));
          if (!decision.outcome.ok) break;
          assert.equal(decision.outcome.value.epoch, epoch + 1);
          assert.ok(nowMs >= believesUntilMs || one.holder === believer, "two holders");
          epoch += 1;
          believer = one.holder;
          believesUntilMs = nowMs + 1_000;
          runsUntilMs = believesUntilMs;
          break;
        }
        case "renew": {
          const decision = lock.told(lock.table.renew("n", at, nowMs));
          if (!decision.outcome.ok) break;
          assert.equal(at, epoch);
          assert.ok(!ended.has(at), "renewed although it was told to have ended");
          assert.ok(!refusedEpochs.has(at), "renewed although it was refused");
          assert.ok(nowMs < runsUntilMs, "renewed although it had run out");
          believesUntilMs = nowMs + 1_000;
          runsUntilMs = believesUntilMs;
          break;
        }
        case "release": {
          const decision = lock.told(lock.table.release("n", at, nowMs));
          if (decision.outcome.ok && at === epoch) believesUntilMs = nowMs;
          if (decision.outcome.ok && decision.outcome.value.ended) ended.add(decision.outcome.value.epoch);
          break;
        }
        case "refuse": {
          const decision = lock.told(lock.table.refuseRenewals("n", at, nowMs));
          if (decision.outcome.ok && at === epoch) refusedEpochs.add(at);
          break;
        }
        case "get": {
          const decision = lock.told(lock.table.get("n", nowMs));
          if (reason(decision) === "diskFull") break;
          const view = unwrap(decision.outcome);
          if (view === undefined) break;
          assert.equal(view.epoch, epoch);
          assert.ok(!ended.has(epoch) || view.ended, "it came back");
          if (view.ended) {
            assert.ok(nowMs >= believesUntilMs, "said to have ended while its holder believes in it");
            ended.add(epoch);
          }
          break;
        }
        case "restart":
          lock.restart(nowMs);
          runsUntilMs = nowMs + 1_000;
          break;
        case "room":
          lock.full(one.full);
          break;
        case "wait":
          nowMs += one.ms;
      }
    }
  });
};

test("lease table: whatever happens, epochs only rise, nobody is granted beside a live holder, and an end once told stays", () => {
  fc.assert(anySchedule(allRules));
});

test("lease table: each of its rules is needed, some schedule breaks without it", () => {
  for (const rule of ["leasesExtendedOnRestart", "leaseEndRecorded", "refusalDurable", "neverRenewEnded"] as const) {
    assert.ok(fc.check(anySchedule(rulesWithout(rule)), { numRuns: 5_000, seed: 1 }).failed, rule);
  }
});

test("lease holder: the term counts from sending, less the margin; a late answer never revives", () => {
  const holder = new LeaseHolder(1_000, allRules);
  const sent = { sentMonotonicMs: 100, sentSuspendedMs: 50 };
  holder.granted(sent, leaseEpoch(1), 6_000, 900);
  assert.equal(holder.deadlineMs, 5_100);
  assert.ok(holder.holds(5_099, 50));
  holder.renewed({ sentMonotonicMs: 2_000, sentSuspendedMs: 50 }, leaseEpoch(1), 6_000, 2_100, 50);
  assert.equal(holder.deadlineMs, 7_000);
  holder.renewed({ sentMonotonicMs: 1_000, sentSuspendedMs: 50 }, leaseEpoch(1), 6_000, 2_200, 50);
  assert.equal(holder.deadlineMs, 7_000, "answers may come in another order");
  assert.ok(!holder.holds(7_000, 50));
  holder.renewed({ sentMonotonicMs: 6_900, sentSuspendedMs: 50 }, leaseEpoch(1), 6_000, 7_001, 50);
  assert.ok(!holder.holds(7_002, 50), "once lost, lost for ever");
  holder.end();
  holder.granted({ sentMonotonicMs: 8_000, sentSuspendedMs: 50 }, leaseEpoch(2), 6_000, 8_010);
  assert.ok(holder.holds(8_020, 50));
});

test("lease holder: without leaseCountsFromSending it believes for longer than the lock service", () => {
  const holder = new LeaseHolder(1_000, rulesWithout("leaseCountsFromSending"));
  holder.granted({ sentMonotonicMs: 0, sentSuspendedMs: 0 }, leaseEpoch(1), 6_000, 3_000);
  assert.ok(holder.holds(7_000, 0));
});

test("lease holder: the time of a suspend counts as passed, and one before the request does not", () => {
  const holder = new LeaseHolder(1_000, allRules);
  holder.granted({ sentMonotonicMs: 0, sentSuspendedMs: 70_000 }, leaseEpoch(1), 6_000, 10);
  assert.ok(holder.holds(100, 74_899));
  holder.renewed({ sentMonotonicMs: 100, sentSuspendedMs: 74_000 }, leaseEpoch(1), 6_000, 150, 74_000);
  assert.ok(holder.holds(200, 78_899), "renewed after the suspend");
  holder.renewed({ sentMonotonicMs: 90, sentSuspendedMs: 70_000 }, leaseEpoch(1), 6_000, 210, 74_000);
  assert.ok(holder.holds(220, 78_800), "an earlier request takes nothing back");
  assert.ok(!holder.holds(200, 78_900));
  assert.ok(!holder.holds(200, 74_000), "lost for ever");
});

test("lease holder: where suspends are told by the wall clock, a step back neither ends nor prolongs a lease", () => {
  const holder = new LeaseHolder(1_000, allRules);
  holder.granted({ sentMonotonicMs: 0, sentSuspendedMs: 1e12 }, leaseEpoch(1), 6_000, 10);
  assert.ok(holder.holds(4_999, 1e12 - 60_000));
  holder.renewed({ sentMonotonicMs: 2_000, sentSuspendedMs: 1e12 - 60_000 }, leaseEpoch(1), 6_000, 4_999, 1e12 - 60_000);
  assert.ok(holder.holds(6_999, 1e12 - 60_000));
  assert.ok(!holder.holds(7_000, 1e12 - 90_000));
});

test("lease holder: without leaseCountsSuspends it believes in a lease that ended while the machine was suspended", () => {
  const holder = new LeaseHolder(1_000, rulesWithout("leaseCountsSuspends"));
  holder.granted({ sentMonotonicMs: 0, sentSuspendedMs: 0 }, leaseEpoch(1), 6_000, 10);
  assert.ok(holder.holds(100, 3_600_000));
});

const checksum = (bytes: Uint8Array): number => bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte + 1) >>> 0, 7);
const goldenUrl = new URL("../../../tests/golden/lease/v1/lease-of-a-folder.bin", import.meta.url);
/** Written before records named the folder. */
const olderUrl = new URL("../../../tests/golden/lease/v1/lease.bin", import.meta.url);
const goldenLease: LeaseRecord = {
  name: "ps/partition-server-1",
  holder: "partition-server-1",
  identity: "3f6f0d1e-0000-4000-8000-000000000002",
  instance: "3f6f0d1e-0000-4000-8000-000000000003",
  incarnation: 7,
  address: "127.0.0.1:7401",
  epoch: leaseEpoch(12),
  termMs: 6_000,
  ended: false,
  refused: true,
};

test("lease record: written and read as it always was; any flipped or missing byte is damage", () => {
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(goldenUrl, encodeLease(goldenLease, checksum));
  const bytes = new Uint8Array(readFileSync(goldenUrl));
  assert.deepEqual(encodeLease(goldenLease, checksum), bytes);
  assert.deepEqual(unwrap(decodeLease(bytes, checksum)), goldenLease);
  assert.deepEqual(unwrap(decodeLease(new Uint8Array(readFileSync(olderUrl)), checksum)), { ...goldenLease, identity: "", instance: "" });
  for (let i = 0; i < bytes.length; i++) {
    const flipped = new Uint8Array(bytes);
    flipped[i] = (flipped[i] as number) ^ 0x10;
    const outcome = decodeLease(flipped, checksum);
    assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `byte ${i}`);
    assert.ok(!decodeLease(bytes.subarray(0, i), checksum).ok, `first ${i} bytes`);
  }
});

test("lease table: a grant goes above an epoch that a receiver obeys in one step, and never uses the numbers up", () => {
  const granted = (above: number, rules = allRules): number => {
    const lock = new Lock(rules);
    const [record] = Array.from({ length: 3 }, (_, i) => lock.told(lock.table.acquire(request("a", i + 1), i)).persist).slice(-1);
    assert.equal(record?.epoch, 3);
    const decision = lock.told(lock.table.acquire({ ...request("a", 4), above }, 10));
    assert.deepEqual(Object.keys(decision.persist ?? {}), Object.keys(record), "what was asked for is no part of the record");
    lock.restart(20);
    assert.equal(lock.table.epochOf("n"), unwrap(decision.outcome).epoch);
    return unwrap(decision.outcome).epoch;
  };
  for (const [above, epoch] of [
    [0, 4],
    [2, 4],
    [3, 4],
    [9, 10],
    [3 + leaseAheadMax, 4 + leaseAheadMax],
    [4 + leaseAheadMax, 4 + leaseAheadMax],
    [Number.MAX_SAFE_INTEGER, 4 + leaseAheadMax],
  ] as const) {
    assert.equal(granted(above), epoch, `above ${above}`);
  }
  assert.equal(granted(Number.MAX_SAFE_INTEGER - 1, rulesWithout("leaseAheadBounded")), Number.MAX_SAFE_INTEGER);
});
