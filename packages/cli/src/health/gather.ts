/**
 * Gathers the facts of a stamp: every process is asked at the same moment, and so is every manager, leader or not,
 * because to ask first who leads would take two turns. One deadline holds for all of it. A process that is dead or
 * paused costs the deadline and no more.
 *
 * Invariant: no answer in time is never told as "down". Only a refused connection, or the supervisor that started the process, says that.
 */
import { existsSync } from "node:fs";
import type { Failure, Outcome } from "@stamp/base";
import {
  type ClusterConfig,
  type ClusterStatus,
  composeCluster,
  control,
  DataFolder,
  ownCredential,
  type ProcessStatus,
  secretFilesOf,
} from "@stamp/cluster";
import type { Transport } from "@stamp/ports";
import { inWords } from "@stamp/ports-node";
import { FeatureLevels, PartitionManager, Status, StreamManager } from "@stamp/wire";
import { withoutRecords } from "../cluster/known-record.ts";
import { plannedCluster, processesElsewhere } from "../cluster/planned-cluster.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { silentTogether } from "./certain.ts";
import type { PartitionLayerFacts, ProcessAbsence, ProcessAnswer, ProcessFacts, StampFacts, StreamLayerFacts } from "./facts.ts";
import { copiesIn } from "./newest-copy.ts";
import { placeOf } from "./place.ts";
import { setUpFacts } from "./set-up-facts.ts";

/** Since the start of the command line: the answer is there within two seconds, whatever was dead or paused. */
const deadlineMs = 1_500;
/** If the start itself took long, on a machine with much to do, all get this time to answer. */
const askingMinMs = 1_000;
/** The supervisor answers in a few milliseconds. After this the plan of the cluster says whom to ask. */
const supervisorFirstMs = 200;
/** If many are silent at once, this command or its machine was late, more likely than all of them: they are asked once more, and have this time. */
const askingAgainMs = 3_000;
/** Streams and extents that a status shows. */
const viewedMax = 200;

type Cluster = StampFacts["cluster"] & { readonly processes: readonly ProcessStatus[] };

export interface Gathering {
  /** True to ask for streams and extents, too. */
  readonly view: boolean;
  /** Returns the time since the start of the command line, in milliseconds. */
  readonly nowMs?: () => number;
  /** Function that asks the supervisor. */
  readonly ask?: typeof control;
}

/** Returns a clock that counts milliseconds from now, for callers that gather repeatedly and count each deadline anew. */
export function sinceNow(): () => number {
  const startMs = performance.now();
  return () => performance.now() - startMs;
}

/** Throws CommandError if nothing runs. No wait in here ends later than one deadline, whoever does not answer. */
export async function gather(config: ClusterConfig, transport: Transport, gathering: Gathering): Promise<StampFacts> {
  const { view, nowMs = () => performance.now(), ask = control } = gathering;
  const endMs = Math.max(deadlineMs, nowMs() + askingMinMs);
  const leftMs = (): number => Math.max(endMs - nowMs(), 1);
  const composed = composeCluster();
  if (composed !== undefined) {
    const asked = await askAll(composed, transport, leftMs, view);
    const alone = { supervisor: "none", supervisorPid: null, setUp: undefined, copies: [] } as const;
    return { nowMs: Date.now(), ...alone, cluster: composed, ...about(config, composed), ...asked };
  }
  const { supervisor, orphans } = new DataFolder(config.dataDir).running();
  const alone = config.topology === undefined;
  if (supervisor === undefined && orphans.length === 0 && alone)
    throw new CommandError(`no cluster runs on ${config.dataDir} (start one: ./stamp up)`, exitCodes.notRunning);
  const told = supervisor === undefined ? Promise.resolve(undefined) : askSupervisor(config, ask, leftMs());
  const first = await Promise.race([told, pause(supervisorFirstMs)]);
  const cluster = withOtherHosts(first, config);
  const asked = await askAll(cluster, transport, leftMs, view);
  const late = first ?? (await told);
  return {
    nowMs: Date.now(),
    supervisor: supervisor === undefined ? (alone || orphans.length > 0 ? "gone" : "none") : late === undefined ? "silent" : "answers",
    supervisorPid: supervisor?.pid ?? null,
    cluster: late?.problems === undefined ? cluster : { ...cluster, problems: late.problems },
    // Without the record nothing says how the cluster was set up.
    setUp: withoutRecords.has(config.dataDir)
      ? undefined
      : setUpFacts(
          config,
          (first ?? late)?.processes.map(({ name }) => name),
        ),
    ...about(config, cluster),
    ...asked,
    copies: storeServes(asked.processes) ? [] : await copiesIn(config.dataDir),
    processes: late === undefined || late === first ? asked.processes : withStatus(asked.processes, late.processes),
  };
}

