/** The cluster a drill is run on: one of its own, started for it in a temporary folder, or one that runs already. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type ClusterConfig,
  type ClusterStatus,
  type ControlRequest,
  control,
  DataFolder,
  loadConfig,
  ownTransport,
  planCluster,
  reservePorts,
  repositoryRoot as root,
  runSupervisor,
  StampInspector,
  StartError,
} from "@stamp/cluster";
import type { Transport } from "@stamp/ports";
import type { GrpcTransport } from "@stamp/ports-node";
import { type ActOutcome, actOn, type DamageAct } from "./damage/hand.ts";
import { DrillError } from "./drill-error.ts";

export interface DrillTarget {
  readonly inspector: StampInspector;
  /** Transport to the processes of the cluster, with its secret. */
  readonly transport: Transport;
  readonly connectionString: string;
  /** Connection string of each front-end. */
  readonly connectionStrings: readonly string[];
  status(): Promise<ClusterStatus>;
  ask(request: ControlRequest): Promise<ClusterStatus>;
  /** Does something to the files of a process as a person would: while it runs, or while it is held. */
  hand(name: string, act: DamageAct): Promise<ActOutcome>;
  /** Resolves when a signal has stopped the cluster, which then has nothing left to tell; absent of a cluster that is not the drill's own. */
  readonly stopped?: Promise<void>;
  /** Containers that the drill starts beside the processes; undefined: the processes are on this machine. */
  readonly beside?: DrillContainers;
  /** Returns the resident memory of a process, in MiB; 0 while it is down. */
  residentMebibytes(name: string): Promise<number>;
  close(): Promise<void>;
}

export interface DrillContainers {
  /** Address at which a container on the processes' network reaches the front-end's Blob service. */
  readonly blob: { readonly host: string; readonly port: number };
  /** Returns the command that runs a program of the image with one argument in a container, which has an address of its own. */
  commandOf(program: string, argument: string): readonly [command: string, ...args: string[]];
}

/** Twelve processes without compiled code take a minute on two busy cores. */
const readyTimeoutMs = 180_000;
const portTriesMax = 20;

/** Returns a running cluster, through its supervisor. */
export async function attach(config: ClusterConfig): Promise<DrillTarget> {
  const folder = new DataFolder(config.dataDir);
  if (folder.supervisor() === undefined) throw new DrillError(`no cluster runs on ${config.dataDir}`);
  const ask = (request: ControlRequest): Promise<ClusterStatus> => control(folder.control, request);
  const status = await ask({ do: "status" });
  const transport = ownTransport(config);
  return {
    inspector: new StampInspector(transport, status.lockService),
    transport,
    connectionString: status.connectionString,
    connectionStrings: planCluster(config).connectionStrings,
    status: () => ask({ do: "status" }),
    ask,
    hand: (name, act) => actOn(join(config.dataDir, name), name, act),
    residentMebibytes: async (name) => residentOf((await ask({ do: "status" })).processes.find((each) => each.name === name)?.pid ?? null),
    close: () => transport.close(),
  };
}

function residentOf(pid: number | null): number {
  if (pid === null) return 0;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? "0") / 1024);
}

/**
 * Starts a cluster of its own; `flags` go over its configuration. Its data are deleted afterwards unless `keep`, or where `flags` names their
 * folder.
 */
export async function startOwn(flags: Readonly<Record<string, unknown>>, keep: boolean): Promise<DrillTarget> {
  const given = flags.dataDir as string | undefined;
  const dataDir = given ?? (await mkdtemp(join(tmpdir(), "stamp-drill-")));
  for (let attempt = 0; ; attempt++) {
    let transport: GrpcTransport | undefined;
    const ports = flags.portBase === undefined ? await reservePorts() : undefined;
    try {
      const config = loadConfig({ directory: root, root, environment: {}, flags: { portBase: ports?.portBase, ...flags, dataDir } });
      transport = ownTransport(config);
      const running = await runSupervisor({ config, root, transport });
      const target = await attach(config);
      const close = async (): Promise<void> => {
        await target.close();
        await running.stop();
        await running.stopped;
        await transport?.close();
        await ports?.release();
        if (!keep && given === undefined) await rm(dataDir, { recursive: true, force: true });
      };
      try {
        await untilReady(target);
      } catch (error) {
        await close();
        throw error;
      }
      return { ...target, stopped: running.stopped, close };
    } catch (error) {
      await transport?.close();
      await ports?.release();
      if (error instanceof StartError && attempt < portTriesMax && flags.portBase === undefined) continue;
      if (!keep && given === undefined) await rm(dataDir, { recursive: true, force: true });
      throw error;
    }
  }
}

export async function untilReady(target: DrillTarget): Promise<void> {
  const untilMs = performance.now() + readyTimeoutMs;
  for (;;) {
    const status = await target.status();
    if (status.ready) return;
    if (performance.now() > untilMs) {
      const waiting = status.processes
        .filter((each) => !each.ready)
        .map((each) => `${each.name}: ${each.state} ${each.waitingFor.join(", ")} ${each.lastExit}`);
      throw new DrillError(`the cluster is not ready after ${readyTimeoutMs / 1_000} s:\n  ${waiting.join("\n  ")}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
