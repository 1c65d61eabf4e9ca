/** Turns the facts of a stamp into what the page of the console shows. Pure. */
import type { ExtentRow, LatencyRow, Point, ProcessRow, Snapshot, StreamRow } from "@stamp/console-page";
import { type ExtentInfo, ExtentState, type StreamInfo } from "@stamp/wire";
import { numberAt, type ProcessFacts, type StampFacts } from "../health/facts.ts";
import { healthOf } from "../health/findings.ts";
import { repairText } from "../nodes/node-commands.ts";
import { latenciesOf } from "../status/latency.ts";
import { nameIn, statusOf } from "../status/status.ts";
import { nodeRows } from "./node-rows.ts";

/** Rows of latencies that a snapshot has at most: the slowest. */
const latencyRowsMax = 60;

export function snapshotOf(facts: StampFacts, before: Counted | undefined): { readonly snapshot: Snapshot; readonly counted: Counted } {
  const { sentence, state, findings } = healthOf(facts);
  const latency = latenciesIn(facts);
  const counted = countedOf(facts);
  const { endpoints, dataDir } = facts.cluster;
  const snapshot: Snapshot = {
    atMs: facts.nowMs,
    state,
    sentence,
    findings: findings.map(({ severity, code, subject, cause, help }) => ({ severity, code, subject, cause, help })),
    dataDir,
    endpoints: Object.entries(endpoints).flatMap(([name, url]) => (url === "" ? [] : [{ name, url }])),
    processes: processRows(facts, (name) => rateOf(counted, before, name)),
    nodes: nodeRows(facts),
    repair: facts.streamLayer?.repair === undefined ? [] : repairText(facts.streamLayer.repair).split("\n"),
    latency: latency.toSorted((one, other) => other.p99Ms - one.p99Ms).slice(0, latencyRowsMax),
    figures: { ...ratesOf(counted, before), atMs: facts.nowMs, ...percentilesOf(latency, facts) },
  };
  return { snapshot, counted };
}

function processRows(facts: StampFacts, workOf: (name: string) => number | null): ProcessRow[] {
  const answers = new Map(facts.processes.map((each) => [each.name, each.answer]));
  return statusOf(facts).processes.map(({ name, role, host = "", pid, grpc, state, ready, waitingFor, restarts, lastExit }) => {
    const answer = answers.get(name);
    const told = {
      uptimeMs: answer?.uptimeMs ?? null,
      release: answer?.release ?? "",
      workPerSecond: workingRoles.has(role) ? workOf(name) : null,
    };
    return { name, role, host, pid, grpc, state, ready, waitingFor, restarts, lastExit, ...told };
  });
}

const latenciesIn = ({ processes }: StampFacts): LatencyRow[] =>
  processes.flatMap(({ role, name, answer }) => (answer === undefined ? [] : latenciesOf(role, name, answer.facts)));

function percentilesOf(latency: readonly LatencyRow[], { processes }: StampFacts): Pick<Point, "p50Ms" | "p99Ms"> {
  const frontEnds = new Set(processes.flatMap(({ role, name }) => (role === "front-end" ? [name] : [])));
  const own = latency.filter(({ process }) => frontEnds.has(process));
  const highest = (of: (row: LatencyRow) => number): number | null => (own.length === 0 ? null : Math.max(...own.map(of)));
  return { p50Ms: highest(({ p50Ms }) => p50Ms), p99Ms: highest(({ p99Ms }) => p99Ms) };
}

const workingRoles: ReadonlySet<string> = new Set(["front-end", "partition-server", "extent-node"]);
const counters = ["requests", "errors", "written", "read", "work"] as const;
type Counters = Readonly<Record<(typeof counters)[number], number>>;

/** Counters of the processes that answered at one moment, which rates are made of. */
export interface Counted {
  readonly atMs: number;
  readonly byProcess: ReadonlyMap<string, Counters>;
}

function countedOf({ nowMs, processes }: StampFacts): Counted {
  const byProcess = processes.flatMap((each): [string, Counters][] => (each.answer === undefined ? [] : [[each.name, countersOf(each)]]));
  return { atMs: nowMs, byProcess: new Map(byProcess) };
}

function countersOf({ role, answer }: ProcessFacts): Counters {
  const sum = (...paths: readonly string[]): number => paths.reduce((all, path) => all + numberAt(answer?.facts, path), 0);
  const isFrontEnd = role === "front-end";
  const isServer = role === "partition-server";
  const requests = isFrontEnd ? sum("requests", "queue.requests", "table.requests") : 0;
  return {
    work: isFrontEnd ? requests : isServer ? sum("totals.reads", "totals.writes") : sum("appends"),
    requests,
    errors: isFrontEnd ? sum("serverErrors", "queue.serverErrors", "table.serverErrors") : 0,
    written: isServer ? sum("totals.bytesIn") : 0,
    read: isServer ? sum("totals.bytesOut") : 0,
  };
}

/** Growth of a counter. A counter that has fallen is that of a process that has started anew. */
const grown = (now: number, before: number): number => (now < before ? now : now - before);

/** Work of one process in a second; null until it answered twice. */
function rateOf(now: Counted, before: Counted | undefined, name: string): number | null {
  const seconds = (now.atMs - (before?.atMs ?? now.atMs)) / 1_000;
  const [counts, old] = [now.byProcess.get(name)?.work, before?.byProcess.get(name)?.work];
  return counts === undefined || old === undefined || seconds <= 0 ? null : grown(counts, old) / seconds;
}

function ratesOf(now: Counted, before: Counted | undefined): Omit<Point, "atMs" | "p50Ms" | "p99Ms"> {
  const seconds = (now.atMs - (before?.atMs ?? now.atMs)) / 1_000;
  const rate = (what: keyof Counters): number | null => {
    if (before === undefined || seconds <= 0) return null;
    let sum = 0;
    for (const [name, counts] of now.byProcess) {
      const old = before.byProcess.get(name)?.[what];
      if (old !== undefined) sum += grown(counts[what], old);
    }
    return sum / seconds;
  };
  return {
    requestsPerSecond: rate("requests"),
    errorsPerSecond: rate("errors"),
    writtenPerSecond: rate("written"),
    readPerSecond: rate("read"),
  };
}

export const streamRow = ({ name, ownerEpoch, extentCount }: StreamInfo): StreamRow => ({
  name,
  ownerEpoch: Number(ownerEpoch),
  extentCount: Number(extentCount),
});

export function extentRow(info: ExtentInfo): ExtentRow {
  const { location, stream, state, ownerEpoch, nodeIds, fragmentNodeIds, coded, intactCopies, intactFragments, attempt } = info;
  const isSealed = state === ExtentState.SEALED;
  return {
    id: String(location?.extentId ?? 0n),
    stream,
    state: nameIn(ExtentState, state),
    ownerEpoch: Number(ownerEpoch),
    sealedBytes: isSealed && location?.sealedLengthBytes !== undefined ? Number(location.sealedLengthBytes) : null,
    nodes: coded === undefined ? nodeIds : fragmentNodeIds,
    coding: coded?.profile ?? "",
    intact: !isSealed ? null : coded === undefined ? intactCopies : intactFragments,
    attempt,
  };
}
