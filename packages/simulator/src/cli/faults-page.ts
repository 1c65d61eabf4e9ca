/** docs/faults.md, made of the table of faults and the seeds that caught its mutants. */
import type { RuleName } from "@stamp/base";
import { nameOf } from "./fault-rows/fault-row.ts";
import { faultRows } from "./fault-rows/fault-rows.ts";
import type { KeptSeed } from "./kept-seeds.ts";
import { mutants, unnoticedRules } from "./mutants.ts";

export function faultsPage(seeds: readonly KeptSeed[]): string {
  return `${[
    "# Races and faults: what closes each, and the rules in the code",
    "",
    "Each row is a scenario for the simulator and, where a real process can be killed, for a drill ([design/testing.md](design/testing.md)).",
    "`./stamp sim --write-docs` makes this page of `packages/simulator/src/cli/fault-rows`, which also has the faults of the simulator that bring",
    "a row about. Behind a rule stand workload, focus and number of a seed that fails without it, in the code as it was when the seed was kept:",
    "`./stamp sim --workload W --focus F --replay N --rules-off RULES`; `./stamp sim --mutations` finds one in the code as it is. `(with b)`: b backs",
    "the rule up, both are off, and with only b off the seed passes. `†`: no seed has noticed the rule's absence (`unnoticed` in the row says why);",
    "a test of the row fails. Tests lie in `packages/` or `services/`, below `src`. A row without a rule is closed by a format, or by a machine that",
    "has no other way to go.",
    "",
    "| fault | what closes it | rules, and the seed that fails without | tests |",
    "|---|---|---|---|",
    ...faultRows.map(({ fault, closedBy, rules, tests }) =>
      row([
        fault,
        closedBy,
        rules
          .map(nameOf)
          .map((rule) => `\`${rule}\`${unnoticed.has(rule) ? "†" : seedOf(rule, seeds)}`)
          .join("; ") || "–",
        tests.map(shortPath).join(", ") || "–",
      ]),
    ),
  ].join("\n")}\n`;
}

const unnoticed: ReadonlySet<RuleName> = new Set(unnoticedRules.map(({ name }) => name));

const row = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

/** Path of a test without the parts that all have. */
const shortPath = (path: string): string => path.replace(/^(packages|services)\/([^/]+)\/src\//, "$2/");

/** Returns the seed that fails without the rule, with the rules that are off as well; empty if none is known. */
function seedOf(rule: RuleName, seeds: readonly KeptSeed[]): string {
  const mutant = mutants.find((each) => each.rules.includes(rule));
  const seed = mutant && seeds.find((each) => each.rulesOff.join("+") === [...mutant.rules, ...(mutant.backedUpBy ?? [])].join("+"));
  if (!mutant || !seed) return "";
  const together = [...mutant.rules.filter((each) => each !== rule), ...(mutant.backedUpBy ?? [])];
  const focus = seed.focus === undefined ? "" : ` ${seed.focus}`;
  return `${together.length > 0 ? ` (with ${together.join(", ")})` : ""} ${seed.workload}${focus} ${seed.seed}`;
}
