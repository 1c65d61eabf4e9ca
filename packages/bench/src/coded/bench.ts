/**
 * `pnpm bench coded`: a cluster whose extents become fragments. Bytes on disk for a byte before and after, time and processor time of coding,
 * reads of both kinds, and the repair of a node whose disk was lost; what clients of the blob service notice meanwhile.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { profileNames } from "@stamp/erasure";
import type { Place } from "@stamp/stream-client";
import { distribution, pause, until } from "../streams/bench.ts";
import { type Load, startLoad, type Taken } from "../streams/small-load.ts";
import { Blobs } from "./blobs.ts";
import { codeInSteps } from "./in-steps.ts";
import { measureReads } from "./reads.ts";
import { mebibyte, Stage } from "./stage.ts";

const usage = `pnpm bench coded [--nodes 7] [--profile rs-4-2] [--mib 2048] [--replicated-mib 512] [--rounds 4]
pnpm bench coded --step-mib 1280 [--nodes 7] [--profile rs-4-2] [--mib 20480] [--compare 640]
A cluster of so many extent nodes in a temporary folder (below TMPDIR). It needs 3 × (mib + replicated-mib) of disk, and removes everything.
--nodes           extent nodes; as many as the code has fragments, or more
--profile         ${profileNames.join(", ")}
--mib             data that become fragments
--replicated-mib  data that stay replicas, for reads in turns
--rounds          turns of reads, of 150 of 64 KiB and 30 of 4 MiB for each kind; 0: no reads, and no data that stay replicas
--step-mib        write blobs through the front-end, so many MiB at a time, each coded before the next; compare them at the end. It needs
                  1.5 × mib and 4.5 × step-mib of disk, and ends early rather than leave less than 10 GB free
--compare         blobs that are read at the end, at most; all when absent`;

const idleMs = 15_000;
const noticedMs = 5_000;
const repairWithinMs = 1_200_000;

export async function coded(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      nodes: { type: "string", default: "7" },
      profile: { type: "string", default: "rs-4-2" },
      mib: { type: "string", default: "2048" },
      "replicated-mib": { type: "string", default: "512" },
      rounds: { type: "string", default: "4" },
      "step-mib": { type: "string" },
      compare: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(usage);
  const { profile } = values;
  const [nodes = 0, mib = 0, replicatedMib = 0, rounds = 0] = [values.nodes, values.mib, values["replicated-mib"], values.rounds].map(
    Number,
  );
  // An extent has 64 MiB, and the last one of a stream stays open.
  if (!(nodes >= 7) || !(mib >= 192) || !(replicatedMib >= 192) || !(rounds >= 0) || !profileNames.some((name) => name === profile)) {
    console.error(usage);
    process.exit(2);
  }
  const stepMib = Number(values["step-mib"] ?? "256");
  const compareMax = Number(values.compare ?? "1e9");
  if (!(stepMib >= 128) || !(compareMax >= 1)) {
    console.error("--step-mib is at least 128: an extent has 64 MiB; --compare is at least 1");
    process.exit(2);
  }
  const stage = await Stage.start({ nodes, profile });
  const load = startLoad(stage.target.connectionString);
  const blobs = new Blobs(stage.target);
  try {
    await load.warm();
    if (values["step-mib"] !== undefined) {
      await codeInSteps(stage, load, blobs, { mib, stepMib });
      await measureRepair(stage, load);
      const startMs = performance.now();
      const compared = await blobs.compare(compareMax);
      console.log(`${compared} blobs were read and have the bytes that were written, in ${seconds(performance.now() - startMs)}`);
      return;
    }
    const data = await measureCoding(stage, load, mib);
    await stage.setCoding(false);
    if (rounds > 0) {
      const replicated = await stage.fill("/bench/replicated", replicatedMib);
      await measureReads(stage, replicated, data, { rounds, victim: await stage.nodeWithMostData() });
    }
    await measureRepair(stage, load);
  } finally {
    await load.stop();
    blobs.close();
    await stage.close();
  }
}

const inMebibytes = (bytes: number): string => `${(bytes / mebibyte).toFixed(0)} MiB`;
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Returns the places of what was coded. */
async function measureCoding(stage: Stage, load: Load, mib: number): Promise<readonly Place[]> {
  await stage.setCoding(false);
  const startMs = performance.now();
  const data = await stage.fill("/bench/coded", mib);
  const dataBytes = data.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);
  console.log(`${inMebibytes(dataBytes)} in sealed extents, written in ${seconds(performance.now() - startMs)}`);
  const before = await stage.bytesOnDisk(data);
  load.take();
  const idleCpu = await stage.processorTime();
  await pause(idleMs);
  const idle = await idleCpu();
  const taken = load.take();
  tellLoad("before", taken);

  const codingCpu = await stage.processorTime();
  const codingMs = performance.now();
  await stage.setCoding(true);
  await stage.untilCoded(data);
  const tookMs = performance.now() - codingMs;
  const cpu = await codingCpu();
  const meanwhile = load.take();
  tellLoad("coding", meanwhile);
  await stage.untilReplicasAreGone(data);
  const after = await stage.bytesOnDisk(data);
  const { codedBytes, fragmentBytes } = await stage.coding();
  console.log(
    `on disk for a byte: ${(before / dataBytes).toFixed(2)} before, ${(after / dataBytes).toFixed(2)} after ` +
      `(by the stream manager ${(Number(fragmentBytes) / Number(codedBytes)).toFixed(2)})`,
  );
  const perMebibyte = (ms: number): string => ((ms * mebibyte) / dataBytes).toFixed(1);
  console.log(
    `coded in ${seconds(tookMs)}, ${((dataBytes / mebibyte / tookMs) * 1_000).toFixed(1)} MiB/s; processor time for each MiB: ` +
      `extent nodes ${perMebibyte(cpu.get("extent-node") ?? 0)} ms, all processes ${perMebibyte(sum(cpu))} ms, ` +
      `without what as many requests took before ${perMebibyte(sum(cpu) - (sum(idle) * requests(meanwhile)) / requests(taken))} ms`,
  );
  return data;
}

