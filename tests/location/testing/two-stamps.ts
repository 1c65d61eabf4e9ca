/**
 * Two stamps and a location service of real processes in one folder, as `stamp up --stamps 2` starts them. What tests only wait for is asked in
 * this process: a command takes seconds of a processor's time, which the stamps then lack.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { inspect } from "node:util";
import { type ClusterStatus, control, DataFolder, reservePorts } from "@stamp/cluster";
import { credentialOf, GrpcTransport } from "@stamp/ports-node";
import { LocationService } from "@stamp/wire";
import { type RanStamp, runStamp } from "../../tools/commands.ts";

export type StampName = "north-1" | "south-1";

export interface TwoStamps {
  readonly data: string;
  /** Base of the ports of stamp north-1; those of south-1 are 300 above. */
  readonly portBase: number;
  /** What `up` said. */
  readonly said: string;
  /** Runs a command on the folder. */
  stamp(...args: readonly string[]): Promise<RanStamp>;
  /** Runs a command that must succeed. Returns its standard output. */
  ok(...args: readonly string[]): Promise<string>;
}

export interface TwoStampsOptions {
  /** Further arguments of `up`. */
  readonly args?: readonly string[];
  /** Comes before the first start. */
  readonly prepare?: (two: Omit<TwoStamps, "said">) => Promise<void>;
}

export interface StartedTwoStamps extends TwoStamps {
  /** Stops them and deletes their folder. */
  end(): Promise<void>;
}

export async function startTwoStamps({ args = [], prepare }: TwoStampsOptions = {}): Promise<StartedTwoStamps> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-two-"));
  const data = join(folder, "data");
  const stamp = (...args: readonly string[]): Promise<RanStamp> => runStamp(args.includes("--data") ? args : [...args, "--data", data]);
  const ok = async (...args: readonly string[]): Promise<string> => {
    const { code, out, output } = await stamp(...args);
    assert.equal(code, 0, `${args.join(" ")}: exit code ${code}: ${output.slice(-2_000)}`);
    return out;
  };
  const { portBase, release } = await reservePorts(3);
  const end = async (): Promise<void> => {
    await stamp("down");
    rmSync(folder, { recursive: true, force: true });
    await release();
  };
  try {
    await prepare?.({ data, portBase, stamp, ok });
    const said = await ok("up", "-d", "--stamps", "2", "--port-base", String(portBase), "--ready-timeout-s", "300", ...args);
    return { data, portBase, said, stamp, ok, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Starts them for one test. They are stopped, and their folder is deleted, when it ends. */
export async function twoStamps(t: TestContext, options: TwoStampsOptions = {}): Promise<TwoStamps> {
  const started = await startTwoStamps(options);
  t.after(() => started.end());
  return started;
}

/** Facts of an account's copy that tests look at. */
export interface CopyFacts {
  readonly stamp: string;
  readonly secondary: string;
  readonly state: string;
  readonly kind: string;
  readonly seeded: boolean;
  readonly lastSyncMs: number | undefined;
  /** Commits that the copy lacks; undefined: not known, or not known to count what was written before the question. */
  readonly pendingOperations: number | undefined;
  readonly shippingTrouble: string;
}

export const waitMs = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const heldWithinMs = 120_000;

/** Asks again and again until it holds, for at most two minutes. Returns the answer that held. */
export async function until<T>(what: string, ask: () => Promise<T> | T, holds: (now: T) => boolean): Promise<T> {
  for (const startMs = performance.now(); ; await waitMs(250)) {
    const now = await ask();
    if (holds(now)) return now;
    if (performance.now() - startMs > heldWithinMs) assert.fail(`not within ${heldWithinMs / 1_000} s: ${what}: ${inspect(now)}`);
  }
}

/**
 * Asks the location service for the account's copy until it is as wanted. It answers what the primary told up to 10 s before, so a backlog counts only
 * with a Last Sync Time from after the call: then it counts everything that was written before the call.
 */
export async function untilCopy(two: TwoStamps, account: string, what: string, holds: (now: CopyFacts) => boolean): Promise<CopyFacts> {
  const calledMs = Date.now();
  return onLocation(two, (location) =>
    until(
      what,
      async (): Promise<CopyFacts> => {
        const found = await location.getAccount({ account }, { timeoutMs: 20_000 });
        assert.ok(found.ok, found.ok ? "" : found.failure.message);
        const { stamp, secondary, state, kind, seeded, shipping } = found.value;
        const [lastSync, pending] = [shipping?.lastSyncMs, shipping?.pendingCommits];
        const figures = {
          lastSyncMs: lastSync === undefined ? undefined : Number(lastSync),
          pendingOperations: pending === undefined || Number(lastSync ?? 0) < calledMs ? undefined : Number(pending),
        };
        return { stamp, secondary, state, kind, seeded, ...figures, shippingTrouble: shipping?.trouble ?? "" };
      },
      holds,
    ),
  );
}

/** True of a copy that has everything. */
export const isComplete = ({ seeded, pendingOperations }: CopyFacts): boolean => seeded && pendingOperations === 0;

type Location = ReturnType<typeof locationAt>;
const locationAt = (transport: GrpcTransport, address: string) => transport.client(address, LocationService);

/** Calls the location service in this process. */
export async function onLocation<T>({ data, portBase }: TwoStamps, work: (location: Location) => Promise<T>): Promise<T> {
  const transport = new GrpcTransport({ credential: () => credentialOf({ clusterSecretFile: join(data, "location", "cluster-secret") }) });
  try {
    return await work(locationAt(transport, `127.0.0.1:${portBase + 600}`));
  } finally {
    await transport.close();
  }
}

/** Processes of a stamp as its supervisor has them now. */
const processesOf = async ({ data }: TwoStamps, name: StampName): Promise<ClusterStatus["processes"]> =>
  (await control(new DataFolder(join(data, name)).control, { do: "status" })).processes;

/** Id of a process that runs; waits while its supervisor starts it again. */
export async function pidOf(two: TwoStamps, stamp: StampName, process: string): Promise<number> {
  const find = async (): Promise<number> => (await processesOf(two, stamp)).find(({ name }) => name === process)?.pid ?? 0;
  return until(`${process} of ${stamp} runs`, find, (pid) => pid > 0);
}

/** Kills a process of a stamp with SIGKILL; its supervisor starts it again. */
export async function killProcess(two: TwoStamps, stamp: StampName, name: string): Promise<void> {
  process.kill(await pidOf(two, stamp, name), "SIGKILL");
}

/** Stops the processes that take what is shipped to a stamp. Returns what lets them go on. */
export async function silenceDoors(two: TwoStamps, stamp: StampName): Promise<() => void> {
  const processes = await processesOf(two, stamp);
  const pids = processes.flatMap(({ name, pid }) => (name.startsWith("front-end") && pid ? [pid] : []));
  assert.ok(pids.length > 0, `no front-end of ${stamp} runs`);
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  return () => {
    for (const pid of pids) process.kill(pid, "SIGCONT");
  };
}

/** Kills the supervisor of one of the stamps, and then all its processes, with SIGKILL. */
export async function killStamp(two: TwoStamps, name: StampName): Promise<void> {
  const processes = await processesOf(two, name);
  const supervisor = new DataFolder(join(two.data, name)).supervisor();
  assert.ok(supervisor !== undefined, `${name} runs`);
  process.kill(supervisor.pid, "SIGKILL");
  for (const { pid } of processes) if (pid) process.kill(pid, "SIGKILL");
}
