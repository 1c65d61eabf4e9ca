/** Whatever is taken and given: never more than the budget, nothing lost, fair shares, and nobody waits for ever. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CountedClock, settled } from "../testing/clock.ts";
import { ByteBudget, type ByteShare } from "./byte-budget.ts";

function budgetOf(bytesMax: number, waitMaxMs = 10_000): { budget: ByteBudget; clock: CountedClock } {
  const clock = new CountedClock();
  return { budget: new ByteBudget(clock, { bytesMax, waitMaxMs }), clock };
}

test("byte budget: a quarter is kept for an account or an address that holds nothing", () => {
  const { budget } = budgetOf(100);
  const at = (account: string, address: string): ByteShare => budget.of({ account, address });
  assert.equal(at("many", "1").tryTake(50), true);
  assert.equal(at("many", "1").tryTake(30), false);
  assert.equal(at("many", "1").tryTake(25), true);
  assert.equal(at("few", "1").tryTake(10), true, "another account at the same address");
  assert.equal(at("many", "2").tryTake(10), true, "the same account from another address");
  assert.equal(at("few", "2").tryTake(5), false, "both hold something");
  assert.equal(at("none", "3").tryTake(6), false, "more than there is");
  assert.equal(budget.usedBytes, 95);
});

test("byte budget: who brings little does not wait behind all that another account or address brings", async () => {
  for (const [many, few] of [
    [
      { account: "many", address: "1" },
      { account: "few", address: "1" },
    ],
    [
      { account: "many", address: "1" },
      { account: "many", address: "2" },
    ],
  ] as const) {
    const { budget } = budgetOf(100);
    const order: string[] = [];
    const taking = budget.of(many);
    for (let i = 0; i < 10; i++) void taking.take(25).then(() => order.push("many"));
    await settled();
    assert.deepEqual([order.length, budget.usedBytes], [3, 75]);
    const little = budget.of(few);
    void little.take(20).then(() => order.push("few"));
    await settled();
    void little.take(20).then(() => order.push("few"));
    taking.give(50);
    await settled();
    assert.deepEqual(order.slice(3), ["few", "few"]);
  }
});

test("byte budget: who waits too long is refused, holds nothing, and is told when to come again", async () => {
  const { budget, clock } = budgetOf(100, 5_000);
  const many = budget.of({ account: "many", address: "1" });
  assert.ok(many.tryTake(75));
  const late = many.take(25);
  await clock.pass(4_999);
  assert.equal(budget.waiting, 1);
  await clock.pass(1);
  const outcome = await late;
  assert.ok(!outcome.ok && outcome.failure.applied === "no" && outcome.failure.details?.retryAfterSeconds === "1");
  assert.deepEqual([budget.waiting, budget.usedBytes, budget.refusedLate], [0, 75, 1]);
  many.give(75);
  assert.equal(budget.usedBytes, 0);
});

test("byte budget: whoever waits and goes away keeps nobody back and gets nothing, and those behind are served", async () => {
  const { budget } = budgetOf(100);
  const many = budget.of({ account: "many", address: "1" });
  assert.ok(many.tryTake(60));
  const client = new AbortController();
  const left = budget.of({ account: "many", address: "1" }, client.signal);
  const waits = left.take(40);
  let got = false;
  void many.take(15).then(({ ok }) => (got = ok));
  await settled();
  assert.deepEqual([budget.waiting, got], [2, false]);
  client.abort();
  const outcome = await waits;
  assert.ok(!outcome.ok && outcome.failure.reason === "cancelled");
  await settled();
  assert.deepEqual([budget.waiting, got, budget.usedBytes, budget.refusedLate], [0, true, 75, 0]);
  const again = await left.take(40);
  assert.ok(!again.ok && budget.waiting === 0, "it does not wait at all any more");
});

test("byte budget: while somebody waits who holds less, the one who holds most is asked to give back", async () => {
  const { budget, clock } = budgetOf(100);
  const asked: string[] = [];
  const holder = (name: string, bytes: number, keeps = false): void => {
    const share = budget.of({ account: name, address: name });
    assert.ok(share.tryTake(bytes));
    share.whenWanted((by) => {
      if (by === "nobody") return false;
      asked.push(name);
      if (keeps) return false;
      share.give(bytes);
      return true;
    });
  };
  holder("keeps", 40, true);
  holder("large", 35);
  holder("small", 25);
  let got = false;
  void budget
    .of({ account: "new", address: "new" })
    .take(30)
    .then(({ ok }) => (got = ok));
  await clock.pass(100);
  assert.deepEqual([asked, got, budget.usedBytes], [["keeps", "large", "small"], true, 70]);
});

test("byte budget: holders are told that who is next would still hold less than they do, and only as many as it needs", async () => {
  for (const [holder, waiter, expected] of [
    [{ account: "many", address: "1" }, { account: "few", address: "1" }, "smaller anybody anybody"],
    [{ account: "many", address: "1" }, { account: "many", address: "2" }, "smaller anybody anybody"],
    [{ account: "many", address: "1" }, { account: "few", address: "2" }, "smaller anybody anybody"],
    [{ account: "many", address: "1" }, { account: "many", address: "1" }, "anybody anybody anybody"],
  ] as const) {
    const { budget, clock } = budgetOf(100);
    const told: string[] = [];
    const begun = budget.of(waiter);
    assert.ok(begun.tryTake(5));
    for (const bytes of [25, 25, 20]) {
      const share = budget.of(holder);
      assert.ok(share.tryTake(bytes));
      share.whenWanted((by) => {
        if (by === "nobody") return false;
        told.push(by);
        return by === "smaller";
      });
    }
    void begun.take(15);
    void budget.of(waiter).take(100);
    await clock.pass(100);
    assert.equal(told.join(" "), expected);
  }
});

test("byte budget: who holds nearly as much as the holder does not get what the holder would then lack", async () => {
  const { budget, clock } = budgetOf(100);
  const told: string[] = [];
  const holder = budget.of({ account: "a", address: "1" });
  assert.ok(holder.tryTake(40));
  holder.whenWanted((by) => {
    told.push(by);
    return false;
  });
  const other = budget.of({ account: "b", address: "2" });
  assert.ok(other.tryTake(30));
  void other.take(10);
  await clock.pass(100);
  assert.deepEqual(told.at(-1), "anybody");
});

test("byte budget: holders give back before it is full, so that a quick upload beside many slow ones never waits", async () => {
  const { budget, clock } = budgetOf(3_200);
  const writtenAfterMs = 20;
  const slow = (bytes: number): void => {
    const share = budget.of({ account: "a", address: "1" });
    let held = 0;
    const bring = (): void => {
      if (share.tryTake(bytes)) held += bytes;
      clock.after(1_000, bring);
    };
    bring();
    share.whenWanted(() => {
      const given = held;
      held = 0;
      clock.after(writtenAfterMs, () => share.give(given));
      return true;
    });
  };
  for (let i = 0; i < 200; i++) slow(1);
  const quick = budget.of({ account: "a", address: "1" });
  let waits = 0;
  for (let i = 0; i < 400; i++) {
    await clock.pass(100);
    if (!quick.tryTake(64)) waits++;
    else quick.give(64);
  }
  assert.equal(waits, 0);
  assert.ok(budget.usedBytes <= 2_400, "the open part");
});

test("byte budget: while its bound is lower, what is held stays, newcomers wait, and they go on when it has room again", async () => {
  let bytesNow = 100;
  const budget = new ByteBudget(new CountedClock(), { bytesMax: 100, waitMaxMs: 10_000, bytesNow: () => bytesNow });
  const many = budget.of({ account: "many", address: "1" });
  assert.ok(many.tryTake(70));
  bytesNow = 40;
  assert.equal(many.tryTake(5), false);
  assert.equal(budget.of({ account: "none", address: "2" }).tryTake(5), false);
  let got = 0;
  for (let i = 0; i < 3; i++) void many.take(20).then(() => got++);
  many.give(50);
  await settled();
  assert.deepEqual([got, budget.usedBytes], [0, 20], "three quarters of 40 are open to those who hold something");
  assert.equal(budget.of({ account: "none", address: "2" }).tryTake(20), true, "the last quarter is not");
  bytesNow = 100;
  many.give(20);
  await settled();
  assert.deepEqual([got, budget.usedBytes], [2, 60]);
});

test("byte budget: holders that stand still in a lower bound keep nobody out for longer than a second", async () => {
  const clock = new CountedClock();
  const budget = new ByteBudget(clock, { bytesMax: 100, waitMaxMs: 10_000, bytesNow: () => 20 });
  assert.ok(budget.of({ account: "still", address: "1" }).tryTake(15));
  let got = 0;
  const other = budget.of({ account: "other", address: "2" });
  for (let i = 0; i < 2; i++) void other.take(10).then(() => got++);
  await clock.pass(950);
  assert.equal(got, 0);
  await clock.pass(200);
  assert.deepEqual([got, budget.usedBytes], [2, 35]);
});

test("byte budget: who waits under a lowered bound goes on when it grows, though nobody gives anything back", async () => {
  let bytesNow = 40;
  const clock = new CountedClock();
  const budget = new ByteBudget(clock, { bytesMax: 100, waitMaxMs: 30_000, bytesNow: () => bytesNow });
  const many = budget.of({ account: "many", address: "1" });
  assert.ok(many.tryTake(25));
  let got = 0;
  for (let i = 0; i < 2; i++) void many.take(20).then(() => got++);
  await clock.pass(800);
  assert.equal(got, 0);
  bytesNow = 100;
  await clock.pass(100);
  assert.equal(got, 2);
});

test("byte budget: who holds something is not kept out of a lowered bound by newcomers for as long as they come", async () => {
  const clock = new CountedClock();
  const budget = new ByteBudget(clock, { bytesMax: 100, waitMaxMs: 30_000, bytesNow: () => 20 });
  const many = budget.of({ account: "many", address: "1" });
  assert.ok(many.tryTake(10));
  let got = false;
  void many.take(10).then(() => (got = true));
  for (let i = 0; i < 15; i++) {
    const newcomer = budget.of({ account: `a${i}`, address: `b${i}` });
    void newcomer.take(15).then(() => clock.after(100, () => newcomer.give(15)));
    await clock.pass(100);
  }
  assert.equal(got, true);
});

test("byte budget: a lowered bound refuses nobody: many uploads on slow disks all go on within their time", async () => {
  const clock = new CountedClock();
  const budget = new ByteBudget(clock, { bytesMax: 28, waitMaxMs: 30_000, bytesNow: () => 4 });
  let [written, most] = [0, 0];
  // A piece is on its way for 200 ms, so the lowered bound lets 15 pieces/s go on: each of 600 uploads would wait 40 s for its next one.
  const upload = async (): Promise<void> => {
    const share = budget.of({ account: "a", address: "1" });
    for (let piece = 0; piece < 4; piece++) {
      if (!(await share.take(1)).ok) return;
      most = Math.max(most, budget.usedBytes);
      await new Promise<void>((resolve) => clock.after(200, resolve));
      share.give(1);
      written++;
    }
  };
  for (let i = 0; i < 600; i++) void upload();
  await clock.pass(900);
  assert.ok(most <= 4, "at first the lowered bound");
  await clock.pass(240_000);
  assert.deepEqual([written, budget.refusedLate], [2_400, 0]);
});

test("byte budget, whatever is asked: within the bound, in order within a holder, everybody gets it in the end", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ who: fc.nat(2), bytes: fc.integer({ min: 1, max: 150 }), tries: fc.boolean() }), { maxLength: 60 }),
      async (requests) => {
        const { budget } = budgetOf(100);
        const held: { share: ByteShare; bytes: number }[] = [];
        const got: { who: number; at: number }[] = [];
        const check = (): void => {
          const sum = held.reduce((total, { bytes }) => total + bytes, 0);
          assert.equal(budget.usedBytes, sum);
          assert.ok(sum <= 100 || held.length === 1, `${sum} held`);
        };
        for (const [at, { who, bytes, tries }] of requests.entries()) {
          const share = budget.of({ account: `a${who}`, address: "1" });
          if (tries) {
            if (share.tryTake(bytes)) held.push({ share, bytes });
          } else {
            void share.take(bytes).then(() => {
              held.push({ share, bytes });
              got.push({ who, at });
            });
          }
          await settled();
          check();
          if (at % 3 === 2) {
            const one = held.shift();
            one?.share.give(one.bytes);
            await settled();
            check();
          }
        }
        for (let one = held.shift(); one; one = held.shift()) {
          one.share.give(one.bytes);
          await settled();
        }
        assert.equal(budget.usedBytes, 0);
        for (const who of [0, 1, 2]) {
          const order = got.filter((one) => one.who === who).map(({ at }) => at);
          assert.deepEqual(
            order,
            order.toSorted((a, b) => a - b),
          );
        }
        assert.equal(got.length, requests.filter(({ tries }) => !tries).length, "everybody got it");
      },
    ),
    { numRuns: 60 },
  ));
