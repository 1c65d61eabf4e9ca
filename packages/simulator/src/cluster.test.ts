/** The whole cluster in the simulator: it starts, serves under faults, replays exactly; and a checker sees a rule that is missing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Simulation } from "@stamp/virtual-time";
import { runSeed } from "./cli/run-seed.ts";
import { simulatedCluster, type WholeCluster } from "./workloads/cluster.ts";

test("cluster: all roles are ready from nothing, and again after the power went", async () => {
  const sim = new Simulation({ seed: 5 });
  await sim.run(async () => {
    const cluster = simulatedCluster(sim);
    await sim.until(() => cluster.ready(), 30_000, "ready");
    for (const name of cluster.processes) sim.crash(name, { unsynced: "lost" });
    await sim.until(() => cluster.ready(), 60_000, "ready again");
  });
});

// In some of these seeds every replica of an extent is asked for at an address where another extent node answers.
for (const { step, leads, seed } of [
  { step: 1, leads: 1, seed: 5 },
  { step: -1, leads: 2, seed: 5 },
  { step: -1, leads: 2, seed: 8 },
  { step: -1, leads: 2, seed: 16 },
  { step: -1, leads: 2, seed: 24 },
]) {
  test(`cluster: ready again after a restart, with every address shifted by ${step}, late managers, and manager ${leads} the last leader, seed ${seed}`, async () => {
    const sim = new Simulation({ seed });
    await sim.run(async () => {
      let shift = 0;
      const addressOf = (name: string): string => {
        const movable = cluster.processes.filter((each) => each !== cluster.lockService);
        return `port-${(movable.indexOf(name) + shift + movable.length) % movable.length}`;
      };
      const cluster: WholeCluster = simulatedCluster(sim, { addressOf });
      await sim.until(() => cluster.ready(), 30_000, "ready");
      const managers = cluster.processes.filter((name) => name.includes("-manager-"));
      const leading = managers.filter((name) => name.endsWith(`-${leads}`));
      const others = managers.filter((name) => !leading.includes(name));
      for (const name of others) sim.crash(name, { stayDown: true });
      await sim.until(() => leading.every((name) => sim.role(name)?.status.state === "leader"), 30_000, `manager ${leads} leads`);
      for (const name of cluster.processes) sim.crash(name, { stayDown: true });
      shift = step;
      for (const name of cluster.processes) if (!managers.includes(name)) sim.restart(name);
      // Whoever asks for a leader meanwhile hears its old address, at which a process of another role answers.
      await sim.sleep(5_000);
      for (const name of managers) sim.restart(name);
      await sim.until(() => cluster.ready(), 30_000, "ready again");
    });
  });
}

for (const workload of [
  "streams",
  "blobs",
  "restarts",
  "tables",
  "queues",
  "bank",
  "leases",
  "locks",
  "coding",
  "geo",
  "geo-queues",
] as const) {
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
