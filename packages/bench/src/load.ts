/**
 * The load generator: a process of its own, so that its work is not counted with a server's. It says "begin" and "end" on standard error
 * around what it measures, and its result as JSON on standard output.
 */
import type { LoadRequest, LoadResult } from "./cases.ts";
import { scenarioNamed, scenariosOf } from "./scenarios/all.ts";

const request = JSON.parse(process.argv.at(-1) ?? "{}") as LoadRequest;
const scenarios = scenariosOf(request.connectionString, { shared: request.space, own: String(process.pid) });
const scenario = scenarioNamed(scenarios, request.scenario);

let measuring = false;
let running = true;
let failed = 0;
let firstFailure = "";
let number = 0;
let finished = 0;
/** True when the load has nothing left to do. */
let isExhausted = false;
const latencies: number[] = [];

async function worker(): Promise<void> {
  while (running && !isExhausted) {
    const startMs = performance.now();
    try {
      const done = await scenario.operation(number++);
      finished++;
      if (!done) isExhausted = true;
      else if (measuring) latencies.push(performance.now() - startMs);
    } catch (error) {
      finished++;
      if (!measuring) continue;
      failed++;
      firstFailure ||= (error as Error).message;
    }
  }
}

const pause = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;

/** Runs until the time is up and every worker had some operations, but not for ever: few slow operations say little. */
async function lasting(seconds: number, operationsMin: number, done: () => number): Promise<void> {
  const startMs = performance.now();
  const elapsed = (): number => (performance.now() - startMs) / 1_000;
  while (!isExhausted && (elapsed() < seconds || (done() < operationsMin && elapsed() < seconds * 8))) await pause(0.02);
}

/** Resolves when the process that started this one closes the standard input. */
const inputEnded = request.isHeldOpen ? new Promise((resolve) => process.stdin.once("end", resolve).resume()) : undefined;

await scenario.prepare();
const workers = Array.from({ length: request.clients }, worker);
await lasting(scenario.isLimited ? 0.1 : request.warmUpSeconds, request.clients, () => finished);
measuring = true;
process.stderr.write("begin\n");
const cpuBefore = process.cpuUsage();
const startMs = performance.now();
await lasting(request.seconds, request.clients * 2, () => latencies.length + failed);
if (!isExhausted) await inputEnded;
measuring = false;
const seconds = (performance.now() - startMs) / 1_000;
const cpu = process.cpuUsage(cpuBefore);
process.stderr.write("end\n");
running = false;
await Promise.all(workers);
scenarios.close();
const sorted = latencies.toSorted((a, b) => a - b);
const result: LoadResult = {
  operations: sorted.length,
  seconds,
  failed,
  p50Ms: percentile(sorted, 0.5),
  p99Ms: percentile(sorted, 0.99),
  contentBytes: scenario.contentBytes,
  cpuMs: (cpu.user + cpu.system) / 1_000,
  firstFailure,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
