/** Every seed that once failed with all rules on, because of a defect since mended. */
import { readKeptSeeds } from "./cli/kept-seeds.ts";
import { testSeeds } from "./testing/test-seeds.ts";

testSeeds((await readKeptSeeds()).filter(({ rulesOff }) => rulesOff.length === 0));
