/** docs/faults.md, made of the table of faults and the seeds that caught its mutants. */
import type { RuleName } from "@stamp/base";
import { nameOf } from "./fault-rows/fault-row.ts";
import { faultRows } from "./fault-rows/fault-rows.ts";
import type { KeptSeed } from "./kept-seeds.ts";
import { mutants, unnoticedRules } from "./mutants.ts";

export function faultsPage(seeds: readonly KeptSeed[]): string {
  return `${[
    "# Races and faults: what closes each, the rules in the code, and the seed that fails without a rule",
    "",
    "Each row is a scenario for the simulator and, where a real process can be killed, for a drill. How they are checked: [design/testing.md](design/testing.md).",
    "`./stamp sim --write-docs` makes this page of the rows in `packages/simulator/src/cli/fault-rows`: edit them there. Behind a rule stand workload, focus",
    "and number of a seed that fails without it: `./stamp sim --workload W --focus F --replay N --rules-off RULES` in the code as it was when this page was",
    "made; `./stamp sim --mutations` finds one in the code as it is. `(with b)`: b backs the rule up, both are off, and with only b off the seed passes. Without a",
    "seed: see below. Tests lie in `packages/` or `services/`, below `src`. A row without a rule is closed by a format, or by a machine that has no other way to go.",
    "",
    "| fault | what closes it | rules, and the seed that fails without | tests | faults of the simulator |",
    "|---|---|---|---|---|",
    ...faultRows.map(({ fault, closedBy, rules, tests, faults }) =>
      row([
        fault,
        closedBy,
        rules
          .map(nameOf)
          .map((rule) => `\`${rule}\`${seedOf(rule, seeds)}`)
          .join("; ") || "–",
        tests.map(shortPath).join(", ") || "–",
        faults.join(", ") || "–",
      ]),
    ),
    "",
    "## Rules whose absence no seed has noticed",
    "",
    ...unnoticed(),
  ].join("\n")}\n`;
}

function unnoticed(): readonly string[] {
  if (unnoticedRules.length === 0) return ["None: each rule of the code has a seed above."];
  return [
    "Without these, nothing that a client can see has gone wrong in the simulator so far, because of what is said here. A test of its row fails without the rule.",
    "",
    "| rules | why |",
    "|---|---|",
    ...[...Map.groupBy(unnoticedRules, ({ unnoticed }) => unnoticed)].map(([why, rules]) =>
      row([rules.map(({ name }) => `\`${name}\``).join(", "), why]),
    ),
  ];
}

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
