/** docs/faults.md, made of the table of faults: what closes each fault, and the rules. Seeds and tests stay in the rows. */
import type { RuleName } from "@stamp/base";
import { nameOf } from "./fault-rows/fault-row.ts";
import { faultRows } from "./fault-rows/fault-rows.ts";
import { unnoticedRules } from "./mutants.ts";

export const faultsPagePath: URL = new URL("../../../../docs/faults.md", import.meta.url);

export function faultsPage(): string {
  return `${[
    "# Races and faults: what closes each, and the rules in the code",
    "",
    "Each row is a scenario for the simulator and, where a real process can be killed, for a drill ([design/testing.md](design/testing.md)).",
    "`./stamp sim --write-docs` makes this page of `packages/simulator/src/cli/fault-rows`, which also names the tests of each row and the faults of",
    "the simulator that bring it about. `tests/simulation/seeds/mutants.json` has a seed that fails without the rule; `./stamp sim --mutations`",
    "searches one. `†`: no seed has noticed the rule's absence (`unnoticed` in the row says why); a test of the row fails. A row without a rule is",
    "closed by a format, or by a machine that has no other way to go.",
    "",
    "| fault | what closes it | rules |",
    "|---|---|---|",
    ...faultRows.map(({ fault, closedBy, rules }) =>
      row([
        fault,
        closedBy,
        rules
          .map(nameOf)
          .map((rule) => `\`${rule}\`${unnoticed.has(rule) ? "†" : ""}`)
          .join(", ") || "–",
      ]),
    ),
  ].join("\n")}\n`;
}

const unnoticed: ReadonlySet<RuleName> = new Set(unnoticedRules.map(({ name }) => name));

const row = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
