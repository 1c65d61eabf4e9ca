/** Every seed that caught a mutant passes with all rules on. `./stamp ci --all` runs them. */
import { readKeptSeeds } from "./cli/kept-seeds.ts";
import { testSeeds } from "./testing/test-seeds.ts";

// A lying disk may take the very last acknowledged appends for good (docs/faults.md); only the gate runs such seeds, against each other.
testSeeds((await readKeptSeeds()).filter(({ rulesOff, focus }) => rulesOff.length > 0 && focus !== "lying"));
