/** `stamp bench` of the installed package: measures a stamp, without what belongs to the repository (budgets, profiles, the emulator). */
import { parseArgs } from "node:util";
import { cases, nameOf } from "./cases.ts";
import { peersBench } from "./peers/bench.ts";
import type { TargetName } from "./targets.ts";

const usage = `usage: stamp bench [--target cluster] [--cases "put 1 KiB"] [--seconds 3] [--rounds 2] [--json]
  Measures requests of each case. Targets: cluster, processes of their own with new data, which are removed at the end; embedded, the
  stamp of the library, in one process. Cases:
  ${cases.map(nameOf).join("; ")}`;

/** Ends with exit code 2, as every command. */
function refuse(message: string): never {
  console.error(`stamp bench: ${message} (see stamp bench --help)`);
  process.exit(2);
}

const options = {
  target: { type: "string", default: "cluster" },
  seconds: { type: "string", default: "3" },
  rounds: { type: "string", default: "2" },
  cases: { type: "string", default: "" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

function parsed() {
  try {
    const { values, tokens } = parseArgs({ options, tokens: true });
    const names = tokens.flatMap((token) => (token.kind === "option" ? [token.name] : []));
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    return twice === undefined ? values : refuse(`--${twice} is given twice`);
  } catch (error) {
    return refuse((error as Error).message);
  }
}

const values = parsed();
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const targets: readonly string[] = ["cluster", "embedded"] satisfies readonly TargetName[];
if (!targets.includes(values.target)) refuse(`--target ${values.target}: expected ${targets.join(", ")}`);
const positive = (name: "seconds" | "rounds"): number => {
  const number = Number(values[name]);
  return Number.isSafeInteger(number) && number > 0 ? number : refuse(`--${name} ${values[name]}: expected a whole number from 1 on`);
};
const [seconds, rounds] = [positive("seconds"), positive("rounds")];
const wanted = values.cases.replace(/ ?[x×] ?(?=\d+$)/, " × ");
const chosen = cases.filter((each) => nameOf(each).includes(wanted));
if (chosen.length === 0) refuse(`--cases ${values.cases}: no case is named like it`);
process.exit(await peersBench({ targets: [values.target as TargetName], chosen, seconds, rounds, json: values.json, write: false }));
