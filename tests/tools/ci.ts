/**
 * The slower parts of `.ci/run` (ci-parts.ts), one more at once than there are processors. Takes what `npm test` had passed and failed, and
 * prints the sum as its last line; before it, every failed test. `--all` runs the longer parts too, and writes into all-parts.json with which
 * commit each of them passed last.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parts } from "./ci-parts.ts";
import { root, run } from "./commands.ts";
import { type FailedPart, failuresText, takeFailures } from "./failures.ts";
import { type PartResult, runParts, secondsText } from "./run-part.ts";

/** Title of a part that only `--all` runs → the commit on which it passed last, and the day. */
type Passed = Record<string, { readonly commit: string; readonly day: string }>;
const passedFile = join(root, "tests/tools/all-parts.json");

/** What failed in `npm test`, from its records, or from its output if it ended before a test could fail. */
function failedBefore(failed: number): FailedPart[] {
  if (failed === 0) return [];
  const log = process.env.CI_NPM_TEST_LOG ?? "";
  return [{ title: "npm test", failures: takeFailures(), output: existsSync(log) ? readFileSync(log, "utf8") : "" }];
}

/** Notes the longer parts that have passed, on a tree without changes but these notes: a commit says what they ran on. */
async function notePassed(results: readonly PartResult[], longer: ReadonlySet<string>): Promise<void> {
  const ended = results.filter(({ title, failed }) => longer.has(title) && failed === 0);
  const changes = await run("git", ["status", "--porcelain", "--untracked-files=no", ".", ":!tests/tools/all-parts.json"]);
  if (ended.length === 0 || changes.code !== 0 || changes.output.trim() !== "") return;
  const { output } = await run("git", ["rev-parse", "--short=8", "HEAD"]);
  const passed = JSON.parse(readFileSync(passedFile, "utf8")) as Passed;
  for (const { title } of ended) passed[title] = { commit: output.trim(), day: new Date().toISOString().slice(0, 10) };
  writeFileSync(passedFile, `${JSON.stringify(passed, undefined, 2)}\n`);
}

const options = {
  all: { type: "boolean", default: false },
  only: { type: "string", multiple: true },
  shard: { type: "string", default: "1/1" },
  "at-once": { type: "string", default: String(availableParallelism() + 1) },
  help: { type: "boolean", short: "h" },
} as const;
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const wrong = (message: string): Error => Object.assign(new Error(message), { code: "ERR_PARSE_ARGS_INVALID_OPTION_VALUE" });
const atOnce = Number(values["at-once"]);
if (!Number.isInteger(atOnce) || atOnce < 1) throw wrong("Option '--at-once <value>' needs a number of parts, 1 or more");
const [shard, shards] = (/^(\d+)\/(\d+)$/.exec(values.shard) ?? []).slice(1).map(Number);
if (shard === undefined || shards === undefined || shard < 1 || shard > shards) {
  throw wrong("Option '--shard <value>' needs I/N, the number of this machine among N: 1/3, 2/3 or 3/3");
}
const known = await parts();
const longer = new Set(known.filter(({ all }) => all === true).map(({ title }) => title));
const lastPassed = (title: string): string => {
  const passed = (JSON.parse(readFileSync(passedFile, "utf8")) as Passed)[title];
  return passed === undefined ? "never passed" : `passed on ${passed.commit}, ${passed.day}`;
};
if (values.help === true) {
  const line = ({ title, guards }: (typeof known)[number]): string =>
    `  ${title}\n      guards: ${guards}${longer.has(title) ? `; ${lastPassed(title)}` : ""}`;
  const lines = (all: boolean): string =>
    known
      .filter(({ title }) => longer.has(title) === all)
      .map(line)
      .join("\n");
  console.log(`Usage: stamp ci [--all] [--only TITLE]... [--at-once N] [--shard I/N]

Runs the slower parts of .ci/run. --all: the longer parts as well; run it before an issue is resolved, and commit
tests/tools/all-parts.json, in which it notes what has passed. --only: the parts whose titles begin so, of both kinds,
e.g. --only "full disks". --at-once: parts beside each other (one more than there are processors). --shard 2/3: the share
of the second of three machines; npm test is not divided.

Each time:

${lines(false)}

With --all:

${lines(true)}`);
  process.exit(0);
}
const beforeFailed = Number(positionals[1] ?? "0");
const startMs = performance.now();
const isWanted = (title: string): boolean =>
  values.only === undefined ? values.all || !longer.has(title) : values.only.some((begin) => title.startsWith(begin));
const wanted = known.filter(({ title }) => isWanted(title)).filter((_, at) => at % shards === shard - 1);
const results = await runParts(wanted, atOnce);
await notePassed(results, longer);
const sum = (of: "passed" | "failed"): number => results.reduce((total, each) => total + each[of], 0);
const [passed, failed] = [Number(positionals[0] ?? "0") + sum("passed"), beforeFailed + sum("failed")];
console.log(`\nslower parts took ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
console.log(secondsText(results));
if (!values.all) console.log(["not run (--all):", ...[...longer].map((title) => `  ${title}: ${lastPassed(title)}`)].join("\n"));
console.log(failuresText([...failedBefore(beforeFailed), ...results.filter((each) => each.failed > 0)]));
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
