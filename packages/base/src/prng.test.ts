import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "./index.ts";

test("prng: one seed gives one sequence, on every machine", () => {
  const draws = Array.from(
    { length: 4 },
    (
      (prng) => () =>
        prng.uint32()
    )(new Prng(42)),
  );
  assert.deepEqual(
    draws,
    Array.from(
      { length: 4 },
      (
        (prng) => () =>
          prng.uint32()
      )(new Prng(42)),
    ),
  );
  assert.notDeepEqual(
    draws,
    Array.from(
      { length: 4 },
      (
        (prng) => () =>
          prng.uint32()
      )(new Prng(43)),
    ),
  );
});

test("prng: below is uniform enough for every bound", () => {
  const prng = new Prng(7);
  for (const bound of [2, 3, 10]) {
    const counts = new Array<number>(bound).fill(0);
    for (let i = 0; i < 30_000; i++) {
      const drawn = prng.below(bound);
      counts[drawn] = (counts[drawn] ?? 0) + 1;
    }
    for (const count of counts) assert.ok(Math.abs(count / (30_000 / bound) - 1) < 0.15, `${counts}`);
  }
});

test("prng: a fork is not shifted by what its parent draws later", () => {
  const one = new Prng(1);
  const fork = one.fork();
  const first = fork.uint32();
  const two = new Prng(1);
  const again = two.fork();
  two.uint32();
  assert.equal(again.uint32(), first);
});
