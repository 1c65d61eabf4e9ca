import assert from "node:assert/strict";
import test from "node:test";
import { Simulation } from "@stamp/simulator";
import { MergePace, restTimes } from "./merge-pace.ts";

test("merge pace: work goes on in steps of so many entries or bytes; a rest is so many times the step, and bounded", async () => {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    let times = 3;
    const pace = new MergePace(sim.world("server"), () => times);
    const stepOf = async (bytes: number, workMs: number): Promise<{ entries: number; restMs: number }> => {
      for (let entries = 1; ; entries++) {
        if (entries === 1) await sim.sleep(workMs);
        const rest = pace.worked(bytes);
        if (rest === undefined) continue;
        const sinceMs = sim.nowMs;
        await rest;
        return { entries, restMs: Math.round(sim.nowMs - sinceMs) };
      }
    };
    assert.deepEqual(await stepOf(100, 20), { entries: 256, restMs: 60 });
    assert.deepEqual(await stepOf(64 * 1024, 20), { entries: 4, restMs: 60 });
    assert.deepEqual(await stepOf(2 ** 21, 2_000), { entries: 1, restMs: 250 });
    times = 0;
    assert.deepEqual(await stepOf(100, 20), { entries: 256, restMs: 0 });
  });
});

test("merge pace: the more checkpoints writes have left the less a merge rests; long while there are only reads, never for nobody", () => {
  const counts = [1, 4, 5, 8, 9, 24];
  const rests = counts.map((checkpoints) => restTimes(checkpoints, 8, "writes"));
  assert.deepEqual(rests, [3, 3, 1, 1, 0, 0]);
  for (const checkpoints of counts) {
    assert.equal(restTimes(checkpoints, 8, "reads"), 7);
    assert.equal(restTimes(checkpoints, 8, "nothing"), 0);
  }
});
