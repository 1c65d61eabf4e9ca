/**
 * The cluster as a local one is: the same role classes as in production, each a simulated process on its own machine, restarted by a
 * simulated supervisor. Sizes are small, so that extents, segments and checkpoints end often; times are production's.
 */
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";
import type { Simulation } from "../simulation.ts";

export interface ClusterOptions {
  readonly extentNodes: number;
  readonly restartAfterMs: number;
}

export interface SimulatedCluster {
  readonly lockService: string;
  /** Every process, in order of start. */
  readonly processes: readonly string[];
  ready(): boolean;
}

const mebibyte = 1024 * 1024;

/** Lock service, stream manager and extent nodes. */
export function simulatedStreamLayer(sim: Simulation, options: Partial<ClusterOptions> = {}): SimulatedCluster {
  const { extentNodes, restartAfterMs } = { extentNodes: 4, restartAfterMs: 100 + sim.prng.below(2_000), ...options };
  const processes: string[] = [];
  const lockService = "lock-service-1";
  const named = (name: string) => ({ name, listen: name, lockService });
  const add = (name: string, make: Parameters<Simulation["addProcess"]>[1]): void => {
    processes.push(name);
    sim.addProcess(name, make, { restartAfterMs });
  };

  add(
    lockService,
    (world) => new LockServiceRole(world, lockServiceSchema.parse({ name: lockService, listen: lockService, init: true })),
  );
  const managerConfig = streamManagerSchema.parse(named("stream-manager-1"));
  add("stream-manager-1", (world) => new StreamManagerRole(world, managerConfig));
  for (let i = 1; i <= extentNodes; i++) {
    const name = `extent-node-${i}`;
    const config = extentNodeSchema.parse({
      ...named(name),
      journalSegmentBytes: mebibyte,
      pendingBytesMax: mebibyte,
      journalBatchBytesMax: mebibyte / 4,
      reserveBytes: 0,
    });
    add(name, (world) => new ExtentNodeRole(world, config));
  }
  return { lockService, processes, ready: () => processes.every((name) => sim.role(name)?.status.ready === true) };
}
