/**
 * `stamp bench`: the cluster, embedded mode and Azurite side by side. Targets take turns inside each case and round, so that what the
 * machine does meanwhile hits all of them.
 */
import { execFileSync } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { resolve } from "node:path";
import { type BenchCase, cases, nameOf } from "../cases.ts";
import { combine, type Measurement, measure } from "../measure.ts";
import { type BenchTarget, startTarget, type TargetName } from "../targets.ts";
import { chartOf } from "./chart.ts";
import { writePage } from "./page.ts";
import { byProcessOf, cpuOf, lineOf, markdownOf, type Row, rate } from "./table.ts";

export interface PeersOptions {
  readonly targets: readonly TargetName[];
  /** Some of `cases`. */
  readonly chosen: readonly BenchCase[];
  readonly seconds: number;
  readonly rounds: number;
  readonly json: boolean;
  /** Writes docs/measurements/peers.md. */
  readonly write: boolean;
}

const root = process.env.STAMP_ROOT ?? resolve(import.meta.dirname, "../../../..");
const space = "bench";
const warmUps: readonly BenchCase[] = cases.filter(({ scenario, clients }) => clients === 64 && scenario.endsWith("1 KiB"));

/** Returns the exit code: 1 if an operation failed. */
export async function peersBench(options: PeersOptions): Promise<number> {
  const { seconds, rounds, json } = options;
  const say = (text: string): void => void (json ? process.stderr : process.stdout).write(`${text}\n`);
  const loadBefore = loadText();
  const targets = await startAll(options.targets, say);
  let rows: readonly Row[];
  try {
    rows = await measureAll(targets, options, (row) => !json && say(lineOf(row)));
  } finally {
    for (const target of targets) await target.stop();
  }
  if (json) console.log(jsonOf(rows, options));
  else for (const text of ["", "Ratio to Azurite (throughput), processor time of one operation by process:"]) say(text);
  if (!json) for (const row of rows) say(byProcessOf(row, rows));
  if (options.write) {
    const about = `${today()}, commit ${commit()}, ${cpus().length} processors, load of the machine ${loadBefore} before and ${loadText()} after; ${rounds} rounds of ${seconds} s each.`;
    const chart = chartOf(rows);
    const picture = chart === "" ? "" : "![Throughput as a multiple of the emulator's](peers.svg)\n\n";
    for (const file of writePage(root, `${about}\n\n${picture}${markdownOf(rows)}`, chart)) say(`wrote ${file}`);
  }
  return rows.some((row) => row.result.failed > 0) ? 1 : 0;
}

async function startAll(names: readonly TargetName[], say: (text: string) => void): Promise<readonly BenchTarget[]> {
  const targets: BenchTarget[] = [];
  for (const name of names) {
    try {
      targets.push(await startTarget(name));
    } catch (error) {
      say(`${name} is left out: ${(error as Error).message}`);
    }
  }
  return targets;
}

async function measureAll(
  targets: readonly BenchTarget[],
  { chosen, rounds, seconds }: PeersOptions,
  onRow: (row: Row) => void,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  // Compiles what is hot in every target, so that the first case is not judged by its start.
  for (const target of targets) for (const each of warmUps) await measure(target, each, 2, `${space}WarmUp`.toLowerCase());
  for (const each of chosen) {
    const measured = new Map<TargetName, Measurement[]>(targets.map((target) => [target.name, []]));
    for (let round = 0; round < rounds; round++)
      for (const target of targets) measured.get(target.name)?.push(await measure(target, each, seconds, space));
    for (const target of targets) {
      const row: Row = { case: nameOf(each), target: target.name, result: combine(measured.get(target.name) ?? []) };
      rows.push(row);
      onRow(row);
    }
  }
  return rows;
}

function jsonOf(rows: readonly Row[], { seconds, rounds }: PeersOptions): string {
  const out = rows.map((row) => ({
    case: row.case,
    target: row.target,
    perSecond: rate(row),
    bytesPerSecond: rate(row) * row.result.contentBytes,
    p50Ms: row.result.p50Ms,
    p99Ms: row.result.p99Ms,
    failed: row.result.failed,
    loadCpuMicrosPerOperation: (row.result.cpuMs * 1_000) / Math.max(row.result.operations, 1),
    serverCpuMicrosPerOperation: Object.fromEntries(cpuOf(row)),
  }));
  return JSON.stringify({ processors: cpus().length, node: process.version, seconds, rounds, rows: out }, null, 2);
}

const loadText = (): string => (loadavg()[0] ?? 0).toFixed(1);

const today = (): string => new Date().toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });

function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short=8", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}
