/**
 * The drill `slow-clients`: a normal client works alone, then beside 1,000 slow readers of a public blob and 1,000 slow writers (1 byte to
 * 10 KiB in a second each), which come from one address and then from many. What they do to the normal client's latency is told and judged as a
 * ratio; what they make the front-end hold is bounded by name.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { programFileOf, repositoryRoot } from "@stamp/cluster";
import { BlobClient, type BlobResult } from "../blob-client.ts";
import { DrillError } from "../drill-error.ts";
import type { DrillTarget } from "../target.ts";
import type { Verdict } from "../verdict.ts";

export interface SlowLoad {
  readonly host: string;
  readonly port: number;
  readonly account: string;
  /** Key of the account, in base64. */
  readonly key: string;
  readonly readTarget: string;
  readonly writeTarget: string;
  readonly readers: number;
  readonly writers: number;
  /** Number of addresses that the slow clients come from. */
  readonly addresses: number;
}

/** State of the slow clients so far. */
export interface SlowTold {
  readonly begun: number;
  /** Connections that the front-end ended. */
  readonly ended: number;
  /** Number of requests answered with 503. */
  readonly refused: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

export interface SlowPhase {
  readonly name: string;
  readonly operations: number;
  readonly failed: number;
  readonly firstFailure: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Quotient of the 99th percentile and the one without slow clients. */
  readonly ratio: number;
  /** p99 of each kind of operation, in milliseconds. */
  readonly kindsMs: Readonly<Record<string, number>>;
  readonly frontEndMebibytes: number;
  /** Memory of all TCP connections of this host, in MiB; undefined where the system does not tell. */
  readonly tcpMebibytes: number | undefined;
  readonly slow: SlowTold | undefined;
}

export interface SlowReport {
  /** True if no promise was broken. */
  readonly ok: boolean;
  readonly verdict: Verdict;
  readonly phases: readonly SlowPhase[];
  readonly broken: readonly string[];
  /** Aims that were missed, in words. */
  readonly slow: readonly string[];
}

/** Bound of a normal client's p99 beside slow ones, as a multiple of its p99 alone. */
const ratioMax = 3;
/** Bound of a front-end's growth in resident memory beside the slow clients, in MiB: what it may hold, and its sockets. */
const growthMebibytesMax = 300;
/** TCP memory of the host beside the slow clients is at most this much above that alone, in MiB: 2,000 connections of the drill, both ends. */
const tcpGrowthMebibytesMax = 700;
const slowReaders = 1_000;
const slowWriters = 1_000;
const manyAddresses = 250;
/** Number of containers that the slow clients are in where the processes are in containers, too. */
const slowContainers = 10;
/** Time in which all slow clients must be connected, in ms. */
const beginWithinMs = 300_000;
const loadProgram = "slow-clients-load";
/** The system takes the first bytes of each slow reader at once; its slowness shows afterwards. */
const settleMs = 30_000;
const container = "slow-clients";
const mebibyte = 1024 * 1024;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function runSlowClientsDrill(target: DrillTarget, phaseMs: number, tell: (line: string) => void): Promise<SlowReport> {
  const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(target.connectionString)?.[1] ?? "";
  const url = new URL(part("BlobEndpoint"));
  const client = BlobClient.fromConnectionString(target.connectionString, { timeoutMs: 60_000 });
  const path = `${url.pathname.replace(/\/$/, "")}/${container}`;
  await client.call("PUT", `/${container}?restype=container`, { "x-ms-blob-public-access": "blob" });
  await client.put(container, "public", Buffer.alloc(16 * mebibyte, "public; "));
  await client.put(container, "large", Buffer.alloc(4 * mebibyte, "large; "));
  const load: SlowLoad = {
    host: url.hostname,
    port: Number(url.port),
    account: part("AccountName"),
    key: part("AccountKey"),
    readTarget: `${path}/public`,
    writeTarget: `${path}/slow`,
    readers: slowReaders,
    writers: slowWriters,
    addresses: 1,
  };
  const phases: SlowPhase[] = [];
  const phase = async (name: string, slow?: readonly SlowPart[]): Promise<void> => {
    const beside = slow === undefined ? undefined : await slowSide(slow);
    if (beside) await pause(settleMs);
    const normal = await work(client, phaseMs);
    const one = {
      name,
      ...normal,
      ratio: normal.p99Ms / (phases[0]?.p99Ms ?? normal.p99Ms),
      frontEndMebibytes: await residentOfFrontEnds(target),
      tcpMebibytes: tcpMebibytes(),
      slow: beside?.told(),
    };
    phases.push(one);
    tell(lineOf(one));
    await beside?.stop();
    if (beside) await pause(5_000);
  };
  await work(client, phaseMs / 4);
  await phase("alone");
  await phase("beside slow clients from one address", slowParts(target, load, false));
  await phase("beside slow clients from many addresses", slowParts(target, load, true));
  client.close();
  return { ...judged(phases), phases };
}

/** Judges the drill. Memory of front-ends, and that no normal client is refused, are promises; latency is an aim. */
export function judged(phases: readonly SlowPhase[]): Omit<SlowReport, "phases"> {
  const aloneMebibytes = phases[0]?.frontEndMebibytes ?? 0;
  const aloneTcpMebibytes = phases[0]?.tcpMebibytes ?? 0;
  const broken = phases
    .slice(1)
    .flatMap(({ name, failed, firstFailure, frontEndMebibytes, tcpMebibytes: tcp = 0 }) => [
      ...(failed > 0 ? [`${name}: ${failed} operations of the normal client failed: ${firstFailure}`] : []),
      ...(frontEndMebibytes - aloneMebibytes > growthMebibytesMax
        ? [`${name}: the front-end holds ${frontEndMebibytes - aloneMebibytes} MiB more than alone, more than ${growthMebibytesMax}`]
        : []),
      ...(tcp - aloneTcpMebibytes > tcpGrowthMebibytesMax
        ? [`${name}: TCP connections of the host hold ${tcp - aloneTcpMebibytes} MiB more than alone, more than ${tcpGrowthMebibytesMax}`]
        : []),
    ]);
  const slow = phases
    .slice(1)
    .flatMap(({ name, ratio }) =>
      ratio > ratioMax ? [`${name}: p99 is ${ratio.toFixed(1)} times that alone, more than ${ratioMax}`] : [],
    );
  const verdict = broken.length > 0 ? "broken" : slow.length > 0 ? "slow" : "kept";
  return { ok: broken.length === 0, verdict, broken, slow };
}

const lineOf = ({
  name,
  operations,
  failed,
  p50Ms,
  p99Ms,
  kindsMs,
  ratio,
  frontEndMebibytes,
  tcpMebibytes: tcp,
  slow,
}: SlowPhase): string =>
  `${name}: ${operations} operations, ${failed} failed, p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms (${ratio.toFixed(2)} times; ` +
  `${Object.entries(kindsMs)
    .map(([kind, p99]) => `${kind} ${p99.toFixed(0)}`)
    .join(", ")}), ` +
  `front-end ${frontEndMebibytes} MiB${tcp === undefined ? "" : `, TCP ${tcp} MiB`}${slow ? `; slow: ${slow.begun} begun, ${slow.ended} ended, ${slow.refused} refused` : ""}`;

/** A program with some of the slow clients. */
interface SlowPart {
  readonly load: SlowLoad;
  readonly command: readonly [command: string, ...args: string[]];
}

/**
 * Returns programs with slow clients from one address, or from many. Processes of this machine have as many addresses of its loopback as are
 * wanted. In containers each program has an address of its own. A published port would give all the address of the gateway, and Docker's
 * proxy would take what slow readers don't: 1.6 GiB in buffers of TCP, so that the system throttles every connection.
 */
function slowParts({ beside }: DrillTarget, load: SlowLoad, many: boolean): readonly SlowPart[] {
  if (beside === undefined) {
    const all = { ...load, addresses: many ? manyAddresses : 1 };
    return [{ load: all, command: [process.execPath, programFileOf(repositoryRoot, loadProgram), JSON.stringify(all)] }];
  }
  const parts = many ? slowContainers : 1;
  return Array.from({ length: parts }, (_, at) => {
    const writeTarget = `${load.writeTarget}-${at}`;
    const part = { ...load, ...beside.blob, writeTarget, readers: load.readers / parts, writers: load.writers / parts };
    return { load: part, command: beside.commandOf(loadProgram, JSON.stringify(part)) };
  });
}

/** Returns when all slow clients have begun. */
async function slowSide(parts: readonly SlowPart[]): Promise<{ told: () => SlowTold | undefined; stop: () => Promise<void> }> {
  const sides = parts.map(({ load, command: [command, ...args] }) => {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    const side: { load: SlowLoad; child: ChildProcess; ended: Promise<unknown>; last: SlowTold | undefined } = {
      load,
      child,
      ended: new Promise((resolve) => child.once("close", resolve)),
      last: undefined,
    };
    createInterface({ input: child.stdout }).on("line", (line) => (side.last = JSON.parse(line) as SlowTold));
    return side;
  });
  const hasBegun = (side: (typeof sides)[number]): boolean => (side.last?.begun ?? 0) >= side.load.readers + side.load.writers;
  const endMs = performance.now() + beginWithinMs;
  while (!sides.every(hasBegun)) {
    if (performance.now() > endMs) {
      for (const { child } of sides) child.stdin?.end();
      throw new DrillError(`not all slow clients are connected after ${beginWithinMs / 1_000} s`);
    }
    const gone = sides.find(({ child }) => child.exitCode !== null);
    if (gone !== undefined) throw new DrillError(`the slow clients ended with exit code ${gone.child.exitCode}`);
    await pause(100);
  }
  return {
    told: () => sumOf(sides.flatMap(({ last }) => last ?? [])),
    stop: async () => {
      for (const { child } of sides) child.stdin?.end();
      await Promise.all(sides.map(({ ended }) => ended));
    },
  };
}

const sumOf = (parts: readonly SlowTold[]): SlowTold =>
  parts.reduce((sum, each) => ({
    begun: sum.begun + each.begun,
    ended: sum.ended + each.ended,
    refused: sum.refused + each.refused,
    receivedBytes: sum.receivedBytes + each.receivedBytes,
    sentBytes: sum.sentBytes + each.sentBytes,
  }));

/** Runs small and large reads and writes in turn, four at a time. */
async function work(client: BlobClient, forMs: number) {
  const tookMs: Record<string, number[]> = {};
  let failed = 0;
  let firstFailure = "";
  const endMs = performance.now() + forMs;
  const small = Buffer.alloc(1_024, "s");
  const large = Buffer.alloc(mebibyte, "l");
  const worker = async (number: number): Promise<void> => {
    for (let at = 0; performance.now() < endMs; at++) {
      const steps: [string, () => Promise<BlobResult>][] = [
        ["put 1 KiB", () => client.put(container, `small-${number}`, small)],
        ["get 1 KiB", () => client.get(container, `small-${number}`)],
        ["put 1 MiB", () => client.put(container, `large-${number}`, large)],
        ["get 4 MiB", () => client.get(container, "large")],
      ];
      const [kind, step] = steps[at % steps.length] as (typeof steps)[number];
      const startMs = performance.now();
      const result = await step();
      tookMs[kind] = [...(tookMs[kind] ?? []), performance.now() - startMs];
      if (result.kind === "answer" && result.status < 300) continue;
      failed++;
      firstFailure ||= `${kind}: ${result.kind === "answer" ? `${result.status} ${result.headers["x-ms-error-code"]}` : result.why}`;
    }
  };
  await Promise.all([0, 1, 2, 3].map(worker));
  const all = Object.values(tookMs).flat();
  const kindsMs = Object.fromEntries(Object.entries(tookMs).map(([kind, each]) => [kind, quantile(each, 0.99)]));
  return { operations: all.length, failed, firstFailure, p50Ms: quantile(all, 0.5), p99Ms: quantile(all, 0.99), kindsMs };
}

function quantile(tookMs: readonly number[], part: number): number {
  const sorted = [...tookMs].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
}

/** Returns the resident memory of the largest front-end, in MiB. */
async function residentOfFrontEnds(target: DrillTarget): Promise<number> {
  const names = (await target.status()).processes.flatMap(({ role, name }) => (role === "front-end" ? [name] : []));
  return Math.max(...(await Promise.all(names.map((name) => target.residentMebibytes(name)))));
}

const pageBytes = 4_096;

/** Reads the line `TCP: … mem PAGES`. */
function tcpMebibytes(): number | undefined {
  try {
    const pages = /^TCP:.* mem (\d+)/m.exec(readFileSync("/proc/net/sockstat", "utf8"))?.[1];
    return pages === undefined ? undefined : Math.round((Number(pages) * pageBytes) / mebibyte);
  } catch {
    return undefined;
  }
}
