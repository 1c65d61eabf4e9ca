/**
 * The local supervisor: every process of a cluster on this machine. Starts them in the order of a cold start without waiting in between
 * (each waits for what it needs), asks each for its state, starts again what died unasked, and stops them in reverse order.
 */
import { type GrpcTransport, inWords, makeSecretFile } from "@stamp/ports-node";
import { Status } from "@stamp/wire";
import { type ClusterRecord, readClusterRecord, writeClusterRecord } from "./cluster-record.ts";
import type { ClusterConfig } from "./config.ts";
import { DataFolder, type SupervisorRecord } from "./data-folder.ts";
import { ManagedProcess, type ProcessEvent } from "./managed-process.ts";
import { type Plan, planCluster } from "./plan.ts";
import { takenPorts } from "./ports-in-use.ts";
import { rememberedOf } from "./remembered.ts";
import { secretFilesOf } from "./secret-files.ts";
import { StartError } from "./start-error.ts";
import type { ClusterStatus, ProcessStatus } from "./status.ts";

export interface SupervisorOptions {
  readonly config: ClusterConfig;
  /** Folder of the repository. */
  readonly root: string;
  readonly transport: GrpcTransport;
  readonly onEvent?: (supervisor: Supervisor, name: string, event: ProcessEvent) => void;
}

interface Seen {
  readonly state: string;
  readonly ready: boolean;
  readonly waitingFor: readonly string[];
}

const pollWhileStartingMs = 100;
const pollMs = 500;
const askTimeoutMs = 1_500;
const takenToldMax = 5;
/** Longest wait for the end of processes that were killed, and then for the ports that they had. */
const leftOversGoneMs = 10_000;

