/** Commands of `stamp bench`. */
import { parseArgs } from "node:util";
import { budgetBench } from "./budget/bench.ts";
import { capacity } from "./capacity.ts";
import { cases, nameOf } from "./cases.ts";
import { lockServicesBench } from "./lock-services.ts";
import { peersBench } from "./peers/bench.ts";
import { profile } from "./profile/bench.ts";
import type { TargetName } from "./targets.ts";
import { runTurns } from "./turns/bench.ts";

const [what = "", ...others] = process.argv.slice(2);
const measurements: Readonly<Record<string, (args: string[]) => Promise<void>>> = {
  turns: runTurns,
  profile,
  capacity,
  "lock-services": lockServicesBench,
};
if (Object.hasOwn(measurements, what)) {
  await measurements[what]?.(others);
  process.exit();
}

const usage = `pnpm bench [--seconds 3] [--rounds 2] [--targets cluster,embedded,azurite] [--cases "put 1 KiB"] [--json] [--write]
  the cluster beside the emulator, in turns; --write writes docs/measurements/peers.md and its chart
pnpm bench --budget [--write]                   processor time of each operation against its budget; --write sets the budget
pnpm bench turns [--scale 1]                    the longest turn of every process under the largest requests, see --help
pnpm bench profile [--before FOLDER]            functions with the most processor time, beside an earlier checkout; see --help
pnpm bench lock-services                        one lock service beside three that replicate the metadata, see --help
pnpm bench capacity                             memory of each role, disk for each stored byte, see --help`;
const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "2" },
    targets: { type: "string", default: "cluster,embedded,azurite" },
    cases: { type: "string", default: "" },
    json: { type: "boolean", default: false },
    budget: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
if (values.budget) process.exit(await budgetBench({ write: values.write }));
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const names = values.targets.split(",").filter((name) => name !== "") as TargetName[];
if (!(seconds > 0) || !(rounds >= 1) || names.some((name) => !["cluster", "embedded", "azurite"].includes(name))) {
  console.error(usage);
  process.exit(2);
}
const wanted = values.cases.replace(/ ?[x×] ?(?=\d+$)/, " × ");
// Writers of one blob have a page of their own, and are measured if they are named.
const chosen = cases.filter((each) => (wanted === "" ? !each.scenario.includes("one blob") : nameOf(each).includes(wanted)));
if (chosen.length === 0) {
  console.error(`no case is named like "${values.cases}"; there are: ${cases.map(nameOf).join("; ")}`);
  process.exit(2);
}
process.exit(await peersBench({ targets: names, chosen, seconds, rounds, json: values.json, write: values.write }));
