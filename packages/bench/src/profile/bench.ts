/**
 * `stamp bench profile`: prints the functions in which the processes of a cluster spend their time, beside those of an earlier checkout. Both clusters
 * are started by their own `stamp up -d`, one after the other, and get the same load from the scenarios of this checkout.
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs, promisify } from "node:util";
import { type ClusterStatus, reservePorts, repositoryRoot as root } from "@stamp/cluster";
import { type Measurement, measure } from "../measure.ts";
import { type FoldedProfile, fold, type Profile, rowsOf } from "./fold.ts";

const usage = `pnpm bench profile [--before FOLDER] [--seconds 8] [--clients 32] [--scenarios "put 1 KiB;list 1,000 of 10,000;put 4 MiB"]
--before: checkout of an earlier commit of this repository, in which ./stamp has run once; default: this checkout, twice`;

const rows = 20;
/** Roles that are profiled, with their names in the tables. */
const roles: Readonly<Record<string, string>> = { "front-end": "FE", "partition-server": "PS", "extent-node": "EN" };
const readyTimeoutMs = 60_000;
/** Time for a process to write its profile after the signal. */
const writtenTimeoutMs = 60_000;

interface Profiled {
  readonly folded: FoldedProfile;
  readonly measured: Measurement;
}

interface Load {
  readonly scenarios: readonly string[];
  readonly seconds: number;
  readonly clients: number;
}

export async function profile(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      before: { type: "string", default: root },
      seconds: { type: "string", default: "8" },
      clients: { type: "string", default: "32" },
      scenarios: { type: "string", default: "put 1 KiB;list 1,000 of 10,000;put 4 MiB" },
      help: { type: "boolean", default: false },
    },
  });
  const load: Load = { scenarios: values.scenarios.split(";"), seconds: Number(values.seconds), clients: Number(values.clients) };
  if (values.help || !(load.seconds > 0) || !(load.clients >= 1)) {
    console.log(usage);
    return;
  }
  const before = await profileAll(resolve(values.before), load);
  const after = await profileAll(root, load);
  load.scenarios.forEach((scenario, at) => {
    const [earlier, later] = [before[at], after[at]];
    if (earlier !== undefined && later !== undefined) console.log(tableOf(scenario, earlier, later));
  });
}

/** Starts a cluster of the checkout, and stops it when all scenarios have run. */
async function profileAll(checkout: string, load: Load): Promise<Profiled[]> {
  const folder = await mkdtemp(join(tmpdir(), "stamp-profile-"));
  const ports = await reservePorts();
  const config = join(folder, "stamp.config.json");
  await writeFile(config, JSON.stringify({ dataDir: join(folder, "data"), portBase: ports.portBase }));
  const hook = pathToFileURL(join(import.meta.dirname, "hook.ts")).href;
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("STAMP_"));
  const env = { ...Object.fromEntries(others), NODE_OPTIONS: `--import=${hook}`, BENCH_PROFILES: folder, STAMP_BUNDLE: "off" };
  const stamp = async (...command: string[]): Promise<string> => {
    const program = join(checkout, "stamp.mjs");
    return (await promisify(execFile)(process.execPath, [program, ...command, "--config", config], { env, cwd: checkout })).stdout;
  };
  try {
    await stamp("up", "-d", "--ready-timeout-s", "180");
    const status = await readyStatus(() => stamp("status", "--json"));
    const profiled: Profiled[] = [];
    for (const scenario of load.scenarios) profiled.push(await profileOne(status, folder, scenario, load));
    return profiled;
  } finally {
    await stamp("down").finally(() => ports.release());
    await rm(folder, { recursive: true, force: true });
  }
}

/** Asks until every process is ready. */
async function readyStatus(ask: () => Promise<string>): Promise<ClusterStatus> {
  for (let waitedMs = 0; waitedMs <= readyTimeoutMs; waitedMs += 500) {
    // The command ends with another code than 0 while a process is not ready.
    const text = await ask().catch((error: { stdout?: string }) => error.stdout ?? "");
    const status = text === "" ? undefined : (JSON.parse(text) as ClusterStatus);
    if (status?.ready === true) return status;
    await pause(500);
  }
  throw new Error("the cluster is not ready");
}

async function profileOne(status: ClusterStatus, folder: string, scenario: string, { seconds, clients }: Load): Promise<Profiled> {
  const all = status.processes.flatMap(({ name, pid }) => (pid === null ? [] : [[name, pid] as const]));
  const chosen = all.flatMap(([name, pid]) => {
    const role = roles[name.replace(/-\d+$/, "")];
    return role === undefined ? [] : [[role, pid] as const];
  });
  const target = { connectionString: status.connectionString, pids: new Map(all) };
  const signal = (): void => chosen.forEach(([, pid]) => void process.kill(pid, "SIGUSR2"));
  // Compiles what runs often, before it is profiled.
  await measure(target, { scenario, clients }, seconds / 2, "profile");
  let folded: FoldedProfile | undefined;
  const measured = await measure(target, { scenario, clients }, seconds, "profile", async () => {
    signal();
    await pause(seconds * 1_000);
    signal();
    const profiles: (readonly [string, Profile])[] = [];
    for (const [role, pid] of chosen) profiles.push([role, await profileOf(join(folder, `${pid}.json`))]);
    folded = fold(profiles);
  });
  if (folded === undefined || measured.operations === 0) throw new Error(`${scenario}: nothing was measured: ${measured.firstFailure}`);
  return { folded, measured };
}

const pause = (ms: number): Promise<void> => new Promise((passed) => setTimeout(passed, ms));

/** Waits for the file of the profile, reads it and deletes it. */
async function profileOf(path: string): Promise<Profile> {
  for (let waitedMs = 0; !existsSync(path); waitedMs += 50) {
    if (waitedMs > writtenTimeoutMs) throw new Error(`no profile was written: ${path}`);
    await pause(50);
  }
  const profiled = JSON.parse(readFileSync(path, "utf8")) as Profile;
  await rm(path);
  return profiled;
}

function tableOf(scenario: string, before: Profiled, after: Profiled): string {
  const titles = `| | ${scenario}, before: ${toldOf(before)} | % | % after | after: ${toldOf(after)} | % | % before |`;
  return `${[titles, "|--:|---|--:|--:|---|--:|--:|", ...rowsOf(before.folded, after.folded, rows)].join("\n")}\n`;
}

function toldOf({ folded, measured }: Profiled): string {
  const { busy, idle, program } = folded;
  const of = (samples: number): string => `${((samples / (busy + idle + program)) * 100).toFixed(0)}%`;
  const cpuMs = [...measured.serverCpuMs.values()].reduce((sum, each) => sum + each, 0) / measured.operations;
  const failed = measured.failed > 0 ? `, ${measured.failed} failed` : "";
  const rate = (measured.operations / measured.seconds).toFixed(measured.operations < 1_000 ? 1 : 0);
  return `${rate}/s${failed}, ${cpuMs.toFixed(2)} ms of CPU each, ${busy} samples, idle ${of(idle)}, program ${of(program)}`;
}
