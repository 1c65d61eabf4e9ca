/** One seed of one workload: everything it needs is made here and forgotten afterwards. */
import { rulesWithout } from "@stamp/base";
import type { SimulationOptions } from "@stamp/virtual-time";
import { BrokenPromise, Simulation } from "@stamp/virtual-time";
import { bankWorkload } from "../workloads/bank.ts";
import { blobWorkload, tableWorkload } from "../workloads/blobs.ts";
import { codingWorkload } from "../workloads/coding/workload.ts";
import { consensusWorkload } from "../workloads/consensus/workload.ts";
import { diskWorkload } from "../workloads/disks.ts";
import { geoQueueWorkload } from "../workloads/geo/queue-workload.ts";
import { geoWorkload } from "../workloads/geo/workload.ts";
import { handleWorkload } from "../workloads/handles/workload.ts";
import { holdWorkload } from "../workloads/holds.ts";
import { leaseWorkload } from "../workloads/leases.ts";
import { loadWorkload } from "../workloads/loads.ts";
import { lockWorkload } from "../workloads/locks.ts";
import { queueWorkload } from "../workloads/queues.ts";
import { registerWorkload } from "../workloads/registers.ts";
import { restartWorkload } from "../workloads/restarts.ts";
import { restoreWorkload } from "../workloads/restores/workload.ts";
import type { Tally, Workload } from "../workloads/run/workload.ts";
import { streamWorkload } from "../workloads/streams.ts";
import { treeWorkload } from "../workloads/trees/workload.ts";
import { uploadWorkload } from "../workloads/uploads.ts";
import { writerWorkload } from "../workloads/writers.ts";
import { focusNamed } from "./focus.ts";
import type { SeedJob, SeedReport, WorkloadName } from "./report.ts";

const workloads: Readonly<Record<WorkloadName, Workload>> = {
  blobs: blobWorkload,
  streams: streamWorkload,
  registers: registerWorkload,
  restarts: restartWorkload,
  tables: tableWorkload,
  queues: queueWorkload,
  bank: bankWorkload,
  leases: leaseWorkload,
  handles: handleWorkload,
  holds: holdWorkload,
  locks: lockWorkload,
  consensus: consensusWorkload,
  restores: restoreWorkload,
  disks: diskWorkload,
  loads: loadWorkload,
  trees: treeWorkload,
  uploads: uploadWorkload,
  writers: writerWorkload,
  coding: codingWorkload,
  geo: geoWorkload,
  "geo-queues": geoQueueWorkload,
};
const tailLines = 60;

export async function runSeed(job: SeedJob, options: Partial<SimulationOptions> = {}): Promise<SeedReport> {
  const first = await runOnce(job, options);
  if (job.controlRulesOff && first.failure !== undefined) {
    const control = await runOnce({ ...job, rulesOff: job.controlRulesOff }, options);
    return { ...first, failsAnyway: control.failure !== undefined };
  }
  if (!job.twice || first.failure !== undefined) return first;
  const second = await runOnce(job, options);
  if (second.hash === first.hash && second.events === first.events) return first;
  return {
    ...first,
    failure: `not deterministic: ${first.events} events with log ${first.hash}, then ${second.events} with ${second.hash}`,
  };
}

async function runOnce(job: SeedJob, options: Partial<SimulationOptions>): Promise<SeedReport> {
  const focus = job.focus === undefined ? undefined : focusNamed(job.focus);
  const sim = new Simulation({
    overEtcd: focus?.overEtcd === true,
    replicatesMetadata: focus?.replicatesMetadata === true || ["consensus", "restores"].includes(job.workload),
    clockDriftPpmMax: 200,
    timeLimitMs: 3600_000,
    rules: rulesWithout(...job.rulesOff),
    // Every third seed pays for real encoding.
    network: { roundTrip: job.seed % 3 === 0, slowChance: 0.001 },
    ...options,
    seed: job.seed,
  });
  const tally: Tally = { faults: {}, counts: {}, most: {} };
  let failure: string | undefined;
  let promiseBroken = false;
  try {
    await sim.run(() => workloads[job.workload](sim, tally, focus));
  } catch (error) {
    failure = describe(error);
    promiseBroken = error instanceof BrokenPromise || (error instanceof Error && error.cause instanceof BrokenPromise);
  }
  return {
    seed: job.seed,
    ...(failure === undefined ? {} : { failure, promiseBroken, tail: sim.log.lines(tailLines) }),
    hash: sim.log.hash,
    events: sim.events,
    simulatedMs: sim.nowMs,
    faults: { ...tally.faults },
    counts: { ...tally.counts },
    most: { ...tally.most },
    failpoints: sim.failpoints.hits(),
  };
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `\n${error.cause.stack ?? error.cause.message}` : "";
  return `${error.message}${cause}`;
}
