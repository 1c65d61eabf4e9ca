/**
 * `pnpm bench cluster-tls`: cost of TLS between processes. Two clusters of the same shape, one with the secret alone, one with `tls: "cluster"`,
 * take turns inside each round. The numbers are processor time of all processes of a cluster for each operation: a busy machine hits both alike.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { startOwn } from "@stamp/drills";
import { type BenchCase, nameOf } from "./cases.ts";
import { type Measurement, measure } from "./measure.ts";
import type { BenchTarget } from "./targets.ts";

const usage = `pnpm bench cluster-tls [--rounds 9] [--seconds 3] [--only "put 4 MiB"] [--json]
Processor time of put 1 KiB, get 1 KiB and put 4 MiB with the secret alone and with TLS between processes, and the median of the ratios of
neighbouring rounds.`;
const main = resolve(import.meta.dirname, "../../cli/src/main.ts");
const shape = { extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1 };
const chosen: readonly BenchCase[] = [
  { scenario: "put 1 KiB", clients: 64 },
  { scenario: "get 1 KiB", clients: 64 },
  { scenario: "put 4 MiB", clients: 8 },
];

async function start(tls: boolean): Promise<BenchTarget> {
  const dataDir = await mkdtemp(join(tmpdir(), "stamp-bench-tls-"));
  if (tls) await promisify(execFile)(process.execPath, [main, "certs", "cluster", "init", "--data", dataDir]);
  const target = await startOwn({ ...shape, dataDir, ...(tls ? { tls: "cluster" } : {}) }, false);
  const { processes } = await target.status();
  const pids = new Map(processes.flatMap((each) => (each.pid === null ? [] : [[each.name, each.pid] as const])));
  const stop = async (): Promise<void> => {
    await target.close();
    await rm(dataDir, { recursive: true, force: true });
  };
  return { name: "cluster", connectionString: target.connectionString, pids, stop };
}

/** Processor time of all processes for one operation, in microseconds. */
function costOf({ operations, serverCpuMs, failed, firstFailure }: Measurement): number {
  if (failed > 0) throw new Error(`${failed} operations failed: ${firstFailure}`);
  return ([...serverCpuMs.values()].reduce((sum, each) => sum + each, 0) * 1_000) / Math.max(operations, 1);
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Rounds of one case, the two clusters in turns; who begins changes from round to round. */
async function compare(one: BenchCase, targets: readonly [BenchTarget, BenchTarget], rounds: number, seconds: number) {
  const costs: [number[], number[]] = [[], []];
  const waits: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++)
    for (const at of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const measured = await measure(targets[at], one, seconds, "bench");
      costs[at].push(costOf(measured));
      waits[at].push(measured.p50Ms);
    }
  const ratios = costs[0].map((secret, round) => (costs[1][round] ?? Number.NaN) / secret);
  return {
    case: nameOf(one),
    secretMicros: Math.round(median(costs[0])),
    tlsMicros: Math.round(median(costs[1])),
    secretP50Ms: Number(median(waits[0]).toFixed(1)),
    tlsP50Ms: Number(median(waits[1]).toFixed(1)),
    ratio: Number(median(ratios).toFixed(2)),
    ratios: ratios.map((each) => Number(each.toFixed(2))).toSorted((a, b) => a - b),
  };
}

const lineOf = (found: Awaited<ReturnType<typeof compare>>): string =>
  `${found.case.padEnd(16)} secret ${found.secretMicros} µs, p50 ${found.secretP50Ms} ms; TLS ${found.tlsMicros} µs, p50 ${found.tlsP50Ms} ms; ` +
  `median ratio ${found.ratio} (${found.ratios.join(" ")})`;

export async function clusterTls(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: "string", default: "9" },
      seconds: { type: "string", default: "3" },
      only: { type: "string", default: "" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (values.help || !(rounds >= 1) || !(seconds > 0)) {
    console.log(usage);
    process.exit(values.help ? 0 : 2);
  }
  const some = chosen.filter(({ scenario }) => scenario.startsWith(values.only));
  const targets: BenchTarget[] = [];
  try {
    for (const tls of [false, true]) targets.push(await start(tls));
    const both = targets as [BenchTarget, BenchTarget];
    for (const target of both) for (const one of some) await measure(target, one, 2, "warm-up");
    for (const one of some) {
      const found = await compare(one, both, rounds, seconds);
      if (values.json) console.log(JSON.stringify(found));
      else console.log(lineOf(found));
    }
  } finally {
    for (const target of targets) await target.stop();
  }
}