const requests = ({ putsMs, getsMs }: Taken): number => putsMs.length + getsMs.length;

const sum = (byRole: ReadonlyMap<string, number>): number => [...byRole.values()].reduce((total, each) => total + each, 0);

/** Kills a node and deletes its folder. It comes back empty, and everything that it held is made again. */
async function measureRepair(stage: Stage, load: Load): Promise<void> {
  const { target } = stage;
  const name = await stage.nodeWithMostData();
  load.take();
  await pause(idleMs);
  console.log("");
  tellLoad("before", load.take());
  const held = (await target.inspector.nodes()).find((node) => node.nodeId === name);
  await target.ask({ do: "hold", name });
  rmSync(join((await target.status()).dataDir, name), { recursive: true, force: true });
  await pause(noticedMs);
  load.take();
  const cpuOf = await stage.processorTime();
  const startMs = performance.now();
  await target.ask({ do: "start", name });
  const seen: string[] = [];
  let toldMs = startMs;
  let replicas = 0n;
  let isNoticed = false;
  await until("everything is made again", repairWithinMs, async () => {
    const status = await stage.repair();
    const { fragmentsWaiting, fragmentsInGrace, replicasWaiting, replicasInGrace, fragmentBytesDone, fragmentBytesWaiting } = status;
    if (status.bytesDone > replicas) replicas = status.bytesDone;
    if (fragmentBytesWaiting > 0n && performance.now() - toldMs > 5_000) {
      toldMs = performance.now();
      const done = (100 * Number(fragmentBytesDone)) / Number(fragmentBytesDone + fragmentBytesWaiting);
      seen.push(`${seconds(toldMs - startMs)}: ${done.toFixed(0)}%, ${seconds(Number(status.fragmentEtaMs ?? 0n))} left`);
    }
    const left = fragmentsWaiting + fragmentsInGrace + replicasWaiting + replicasInGrace;
    isNoticed ||= fragmentsWaiting > 0n;
    return isNoticed && left === 0n;
  });
  const tookMs = performance.now() - startMs;
  const cpu = sum(await cpuOf());
  tellLoad("repair", load.take());
  const { fragmentBytesDone: made, fragmentBytesRead: read, fragmentRunningMs } = await stage.repair();
  console.log(
    `${name} lost ${held?.replicas} replicas and fragments; all whole ${seconds(tookMs)} after its start: ${inMebibytes(Number(made))} of fragments in ` +
      `${seconds(Number(fragmentRunningMs))}, ${(Number(read) / Number(made)).toFixed(2)} bytes read for a byte; ${inMebibytes(Number(replicas))} of replicas; ` +
      `${((cpu * mebibyte) / Number(made + replicas)).toFixed(1)} ms of processor time for each MiB`,
  );
  console.log(`progress that repair status told: ${seen.join("; ") || "none, it was over within 5 s"}`);
}

function tellLoad(when: string, { putsMs, getsMs, failed }: Taken): void {
  console.log(`  ${when.padEnd(8)} put 1 KiB  ${distribution(putsMs)}`);
  console.log(`  ${when.padEnd(8)} get 1 KiB  ${distribution(getsMs)}${failed > 0 ? `  ${failed} FAILED` : ""}`);
}
