/**
 * `stamp bench`: the cluster, embedded mode and Azurite side by side. Targets take turns inside each case and round, so that what the
 * machine does meanwhile hits all of them.
 */
import { execFileSync } from "node:child_process";
import { statfsSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { resolve } from "node:path";
import { type BenchCase, cases, nameOf } from "../cases.ts";
import { combine, type Measurement, measure } from "../measure.ts";
import { type BenchTarget, startTarget, type TargetName } from "../targets.ts";
import { chartOf } from "./chart.ts";
import { writePage } from "./page.ts";
import { byProcessOf, cpuOf, lineOf, markdownOf, type Row, rate } from "./table.ts";

export interface PeersOptions {
  readonly targets: readonly TargetName[];
  /** Cases that run, some of `cases`. */
  readonly chosen: readonly BenchCase[];
  readonly seconds: number;
  readonly rounds: number;
  readonly json: boolean;
  /** True if the bench writes docs/measurements/peers.md. */
  readonly write: boolean;
}

const root = process.env.STAMP_ROOT ?? resolve(import.meta.dirname, "../../../..");
const space = "bench";
const warmUps: readonly BenchCase[] = cases.filter(({ scenario, clients }) => clients === 64 && scenario.endsWith("1 KiB"));

/** A round of uploads writes about 21 GB: three copies in the cluster and in embedded mode, one in the emulator. */
const freeBytesMin = 30e9;

/** Returns the exit code: 1 if an operation failed. */
export async function peersBench(options: PeersOptions): Promise<number> {
  const { seconds, rounds, json } = options;
  const say = (text: string): void => void (json ? process.stderr : process.stdout).write(`${text}\n`);
  const loadBefore = loadText();
  const targets = new Targets(options.targets, say);
  let rows: readonly Row[];
  try {
    rows = await measureAll(targets, options, (row) => !json && say(lineOf(row)));
  } finally {
    await targets.stop();
  }
  if (json) console.log(jsonOf(rows, options));
  else
    for (const text of [
      "",
      `${options.targets.includes("azurite") ? "Ratio to Azurite (throughput), p" : "P"}rocessor time of one operation by process:`,
    ])
      say(text);
  if (!json) for (const row of rows) say(byProcessOf(row, rows));
  if (options.write) {
    const about = `${today()}, commit ${commit()}, ${cpus().length} processors, load of the machine ${loadBefore} before and ${loadText()} after; ${rounds} rounds of ${seconds} s each.`;
    const chart = chartOf(rows);
    const picture = chart === "" ? "" : "![Throughput as a multiple of the emulator's](peers.svg)\n\n";
    for (const file of writePage(root, `${about}\n\n${picture}${markdownOf(rows)}`, chart)) say(`wrote ${file}`);
  }
  return rows.some((row) => row.result.failed > 0) ? 1 : 0;
}

/** Targets of a run. They begin again with empty folders when the disk gets full: a run of three rounds writes more than 100 GB. */
class Targets {
  readonly #names: readonly TargetName[];
  readonly #say: (text: string) => void;
  #running: readonly BenchTarget[] = [];
  #freeAtStart = 0;

  constructor(names: readonly TargetName[], say: (text: string) => void) {
    this.#names = names;
    this.#say = say;
  }

  /** Targets with room on their disk for a round of any case. Code that is hot has been compiled in them. */
  async withRoom(): Promise<readonly BenchTarget[]> {
    // Whatever else has filled the disk does not go away by a new start.
    const isFull = freeBytes() < Math.min(freeBytesMin, this.#freeAtStart - 10e9);
    if (this.#running.length > 0 && !isFull) return this.#running;
    if (this.#running.length > 0) this.#say("the disk gets full: all targets begin again with empty folders");
    await this.stop();
    this.#freeAtStart = freeBytes();
    if (this.#freeAtStart < freeBytesMin)
      this.#say(`${tmpdir()} has less than ${freeBytesMin / 1e9} GB free: cases of large bodies may fill it`);
    for (const name of this.#names) await this.#start(name);
    for (const target of this.#running) for (const each of warmUps) await measure(target, each, 2, `${space}WarmUp`.toLowerCase());
    return this.#running;
  }

  async stop(): Promise<void> {
    for (const target of this.#running) await target.stop();
    this.#running = [];
  }

  async #start(name: TargetName): Promise<void> {
    try {
      this.#running = [...this.#running, await startTarget(name)];
    } catch (error) {
      this.#say(`${name} is left out: ${(error as Error).message}`);
    }
  }
}

const freeBytes = (): number => {
  const { bavail, bsize } = statfsSync(tmpdir());
  return bavail * bsize;
};

async function measureAll(targets: Targets, { chosen, rounds, seconds }: PeersOptions, onRow: (row: Row) => void): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const each of chosen) {
    const measured = new Map<TargetName, Measurement[]>();
    for (let round = 0; round < rounds; round++)
      for (const target of await targets.withRoom())
        measured.set(target.name, [...(measured.get(target.name) ?? []), await measure(target, each, seconds, space)]);
    for (const [target, results] of measured) {
      const row: Row = { case: nameOf(each), target, result: combine(results) };
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
