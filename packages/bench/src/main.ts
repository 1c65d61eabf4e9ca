/**
 * `pnpm bench`: the cluster, embedded mode and Azurite side by side. Targets take turns inside each case and round, so that what the
 * machine does meanwhile hits all of them.
 */
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { budgetBench } from "./budget/bench.ts";
import { cases } from "./cases.ts";
import { coded } from "./coded/bench.ts";
import { coding } from "./codes/coding.ts";
import { list as benchList } from "./list.ts";
import { combine, type Measurement, measure } from "./measure.ts";
import { queues } from "./million/queues.ts";
import { tables } from "./million/tables.ts";
import { rows as benchRows } from "./rows/bench.ts";
import { streamBenches } from "./stream-bench.ts";
import { type BenchTarget, startTarget, type TargetName } from "./targets.ts";
import { tenants } from "./tenants/bench.ts";
import { turns } from "./turns/bench.ts";

const [what = "", ...others] = process.argv.slice(2);
if (Object.hasOwn(streamBenches, what)) {
  await streamBenches[what]?.(others);
  process.exit();
}

const measurements: Readonly<Record<string, (args: string[]) => Promise<void>>> = {
  list: benchList,
  tenants,
  rows: benchRows,
  queues,
  tables,
  turns,
  coding,
  coded,
};
if (Object.hasOwn(measurements, what)) {
  await measurements[what]?.(others);
  process.exit();
}

const usage = `pnpm bench [--seconds 3] [--rounds 2] [--targets cluster,embedded,azurite] [--cases "put 1 KiB"] [--json]
pnpm bench --budget [--write]                   processor time of each operation against its budget; --write sets the budget
pnpm bench seal|roll|failover|repair|memory|appends|reads  measurements of the stream layer
pnpm bench tenants                              one tenant floods, what does the other feel? see --help
pnpm bench rows [--rows 1000000]                a table that grows: inserts and point reads at each size, see --help
pnpm bench queues|tables [--count 1000000]      a queue, a table that grows: each operation at each size, see --help
pnpm bench list [--blobs 1000000]               pages of a container with that many blobs, see --help
pnpm bench turns [--scale 1]                    the longest turn of every process under the largest requests, see --help
pnpm bench coding                               erasure codes: data for each second of processor time, see --help
pnpm bench coded [--nodes 7]                    extents that become fragments: space, time, reads, repair; see --help`;
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
const chosen = cases.filter(({ name }) => name.includes(values.cases.replace(/ ?[x×] ?(?=\d+$)/, " × ")));
if (chosen.length === 0) {
  console.error(`no case is named like "${values.cases}"; there are: ${cases.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
const say = (text: string): void => void (values.json ? process.stderr : process.stdout).write(`${text}\n`);

const targets: BenchTarget[] = [];
for (const name of names) {
  try {
    targets.push(await startTarget(name));
  } catch (error) {
    say(`${name} is left out: ${(error as Error).message}`);
  }
}

interface Row {
  readonly case: string;
  readonly bytes: number;
  readonly target: TargetName;
  readonly result: Measurement;
}
const rows: Row[] = [];
try {
  // Compiles what is hot in every target, so that the first case is not judged by its start.
  const warm = cases.filter((each) => each.bytes < 1_000_000 && each.concurrency > 1);
  for (const target of targets) for (const each of warm) await measure(target, each, 2, "warm-up");
  for (const each of chosen) {
    const measured = new Map<TargetName, Measurement[]>(targets.map((target) => [target.name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const target of targets) measured.get(target.name)?.push(await measure(target, each, seconds, "bench"));
    }
    for (const target of targets) {
      const row: Row = { case: each.name, bytes: each.bytes, target: target.name, result: combine(measured.get(target.name) ?? []) };
      rows.push(row);
      if (!values.json) say(lineOf(row));
    }
  }
} finally {
  for (const target of targets) await target.stop();
}

function rate(row: Row): number {
  return row.result.operations / row.result.seconds;
}

function lineOf(row: Row): string {
  const { result } = row;
  const perOperation = [...result.serverCpuMs].map(([name, cpuMs]) => [name, (cpuMs * 1_000) / Math.max(result.operations, 1)] as const);
  const total = perOperation.reduce((sum, [, micros]) => sum + micros, 0);
  const speed = row.bytes > 1_000_000 ? `${((rate(row) * row.bytes) / 1e6).toFixed(0)} MB/s` : `${rate(row).toFixed(0)}/s`;
  const failed = result.failed > 0 ? `  ${result.failed} FAILED (${result.firstFailure})` : "";
  return `${row.case.padEnd(18)} ${row.target.padEnd(9)} ${speed.padStart(10)}  p50 ${result.p50Ms.toFixed(1)} ms  p99 ${result.p99Ms.toFixed(1)} ms  ${total.toFixed(0)} µs CPU/op${failed}`;
}

if (values.json) {
  const json = rows.map((row) => ({
    case: row.case,
    target: row.target,
    perSecond: rate(row),
    bytesPerSecond: rate(row) * row.bytes,
    p50Ms: row.result.p50Ms,
    p99Ms: row.result.p99Ms,
    failed: row.result.failed,
    loadCpuMicrosPerOperation: (row.result.cpuMs * 1_000) / Math.max(row.result.operations, 1),
    serverCpuMicrosPerOperation: Object.fromEntries(
      [...row.result.serverCpuMs].map(([name, cpuMs]) => [name, (cpuMs * 1_000) / Math.max(row.result.operations, 1)]),
    ),
  }));
  console.log(JSON.stringify({ processors: cpus().length, node: process.version, seconds, rounds, rows: json }, null, 2));
} else {
  console.log("\nRatios to Azurite (throughput), CPU per operation by process:");
  for (const row of rows) {
    const peer = rows.find((other) => other.case === row.case && other.target === "azurite");
    const ratio = peer === undefined || row.target === "azurite" ? "" : `${(rate(row) / rate(peer)).toFixed(1)}×`;
    const byProcess = [...row.result.serverCpuMs]
      .map(([name, cpuMs]) => `${name} ${((cpuMs * 1_000) / Math.max(row.result.operations, 1)).toFixed(0)}`)
      .join(", ");
    console.log(
      `${row.case.padEnd(18)} ${row.target.padEnd(9)} ${ratio.padStart(6)}  ${byProcess} µs; load ${((row.result.cpuMs * 1_000) / Math.max(row.result.operations, 1)).toFixed(0)} µs`,
    );
  }
}
process.exit(rows.some((row) => row.result.failed > 0) ? 1 : 0);