export class Supervisor {
  readonly config: ClusterConfig;
  readonly plan: Plan;
  readonly folder: DataFolder;
  readonly #options: SupervisorOptions;
  readonly #processes: ManagedProcess[] = [];
  readonly #seen = new Map<string, Seen>();
  readonly #asking = new Set<string>();
  #pollTimer: NodeJS.Timeout | undefined;
  #stopping: Promise<void> | undefined;
  #recorded = false;
  /** Record of the cluster as it runs. */
  #cluster: ClusterRecord;
  /** Whether the folder holds `#cluster`. */
  #described = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.config = options.config;
    const retired = readClusterRecord(options.config.dataDir)?.retired ?? [];
    this.#cluster = { config: rememberedOf(options.config), retired };
    this.plan = planCluster(options.config, retired);
    this.folder = new DataFolder(options.config.dataDir);
  }

  /** Starts every process; throws StartError. Resolves when they are started, not when they are ready. */
  async start(): Promise<void> {
    const { config, folder, plan } = this;
    folder.prepare();
    const other = folder.acquire();
    if (other !== undefined) throw new StartError(alreadyRunning(config, other));
    try {
      // A cluster that ran until now may have retired a node after this plan was made.
      if (String(readClusterRecord(config.dataDir)?.retired ?? []) !== String(this.#cluster.retired))
        throw new StartError(`the cluster of ${config.dataDir} has changed in this moment; start it again`);
      const anyLeft = (await folder.endLeftOvers(leftOversGoneMs)) > 0;
      makeSecretFile(secretFilesOf(config).current);
      const taken = await takenPorts(config.bind, plan.ports, anyLeft ? leftOversGoneMs : 0);
      if (taken.length > 0) {
        const told = taken.slice(0, takenToldMax);
        const lines = told.map((each) => `port ${each.port} (${each.wantedFor}) is taken by ${each.holder ?? "another process"}`);
        if (taken.length > told.length) lines.push(`and ${taken.length - told.length} more of its ports`);
        const another = config.portBase + 1_000 > 64_000 ? 20_000 : config.portBase + 1_000;
        throw new StartError(`${lines.join("\n")}\nStart it on other ports: ./stamp up --port-base ${another}`);
      }
      this.#describe();
    } catch (error) {
      folder.release();
      throw error instanceof StartError ? error : new StartError(inWords(error));
    }
    const initialise = folder.isNew;
    for (const planned of plan.processes) {
      const managed = new ManagedProcess(planned, {
        root: this.#options.root,
        logs: folder.logs,
        logBytesMax: config.logBytesMax,
        restartAfterMs: config.restartAfterMs,
        stopTimeoutMs: config.stopTimeoutMs,
        onChange: (process, event) => this.#changed(process, event),
      });
      this.#processes.push(managed);
      managed.start(planned.role === "lock-service" && initialise ? { STAMP_INIT: "true" } : {});
    }
    this.#poll();
  }

  get ready(): boolean {
    return (
      this.#processes.length > 0 &&
      this.#processes.every((each) => each.pid !== undefined && this.#seen.get(each.plan.name)?.ready === true)
    );
  }

  status(): ClusterStatus {
    return {
      running: true,
      ready: this.ready,
      supervisorPid: process.pid,
      dataDir: this.config.dataDir,
      processes: this.#processes.map((each) => this.#statusOf(each)),
      endpoints: this.plan.endpoints,
      connectionString: this.plan.connectionString,
      lockService: this.plan.lockService,
    };
  }

  process(name: string): ManagedProcess | undefined {
    return this.#processes.find((each) => each.plan.name === name);
  }

  /** Stops a decommissioned extent node for good: no later start of this folder brings it back. Idempotent. */
  async retire(name: string): Promise<void> {
    if (this.#cluster.retired.includes(name)) return;
    const at = this.#processes.findIndex((each) => each.plan.name === name);
    const managed = this.#processes[at];
    if (managed?.plan.role !== "extent-node") throw new Error(`there is no extent node ${name} here`);
    const { config, retired } = this.#cluster;
    const record = { config: { ...config, extentNodes: Number(config.extentNodes) - 1 }, retired: [...retired, name] };
    // Before the process ends: a supervisor that is killed in between leaves no node that is started again.
    writeClusterRecord(this.config.dataDir, record);
    this.#cluster = record;
    this.#described = true;
    this.#processes.splice(at, 1);
    await managed.stop("cleanly");
    managed.close();
  }

  /** The end of a process's log, for errors. */
  tail(name: string, lines: number): string {
    return this.process(name)?.tail(lines) ?? "";
  }

  /** Kills every process in the same moment, as a power cut does; `resume` starts them again. */
  async powerLoss(): Promise<void> {
    await Promise.all(this.#processes.map((each) => each.stop("kill")));
  }

  resume(): void {
    for (const each of this.#processes) each.start();
  }

  /** Those that serve first, the lock service last. Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#pollTimer);
    // A role at a time: what is above is gone before what it writes to goes.
    const roles = [...new Set(this.#processes.map((each) => each.plan.role))].reverse();
    for (const role of roles)
      await Promise.all(this.#processes.filter((each) => each.plan.role === role).map((each) => each.stop("cleanly")));
    for (const each of this.#processes) each.close();
    this.folder.release();
  }

  #changed(managed: ManagedProcess, event: ProcessEvent): void {
    this.#seen.delete(managed.plan.name);
    this.#recorded = false;
    this.#record();
    this.#options.onEvent?.(this, managed.plan.name, event);
  }

  /** Records how this cluster was started. On a full disk this is done later, as below. */
  #describe(): void {
    if (this.#described || this.#stopping !== undefined) return;
    try {
      writeClusterRecord(this.config.dataDir, this.#cluster);
      this.#described = true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }

  /** What runs, for the next supervisor. On a full disk it is done later: the cluster that runs is more than the note of it. */
  #record(): void {
    if (this.#recorded || this.#stopping !== undefined) return;
    try {
      this.folder.recordProcesses(this.#processes.flatMap((each) => each.identity ?? []));
      this.#recorded = true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }

  #statusOf(managed: ManagedProcess): ProcessStatus {
    const { role, name, grpc, http } = managed.plan;
    const seen = this.#seen.get(name);
    const pid = managed.pid;
    const state = pid === undefined ? (managed.wanted ? "restarting" : "down") : (seen?.state ?? "starting");
    return {
      role,
      name,
      pid: pid ?? null,
      grpc,
      http,
      state,
      ready: pid !== undefined && seen?.ready === true,
      waitingFor: pid === undefined ? [] : (seen?.waitingFor ?? []),
      restarts: managed.restarts,
      lastExit: managed.lastExit,
    };
  }

  #poll(): void {
    this.#describe();
    this.#record();
    for (const managed of this.#processes) void this.#ask(managed);
    this.#pollTimer = setTimeout(() => this.#poll(), this.ready ? pollMs : pollWhileStartingMs);
  }

  async #ask(managed: ManagedProcess): Promise<void> {
    const { name, grpc, role } = managed.plan;
    const pid = managed.pid;
    if (pid === undefined || this.#asking.has(name)) return;
    this.#asking.add(name);
    try {
      const answer = await this.#options.transport.client(grpc, Status).getStatus({ withoutFacts: true }, { timeoutMs: askTimeoutMs });
      if (managed.pid !== pid) return;
      if (!answer.ok) {
        const before = this.#seen.get(name);
        if (before !== undefined) this.#seen.set(name, { state: "not answering", ready: false, waitingFor: [] });
        return;
      }
      const { state, ready, waitingFor } = answer.value;
      this.#seen.set(name, { state, ready, waitingFor });
      if (role === "lock-service" && ready) this.folder.markInitialised();
    } finally {
      this.#asking.delete(name);
    }
  }
}

function alreadyRunning(config: ClusterConfig, other: SupervisorRecord): string {
  return `a cluster already runs on ${config.dataDir} (supervisor pid ${other.pid}, since ${other.startedAt}).\nSee it: ./stamp status --data ${config.dataDir}\nStop it: ./stamp down --data ${config.dataDir}`;
}
