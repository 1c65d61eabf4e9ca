/** Defines a test for each kept seed: with all rules on it passes. The seeds run in worker processes, one for each processor. */
import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { after, before, test } from "node:test";
import type { KeptSeed } from "../cli/kept-seeds.ts";
import { Pool } from "../cli/pool.ts";
import type { SeedJob, SeedReport } from "../cli/report.ts";

/** A worker at the lowest priority may wait long for a processor; the part has a time of its own. */
const seedTimeoutMs = 3_600_000;

interface KeptJob extends SeedJob {
  readonly told: PromiseWithResolvers<SeedReport>;
}
const jobOf = ({ workload, seed, focus }: KeptSeed): KeptJob => ({
  ...{ workload, seed, focus, rulesOff: [], twice: false },
  told: Promise.withResolvers<SeedReport>(),
});
export function testSeeds(seeds: readonly KeptSeed[]): void {
  const pool = new Pool({ workers: availableParallelism(), seedTimeoutMs });
  const jobs = seeds.map(jobOf);
  let running: Promise<void> | undefined;

  before(() => {
    running = pool.run(jobs, (report, { told }) => {
      told.resolve(report);
      return true;
    });
  });
  after(async () => {
    await running;
    pool.close();
  });

  for (const [at, { workload, seed, why }] of seeds.entries()) {
    test(`simulation: ${workload} seed ${seed} (${why}) passes with all rules`, async () => {
      const report = await jobs[at]?.told.promise;
      assert.equal(report?.failure, undefined);
      assert.equal(report?.seed, seed);
    });
  }
}
