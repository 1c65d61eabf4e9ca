/**
 * One process of the cluster: started, watched, started again when it dies unasked (after a pause that doubles while it keeps dying),
 * held down when asked to.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { inWords, isSystemError } from "@stamp/ports-node";
import { distrust, programOf, type StartedProgram } from "../bundle/bundle.ts";
import type { PlannedProcess, StartedProcess } from "../plan.ts";
import { LastError } from "./last-error.ts";
import { LogFile } from "./log-file.ts";
import { identityOf, type ProcessIdentity, signal } from "./process-identity.ts";

const restartPauseMaxMs = 5_000;
/** Time after which a process has survived its start, in milliseconds. */
const settledAfterMs = 10_000;
const wrongConfigurationExitCode = 64;
/** Signals by which others end a process. They say nothing about its program. */
const sentByOthers = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"].map((name) => `signal ${name}`);
/**
 * Bytes on their way through leave a process with little more memory than it had: docs/design/processes.md. Buffers of
 * half a MiB and more go back to the kernel when they are freed, smaller ones are kept for the next, 16 MiB at most in two arenas.
 */
const allocator = {
  MALLOC_MMAP_THRESHOLD_: String(512 * 1024),
  MALLOC_TRIM_THRESHOLD_: String(16 * 1024 * 1024),
  MALLOC_ARENA_MAX: "2",
};
/**
 * Size of V8's semi-space, in MiB. Objects here are few and die young; with V8's own 16 each process holds 30 MiB more. A front-end and a
 * partition server have whole pages of entities and blobs under way: with 8 they spend a third less on a page than with 4, with 16 hardly less.
 */
const semiSpaceOf = (role: string): number => (role === "front-end" || role === "partition-server" ? 8 : 4);

export interface ManagedOptions<Plan extends StartedProcess = PlannedProcess> {
  readonly root: string;
  readonly logs: string;
  readonly logBytesMax: number;
  readonly restartAfterMs: number;
  readonly stopTimeoutMs: number;
  /** Takes each whole line that a process writes, besides the log file. Undefined: lines go to the file only. */
  readonly onLine?: ((line: string) => void) | undefined;
  /** Takes note that a process was started or has ended. */
  readonly onChange: (process: ManagedProcess<Plan>, what: ProcessEvent) => void;
}

export type ProcessEvent =
  | { readonly kind: "started"; readonly pid: number }
  | { readonly kind: "exited"; readonly how: string; readonly asked: boolean };

export class ManagedProcess<Plan extends StartedProcess = PlannedProcess> {
  readonly plan: Plan;
  readonly #options: ManagedOptions<Plan>;
  readonly #log: LogFile;
  #child: ChildProcess | undefined;
  /** Process whose end `lastExit` is. */
  #endedLast: ChildProcess | undefined;
  #identity: ProcessIdentity | undefined;
  #wanted = false;
  #restartTimer: NodeJS.Timeout | undefined;
  #restartPauseMs: number;
  #startedMs = 0;
  #program: StartedProgram | undefined;
  #extraEnvironment: Readonly<Record<string, string>> = {};
  restarts = 0;
  /** Exit of the last run with the reason that the process gave; empty: it never ended. */
  lastExit = "";

  constructor(plan: Plan, options: ManagedOptions<Plan>) {
    this.plan = plan;
    this.#options = options;
    this.#restartPauseMs = options.restartAfterMs;
    this.#log = new LogFile(join(options.logs, `${plan.name}.log`), options.logBytesMax);
  }

  get pid(): number | undefined {
    return this.#identity?.pid;
  }

  get identity(): ProcessIdentity | undefined {
    return this.#identity;
  }

  get wanted(): boolean {
    return this.#wanted;
  }

