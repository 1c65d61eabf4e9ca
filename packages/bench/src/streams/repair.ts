/**
 * 2 GiB of data on 4 nodes; one is killed (SIGKILL) and its folder deleted; it comes back empty. How long until every extent has three
 * intact copies again, by itself, and what a client of the blob service notices meanwhile.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { unwrap } from "@stamp/base";
import type { DrillTarget } from "@stamp/drills";
import { ExtentState, StreamManager } from "@stamp/wire";
import { processUse } from "../rows/machine.ts";
import { distribution, forever, numbers, pause, until, withCluster } from "./bench.ts";
import { startLoad } from "./small-load.ts";

const mebibyte = 1024 * 1024;
const victim = "extent-node-2";

export async function repair(args: string[]): Promise<void> {
  const {
    mib: mebibytes,
    "grace-ms": graceMs,
    "down-ms": downMs,
  } = numbers(args, "repair", { mib: 2_048, "grace-ms": 3_000, "down-ms": 2_000 });
  await withCluster({ repairAfterMs: graceMs }, async ({ target, world, client, open }) => {
    const stream = await open(client(), "/bench/repair");
    const block = new Uint8Array(4 * mebibyte).map((_, i) => i % 251);
    for (let written = 0; written < mebibytes; written += 16) {
      const some = Array.from({ length: Math.min(4, Math.ceil((mebibytes - written) / 4)) }, () => stream.append([block], forever));
      for (const one of await Promise.all(some)) unwrap(one);
    }
    const copied = async (): Promise<boolean> => {
      const [extents, nodes] = await Promise.all([target.inspector.extents(), target.inspector.nodes()]);
      return nodes.every((node) => node.up) && extents.every((one) => one.state !== ExtentState.SEALED || one.intactCopies >= 3);
    };
    await until("everything is sealed", 120_000, copied);
    const held = (await target.inspector.nodes()).find((node) => node.nodeId === victim);
    console.log(`${mebibytes} MiB written; ${victim} holds ${held?.replicas} replicas; grace ${graceMs} ms`);

    const load = startLoad(target.connectionString);
    await load.warm();
    const cpuIdle = await processorTime(target);
    await pause(10_000);
    const before = load.take();
    console.log(`  before     ${await cpuIdle()}`);
    const startMs = performance.now();
    await target.ask({ do: "hold", name: victim });
    rmSync(join((await target.status()).dataDir, victim), { recursive: true, force: true });
    const manager = async () => world.transport.client(await target.inspector.leader("stream-manager"), StreamManager);
    await pause(downMs);
    await target.ask({ do: "start", name: victim });
    let toldMs = startMs;
    const repairStatus = async () => unwrap(await (await manager()).getRepairStatus({}, { timeoutMs: 5_000 }));
    await until("the loss is noticed", 60_000, async () => {
      const { replicasWaiting, replicasDone } = await repairStatus();
      return replicasWaiting > 0n || replicasDone > 0n;
    });
    const noticedMs = performance.now();
    const down = load.take();
    const cpuCopying = await processorTime(target);
    await until("full replication", 600_000, async () => {
      const status = await repairStatus();
      if (performance.now() - toldMs > 5_000) {
        toldMs = performance.now();
        const { replicasWaiting, replicasDone, etaMs } = status;
        console.error(
          `  ${((toldMs - startMs) / 1000).toFixed(0)} s: ${replicasWaiting} waiting, ${replicasDone} done, ${etaMs ?? 0n} ms left`,
        );
      }
      return status.replicasWaiting === 0n && status.replicasInGrace === 0n && (await copied());
    });
    const tookMs = performance.now() - startMs;
    const copyMs = performance.now() - noticedMs;
    const copying = load.take();
    console.log(`  copying    ${await cpuCopying()}`);
    await pause(10_000);
    const after = load.take();
    await load.stop();
    const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
    console.log(
      `full replication again ${seconds(tookMs)} after the kill: ${downMs} ms down, ${seconds(copyMs)} since the loss was noticed`,
    );
    for (const [when, { putsMs, getsMs, failed }] of [
      ["before", before],
      ["killed", down],
      ["copying", copying],
      ["after", after],
    ] as const) {
      console.log(`  ${when.padEnd(10)} put 1 KiB  ${distribution(putsMs)}`);
      console.log(`  ${when.padEnd(10)} get 1 KiB  ${distribution(getsMs)}${failed > 0 ? `  ${failed} FAILED` : ""}`);
    }
  });
}

/** Begins to measure; the answer is what each process took of one processor since then. */
async function processorTime(target: DrillTarget): Promise<() => Promise<string>> {
  const startMs = performance.now();
  const before = new Map((await processUse(target)).map(({ name, cpuMs }) => [name, cpuMs]));
  return async () => {
    const tookMs = performance.now() - startMs;
    const parts = (await processUse(target)).map(({ name, cpuMs }) => [name, (cpuMs - (before.get(name) ?? 0)) / tookMs] as const);
    const shown = parts.filter(([, part]) => part >= 0.01).toSorted(([, a], [, b]) => b - a);
    return `processors ${shown.map(([name, part]) => `${name} ${(100 * part).toFixed(0)}%`).join(", ")}`;
  };
}