/** Returns facts about this command itself. */
function about(config: ClusterConfig, cluster: Cluster): Pick<StampFacts, "asker" | "place"> {
  const secretFile = secretFilesOf(config).current;
  return { asker: { secretFile, ...secretProblem(config, secretFile) }, place: placeOf(config, cluster) };
}

function secretProblem(config: ClusterConfig, secretFile: string): Pick<StampFacts["asker"], "problem" | "isMute"> {
  try {
    ownCredential(config);
    const isThere = existsSync(secretFile) || (process.env.STAMP_CLUSTER_SECRET ?? "") !== "";
    return { problem: isThere ? "" : "it is not there", isMute: false };
  } catch (error) {
    return { problem: inWords(error), isMute: true };
  }
}

const storeServes = (processes: readonly ProcessFacts[]): boolean =>
  processes.some(({ role, answer }) => role === "lock-service" && answer?.ready === true);

const pause = (ms: number): Promise<undefined> => new Promise((resolve) => setTimeout(resolve, ms, undefined));

const askSupervisor = (config: ClusterConfig, ask: typeof control, timeoutMs: number): Promise<ClusterStatus | undefined> =>
  ask(new DataFolder(config.dataDir).control, { do: "status" }, timeoutMs).catch(() => undefined);

/** Returns this host's processes, by its supervisor or by the plan, with those of the other hosts. */
function withOtherHosts(told: ClusterStatus | undefined, config: ClusterConfig): ClusterStatus {
  if (told === undefined || config.topology === undefined) return told ?? plannedCluster(config);
  const { host } = config;
  const own = told.processes.map((each) => (host === undefined ? each : { ...each, host }));
  return { ...told, processes: [...own, ...processesElsewhere(config)] };
}

function withStatus(processes: readonly ProcessFacts[], told: readonly ProcessStatus[]): ProcessFacts[] {
  const byName = new Map(told.map((each) => [each.name, each]));
  return processes.map((each) => {
    const { restarts, lastExit, pid, state } = byName.get(each.name) ?? each;
    return { ...each, restarts, lastExit, state, pid: pid ?? each.pid };
  });
}

type Asked = Pick<StampFacts, "processes" | "streamLayer" | "partitionLayer">;

async function askAll(cluster: Cluster, transport: Transport, leftMs: () => number, view: boolean): Promise<Asked> {
  const asked = await askOnce(cluster, transport, leftMs, view);
  const silent = silentTogether(asked);
  if (silent.length === 0) return asked;
  const missing = [
    ...(asked.streamLayer === undefined ? ["stream-manager"] : []),
    ...(asked.partitionLayer === undefined ? ["partition-manager"] : []),
  ];
  const names = new Set(silent.map(({ name }) => name));
  const whom = cluster.processes.filter(({ name, role }) => names.has(name) || missing.includes(role));
  const again = await askOnce({ processes: whom }, transport, () => askingAgainMs, view);
  const answers = new Map(again.processes.filter(({ answer }) => answer !== undefined).map((each) => [each.name, each]));
  return {
    processes: asked.processes.map((each) => answers.get(each.name) ?? each),
    streamLayer: again.streamLayer ?? asked.streamLayer,
    partitionLayer: again.partitionLayer ?? asked.partitionLayer,
  };
}

async function askOnce(
  { processes }: Pick<Cluster, "processes">,
  transport: Transport,
  leftMs: () => number,
  view: boolean,
): Promise<Asked> {
  const at = (role: string): string[] => processes.filter((each) => each.role === role).map(({ grpc }) => grpc);
  const [asked, streamLayers, partitionLayers] = await Promise.all([
    Promise.all(processes.map((each) => askProcess(each, transport, leftMs()))),
    Promise.all(at("stream-manager").map((address) => askStreamManager(address, transport, leftMs(), view))),
    Promise.all(at("partition-manager").map((address) => askPartitionManager(address, transport, leftMs()))),
  ]);
  return { processes: asked, streamLayer: firstOf(streamLayers), partitionLayer: firstOf(partitionLayers) };
}