  /** `extra` holds until the next start that is asked for. */
  start(extra: Readonly<Record<string, string>> = {}): void {
    this.#wanted = true;
    this.#extraEnvironment = extra;
    if (this.#child === undefined) this.#spawn();
  }

  /** Starts the process without the arguments that `start` added, if it has to be started again. */
  forgetExtra(): void {
    this.#extraEnvironment = {};
  }

  /** Stays down until `start`. Ends it as asked: SIGTERM and, when that takes too long, SIGKILL; or SIGKILL at once. */
  async stop(how: "cleanly" | "kill"): Promise<void> {
    this.#wanted = false;
    clearTimeout(this.#restartTimer);
    const child = this.#child;
    if (child === undefined) return;
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    this.signal(how === "kill" ? "SIGKILL" : "SIGTERM");
    // A stopped (SIGSTOP) process does not see SIGTERM before it goes on.
    if (how === "cleanly") this.signal("SIGCONT");
    const killing = setTimeout(() => {
      this.#log.note(`did not stop within ${this.#options.stopTimeoutMs} ms: killed`);
      this.signal("SIGKILL");
    }, this.#options.stopTimeoutMs);
    await exited;
    clearTimeout(killing);
  }

  signal(name: NodeJS.Signals): void {
    if (this.#identity !== undefined) signal(this.#identity, name);
  }

  close(): void {
    clearTimeout(this.#restartTimer);
    this.#log.close();
  }

  tail(lines: number): string {
    return this.#log.tail(lines);
  }

  #spawn(): void {
    try {
      this.#spawned();
    } catch (error) {
      // Node throws if the system has no memory for a process; the supervisor must outlive that.
      if (!isSystemError(error)) throw error;
      this.lastExit = `could not be started: ${inWords(error)}`;
      this.#log.note(this.lastExit);
      this.#restartLater(restartPauseMaxMs);
    }
  }

  #spawned(): void {
    const { plan } = this;
    const program = programOf(this.#options.root, plan.role);
    const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("STAMP_")));
    const child = spawn(process.execPath, [`--max-semi-space-size=${semiSpaceOf(plan.role)}`, program.path], {
      cwd: this.#options.root,
      env: {
        ...allocator,
        ...environment,
        NODE_COMPILE_CACHE: program.compiled,
        ...plan.environment,
        ...this.#extraEnvironment,
      },
      stdio: ["ignore", "pipe", "pipe"],
      // In a group of its own: Ctrl-C reaches the supervisor only, which stops the processes in order.
      detached: true,
    });
    this.#child = child;
    this.#program = program;
    this.#startedMs = performance.now();
    const said = new LastError();
    const { onLine } = this.#options;
    for (const output of [child.stdout, child.stderr]) {
      if (onLine !== undefined && output !== null)
        createInterface({ input: output, crlfDelay: Number.POSITIVE_INFINITY }).on("line", onLine);
      output?.on("data", (chunk: Buffer) => {
        this.#log.write(chunk);
        said.take(chunk);
      });
    }
    child.once("error", (error) => this.#ended(child, `could not be started: ${error.message}`, undefined));
    child.once("exit", (code, by) => this.#ended(child, by === null ? `exit code ${code}` : `signal ${by}`, code));
    // Behind "exit": only now everything that it wrote has been read.
    child.once("close", (code) => this.#explain(child, code === 0 ? "" : said.text));
    if (child.pid !== undefined) {
      this.#identity = identityOf(child.pid);
      this.#options.onChange(this, { kind: "started", pid: child.pid });
    }
  }

  #explain(child: ChildProcess, why: string): void {
    if (this.#endedLast === child && why !== "") this.lastExit += `: ${why}`;
  }

  #ended(child: ChildProcess, how: string, code: number | null | undefined): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#endedLast = child;
    this.#identity = undefined;
    this.lastExit = how;
    this.#log.note(`ended: ${how}`);
    this.#options.onChange(this, { kind: "exited", how, asked: !this.#wanted });
    if (!this.#wanted) return;
    this.restarts++;
    const ranMs = performance.now() - this.#startedMs;
    if (ranMs <= settledAfterMs && code !== wrongConfigurationExitCode && !sentByOthers.includes(how)) this.#doubtBundle();
    if (ranMs > settledAfterMs) this.#restartPauseMs = this.#options.restartAfterMs;
    // A wrong configuration does not heal by trying soon.
    const pauseMs = code === wrongConfigurationExitCode ? restartPauseMaxMs : this.#restartPauseMs;
    this.#restartPauseMs = Math.min(this.#restartPauseMs * 2, restartPauseMaxMs);
    this.#restartLater(pauseMs);
  }

  #restartLater(pauseMs: number): void {
    this.#restartTimer = setTimeout(() => {
      if (this.#wanted && this.#child === undefined) this.#spawn();
    }, pauseMs);
  }

  /** Doubts the bundle of a program that ended too soon: from now on this role starts from its source. */
  #doubtBundle(): void {
    if (this.#program?.bundle === undefined) return;
    distrust(this.#program);
    this.#log.note(
      `${this.plan.role} starts from its source from now on, because it ended soon after its start from ${this.#program.path}`,
    );
  }
}
