/** Two stamps and a location service of their own, started, struck and asked by the commands that a person types. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClusterStatus, control, DataFolder, portsOfBase, reservePorts } from "@stamp/cluster";
import { DrillError } from "../drill-error.ts";

export const stampNames = ["north-1", "south-1"] as const;
export type StampName = (typeof stampNames)[number];

export interface RunCommand {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Fields of `stamp geo status ACCOUNT --json` that drills look at. */
export interface CopyFacts {
  readonly stamp: string;
  readonly secondary: string;
  readonly state: string;
  readonly kind: string;
  readonly seeded: boolean;
  readonly acceptedSync: string | null;
  readonly lastSync: string | null;
  readonly lagSeconds: number | null;
  readonly pendingOperations: number | null;
  readonly pendingBytes: number | null;
  readonly seedingPercent: number | null;
  readonly shippingTrouble: string;
}

/** One row of `stamp geo diverged ACCOUNT --json`. */
export interface DivergedFacts {
  readonly kind: string;
  readonly writtenAt: string | null;
  readonly partitionKey?: string;
  readonly rowKey?: string;
  readonly blob?: string | null;
}

export interface ReportFacts {
  readonly stamp: string;
  readonly complete: boolean;
  readonly trouble: string;
  readonly rows: readonly DivergedFacts[];
}

const account = "acme";
const readyTimeoutS = 300;
const outputMax = 256 * 1024 * 1024;
const pollMs = 500;

/** Ports of each stamp, above the base. */
const portsAbove: Readonly<Record<StampName, number>> = { "north-1": 0, "south-1": portsOfBase };

export class TwoStamps {
  readonly account = account;
  /** Takes each line that a command says about its progress. */
  onSaid: (line: string) => void = () => {};
  readonly dataDir: string;
  readonly #main: string;
  readonly #portBase: number;
  readonly #release: () => Promise<void>;

  private constructor(main: string, dataDir: string, portBase: number, release: () => Promise<void>) {
    this.#main = main;
    this.dataDir = dataDir;
    this.#portBase = portBase;
    this.#release = release;
  }

  /** `main`: the file of the command line, as `process.argv[1]`. */
  static async start(main: string): Promise<TwoStamps> {
    const dataDir = join(await mkdtemp(join(tmpdir(), "stamp-geo-drill-")), "data");
    const { portBase, release } = await reservePorts(stampNames.length + 1);
    const stamps = new TwoStamps(main, dataDir, portBase, release);
    try {
      const count = String(stampNames.length);
      await stamps.ok("up", "-d", "--stamps", count, "--port-base", String(portBase), "--ready-timeout-s", String(readyTimeoutS));
    } catch (error) {
      await stamps.close(false);
      throw error;
    }
    return stamps;
  }

  /** Returns the port of the stamp's Blob service; that of its Table service is 2 above. */
  portOf(stamp: StampName): number {
    return this.#portBase + portsAbove[stamp];
  }

  folderOf(stamp: StampName): string {
    return join(this.dataDir, stamp);
  }

  /** Runs a command on the folder of both stamps, unless it names another one. */
  run(...args: readonly string[]): Promise<RunCommand> {
    const all = [this.#main, ...args, ...(args.includes("--data") ? [] : ["--data", this.dataDir])];
    return new Promise((resolve) => {
      const child = execFile(process.execPath, all, { maxBuffer: outputMax }, (_error, out, err) =>
        resolve({ code: child.exitCode ?? -1, out, err }),
      );
      child.stderr?.on("data", (text: string) => {
        for (const line of text.split("\n")) if (line !== "") this.onSaid(line);
      });
    });
  }

  /** Runs a command that must succeed. Returns its standard output. */
  async ok(...args: readonly string[]): Promise<string> {
    const { code, out, err } = await this.run(...args);
    if (code !== 0) throw new DrillError(`stamp ${args.join(" ")}: exit code ${code}: ${(err || out).trim()}`);
    return out;
  }

  /** Runs a command that answers with JSON. */
  async json<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.ok(...args, "--json")) as T;
  }

  async copy(of: string = account): Promise<CopyFacts> {
    const [found] = await this.json<[CopyFacts]>("geo", "status", of);
    return found;
  }

  /** Asks for the state of an account's copy until it is as wanted. */
  untilCopy(what: string, timeoutMs: number, holds: (now: CopyFacts) => boolean, of: string = account): Promise<CopyFacts> {
    return this.#until(what, timeoutMs, () => this.copy(of), holds);
  }

  /** Waits until a deposed stamp has reported all its own commits. */
  async report(stamp: StampName, timeoutMs: number): Promise<ReportFacts> {
    const ask = async (): Promise<ReportFacts | undefined> =>
      (await this.json<ReportFacts[]>("geo", "diverged", account)).find((each) => each.stamp === stamp);
    return (await this.#until(`report of ${stamp}`, timeoutMs, ask, (now) => now?.complete === true)) as ReportFacts;
  }

  async #until<T>(what: string, timeoutMs: number, ask: () => Promise<T>, holds: (now: T) => boolean): Promise<T> {
    for (const startMs = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, pollMs))) {
      const now = await ask();
      if (holds(now)) return now;
      if (performance.now() - startMs > timeoutMs)
        throw new DrillError(`not within ${timeoutMs / 1_000} s: ${what}: ${JSON.stringify(now)}`);
    }
  }

  /** Stops what takes shipments at a stamp, and lets it go on: the link is silent meanwhile, as a cut one is. */
  async signalDoors(stamp: StampName, signal: "SIGSTOP" | "SIGCONT"): Promise<void> {
    const { processes } = await this.status(stamp);
    for (const { name, pid } of processes) if (name.startsWith("front-end") && pid !== null) process.kill(pid, signal);
  }

  /** Kills the supervisor of a stamp and then all its processes, with SIGKILL. */
  async killWhole(stamp: StampName): Promise<void> {
    const { processes } = await this.status(stamp);
    const supervisor = new DataFolder(this.folderOf(stamp)).supervisor();
    if (supervisor === undefined) throw new DrillError(`${stamp} does not run`);
    process.kill(supervisor.pid, "SIGKILL");
    for (const { pid } of processes) if (pid !== null) process.kill(pid, "SIGKILL");
  }

  /** Starts a stamp again that was killed whole. */
  async bringBack(stamp: StampName): Promise<void> {
    await this.ok("up", "-d", "--data", this.folderOf(stamp), "--ready-timeout-s", String(readyTimeoutS));
  }

  status(stamp: StampName): Promise<ClusterStatus> {
    return control(new DataFolder(this.folderOf(stamp)).control, { do: "status" });
  }

  async close(keep: boolean): Promise<void> {
    await this.run("down");
    if (!keep) await rm(join(this.dataDir, ".."), { recursive: true, force: true });
    await this.#release();
  }
}
