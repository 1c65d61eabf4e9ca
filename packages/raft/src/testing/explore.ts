/**
 * `node explore.ts FIRST LAST [FOCUS] [RULE]`: runs seeds, with one rule off if it is named, and prints the violations. For work on the package; tests
 * run fewer seeds.
 */
import { allRules, type RuleName, rulesWithout } from "@stamp/base";
import { allFocuses, optionsOf, violationOf } from "./simulation.ts";

const violationsMax = 5;
const [first = "1", last = "100", focus = "all", rule] = process.argv.slice(2);
const rules = rule === undefined ? allRules : rulesWithout(rule as RuleName);
for (const each of allFocuses.filter((name) => focus === "all" || focus === name)) {
  let found = 0;
  for (let seed = Number(first); seed <= Number(last) && found < violationsMax; seed++) {
    const violation = violationOf(optionsOf(seed, each, rules));
    if (violation === undefined) continue;
    found += 1;
    process.stdout.write(`${each}, seed ${seed}: ${violation}\n`);
  }
  process.stdout.write(`${each}: ${found} violations in seeds ${first} to ${last}\n`);
}
