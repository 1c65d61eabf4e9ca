/**
 * `pnpm sim`: runs seeds and says what it did. Exit code 0 when every promise was kept (with --mutations: when every mutant was caught).
 */
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import type { RuleName } from "@stamp/base";
import { nameOf } from "./cli/fault-rows/fault-row.ts";
import { faultRows } from "./cli/fault-rows/fault-rows.ts";
import { faultsPage, faultsPagePath } from "./cli/faults-page.ts";
import { focusNames } from "./cli/focus.ts";
import { gate } from "./cli/gate.ts";
import { runPool } from "./cli/pool.ts";
import type { FailpointHits, SeedJob, SeedReport, WorkloadName } from "./cli/report.ts";
import { addCounts, addHits, showCounts, takeMost, workloadNames } from "./cli/report.ts";
import { runSeed } from "./cli/run-seed.ts";

const usage = `./stamp sim [--seeds 200] [--for-s SECONDS] [--from 1] [--workload blobs|streams|tables|queues|registers|restarts|bank|leases|handles|holds|locks|consensus|restores|disks|loads|trees|uploads|writers|coding|geo|geo-queues] [--rules-off a,b] [--mutations] [--write-docs] [--only rule] [--budget 200]
         [--workers N] [--verbose] [--replay SEED] [--focus NAME] [--failpoints]`;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "200" },
    from: { type: "string", default: "1" },
    "for-s": { type: "string" },
    workload: { type: "string" },
    "rules-off": { type: "string", default: "" },
    mutations: { type: "boolean", default: false },
    "write-docs": { type: "boolean", default: false },
    only: { type: "string" },
    budget: { type: "string", default: "200" },
    workers: { type: "string", default: String(availableParallelism()) },
    "seed-timeout-s": { type: "string", default: "120" },
    verbose: { type: "boolean", default: false },
    replay: { type: "string" },
    focus: { type: "string" },
    failpoints: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const wrong = (message: string): Error => Object.assign(new Error(message), { code: "ERR_PARSE_ARGS_INVALID_OPTION_VALUE" });

function numberOf(name: "seeds" | "from" | "for-s" | "budget" | "workers" | "seed-timeout-s" | "replay"): number {
  const value = Number(values[name]);
  if (!(value > 0)) throw wrong(`Option '--${name} <value>' needs a number above 0`);
  return value;
}

const workloads: readonly WorkloadName[] = values.workload === undefined ? workloadNames : [values.workload as WorkloadName];
const rulesOff = values["rules-off"].split(",").filter((rule) => rule !== "") as RuleName[];
const known = new Set<string>(faultRows.flatMap(({ rules }) => rules.map(nameOf)));
for (const rule of rulesOff) if (!known.has(rule)) throw wrong(`There is no rule ${rule}: see docs/faults.md`);
if (values.focus !== undefined && !focusNames.includes(values.focus))
  throw wrong(`There is no focus ${values.focus}: there are ${focusNames.join(", ")}`);
const workers = numberOf("workers");
const seedTimeoutMs = numberOf("seed-timeout-s") * 1000;
/** Workloads whose scene is the faults: a focus does not aim them. */
const faultsOfTheirOwn: readonly WorkloadName[] = ["disks", "loads", "restores", "uploads"];
const print = (text: string): void => void process.stdout.write(`${text}\n`);

process.exitCode = await main();

async function main(): Promise<number> {
  if (values.help || workloads.some((name) => !workloadNames.includes(name))) {
    print(usage);
    return values.help ? 0 : 2;
  }
  if (values.replay !== undefined) return replay(numberOf("replay"));
  if (values.mutations) {
    const { only, workload } = values;
    return gate({
      only,
      workload,
      from: numberOf("from"),
      budget: numberOf("budget"),
      workers,
      seedTimeoutMs,
      writeDocs: values["write-docs"],
      print,
    });
  }
  if (values["write-docs"]) {
    await writeFile(faultsPagePath, faultsPage());
    return 0;
  }
  for (const name of workloads)
    if (values.focus !== undefined && faultsOfTheirOwn.includes(name))
      print(`${name} has faults of its own: of a focus it takes the lock services only`);
  let failed = 0;
  const forMs = values["for-s"] === undefined ? undefined : (numberOf("for-s") * 1000) / workloads.length;
  for (const workload of workloads) failed += await seeds(workload, forMs);
  return failed === 0 ? 0 : 1;
}

