/** Whatever is taken and given: never more than the budget, nothing lost, and nobody waits behind an account that holds more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ByteBudget } from "./byte-budget.ts";

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("byte budget: who brings little does not wait behind all that another account brings", async () => {
  const budget = new ByteBudget(100);
  const [many, few] = [budget.of("many"), budget.of("few")];
  const order: string[] = [];
  for (let i = 0; i < 10; i++) void many.take(25).then(() => order.push("many"));
  await settled();
  assert.deepEqual([order.length, budget.usedBytes], [4, 100]);
  void few.take(20).then(() => order.push("few"));
  void few.take(20).then(() => order.push("few"));
  many.give(25);
  await settled();
  assert.deepEqual(order.slice(4), ["few"]);
  many.give(25);
  await settled();
  assert.deepEqual(order.slice(4), ["few", "few"]);
  few.give(40);
  many.give(50);
  await settled();
  assert.equal(budget.usedBytes, 100);
});

test("byte budget, whatever is asked: within the bound, in order within an account, everybody gets it in the end", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ who: fc.nat(2), bytes: fc.integer({ min: 0, max: 150 }), tries: fc.boolean() }), { maxLength: 60 }),
      async (requests) => {
        const budget = new ByteBudget(100);
        const held: { who: string; bytes: number }[] = [];
        const got: { who: string; at: number }[] = [];
        const check = (): void => {
          const sum = held.reduce((total, { bytes }) => total + bytes, 0);
          assert.equal(budget.usedBytes, sum);
          assert.ok(sum <= 100 || held.filter(({ bytes }) => bytes > 0).length === 1, `${sum} held`);
        };
        for (const [at, { who: number, bytes, tries }] of requests.entries()) {
          const who = `a${number}`;
          const share = budget.of(who);
          if (tries) {
            if (share.tryTake(bytes)) held.push({ who, bytes });
          } else {
            void share.take(bytes).then(() => {
              held.push({ who, bytes });
              got.push({ who, at });
            });
          }
          await settled();
          check();
          if (at % 3 === 2) {
            const one = held.shift();
            if (one) budget.of(one.who).give(one.bytes);
            await settled();
            check();
          }
        }
        for (let one = held.shift(); one; one = held.shift()) {
          budget.of(one.who).give(one.bytes);
          await settled();
        }
        assert.equal(budget.usedBytes, 0);
        for (const who of ["a0", "a1", "a2"]) {
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
