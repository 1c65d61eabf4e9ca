/**
 * Supervises the location service and its lock service on one machine, in a data folder of their own. Starts them again when
 * they die unasked, and stops them in reverse order (`supervisor.ts` does the same for a stamp).
 */
import { mkdirSync } from "node:fs";
import { type GrpcTransport, inWords, makeSecretFile } from "@stamp/ports-node";
import { Status } from "@stamp/wire";
import type { StartedProcess } from "../plan.ts";
import { takenPorts } from "../ports/ports-in-use.ts";
import { DataFolder } from "../record/data-folder.ts";
import { FolderNotes } from "../record/folder-notes.ts";
import { secretFilesOf } from "../secret-files.ts";
import { StartError } from "../start-error.ts";
import type { ClusterStatus, ProcessStatus } from "../status.ts";
import type { ControlledSupervisor } from "../supervise/control.ts";
import { ManagedProcess } from "../supervise/managed-process.ts";
import { type LocationConfig, planLocation, stampSecretsIn } from "./plan-location.ts";

export interface LocationSupervisorOptions {
  readonly config: LocationConfig;
  /** Folder of the repository. */
  readonly root: string;
  readonly transport: GrpcTransport;
}

/** Time between two questions to each process, in milliseconds. */
const pollMs = 250;
const askTimeoutMs = 1_500;
/** Longest wait for the end of killed processes, and then for their ports, in milliseconds. */
const leftOversGoneMs = 10_000;

export class LocationSupervisor implements ControlledSupervisor {
  readonly folder: DataFolder;
  readonly #options: LocationSupervisorOptions;
  readonly #processes: ManagedProcess<StartedProcess>[] = [];
  readonly #seen = new Map<string, Pick<ProcessStatus, "state" | "ready" | "waitingFor">>();
  #pollTimer: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | undefined;
  readonly #notes = new FolderNotes();
  #recorded = false;

  constructor(options: LocationSupervisorOptions) {
    this.#options = options;
    this.folder = new DataFolder(options.config.dataDir);
  }

  /** Starts both processes; throws StartError. Resolves when they are started, not when they are ready. */
  async start(): Promise<void> {
    const { folder } = this;
    const { config, root } = this.#options;
    folder.prepare();
    const other = folder.acquire();
    if (other !== undefined) throw new StartError(`a location already runs on ${config.dataDir} (supervisor pid ${other.pid})`);
    const plan = planLocation(config);
    try {
      const anyLeft = (await folder.endLeftOvers(leftOversGoneMs)) > 0;
      makeSecretFile(secretFilesOf(config).current);
      mkdirSync(stampSecretsIn(config.dataDir), { recursive: true, mode: 0o700 });
      await this.#checkPorts(plan, anyLeft ? leftOversGoneMs : 0);
    } catch (error) {
      folder.release();
      throw error instanceof StartError ? error : new StartError(inWords(error));
    }
    const { logBytesMax, restartAfterMs, stopTimeoutMs } = config;
    try {
      for (const planned of plan) {
        const onChange = () => this.#changed(planned.name);
        const options = { root, logs: folder.logs, logBytesMax, restartAfterMs, stopTimeoutMs, onChange };
        this.#processes.push(new ManagedProcess<StartedProcess>(planned, options));
      }
    } catch (error) {
      for (const each of this.#processes.splice(0)) each.close();
      folder.release();
      throw new StartError(inWords(error));
    }
    for (const managed of this.#processes)
      managed.start(managed.plan.role === "lock-service" && folder.isNew ? { STAMP_INIT: "true" } : {});
    this.#poll();
  }

  status(): ClusterStatus {
    const processes = this.#processes.map((each) => this.#statusOf(each));
    return {
      running: true,
      ready: processes.length > 0 && processes.every(({ ready }) => ready),
      supervisorPid: process.pid,
      dataDir: this.#options.config.dataDir,
      processes,
      problems: this.#notes.problems,
      endpoints: { blob: "", queue: "", table: "" },
      connectionString: "",
      lockService: planLocation(this.#options.config)[0].grpc,
    };
  }

  process(name: string): ManagedProcess<StartedProcess> | undefined {
    return this.#processes.find((each) => each.plan.name === name);
  }

  async addNode(): Promise<never> {
    throw new Error("a location has no extent nodes");
  }

  async retire(): Promise<never> {
    throw new Error("a location has no extent nodes");
  }

  async powerLoss(): Promise<void> {
    await Promise.all(this.#processes.map((each) => each.stop("kill")));
  }

  resume(): void {
    for (const each of this.#processes) each.start();
  }

  /** Stops the location service, then its lock service. Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#pollTimer);
    for (const each of [...this.#processes].reverse()) await each.stop("cleanly");
    for (const each of this.#processes) each.close();
    this.folder.release();
  }

  async #checkPorts(plan: readonly StartedProcess[], waitMs: number): Promise<void> {
    const { bind } = this.#options.config;
    const wanted = new Map(
      plan.flatMap(({ name, grpc, http }) => [
        [portOf(grpc), `gRPC of ${name}`],
        [portOf(http), `readiness of ${name}`],
      ]),
    );
    const taken = await takenPorts(bind, wanted, waitMs);
    if (taken.length === 0) return;
    throw new StartError(
      taken.map((each) => `port ${each.port} (${each.wantedFor}) is taken by ${each.holder ?? "another process"}`).join("\n"),
    );
  }

  #changed(name: string): void {
    this.#seen.delete(name);
    this.#recorded = false;
    this.#record();
  }

  #record(): void {
    if (this.#recorded || this.#stopping !== undefined) return;
    const identities = this.#processes.flatMap((each) => each.identity ?? []);
    this.#recorded = this.#notes.written("run/processes.json", () => this.folder.recordProcesses(identities));
  }

  #statusOf(managed: ManagedProcess<StartedProcess>): ProcessStatus {
    const { pid, restarts, lastExit, wanted } = managed;
    const { role, name, grpc, http } = managed.plan;
    const seen = pid === undefined ? undefined : this.#seen.get(name);
    const state = pid === undefined ? (wanted ? "restarting" : "down") : "starting";
    const found = seen ?? { state, ready: false, waitingFor: [] };
    return { role, name, pid: pid ?? null, grpc, http, ...found, restarts, lastExit };
  }

  #poll(): void {
    this.#record();
    for (const managed of this.#processes) void this.#ask(managed);
    if (this.#stopping === undefined) this.#pollTimer = setTimeout(() => this.#poll(), pollMs);
  }

  async #ask(managed: ManagedProcess<StartedProcess>): Promise<void> {
    const { pid } = managed;
    const { name, role, grpc } = managed.plan;
    if (pid === undefined) return;
    const answer = await this.#options.transport.client(grpc, Status).getStatus({ withoutFacts: true }, { timeoutMs: askTimeoutMs });
    if (managed.pid !== pid) return;
    if (!answer.ok) {
      if (this.#seen.has(name)) this.#seen.set(name, { state: "not answering", ready: false, waitingFor: [] });
      return;
    }
    const { state, ready, waitingFor } = answer.value;
    this.#seen.set(name, { state, ready, waitingFor });
    if (ready && role === "lock-service") this.#notes.written("stamp.json", () => this.folder.markInitialised());
  }
}

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(":") + 1));