/** Runs all seeds of a workload, or as many as are done within `forMs` of real time. Returns how many failed. */
async function seeds(workload: WorkloadName, forMs: number | undefined): Promise<number> {
  const from = numberOf("from");
  const count = numberOf("seeds");
  const startedMs = performance.now();
  const faults: Record<string, number> = {};
  const counts: Record<string, number> = {};
  const most: Record<string, number> = {};
  const failpoints: Record<string, FailpointHits> = {};
  const failures: SeedReport[] = [];
  let events = 0;
  let simulatedMs = 0;
  let done = 0;
  let saidMs = startedMs;
  function* jobs(): Iterable<SeedJob> {
    for (let seed = from; seed < from + count; seed++) yield { workload, seed, rulesOff, focus: values.focus, twice: seed % 100 === 0 };
  }
  await runPool(jobs(), {
    workers,
    seedTimeoutMs,
    onReport: (report) => {
      done += 1;
      events += report.events;
      simulatedMs += report.simulatedMs;
      addCounts(faults, report.faults);
      addCounts(counts, report.counts);
      takeMost(most, report.most);
      addHits(failpoints, report.failpoints);
      if (report.failure !== undefined) {
        failures.push(report);
        showFailure(workload, report);
      } else if (values.verbose) {
        print(
          `${workload} seed ${report.seed}: ${report.events} events, ${(report.simulatedMs / 1000).toFixed(1)} s, ${showCounts(report.counts)}`,
        );
      }
      if (performance.now() - saidMs > 10_000) {
        saidMs = performance.now();
        print(`${workload}: ${done} of ${count} seeds, ${failures.length} failed`);
      }
      return failures.length < 10 && (forMs === undefined || performance.now() - startedMs < forMs);
    },
  });
  const seconds = (performance.now() - startedMs) / 1000;
  const perCoreHour = simulatedMs / 1000 / (seconds * workers);
  print(
    `${workload}: ${done} seeds in ${seconds.toFixed(1)} s (${(done / seconds).toFixed(2)} seeds/s, ${workers} workers), ` +
      `${(simulatedMs / 3600_000).toFixed(2)} simulated hours (${perCoreHour.toFixed(0)} an hour of one worker), ` +
      `${events.toLocaleString("en")} events (${Math.round(events / seconds).toLocaleString("en")}/s)`,
  );
  print(`  faults: ${showCounts(faults) || "none"}`);
  print(`  operations: ${showCounts(counts) || "none"}`);
  if (Object.keys(most).length > 0) print(`  at most: ${showCounts(most)}`);
  showFailpoints(failpoints);
  print(
    failures.length === 0 ? `  all ${done} passed` : `  ${failures.length} FAILED: seeds ${failures.map((each) => each.seed).join(", ")}`,
  );
  return failures.length;
}

function showFailpoints(failpoints: Readonly<Record<string, FailpointHits>>): void {
  const all = Object.entries(failpoints).sort(([a], [b]) => (a < b ? -1 : 1));
  if (all.length === 0) return;
  const struck = all.filter(([, hits]) => hits.struck > 0).length;
  const sum = all.reduce((total, [, hits]) => total + hits.struck, 0);
  print(
    `  failpoints: ${all.length} were reached, ${struck} struck, ${sum.toLocaleString("en")} times${values.failpoints ? ":" : " (--failpoints lists them)"}`,
  );
  if (values.failpoints)
    for (const [name, hits] of all)
      print(`    ${name}: reached ${hits.reached.toLocaleString("en")}, struck ${hits.struck.toLocaleString("en")}`);
}

function showFailure(workload: WorkloadName, report: SeedReport): void {
  print(`\n${workload} seed ${report.seed} FAILED at commit ${commit()}\n${report.failure}`);
  if (values.verbose) for (const line of report.tail ?? []) print(`  ${line}`);
  const off = rulesOff.length > 0 ? ` --rules-off ${rulesOff.join(",")}` : "";
  const focus = values.focus === undefined ? "" : ` --focus ${values.focus}`;
  print(`replay: ./stamp sim --workload ${workload} --replay ${report.seed}${off}${focus}\n`);
}

async function replay(seed: number): Promise<number> {
  const [workload = "blobs"] = workloads;
  const onLogLine = values.verbose ? print : undefined;
  const report = await runSeed({ workload, seed, rulesOff, focus: values.focus, twice: false }, onLogLine ? { onLogLine } : {});
  if (!values.verbose) for (const line of report.tail ?? []) print(line);
  print(`${workload} seed ${seed}: ${report.events} events, log ${report.hash}, ${(report.simulatedMs / 1000).toFixed(3)} s simulated`);
  print(`  faults: ${showCounts(report.faults)}\n  operations: ${showCounts(report.counts)}`);
  print(report.failure === undefined ? "  passed" : `  FAILED: ${report.failure}`);
  return report.failure === undefined ? 0 : 1;
}

function commit(): string {
  try {
    const git = (...args: string[]): string => execFileSync("git", args, { encoding: "utf8", cwd: import.meta.dirname }).trim();
    return `${git("rev-parse", "--short=12", "HEAD")}${git("status", "--porcelain", "--untracked-files=no") === "" ? "" : " with changes"}`;
  } catch {
    return "unknown";
  }
}
