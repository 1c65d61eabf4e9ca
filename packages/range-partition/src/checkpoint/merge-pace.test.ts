import assert from "node:assert/strict";
import test from "node:test";
import { Simulation } from "@stamp/virtual-time";
import { StorageFigures } from "../storage-figures.ts";
import { fillRestTimes, MergePace, restTimes, ServedWatch } from "./merge-pace.ts";

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
    assert.deepEqual(await stepOf(2 ** 21, 2_000), { entries: 1, restMs: 500 });
    times = 0;
    assert.deepEqual(await stepOf(100, 20), { entries: 256, restMs: 0 });
  });
});

test("merge pace: the more checkpoints writes have left the less a merge rests; long while there are only reads, never for nobody", () => {
  const counts = [1, 4, 5, 8, 9, 24];
  const rests = counts.map((checkpoints) => restTimes(checkpoints, 8, "writes", 3));
  assert.deepEqual(rests, [3, 3, 1, 1, 0, 0]);
  for (const checkpoints of counts) {
    for (const merges of [1, 2, 3]) assert.equal((restTimes(checkpoints, 8, "reads", merges) + 1) / merges, 16, "all of them a sixteenth");
    assert.equal(restTimes(checkpoints, 8, "nothing", 3), 0);
  }
});

test("merge pace: a trickle of writes beside reads is no load of writes, much is; nothing is nothing at once", () => {
  const watch = new ServedWatch(0, { rowsRead: 0, bytesWritten: 0 });
  let [nowMs, rowsRead, bytesWritten] = [0, 0, 0];
  const look = (rows: number, bytes: number): string => {
    nowMs += 100;
    rowsRead += rows;
    bytesWritten += bytes;
    return watch.look(nowMs, { rowsRead, bytesWritten });
  };
  assert.deepEqual([look(1, 1_000), look(0, 0), look(5, 0)], ["writes", "nothing", "writes"]);
  for (let i = 0; i < 20; i++) look(10, 50_000);
  assert.deepEqual([look(1, 50_000), look(0, 50_000), look(0, 0)], ["reads", "reads", "nothing"]);
  for (let i = 0; i < 20; i++) look(10, 500_000);
  assert.deepEqual([look(1, 500_000), look(1, 0), look(0, 0)], ["writes", "writes", "nothing"]);
});

test("merge pace: reading ahead into the cache is one merge more beside clients, and half of the time without them", () => {
  const figures = new StorageFigures();
  let nowMs = 0;
  const times = fillRestTimes({ monotonicMs: () => nowMs }, figures);
  const look = (): number => {
    nowMs += 100;
    return times();
  };
  assert.equal(look(), 1);
  figures.add("pointReads");
  assert.deepEqual([look(), look()], [15, 1]);
  void figures.whileMerging(async () => {
    figures.add("rowBytesAccepted", 1e6);
    assert.equal(look(), 31);
  });
});
