/**
 * The local supervisor: every process of a cluster on this machine. Starts them in the order of a cold start without waiting in between
 * (each waits for what it needs), asks each for its state, starts again what died unasked, and stops them in reverse order.
 */
import { ConfigError, type GrpcTransport, inWords, untilRoundMs } from "@stamp/ports-node";
import { Status } from "@stamp/wire";
import { type ClusterConfig, clusterConfigSchema, environmentName } from "../config.ts";
import type { ClusterPlan, PlannedProcess } from "../plan.ts";
import { planCluster } from "../plan-cluster.ts";
import { type TakenPort, takenPorts } from "../ports/ports-in-use.ts";
import { type ClusterRecord, clusterRecordPath, readClusterRecord, writeClusterRecord } from "../record/cluster-record.ts";
import { DataFolder, type SupervisorRecord } from "../record/data-folder.ts";
import { FolderNotes } from "../record/folder-notes.ts";
import { nodesLeftOut, rememberedOf } from "../record/remembered.ts";
import { masterKeyStateIn } from "../record/sealed-accounts.ts";
import type { RoleName } from "../roles.ts";
import { StartError } from "../start-error.ts";
import type { ClusterStatus, ProcessStatus } from "../status.ts";
import { missingPeer } from "../topology/peer-files.ts";
import { masterKeyFileOf, prepareDisks, prepareMasterKey, prepareSecret, withMasterKey } from "../topology/prepare-host.ts";
import { readTopology } from "../topology/topology.ts";
import { fileState, KeptSecret } from "./kept-files.ts";
import { ManagedProcess, type ProcessEvent } from "./managed-process.ts";

export interface SupervisorOptions {
  readonly config: ClusterConfig;
  /** Folder of the repository. */
  readonly root: string;
  readonly transport: GrpcTransport;
  /** True to make a new stamp. Without a topology a new folder becomes one by itself; several hosts can't tell who is the first. */
  readonly initialise?: boolean;
  readonly onEvent?: (supervisor: Supervisor, name: string, event: ProcessEvent) => void;
  /** Takes each line of a process, besides its log file; undefined: lines go to the file only. */
  readonly onLine?: (line: string) => void;
  /** Called when another supervisor has taken the folder. This one has killed its processes and must not touch the folder. */
  readonly onReplaced?: (by: SupervisorRecord) => void;
}

interface Seen {
  readonly state: string;
  readonly ready: boolean;
  readonly waitingFor: readonly string[];
}

const pollWhileStartingMs = 100;
/** Time between two questions to each process while all are ready. The end of a process is seen at once, without a question. */
const pollMs = 2_000;
const askTimeoutMs = 1_500;
const takenToldMax = 5;
/** Longest wait for the end of killed processes, and then for their ports, in milliseconds. */
const leftOversGoneMs = 10_000;

