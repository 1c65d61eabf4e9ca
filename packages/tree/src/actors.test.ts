/** The promises of docs/design/tree.md under interleavings, lost and late steps, and deaths. */
import { test } from "node:test";
import { allRules } from "@stamp/base";
import { Actors } from "./testing/actors.ts";

const seeds = 300;
const steps = 250;

test("tree: whatever is interleaved, lost, late or dies, what is seen is what one operation after another makes", () => {
  for (let seed = 1; seed <= seeds; seed++) {
    try {
      new Actors(seed, allRules).run(steps);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
});
