/** docs/faults.md, made of the fault rows, the mutants and the seeds that caught them. */
import type { RuleName } from "@stamp/base";
import { faultRows } from "./fault-rows/fault-rows.ts";
import type { KeptSeed } from "./kept-seeds.ts";
import { mutants } from "./mutants.ts";
import { notBySeeds } from "./not-by-seeds.ts";

export function faultsPage(seeds: readonly KeptSeed[]): string {
  return `${[
    "# Faults: rule, test, and the seed that fails without the rule",
    "",
    "Made by `./stamp sim --mutations --write-docs`; not to be edited. Each row is one of [design/faults.md](design/faults.md). A rule's name is the one in",
    "`packages/base/src/rules.ts`; `a (with b)` means that b backs a up, both are off, and with only b off the seed passes. A seed is run by",
    "`./stamp sim --workload W --focus F --replay N --rules-off a,b`; it fails in the code as it was when this page was made, `./stamp sim --mutations` finds one",
    "in the code as it is. A row without a rule is closed by a format or a machine that has no other way to go; its tests and the simulator's faults attack it.",
    "",
    "| fault | rule in the code | tests | faults of the simulator | the seed that fails without the rule |",
    "|---|---|---|---|---|",
    ...faultRows.map(({ fault, rules, tests, faults }) =>
      row([
        fault,
        rules.map((rule) => `\`${rule}\``).join(", ") || "–",
        tests.map((test) => `\`${test}\``).join(", ") || "–",
        faults.join(", ") || "–",
        rules.map((rule) => seedOf(rule, seeds)).join("; ") || "–",
      ]),
    ),
    "",
    "## Rules whose absence no seed has noticed",
    "",
    ...unnoticed(),
  ].join("\n")}\n`;
}

function unnoticed(): readonly string[] {
  if (notBySeeds.length === 0) return ["None: each rule of the code has a seed above."];
  return [
    "Without these, nothing that a client can see has gone wrong in the simulator so far, because of what is said here; the test named fails without the rule.",
    "",
    "| rule | why | test |",
    "|---|---|---|",
    ...notBySeeds.map(({ rule, why, test }) => row([`\`${rule}\``, why, test === undefined ? "none" : `\`${test}\``])),
  ];
}

const row = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

function seedOf(rule: RuleName, seeds: readonly KeptSeed[]): string {
  const mutant = mutants.find((each) => each.rules.includes(rule));
  const seed = mutant && seeds.find((each) => each.rulesOff.join("+") === [...mutant.rules, ...(mutant.backedUpBy ?? [])].join("+"));
  if (!mutant || !seed) return `${rule}: see below`;
  const together = [...mutant.rules.filter((each) => each !== rule), ...(mutant.backedUpBy ?? [])];
  const focus = seed.focus === undefined ? "" : `, ${seed.focus}`;
  return `${rule}${together.length > 0 ? ` (with ${together.join(", ")})` : ""}: ${seed.workload}${focus}, ${seed.seed}`;
}
