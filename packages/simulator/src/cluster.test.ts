/** The whole cluster in the simulator: it starts, serves under faults, replays exactly; and a checker sees a rule that is missing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runSeed } from "./cli/run-seed.ts";
import { Simulation } from "./simulation.ts";
import { simulatedCluster } from "./workloads/cluster.ts";

test("cluster: all roles are ready from nothing, and again after the power went", async () => {
  const sim = new Simulation({ seed: 5 });
  await sim.run(async () => {
    const cluster = simulatedCluster(sim);
    await sim.until(() => cluster.ready(), 30_000, "ready");
    for (const name of cluster.processes) sim.crash(name, { unsynced: "lost" });
    await sim.until(() => cluster.ready(), 60_000, "ready again");
  });
});

for (const workload of ["streams", "blobs", "restarts", "tables", "queues", "bank", "leases", "locks"] as const) {
  test(`cluster: a seed of ${workload} passes, and the same seed gives the same run`, async () => {
    const report = await runSeed({ workload, seed: 3, rulesOff: [], twice: true });
    assert.equal(report.failure, undefined);
    assert.ok(report.events > 1_000 && Object.keys({ ...report.faults, ...report.most }).length > 0);
  });
}

test("cluster: without fencing a checker sees acknowledged records lost", async () => {
  let caught = 0;
  for (let seed = 1; seed <= 8 && caught === 0; seed++) {
    const report = await runSeed({ workload: "streams", seed, rulesOff: ["fenceBeforeLength"], twice: false });
    if (report.promiseBroken) caught = seed;
  }
  assert.ok(caught > 0, "no seed noticed");
});
