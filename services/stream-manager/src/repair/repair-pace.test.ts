/** Two kinds of repairs share one rate, and neither leaves the other without a turn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Simulation } from "@stamp/virtual-time";
import { RepairPace } from "./repair-pace.ts";

type Kind = "replicas" | "fragments";

/** Repairs of one kind: begins as many as the pace allows, and asks again when it says so. */
function worker(pace: RepairPace, sim: Simulation, kind: Kind, work: { left: number; done: number }): () => void {
  let isWaking = false;
  const go = (): void => {
    while (work.left > 0) {
      const waitMs = pace.waitMs(kind);
      if (waitMs === 0) {
        pace.spend(kind, 1_000);
        work.left -= 1;
        work.done += 1;
        continue;
      }
      if (isWaking) return;
      isWaking = true;
      sim.world("manager").clock.after(waitMs, () => {
        isWaking = false;
        go();
      });
      return;
    }
  };
  return go;
}

test("pace of repairs: two kinds that both have work take turns, whoever asks first; one alone has the whole rate", async () => {
  for (const first of ["replicas", "fragments"] as const) {
    const sim = new Simulation({ seed: 7 });
    await sim.run(async () => {
      const pace = new RepairPace(sim.world("manager").clock, 10_000);
      const work = { replicas: { left: 1_000, done: 0 }, fragments: { left: 1_000, done: 0 } };
      const second = first === "replicas" ? "fragments" : "replicas";
      worker(pace, sim, first, work[first])();
      await sim.sleep(30);
      worker(pace, sim, second, work[second])();
      await sim.sleep(20_000);
      // Ten a second together.
      assert.ok(Math.abs(work.replicas.done - work.fragments.done) <= 1, JSON.stringify(work));
      const both = work.replicas.done + work.fragments.done;
      assert.ok(both >= 198 && both <= 201, `${both}`);
      work[second].left = 0;
      const before = work[first].done;
      await sim.sleep(20_000);
      const alone = work[first].done - before;
      assert.ok(alone >= 198 && alone <= 201, `${alone} of the only kind that is left`);
    });
  }
});

test("pace of repairs: a turn that the other kind does not take is over after a moment, and is not kept again", async () => {
  const sim = new Simulation({ seed: 8 });
  await sim.run(async () => {
    const pace = new RepairPace(sim.world("manager").clock, 10_000);
    pace.spend("fragments", 1_000);
    assert.ok(pace.waitMs("replicas") > 0);
    await sim.sleep(100);
    assert.equal(pace.waitMs("fragments"), 20, "the turn of the replicas");
    await sim.sleep(20);
    assert.equal(pace.waitMs("fragments"), 0);
    pace.spend("fragments", 1_000);
    await sim.sleep(100);
    assert.equal(pace.waitMs("fragments"), 0);
  });
});
