/** Two stamps and a location service of real processes in one folder, as `stamp up --stamps 2` starts them. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { DataFolder, reservePorts } from "@stamp/cluster";
import { type RanStamp, runStamp } from "../../tools/commands.ts";

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

/** Starts them. They are stopped, and their folder is deleted, when the test ends. */
export async function twoStamps(t: TestContext, { args = [], prepare }: TwoStampsOptions = {}): Promise<TwoStamps> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-two-"));
  const data = join(folder, "data");
  const stamp = (...args: readonly string[]): Promise<RanStamp> => runStamp(args.includes("--data") ? args : [...args, "--data", data]);
  const ok = async (...args: readonly string[]): Promise<string> => {
    const { code, out, output } = await stamp(...args);
    assert.equal(code, 0, `${args.join(" ")}: exit code ${code}: ${output.slice(-2_000)}`);
    return out;
  };
  const { portBase, release } = await reservePorts(3);
  t.after(async () => {
    await stamp("down");
    rmSync(folder, { recursive: true, force: true });
    await release();
  });
  await prepare?.({ data, portBase, stamp, ok });
  const said = await ok("up", "-d", "--stamps", "2", "--port-base", String(portBase), "--ready-timeout-s", "300", ...args);
  return { data, portBase, said, stamp, ok };
}

/** Facts of `stamp geo status ACCOUNT --json` that tests look at. */
export interface CopyFacts {
  readonly stamp: string;
  readonly secondary: string;
  readonly state: string;
  readonly kind: string;
  readonly seeded: boolean;
  readonly lagSeconds: number | null;
  readonly pendingOperations: number | null;
  readonly shippingTrouble: string;
}

/** Asks for the account's copy until it is as wanted, for at most two minutes. */
export async function untilCopy({ ok }: TwoStamps, account: string, what: string, holds: (now: CopyFacts) => boolean): Promise<CopyFacts> {
  for (const startMs = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, 500))) {
    const [now] = JSON.parse(await ok("geo", "status", account, "--json")) as [CopyFacts];
    if (holds(now)) return now;
    assert.ok(performance.now() - startMs < 120_000, `not within 120 s: ${what}: ${JSON.stringify(now)}`);
  }
}

/** Kills the supervisor of one of the stamps, and then all its processes, with SIGKILL. */
export async function killStamp({ data, stamp }: TwoStamps, name: "north-1" | "south-1"): Promise<void> {
  const folder = join(data, name);
  const { out } = await stamp("status", "--json", "--data", folder);
  const { processes } = JSON.parse(out) as { processes: { pid: number | null }[] };
  const supervisor = new DataFolder(folder).supervisor();
  assert.ok(supervisor !== undefined, `${name} runs`);
  process.kill(supervisor.pid, "SIGKILL");
  for (const { pid } of processes) if (pid !== null) process.kill(pid, "SIGKILL");
}
