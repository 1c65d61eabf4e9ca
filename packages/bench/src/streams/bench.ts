/** Shared by these measurements: a cluster, a client of its stream layer, distributions. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ownerEpoch, unwrap } from "@stamp/base";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { silentLogger, type World } from "@stamp/ports";
import { credentialOf, GrpcTransport, nodeWorld } from "@stamp/ports-node";
import { type OwnedStream, StreamClient, type StreamClientOptions } from "@stamp/stream-client";

export const forever = { timeoutMs: Number.POSITIVE_INFINITY };

export interface Bench {
  readonly target: DrillTarget;
  readonly world: World;
  readonly lockService: string;
  client(options?: Partial<StreamClientOptions>): StreamClient;
  /** Cuts the connections of this process to the address, as a network would. */
  disconnect(address: string): void;
  open(client: StreamClient, name: string): Promise<OwnedStream>;
}

export async function withCluster(flags: Readonly<Record<string, unknown>>, work: (bench: Bench) => Promise<void>): Promise<void> {
  const target = await startOwn(flags, false);
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-bench-client-"));
  const transport = await ownerTransport(target);
  const world = nodeWorld({ dataDir, name: "bench", logger: silentLogger, transport });
  // The supervisor, which lives in this process, stops the cluster by itself; whatever is asked of it then fails.
  let interrupted = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      interrupted = true;
    });
  try {
    const { lockService } = await target.status();
    await work({
      target,
      world,
      lockService,
      disconnect: (address) => transport.disconnect(address),
      client: (options = {}) => new StreamClient(world, { lockService, ...options }),
      open: async (client, name) => unwrap(await client.openForOwner(name, ownerEpoch(1), { create: true, timeoutMs: 30_000 })),
    });
  } catch (error) {
    if (!interrupted) throw error;
    console.error("interrupted: the cluster is stopped");
    process.exitCode = 130;
  } finally {
    await world.transport.close();
    await target.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Transport of a client that owns streams: it says to be a partition server, and proves itself with the cluster's secret. */
export async function ownerTransport(target: DrillTarget): Promise<GrpcTransport> {
  const { dataDir } = await target.status();
  const clusterSecretFile = join(dataDir, "cluster-secret");
  return new GrpcTransport({ credential: () => credentialOf({ clusterSecretFile }, "partition-server") });
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits, at most so long, until it holds. Asks again `pollMs` after each answer. */
export async function until(what: string, withinMs: number, holds: () => Promise<boolean>, pollMs = 50): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`${what}: not within ${withinMs} ms`);
    await pause(pollMs);
  }
}

/** Count, median, 90, 99, largest. */
export function distribution(valuesMs: readonly number[]): string {
  if (valuesMs.length === 0) return "none";
  const sorted = valuesMs.toSorted((a, b) => a - b);
  const at = (part: number): string => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] as number).toFixed(1);
  return `${sorted.length} times: least ${at(0)}, p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)}, most ${at(1)} ms`;
}

/** The name of the process that listens at this gRPC address. */
export async function processAt(target: DrillTarget, address: string): Promise<string> {
  const found = (await target.status()).processes.find((each) => each.grpc === address);
  if (found === undefined) throw new Error(`no process listens at ${address}`);
  return found.name;
}

/** The numbers given as `--name value`, else the ones here. `--help` prints them and ends the process; anything else is an error. */
export function numbers<Name extends string>(
  args: readonly string[],
  bench: string,
  defaults: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const names = Object.keys(defaults) as Name[];
  const usage = `pnpm bench ${bench} ${names.map((name) => `[--${name} ${defaults[name]}]`).join(" ")}`;
  const string = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: { ...Object.fromEntries(names.map((name) => [name, string])), help: { type: "boolean" } },
  });
  if (values.help === true) {
    console.log(usage);
    process.exit(0);
  }
  const given: Readonly<Record<string, string | boolean | undefined>> = values;
  const numberOf = (name: Name): number => {
    const value = Number(given[name] ?? defaults[name]);
    if (!Number.isFinite(value)) throw new Error(`--${name} is a number; ${usage}`);
    return value;
  };
  return Object.fromEntries(names.map((name) => [name, numberOf(name)])) as Record<Name, number>;
}
