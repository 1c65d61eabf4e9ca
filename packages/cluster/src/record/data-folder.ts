/**
 * Files of a supervisor in the data folder, besides the folders of the processes:
 *
 *   stamp.json            written when the first start has made a stamp here; without it the lock service may make one
 *   cluster.json          how its cluster was started last, and which nodes are gone for good (cluster-record.ts)
 *   logs/<name>.log       output of each process, rotated
 *   run/supervisor.json   whose cluster runs here: pid, ports, where to control it; gone after a clean stop
 *   run/processes.json    processes that were started, so that a supervisor can end those that outlived a killed one
 *   run/control.sock      where the supervisor takes commands
 */
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatVersions, newerFormat, release } from "@stamp/base";
import { inWords } from "@stamp/ports-node";
import { StartError } from "../start-error.ts";
import { identityOf, isAlive, type ProcessIdentity, signal } from "../supervise/process-identity.ts";
import { reachesLongPaths, socketPathBytesMax } from "./control-path.ts";

/** Version of what lies in the folder. Any other is refused: a program that reads it wrongly may write it wrongly. */
const formatVersion = formatVersions["stamp-folder"];

export interface SupervisorRecord extends ProcessIdentity {
  readonly control: string;
  readonly startedAt: string;
}

export interface RunningOnFolder {
  readonly supervisor: SupervisorRecord | undefined;
  /** Processes of a supervisor that was killed. They serve, and have their files open. */
  readonly orphans: readonly ProcessIdentity[];
}

const supervisorFile = "run/supervisor.json";

/** Makes a hard link; false if `to` exists already. */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

const nameOf = (record: ProcessIdentity | undefined): string => (record === undefined ? "none" : `${record.pid}-${record.start ?? ""}`);

