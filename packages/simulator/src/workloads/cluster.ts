/**
 * The cluster as a local one is: the same role classes as in production, each a simulated process on its own machine, restarted by a
 * simulated supervisor. Sizes are small, so that extents, segments and checkpoints end often; times are production's.
 */
import { fromBase64 } from "@stamp/azure-rest";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { FrontEndRole, frontEndConfigSchema } from "@stamp/front-end";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { developmentAccount, PartitionManagerRole, partitionManagerConfigSchema } from "@stamp/partition-manager";
import { PartitionServerRole, partitionServerConfigSchema } from "@stamp/partition-server";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";
import type { RoleFactory } from "../kernel/process.ts";
import type { Simulation } from "../simulation.ts";

export interface ClusterOptions {
  readonly extentNodes: number;
  readonly partitionServers: number;
  readonly restartAfterMs: number;
}

export interface SimulatedCluster {
  readonly lockService: string;
  /** Every process, in order of start. */
  readonly processes: readonly string[];
  ready(): boolean;
}

export interface WholeCluster extends SimulatedCluster {
  /** Address and name of the front-end's process. */
  readonly frontEnd: string;
  readonly account: string;
  readonly accountKey: Uint8Array;
}

const mebibyte = 1024 * 1024;
const lockService = "lock-service-1";

class Builder {
  readonly processes: string[] = [];
  readonly #sim: Simulation;
  readonly #options: ClusterOptions;

  constructor(sim: Simulation, options: Partial<ClusterOptions>) {
    this.#sim = sim;
    this.#options = { extentNodes: 4, partitionServers: 2, restartAfterMs: 100 + sim.prng.below(2_000), ...options };
  }

  ready(): boolean {
    return this.processes.every((name) => this.#sim.role(name)?.status.ready === true);
  }

  streamLayer(): void {
    const lockConfig = lockServiceSchema.parse({ name: lockService, listen: lockService, init: true });
    this.#add(lockService, (world) => new LockServiceRole(world, lockConfig));
    const managerConfig = streamManagerSchema.parse(named("stream-manager-1"));
    this.#add(managerConfig.name, (world) => new StreamManagerRole(world, managerConfig));
    for (let i = 1; i <= this.#options.extentNodes; i++) {
      const config = extentNodeSchema.parse({
        ...named(`extent-node-${i}`),
        journalSegmentBytes: mebibyte,
        pendingBytesMax: mebibyte,
        journalBatchBytesMax: mebibyte / 4,
        reserveBytes: 0,
      });
      this.#add(config.name, (world) => new ExtentNodeRole(world, config));
    }
  }

  partitionLayer(): void {
    const managerConfig = partitionManagerConfigSchema.parse(named("partition-manager-1"));
    this.#add(managerConfig.name, (world) => new PartitionManagerRole(world, managerConfig));
    for (let i = 1; i <= this.#options.partitionServers; i++) {
      const config = partitionServerConfigSchema.parse({
        ...named(`partition-server-${i}`),
        extentTargetBytes: 256 * 1024,
        memoryTableBytesMax: 32 * 1024,
        logBytesMax: 64 * 1024,
        rowCacheBytesMax: 32 * 1024,
        checkpointsMax: 3,
      });
      this.#add(config.name, (world) => new PartitionServerRole(world, config));
    }
  }

  frontEnd(): string {
    const config = frontEndConfigSchema.parse({ ...named("front-end-1"), blobListen: "front-end-1/http" });
    this.#add(config.name, (world) => new FrontEndRole(world, config));
    return config.name;
  }

  #add(name: string, make: RoleFactory): void {
    this.processes.push(name);
    this.#sim.addProcess(name, make, { restartAfterMs: this.#options.restartAfterMs });
  }
}

const named = (name: string) => ({ name, listen: name, lockService });

/** Lock service, stream manager and extent nodes. */
export function simulatedStreamLayer(sim: Simulation, options: Partial<ClusterOptions> = {}): SimulatedCluster {
  const builder = new Builder(sim, options);
  builder.streamLayer();
  return { lockService, processes: builder.processes, ready: () => builder.ready() };
}

export function simulatedCluster(sim: Simulation, options: Partial<ClusterOptions> = {}): WholeCluster {
  const builder = new Builder(sim, options);
  builder.streamLayer();
  builder.partitionLayer();
  const frontEnd = builder.frontEnd();
  const { name, keys } = developmentAccount;
  const accountKey = fromBase64(keys[0] as string);
  if (!accountKey) throw new Error("the development account's key is not base64");
  return { lockService, processes: builder.processes, ready: () => builder.ready(), frontEnd, account: name, accountKey };
}
