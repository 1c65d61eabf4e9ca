/** Every seed that ever found something: with all rules on it passes, also when it was found by a mutant. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readKeptSeeds } from "./cli/kept-seeds.ts";
import { runSeed } from "./cli/run-seed.ts";

for (const { workload, seed, why } of await readKeptSeeds()) {
  test(`simulation: ${workload} seed ${seed} (${why}) passes with all rules`, async () => {
    const report = await runSeed({ workload, seed, rulesOff: [], twice: false });
    assert.equal(report.failure, undefined);
  });
}
