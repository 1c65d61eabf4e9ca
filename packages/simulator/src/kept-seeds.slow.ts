/** Every seed that ever found something: with all rules on it passes, also when it was found by a mutant. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readKeptSeeds } from "./cli/kept-seeds.ts";
import { runSeed } from "./cli/run-seed.ts";

for (const { workload, seed, focus, why } of await readKeptSeeds()) {
  // A lying disk may take the very last acknowledged appends for good (docs/design/faults.md); only the gate runs such seeds, against each other.
  if (focus === "lying") continue;
  test(`simulation: ${workload} seed ${seed} (${why}) passes with all rules`, async () => {
    const report = await runSeed({ workload, seed, focus, rulesOff: [], twice: false });
    assert.equal(report.failure, undefined);
  });
}
