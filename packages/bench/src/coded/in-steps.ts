/**
 * `pnpm bench coded --step-mib`: more blobs than three replicas of them have room for. Each step writes some while coding is paused, looks at
 * clients and processes for a while, then lets the step's extents be coded and their replicas be deleted.
 */
import { statfsSync } from "node:fs";
import { loadavg } from "node:os";
import { distribution, pause } from "../streams/bench.ts";
import type { Load, Taken } from "../streams/small-load.ts";
import type { Blobs } from "./blobs.ts";
import { blockBytes, mebibyte, type Stage } from "./stage.ts";

/** Length of each look before a step is coded, in ms. */
const quietMs = 8_000;
const pollMs = 500;
/** Free space that a step leaves to others on this disk, in bytes. */
const freeMin = 10e9;

interface Phase {
  ms: number;
  /** Processor time by role, in ms. */
  readonly cpuMs: Map<string, number>;
  readonly putsMs: number[];
  readonly getsMs: number[];
  failed: number;
}

const newPhase = (): Phase => ({ ms: 0, cpuMs: new Map(), putsMs: [], getsMs: [], failed: 0 });

export interface StepOptions {
  readonly mib: number;
  readonly stepMib: number;
}

interface Sums {
  readonly writing: Phase;
  readonly quiet: Phase;
  readonly coding: Phase;
  dataBytes: number;
  replicaBytes: number;
  fragmentBytes: number;
  readonly extents: { readonly extentId: number }[];
}

/** Prints a line for each step, then the sums. Ends early, and says so, when the disk has no room for another step. */
export async function codeInSteps(stage: Stage, load: Load, blobs: Blobs, { mib, stepMib }: StepOptions): Promise<void> {
  await blobs.prepare();
  const sums: Sums = {
    ...{ writing: newPhase(), quiet: newPhase(), coding: newPhase() },
    ...{ dataBytes: 0, replicaBytes: 0, fragmentBytes: 0, extents: [] },
  };
  const { dataDir } = await stage.target.status();
  for (let step = 1; blobs.count * blockBytes < mib * mebibyte; step++) {
    const { bavail, bsize } = statfsSync(dataDir);
    // Three replicas, and for a while the fragments beside them.
    if (bavail * bsize < freeMin + stepMib * mebibyte * 4.5) {
      console.log(`STOPPED after ${blobs.count} blobs: the disk has ${((bavail * bsize) / 1e9).toFixed(1)} GB free`);
      break;
    }
    await oneStep(stage, load, blobs, { step, stepMib, sums, freeBytes: bavail * bsize });
  }
  printSums(sums);
}

interface Step {
  readonly step: number;
  readonly stepMib: number;
  readonly sums: Sums;
  readonly freeBytes: number;
}

async function oneStep(stage: Stage, load: Load, blobs: Blobs, { step, stepMib, sums, freeBytes }: Step): Promise<void> {
  await stage.setCoding(false);
  const filled = await during(stage, load, sums.writing, () => blobs.write(Math.ceil((stepMib * mebibyte) / blockBytes)));
  const dataBytes = filled.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);
  sums.dataBytes += dataBytes;
  sums.replicaBytes += await stage.bytesOnDisk(filled);
  sums.extents.push(...filled);
  await during(stage, load, sums.quiet, () => pause(quietMs));
  const startMs = performance.now();
  await during(stage, load, sums.coding, async () => {
    await stage.setCoding(true);
    await stage.untilCoded(filled, pollMs);
  });
  const tookMs = performance.now() - startMs;
  await stage.untilReplicasAreGone(filled);
  sums.fragmentBytes += await stage.bytesOnDisk(filled);
  console.log(
    `step ${step}: ${(dataBytes / mebibyte).toFixed(0)} MiB in ${filled.length} extents coded in ${(tookMs / 1_000).toFixed(1)} s; ` +
      `${blobs.count} blobs in all; ${(freeBytes / 1e9).toFixed(1)} GB were free; load ${loadavg()[0]?.toFixed(1)}`,
  );
}

/** Does the work, and adds what the clients and the processes took meanwhile. */
async function during<Result>(stage: Stage, load: Load, phase: Phase, work: () => Promise<Result>): Promise<Result> {
  const cpu = await stage.processorTime();
  load.take();
  const startMs = performance.now();
  const result = await work();
  phase.ms += performance.now() - startMs;
  const taken = load.take();
  phase.putsMs.push(...taken.putsMs);
  phase.getsMs.push(...taken.getsMs);
  phase.failed += taken.failed;
  for (const [role, ms] of await cpu()) phase.cpuMs.set(role, (phase.cpuMs.get(role) ?? 0) + ms);
  return result;
}

const total = ({ cpuMs }: Phase): number => [...cpuMs.values()].reduce((sum, each) => sum + each, 0);

function printSums({ writing, quiet, coding, dataBytes, replicaBytes, fragmentBytes, extents }: Sums): void {
  const mebibytes = dataBytes / mebibyte;
  console.log(
    `${mebibytes.toFixed(0)} MiB in ${extents.length} coded extents; on disk for a byte: ` +
      `${(replicaBytes / dataBytes).toFixed(3)} before, ${(fragmentBytes / dataBytes).toFixed(3)} after`,
  );
  console.log(
    `written in ${(writing.ms / 1_000).toFixed(0)} s, ${((mebibytes / writing.ms) * 1_000).toFixed(1)} MiB/s, processor time of all ` +
      `processes ${(total(writing) / mebibytes).toFixed(1)} ms for each MiB`,
  );
  // Clients and idle processes took so much in the looks before each step; as much of the time of coding is theirs.
  const aside = (total(quiet) / quiet.ms) * coding.ms;
  console.log(
    `coded in ${(coding.ms / 1_000).toFixed(0)} s, ${((mebibytes / coding.ms) * 1_000).toFixed(1)} MiB/s; processor time for each MiB: ` +
      `extent nodes ${((coding.cpuMs.get("extent-node") ?? 0) / mebibytes).toFixed(1)} ms, all processes ` +
      `${(total(coding) / mebibytes).toFixed(1)} ms, without what they took in as much time before ${((total(coding) - aside) / mebibytes).toFixed(1)} ms`,
  );
  for (const [name, phase] of Object.entries({ writing, quiet, coding })) printLoad(name, phase);
}

function printLoad(when: string, { putsMs, getsMs, failed }: Taken): void {
  console.log(`  ${when.padEnd(8)} put 1 KiB  ${distribution(putsMs)}`);
  console.log(`  ${when.padEnd(8)} get 1 KiB  ${distribution(getsMs)}${failed > 0 ? `  ${failed} FAILED` : ""}`);
}