export class Supervisor {
  readonly config: ClusterConfig;
  readonly plan: ClusterPlan;
  readonly folder: DataFolder;
  readonly #options: SupervisorOptions;
  readonly #masterKeyFile: string | undefined;
  readonly #processes: ManagedProcess[] = [];
  readonly #seen = new Map<string, Seen>();
  readonly #asking = new Set<string>();
  readonly #askedMs = new Map<string, number>();
  #pollTimer: NodeJS.Timeout | undefined;
  /** True at rest: the next question to the processes is `pollMs` after the last one. */
  #isAtRest = false;
  #stopping: Promise<void> | undefined;
  #recorded = false;
  readonly #notes = new FolderNotes();
  #adding = false;
  /** Record of the running cluster. */
  #cluster: ClusterRecord;
  /** Whether the folder holds `#cluster`. */
  #described = false;
  /** State of the master key's file when `#cluster` was written. */
  #describedWith = "";
  /** State of the record's file when this supervisor wrote it. */
  #recordState = "";
  readonly #secret: KeptSecret;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.config = options.config;
    const known = readClusterRecord(options.config.dataDir);
    const mayBecomeStamp = new DataFolder(options.config.dataDir).mayBecomeStamp;
    this.#masterKeyFile = masterKeyFileOf(options.config, mayBecomeStamp);
    this.plan = planCluster(withMasterKey(options.config, this.#masterKeyFile), known);
    this.#cluster = { config: rememberedOf(options.config), retired: known?.retired ?? [], slots: this.#slotsOf(this.plan.processes) };
    this.folder = new DataFolder(options.config.dataDir);
    this.#secret = new KeptSecret(options.config);
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
      prepareSecret(config);
      prepareMasterKey(config, this.#masterKeyFile, plan.processes);
      if (config.topology !== undefined) prepareDisks(config, readTopology(config.topology));
      const waitMs = anyLeft ? leftOversGoneMs : 0;
      const taken = [
        ...(await takenPorts(config.httpBind, plan.httpPorts, waitMs)),
        ...(await takenPorts(config.internalBind, plan.internalPorts, waitMs)),
      ];
      if (taken.length > 0) {
        const another = config.portBase + 1_000 > 64_000 ? 20_000 : config.portBase + 1_000;
        const other = config.topology === undefined ? `./stamp up --port-base ${another}` : `portBase under config in ${config.topology}`;
        throw new StartError(`${takenText(taken)}\nStart it on other ports: ${other}`);
      }
      this.#describeFirst();
      // Each opens its log. None is started before all can be: a start that fails leaves no process.
      for (const planned of plan.processes) this.#processes.push(this.#managed(planned));
    } catch (error) {
      for (const each of this.#processes.splice(0)) each.close();
      folder.release();
      throw error instanceof StartError ? error : new StartError(inWords(error));
    }
    const initialise = this.#options.initialise === true || (config.topology === undefined && folder.mayBecomeStamp);
    const init = config.initFile === undefined ? {} : { [environmentName("initFile")]: config.initFile };
    const forRole: Partial<Record<RoleName, Readonly<Record<string, string>>>> = {
      "lock-service": initialise ? { STAMP_INIT: "true" } : {},
      "front-end": init,
    };
    for (const managed of this.#processes) managed.start(forRole[managed.plan.role]);
    this.#poll();
  }

  #managed(planned: PlannedProcess): ManagedProcess {
    const { logBytesMax, restartAfterMs, stopTimeoutMs } = this.config;
    const { root, onLine } = this.#options;
    const onChange = (process: ManagedProcess, event: ProcessEvent): void => this.#changed(process, event);
    return new ManagedProcess(planned, { root, logs: this.folder.logs, logBytesMax, restartAfterMs, stopTimeoutMs, onLine, onChange });
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
      problems: this.#notes.problems,
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
    const managed = this.process(name);
    const { config, retired, slots = {} } = this.#cluster;
    const leftOut = nodesLeftOut(this.config.dataDir, this.#names, retired);
    if (managed === undefined && leftOut.includes(name)) {
      this.#remember({ config, retired: [...retired, name], slots });
      return;
    }
    if (managed?.plan.role !== "extent-node") throw new Error(`there is no extent node ${name} here`);
    const left = this.#processes.filter((each) => each !== managed);
    const extentNodes = Number(config.extentNodes) - 1;
    // Before the process ends: a supervisor that is killed in between leaves no node that is started again.
    this.#remember({ config: { ...config, extentNodes }, retired: [...retired, name], slots: this.#slotsOf(left.map(({ plan }) => plan)) });
    this.#processes.splice(this.#processes.indexOf(managed), 1);
    await managed.stop("cleanly");
    managed.close();
  }

  /**
   * Starts one more extent node: the next one, which has a disk here if the last start left it out. Returns its name. Throws if `name` is given
   * and is not the next one, because names are given in the order of their numbers.
   */
  async addNode(name?: string): Promise<string> {
    const cluster = this.#cluster;
    const { config, retired } = cluster;
    if (this.config.topology !== undefined) throw new Error(`add it to its host in ${this.config.topology}, and start that host again`);
    if (name !== undefined && retired.includes(name)) throw new Error(`${name} was decommissioned; its name is not used again`);
    if (name !== undefined && this.process(name) !== undefined) throw new Error(`${name} runs already`);
    if (this.#adding) throw new Error("another extent node is being added in this moment");
    this.#adding = true;
    try {
      const extentNodes = Number(config.extentNodes) + 1;
      if (!clusterConfigSchema.shape.extentNodes.safeParse(extentNodes).success)
        throw new Error(`${extentNodes - 1} extent nodes run, and one folder has no more`);
      const plan = planCluster({ ...this.config, extentNodes }, cluster);
      const added = plan.processes.find((each) => this.process(each.name) === undefined) as PlannedProcess;
      if (name !== undefined && added.name !== name) throw new Error(`${name} is not the next extent node, that is ${added.name}`);
      const ports = new Map([...plan.internalPorts].filter(([, wantedFor]) => wantedFor.endsWith(` ${added.name}`)));
      const unproven = missingPeer(this.config, [added]);
      if (unproven !== undefined) throw new Error(unproven);
      const taken = await takenPorts(this.config.internalBind, ports);
      if (taken.length > 0) throw new Error(takenText(taken));
      if (this.#cluster !== cluster || this.#stopping !== undefined) throw new Error("the cluster has changed in this moment; try again");
      // Before the process begins: a supervisor that is killed in between leaves no node that nobody knows.
      this.#remember({ config: { ...config, extentNodes }, retired, slots: this.#slotsOf(plan.processes) });
      const managed = this.#managed(added);
      this.#processes.splice(this.#processes.findLastIndex(({ plan }) => plan.role === "extent-node") + 1, 0, managed);
      managed.start();
      return added.name;
    } finally {
      this.#adding = false;
    }
  }

  /** Returns the slots of processes; in a topology the name gives the slot. */
  #slotsOf(processes: readonly PlannedProcess[]): Readonly<Record<string, number>> {
    return this.config.topology === undefined ? Object.fromEntries(processes.map(({ name, slot }) => [name, slot])) : {};
  }

  get #names(): string[] {
    return this.#processes.map(({ plan }) => plan.name);
  }

  #remember(record: ClusterRecord): void {
    this.#describedWith = masterKeyStateIn(this.config.dataDir);
    writeClusterRecord(this.config.dataDir, record);
    this.#recordState = fileState(clusterRecordPath(this.config.dataDir));
    this.#cluster = record;
    this.#described = true;
  }

  /** Returns the end of a process's log, for errors. */
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

  /** Stops the processes that serve first, the lock service last. Idempotent. */
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
    if (this.#isAtRest) this.#pollAfter(pollWhileStartingMs);
    this.#options.onEvent?.(this, managed.plan.name, event);
  }

  /**
   * Records how this cluster was started; again when the file was changed by somebody else, is damaged or gone; and again when the master key has
   * changed, which seals the accounts in the record. A changed key that
   * can't be used leaves the record as it is: the partition servers tell of it.
   */
  #describe(): void {
    const keyState = masterKeyStateIn(this.config.dataDir);
    const path = clusterRecordPath(this.config.dataDir);
    const isOurs = fileState(path) === this.#recordState;
    if ((this.#described && isOurs && keyState === this.#describedWith) || this.#stopping !== undefined) return;
    try {
      writeClusterRecord(this.config.dataDir, this.#cluster);
      if (this.#described && !isOurs) process.stderr.write(`stamp: the supervisor has written ${path} again, which was changed or gone\n`);
      this.#recordState = fileState(path);
      this.#described = true;
      this.#describedWith = keyState;
    } catch (error) {
      if (!this.#described || !(error instanceof ConfigError)) throw error;
    }
  }

  /** Writes the first record; on a full disk later. Any other failure is told to whoever starts the cluster. */
  #describeFirst(): void {
    try {
      this.#describe();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }

  /** Records the running processes for the next supervisor. If the disk refuses, it is done later: the running cluster is more than the note of it. */
  #record(): void {
    if (this.#recorded || this.#stopping !== undefined) return;
    const identities = this.#processes.flatMap((each) => each.identity ?? []);
    this.#recorded = this.#notes.written("run/processes.json", () => this.folder.recordProcesses(identities));
  }

  /** Takes the folder again if somebody has removed the record of this supervisor. Leaves it to the supervisor that has taken it meanwhile. */
  #keepFolder(): void {
    this.#notes.written("run/supervisor.json", () => {
      const kept = this.folder.keep();
      if (kept === "again") this.#recorded = false;
      if (typeof kept === "string" || this.#stopping !== undefined) return;
      this.#stopping = this.powerLoss();
      void this.#stopping.then(() => this.#options.onReplaced?.(kept));
    });
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
    this.#keepFolder();
    this.#notes.written("cluster.json", () => this.#describe());
    this.#notes.written("cluster-secret", () => this.#secret.look());
    this.#record();
    const nowMs = performance.now();
    for (const managed of this.#processes) if (this.#isDue(managed, nowMs)) void this.#ask(managed, nowMs);
    this.#pollAfter(this.ready ? pollMs : pollWhileStartingMs);
  }

  /** True if the process is to be asked now. While some start, those that are ready are asked no more often than at rest. */
  #isDue({ plan: { name } }: ManagedProcess, nowMs: number): boolean {
    return this.ready || this.#seen.get(name)?.ready !== true || nowMs - (this.#askedMs.get(name) ?? 0) >= pollMs;
  }

  #pollAfter(delayMs: number): void {
    clearTimeout(this.#pollTimer);
    this.#isAtRest = delayMs === pollMs;
    if (this.#stopping === undefined)
      this.#pollTimer = setTimeout(() => this.#poll(), delayMs === pollMs ? Math.ceil(untilRoundMs(delayMs)) : delayMs);
  }

  async #ask(managed: ManagedProcess, nowMs: number): Promise<void> {
    const { name, grpc, role } = managed.plan;
    const pid = managed.pid;
    if (pid === undefined || this.#asking.has(name)) return;
    this.#asking.add(name);
    this.#askedMs.set(name, nowMs);
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
      // The file may be gone or wrong when the process is started again, and must not hold up what serves already.
      if (ready && role === "front-end") managed.forgetExtra();
      if (ready && (role === "lock-service" || this.config.topology !== undefined))
        this.#notes.written("stamp.json", () => this.folder.markInitialised());
    } finally {
      this.#asking.delete(name);
    }
  }
}

function takenText(taken: readonly TakenPort[]): string {
  const told = taken.slice(0, takenToldMax);
  const lines = told.map((each) => `port ${each.port} (${each.wantedFor}) is taken by ${each.holder ?? "another process"}`);
  if (taken.length > told.length) lines.push(`and ${taken.length - told.length} more of its ports`);
  return lines.join("\n");
}

function alreadyRunning(config: ClusterConfig, other: SupervisorRecord): string {
  return `a cluster already runs on ${config.dataDir} (supervisor pid ${other.pid}, since ${other.startedAt}).\nSee it: ./stamp status\nStop it: ./stamp down`;
}
