/** The processes of a planned cluster, each started from the folder of one release or the other. No supervisor runs: nobody finalizes by itself. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type PlannedProcess, programFileOf } from "@stamp/cluster";
import type { Transport } from "@stamp/ports";
import { Status } from "@stamp/wire";

const readyWithinMs = 90_000;
const askEveryMs = 100;

export interface Ended {
  readonly code: number | null;
  /** Lines that it logged since its start. */
  readonly log: string;
}

export class ProcessesOfTwoReleases {
  readonly #logs: string;
  readonly #transport: Transport;
  readonly #running = new Map<string, ChildProcess>();

  constructor(logs: string, transport: Transport) {
    this.#logs = logs;
    this.#transport = transport;
  }

  start({ name, role, environment }: PlannedProcess, root: string, more: Readonly<Record<string, string>> = {}): ChildProcess {
    const log = openSync(join(this.#logs, `${name}.log`), "w", 0o600);
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("STAMP_")));
    const child = spawn(process.execPath, [programFileOf(root, role)], {
      cwd: root,
      // Each release keeps its compiled code, so that a start does not compile everything again.
      env: { NODE_COMPILE_CACHE: join(root, ".tools", "compile-cache"), ...inherited, ...environment, ...more },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    this.#running.set(name, child);
    return child;
  }

  /** Starts a process that has to refuse, and waits for its end. */
  async startAndEnd(planned: PlannedProcess, root: string): Promise<Ended> {
    const child = this.start(planned, root);
    const code = await exitOf(child);
    this.#running.delete(planned.name);
    return { code, log: this.logOf(planned.name) };
  }

  async stop(name: string): Promise<void> {
    const child = this.#running.get(name);
    if (child === undefined) return;
    this.#running.delete(name);
    child.kill("SIGTERM");
    await exitOf(child);
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((name) => this.stop(name)));
  }

  logOf(name: string): string {
    return readFileSync(join(this.#logs, `${name}.log`), "utf8");
  }

  /** Waits until these processes serve. If one does not, throws an error with the last lines of its log. */
  async ready(planned: readonly PlannedProcess[]): Promise<void> {
    const endMs = performance.now() + readyWithinMs;
    for (const { name, grpc } of planned) {
      for (;;) {
        const answer = await this.#transport.client(grpc, Status).getStatus({ withoutFacts: true }, { timeoutMs: 1_000 });
        if (answer.ok && answer.value.name === name && answer.value.ready) break;
        if (performance.now() >= endMs) throw new Error(`${name} is not ready:\n${this.logOf(name).slice(-2_000)}`);
        await new Promise((resolve) => setTimeout(resolve, askEveryMs));
      }
    }
  }
}

const exitOf = (child: ChildProcess): Promise<number | null> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve(child.exitCode)
    : new Promise((resolve) => child.once("exit", (code) => resolve(code)));
