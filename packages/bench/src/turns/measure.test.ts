import assert from "node:assert/strict";
import { test } from "node:test";
import { isWrong, joinedRows, measured } from "./measure.ts";
import { longestTurnMs } from "./probe.ts";

const options = { tries: 1, triesMax: 5, bound: 5 };

/** `turns`: longest turns of two processes, by try; `calibration` and `statuses`: by try as well. The last one stays. */
async function run(
  turns: readonly (readonly [number, number])[],
  calibration: readonly number[] = [],
  statuses: readonly number[] = [200],
) {
  let [at, calibrations, asked] = [0, 0, 0];
  const probe = {
    begin: async () => {},
    end: async () => {
      const [first = 0, second = 0] = turns[at++] ?? turns.at(-1) ?? [];
      return new Map([
        ["first", first],
        ["second", second],
      ]);
    },
  };
  const around = { probe, calibrate: () => calibration[calibrations++] ?? 10, settle: async () => {} };
  return measured(
    { name: "input", status: 200, ask: async () => ({ status: statuses[asked++] ?? (statuses.at(-1) as number) }) },
    around,
    options,
  );
}

test("turns: an input that is quick at once is asked once", async () => {
  const row = await run([[20, 49]]);
  assert.deepEqual([row.tries, row.ratio, row.turns.get("second")], [1, 4.9, 49]);
});

test("turns: noise passes: each process counts with its quickest try, and need not be quick in the same one", async () => {
  const row = await run([
    [300, 20],
    [20, 300],
  ]);
  assert.deepEqual([row.tries, row.ratio, [...row.turns.values()]], [2, 2, [20, 20]]);
});

test("turns: a process that is slow in every try is above the bound", async () => {
  const row = await run([[20, 300]]);
  assert.deepEqual([row.tries, row.ratio], [5, 30]);
});

test("turns: a try is compared with the calibration loop beside it, also where the whole machine is slower", async () => {
  const row = await run([[90, 90]], [30]);
  assert.deepEqual([row.tries, row.ratio], [1, 3]);
});

test("turns: a refusal because the machine is busy is asked again, another answer that must not be is not", async () => {
  const busy = await run([[20, 20]], [], [503, 0, 200]);
  assert.deepEqual([busy.tries, isWrong(busy)], [3, false]);
  const always = await run([[20, 20]], [], [503]);
  assert.deepEqual([always.tries, isWrong(always)], [5, true]);
  const wrong = await run([[300, 300]], [], [404, 200]);
  assert.deepEqual([wrong.tries, isWrong(wrong)], [1, true]);
});

test("turns: a turn counts with its processor time, or with its wall time without what other programs took of it", () => {
  assert.equal(longestTurnMs(40, 300, 280), 40, "others took the processor");
  assert.equal(longestTurnMs(10, 300, 20), 280, "it waited in a synchronous call");
  assert.equal(longestTurnMs(40, 300, Number.NaN), 40, "nobody knows what others took");
});

test("turns: an input that is measured again later counts with the quickest try of both, process by process", async () => {
  const [slowFirst, slowSecond] = [await run([[300, 20]]), await run([[30, 300]])];
  const row = joinedRows(slowFirst, slowSecond);
  assert.deepEqual([row.ratio, row.tries, [...row.turns.values()]], [3, 10, [30, 20]]);
  assert.equal(joinedRows(slowFirst, await run([[200, 20]])).ratio, 20, "slow both times");
});