const firstOf = <T>(all: readonly (T | undefined)[]): T | undefined => all.find((each) => each !== undefined);

async function askProcess(process: ProcessStatus, transport: Transport, timeoutMs: number): Promise<ProcessFacts> {
  const sentMs = Date.now();
  const answer = await transport.client(process.grpc, Status).getStatus({}, { timeoutMs });
  if (!answer.ok) return { ...process, answer: undefined, silence: answer.failure.message, absence: absenceOf(answer.failure) };
  const { release, state, ready, waitingFor, uptimeMs, wallMs, wallSetMs, facts, pid, secretIds, secretMadeMs, secretProblem, versions } =
    answer.value;
  const answered: ProcessAnswer = {
    release,
    versions,
    state,
    ready,
    waitingFor,
    uptimeMs: Number(uptimeMs),
    wallAheadMs: wallMs === 0n ? undefined : aheadOf(Number(wallMs), sentMs, Date.now()),
    wallSetMs: Number(wallSetMs),
    secret: secretIds.length === 0 ? undefined : { ids: secretIds, madeMs: Number(secretMadeMs) || undefined, problem: secretProblem },
    facts: facts ?? {},
  };
  return { ...process, pid: process.pid ?? pid, answer: answered, silence: "", absence: undefined };
}

function absenceOf({ code, details }: Failure): ProcessAbsence {
  if (code === "unauthenticated") return "refused";
  return details?.listens === "no" ? "gone" : "late";
}

/** Returns how far a clock is certainly ahead: it showed `wallMs` at some time between two looks at this one. */
function aheadOf(wallMs: number, sentMs: number, gotMs: number): number {
  if (wallMs > gotMs) return wallMs - gotMs;
  return wallMs < sentMs ? wallMs - sentMs : 0;
}

const answerOf = <T>(outcome: Outcome<T>): T | undefined => (outcome.ok ? outcome.value : undefined);

/** Asks a stream manager; undefined: it does not lead, or did not answer in time. */
async function askStreamManager(
  address: string,
  transport: Transport,
  timeoutMs: number,
  view: boolean,
): Promise<StreamLayerFacts | undefined> {
  const manager = transport.client(address, StreamManager);
  const options = { timeoutMs };
  const none = Promise.resolve(undefined);
  const [nodes, repair, quarantine, level, streams, extents] = await Promise.all([
    manager.listNodes({}, options),
    manager.getRepairStatus({}, options),
    manager.listQuarantine({}, options),
    transport.client(address, FeatureLevels).getFeatureLevel({}, options),
    view ? manager.listStreams({ prefix: "", after: "", limit: viewedMax }, options) : none,
    view ? manager.listExtents({ afterExtentId: 0n, limit: viewedMax }, options) : none,
  ]);
  if (!nodes.ok) return undefined;
  const [someStreams, someExtents] = [streams && answerOf(streams), extents && answerOf(extents)];
  return {
    nodes: nodes.value.nodes,
    repair: answerOf(repair),
    level: answerOf(level),
    quarantine: answerOf(quarantine)?.replicas ?? [],
    streams: someStreams?.streams ?? [],
    extents: someExtents?.extents ?? [],
    more: { streams: someStreams?.more ?? false, extents: someExtents?.more ?? false },
  };
}

/** Asks a partition manager; undefined: it does not lead, or did not answer in time. */
async function askPartitionManager(address: string, transport: Transport, timeoutMs: number): Promise<PartitionLayerFacts | undefined> {
  const manager = transport.client(address, PartitionManager);
  const [map, servers] = await Promise.all([
    manager.getMap({ knownVersion: 0n, waitMs: 0 }, { timeoutMs }),
    manager.listServers({}, { timeoutMs }),
  ]);
  return map.ok && servers.ok ? { ranges: map.value.ranges, servers: servers.value.servers } : undefined;
}
