/** Seeds over worker processes. A seed that takes too long is a failure, and its worker is replaced. */
import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import type { SeedJob, SeedReport } from "./report.ts";

export interface PoolOptions {
  readonly workers: number;
  readonly seedTimeoutMs: number;
  /** False: no further jobs are handed out. */
  readonly onReport: (report: SeedReport, job: SeedJob) => boolean;
}

export async function runPool(jobs: Iterable<SeedJob>, options: PoolOptions): Promise<void> {
  const source = jobs[Symbol.iterator]();
  let stopped = false;
  const next = (): SeedJob | undefined => {
    if (stopped) return undefined;
    const step = source.next();
    return step.done ? undefined : step.value;
  };
  await Promise.all(
    Array.from({ length: options.workers }, async () => {
      let child: ChildProcess | undefined;
      for (let job = next(); job; job = next()) {
        child ??= fork(new URL("./worker.ts", import.meta.url), { execArgv: ["--max-old-space-size=1024"] });
        const report = await ask(child, job, options.seedTimeoutMs);
        if (report.dead) {
          child.kill("SIGKILL");
          child = undefined;
        }
        if (!options.onReport(report.report, job)) stopped = true;
      }
      child?.disconnect();
    }),
  );
}

function ask(child: ChildProcess, job: SeedJob, timeoutMs: number): Promise<{ readonly report: SeedReport; readonly dead: boolean }> {
  return new Promise((resolve) => {
    const failed = (failure: string): SeedReport => ({
      seed: job.seed,
      failure,
      hash: "",
      events: 0,
      simulatedMs: 0,
      faults: {},
      counts: {},
      most: {},
      failpoints: {},
    });
    const finish = (report: SeedReport, dead: boolean): void => {
      clearTimeout(timer);
      child.off("message", onMessage);
      child.off("exit", onExit);
      resolve({ report, dead });
    };
    const onMessage = (report: unknown): void => finish(report as SeedReport, false);
    const onExit = (code: number | null, signal: string | null): void => finish(failed(`the worker ended (${code ?? signal})`), true);
    const timer = setTimeout(() => finish(failed(`took longer than ${timeoutMs} ms of real time`), true), timeoutMs);
    child.on("message", onMessage);
    child.on("exit", onExit);
    child.send(job);
  });
}
