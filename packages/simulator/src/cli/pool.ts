/**
 * Seeds over worker processes. A seed that takes too long is a failure, and its worker is replaced. A pool keeps its workers from one list
 * of seeds to the next: a start takes as long as several seeds.
 */
import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import type { SeedJob, SeedReport } from "./report.ts";

export interface PoolOptions {
  readonly workers: number;
  readonly seedTimeoutMs: number;
}

/** Takes a report. False: no further jobs are handed out. */
export type OnReport<Job extends SeedJob = SeedJob> = (report: SeedReport, job: Job) => boolean;

export class Pool {
  readonly #options: PoolOptions;
  readonly #children: (ChildProcess | undefined)[];

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#children = Array.from({ length: options.workers });
  }

  /** Runs the jobs, as many at once as there are workers, in their order. One list at a time. */
  async run<Job extends SeedJob>(jobs: Iterable<Job>, onReport: OnReport<Job>): Promise<void> {
    const source = jobs[Symbol.iterator]();
    let stopped = false;
    const next = (): Job | undefined => {
      if (stopped) return undefined;
      const step = source.next();
      return step.done ? undefined : step.value;
    };
    await Promise.all(
      this.#children.map(async (_, at) => {
        for (let job = next(); job; job = next()) {
          const child = this.#child(at);
          const { report, dead } = await ask(child, job, this.#options.seedTimeoutMs);
          if (dead) {
            child.kill("SIGKILL");
            this.#children[at] = undefined;
          }
          if (!onReport(report, job)) stopped = true;
        }
      }),
    );
  }

  /** Ends the workers. */
  close(): void {
    for (const child of this.#children) child?.disconnect();
    this.#children.fill(undefined);
  }

  #child(at: number): ChildProcess {
    const kept = this.#children[at];
    if (kept?.connected === true) return kept;
    const child = fork(new URL("./worker.ts", import.meta.url), { execArgv: ["--max-old-space-size=1024"] });
    this.#children[at] = child;
    return child;
  }
}

/** Runs one list of jobs with workers of its own. */
export async function runPool(jobs: Iterable<SeedJob>, options: PoolOptions & { readonly onReport: OnReport }): Promise<void> {
  const pool = new Pool(options);
  await pool.run(jobs, options.onReport);
  pool.close();
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