export class DataFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  get logs(): string {
    return join(this.path, "logs");
  }

  /** Returns where the supervisor of this folder takes commands; if none runs, where the next one will. */
  get control(): string {
    return this.supervisor()?.control ?? this.#ownControl;
  }

  /** Only Linux reaches a socket whose path is longer than about 100 bytes (control-path.ts): elsewhere it stands in the temporary folder. */
  get #ownControl(): string {
    const near = join(this.path, "run", "control.sock");
    if (reachesLongPaths || Buffer.byteLength(near) <= socketPathBytesMax) return near;
    return join(tmpdir(), `stamp-${createHash("sha256").update(this.path).digest("hex").slice(0, 16)}.sock`);
  }

  get isNew(): boolean {
    return !existsSync(join(this.path, "stamp.json"));
  }

  /**
   * True if the first start may make a stamp here: none was made, and no extent node's disk belongs to one. A stamp beside such disks would be
   * refused by them, and its metadata store would stand where a copy of theirs is to be restored.
   */
  get mayBecomeStamp(): boolean {
    const nodes = existsSync(this.path) ? readdirSync(this.path).filter((name) => /^extent-node-\d+$/.test(name)) : [];
    return this.isNew && !nodes.some((name) => existsSync(join(this.path, name, "files", "node-identity")));
  }

  markInitialised(): void {
    if (this.isNew)
      this.#write("stamp.json", {
        format: formatVersion,
        release,
        note: "A storage stamp lives in this folder. Without this file a start may make a new one.",
      });
  }

  /** Makes what is missing. Throws StartError where nothing can be stored, and for a folder of another version. */
  prepare(): void {
    // Before anything is made: what another version wrote stays as it is.
    this.#checkVersion();
    try {
      for (const folder of [join(this.path, "run"), this.logs]) {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        // Whatever the umask is, and for what an older build has made. The folder itself may be somebody's own, with other things in it.
        chmodSync(folder, 0o700);
      }
      accessSync(this.path, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch (error) {
      throw new StartError(`the data folder ${this.path} can't be used: ${inWords(error)}\nName another one: ./stamp up --data DIR`);
    }
  }

  #checkVersion(): void {
    const { format = formatVersion, release: writer } = this.#read<{ format?: unknown; release?: string }>("stamp.json") ?? {};
    if (format === formatVersion) return;
    if (typeof format === "number" && format > formatVersion) {
      throw new StartError(newerFormat(join(this.path, "stamp.json"), { format: "stamp-folder", version: format }, writer).failure.message);
    }
    throw new StartError(`${join(this.path, "stamp.json")} has the format ${String(format)}, which this release does not know`);
  }

  /** Returns the supervisor of this folder, if one runs. */
  supervisor(): SupervisorRecord | undefined {
    const record = this.#read<SupervisorRecord>(supervisorFile);
    return record !== undefined && isAlive(record) ? record : undefined;
  }

  /** Returns the processes that run on this folder. Commands that change or delete its content ask this first. */
  running(): RunningOnFolder {
    const supervisor = this.supervisor();
    return { supervisor, orphans: supervisor === undefined ? this.leftOvers() : [] };
  }

  /**
   * Takes the folder for this process, or says who has it. The record appears whole (a link to a written file), so nobody takes an empty
   * one for that of a dead supervisor. Who replaces the record of a dead one first makes a claim named after it, which only one can, and
   * looks again: whoever looked earlier and claims later finds another record there.
   */
  acquire(): SupervisorRecord | undefined {
    const record: SupervisorRecord = { ...identityOf(process.pid), control: this.#ownControl, startedAt: new Date().toISOString() };
    const path = join(this.path, supervisorFile);
    const mine = `${path}.${process.pid}.new`;
    writeFileSync(mine, JSON.stringify(record), { mode: 0o600 });
    try {
      for (;;) {
        if (linked(mine, path)) return undefined;
        const seen = this.#read<SupervisorRecord>(supervisorFile);
        if (seen !== undefined && isAlive(seen)) return seen;
        const claim = `${supervisorFile}.after-${nameOf(seen)}`;
        if (!linked(mine, join(this.path, claim))) {
          const other = this.#read<SupervisorRecord>(claim);
          if (other !== undefined && isAlive(other) && other.pid !== process.pid) return other;
          // It was killed between its claim and its record.
          rmSync(join(this.path, claim), { force: true });
          continue;
        }
        const still = existsSync(path) && nameOf(this.#read<SupervisorRecord>(supervisorFile)) === nameOf(seen);
        if (still) renameSync(mine, path);
        rmSync(join(this.path, claim), { force: true });
        if (still) return undefined;
      }
    } finally {
      rmSync(mine, { force: true });
    }
  }

  /**
   * Returns "kept" if this process still has the folder that it took. If its record is gone, as after `rm -rf run`, takes the folder again and
   * returns "again"; returns the record of the supervisor that has taken it meanwhile.
   */
  keep(): "kept" | "again" | SupervisorRecord {
    const seen = this.#read<SupervisorRecord>(supervisorFile);
    if (seen !== undefined && nameOf(seen) === nameOf(identityOf(process.pid))) return "kept";
    // If the data folder itself is gone, there is nothing to take.
    if (!existsSync(join(this.path, "run"))) mkdirSync(join(this.path, "run"), { mode: 0o700 });
    return this.acquire() ?? "again";
  }

  /** Gives up what `acquire` took. The note on processes stays while one of them runs. */
  release(): void {
    if (this.leftOvers().length === 0) rmSync(join(this.path, "run/processes.json"), { force: true });
    rmSync(this.#ownControl, { force: true });
    rmSync(join(this.path, supervisorFile), { force: true });
  }

  /**
   * Does `work` while no supervisor can start here, and no other command changes what lies here. Throws StartError if somebody has the folder,
   * or processes of a killed supervisor run and `besideOrphans` is not set.
   */
  async whileHeld<T>(work: () => T | Promise<T>, besideOrphans = false): Promise<T> {
    mkdirSync(join(this.path, "run"), { recursive: true, mode: 0o700 });
    const other = this.acquire();
    if (other !== undefined) throw new StartError(`process ${other.pid} has taken ${this.path} in this moment: try again`);
    try {
      const left = this.leftOvers();
      if (left.length > 0 && !besideOrphans) {
        throw new StartError(`processes of ${this.path} still run (pid ${left.map(({ pid }) => pid).join(", ")}); stop them: ./stamp down`);
      }
      return await work();
    } finally {
      this.release();
    }
  }

  recordProcesses(processes: readonly ProcessIdentity[]): void {
    this.#write("run/processes.json", processes);
  }

  /** Stops the processes that a killed supervisor left running: asks each, and kills what goes on after `timeoutMs`. */
  stopOrphans(timeoutMs: number): Promise<void> {
    return this.whileHeld(async () => {
      const orphans = this.leftOvers();
      for (const name of ["SIGTERM", "SIGKILL"] as const) {
        for (const each of orphans) signal(each, name);
        if (await ended(orphans, timeoutMs)) return;
      }
      throw cannotStop(orphans);
    }, true);
  }

  /** Returns processes of an earlier supervisor that still run. */
  leftOvers(): ProcessIdentity[] {
    return (this.#read<ProcessIdentity[]>("run/processes.json") ?? []).filter((each) => each.start !== undefined && isAlive(each));
  }

  /** Kills what a killed supervisor left behind; returns how many. Throws StartError if one has not ended within `timeoutMs`. */
  async endLeftOvers(timeoutMs: number): Promise<number> {
    const left = this.leftOvers();
    for (const each of left) signal(each, "SIGKILL");
    if (!(await ended(left, timeoutMs))) throw cannotStop(left);
    rmSync(join(this.path, "run/processes.json"), { force: true });
    return left.length;
  }

  /** Reads a file; nothing if it is absent or was emptied by a power cut. Throws StartError if it is unreadable. */
  #read<T>(name: string): T | undefined {
    const path = join(this.path, name);
    try {
      return JSON.parse(readFileSync(path, "utf8")) as T;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (error instanceof SyntaxError || code === "ENOENT" || code === "ENOTDIR") return undefined;
      throw new StartError(inWords(error, path));
    }
  }

  #write(name: string, value: unknown): void {
    const path = join(this.path, name);
    writeFileSync(`${path}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}

const cannotStop = (processes: readonly ProcessIdentity[]): StartError =>
  new StartError(
    `these processes can't be stopped: ${processes
      .filter(isAlive)
      .map(({ pid }) => pid)
      .join(", ")}`,
  );

/** Waits until these processes have ended, at most `timeoutMs`; false if one goes on. */
async function ended(processes: readonly ProcessIdentity[], timeoutMs: number): Promise<boolean> {
  const endMs = performance.now() + timeoutMs;
  while (processes.some(isAlive)) {
    if (performance.now() >= endMs) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return true;
}
