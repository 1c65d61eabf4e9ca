/** One case on one target: the load generator's numbers, and what each server process worked meanwhile. */
import { spawn } from "node:child_process";
import { programFileOf, repositoryRoot } from "@stamp/cluster";
import type { BenchCase, LoadRequest, LoadResult } from "./cases.ts";
import { cpuOfAll } from "./processor-time.ts";
import type { BenchTarget } from "./targets.ts";

export interface Measurement extends LoadResult {
  /** Processor time of each server process during the measurement, in milliseconds. */
  readonly serverCpuMs: ReadonlyMap<string, number>;
}

/** Measures for `seconds` at least; with `meanwhile` also until that is done. */
export async function measure(
  target: Pick<BenchTarget, "connectionString" | "pids">,
  what: BenchCase,
  seconds: number,
  space: string,
  meanwhile?: () => Promise<void>,
): Promise<Measurement> {
  const request: LoadRequest = {
    ...what,
    connectionString: target.connectionString,
    space,
    seconds,
    warmUpSeconds: Math.min(1, seconds / 3),
    isHeldOpen: meanwhile !== undefined,
  };
  const child = spawn(process.execPath, [programFileOf(repositoryRoot, "bench-load"), JSON.stringify(request)], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let before = new Map<string, number>();
  let after = new Map<string, number>();
  let output = "";
  let said = "";
  let hasBegun = false;
  let done: Promise<void> | undefined;
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    said += chunk;
    if (!hasBegun && said.includes("begin\n")) {
      hasBegun = true;
      before = cpuOfAll(target.pids);
      done = meanwhile?.().finally(() => child.stdin.end());
      // It is awaited when the load generator has ended.
      done?.catch(() => {});
    }
    if (chunk.includes("end\n")) after = cpuOfAll(target.pids);
  });
  const code = await new Promise<number | null>((exited) => child.once("close", exited));
  await done;
  if (code !== 0) throw new Error(`the load generator ended with ${code}: ${said.slice(-1_000)}`);
  const serverCpuMs = new Map([...after].map(([name, cpuMs]) => [name, cpuMs - (before.get(name) ?? cpuMs)]));
  return { ...(JSON.parse(output) as LoadResult), serverCpuMs };
}

/** Returns several rounds of the same case as one. */
export function combine(rounds: readonly Measurement[]): Measurement {
  const sum = (of: (one: Measurement) => number): number => rounds.reduce((total, one) => total + of(one), 0);
  const operations = sum((one) => one.operations);
  const weighted = (of: (one: Measurement) => number): number => sum((one) => of(one) * one.operations) / Math.max(operations, 1);
  const names = new Set(rounds.flatMap((one) => [...one.serverCpuMs.keys()]));
  return {
    operations,
    seconds: sum((one) => one.seconds),
    failed: sum((one) => one.failed),
    p50Ms: weighted((one) => one.p50Ms),
    p99Ms: Math.max(...rounds.map((one) => one.p99Ms)),
    contentBytes: rounds[0]?.contentBytes ?? 0,
    cpuMs: sum((one) => one.cpuMs),
    firstFailure: rounds.find((one) => one.firstFailure !== "")?.firstFailure ?? "",
    serverCpuMs: new Map([...names].map((name) => [name, sum((one) => one.serverCpuMs.get(name) ?? 0)])),
  };
}
