/** `stamp status`: every process, streams, extents, replicas and ranges, and where they are. From the same facts as `stamp health`. */
import {
  type ClusterConfig,
  type ClusterStatus,
  composeCluster,
  DataFolder,
  inContainers,
  ownTransport,
  type StampView,
} from "@stamp/cluster";
import { type ExtentInfo, ExtentState, NodeDuty, type ServerLoad } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, orphansRun, withConfig } from "../context.ts";
import { isDown } from "../health/certain.ts";
import { counted } from "../health/counted.ts";
import { type CommandPlace, factAt, numberAt, type ProcessFacts, type StampFacts } from "../health/facts.ts";
import { type Health, healthOf } from "../health/findings.ts";
import { gather } from "../health/gather.ts";
import { commandsAt, startAgain } from "../health/help-text.ts";
import { keyText } from "../key-text.ts";
import { masterKeysTold } from "../keys/keys-told.ts";
import { bytesText, connectionLines, endpointLines, processTable, table, toJson } from "../print.ts";
import { say, sayRaw } from "../say.ts";
import { severalIn } from "../stamps/several.ts";
import { type ShownStamp, statusOfStamps } from "../stamps/stamps-commands.ts";
import { topLevel } from "../top-level.ts";
import { upgradeLine, upgradeStateOf } from "../upgrade/upgrade-state.ts";
import { type Latency, latenciesOf, latencyTable } from "./latency.ts";

export function addStatus(program: Command): void {
  const command = topLevel(program, "status").option("--json", "for tools");
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => {
    const config = configOf(command);
    const json = command.opts<{ json?: boolean }>().json === true;
    const several = composeCluster() === undefined ? severalIn(config) : undefined;
    if (several !== undefined) {
      process.exitCode = await statusOfStamps(several, json, shownStamp);
      return;
    }
    const { ready, facts, text } = await shownStamp(config);
    if (json) sayRaw(toJson(facts));
    else say(text);
    process.exitCode = ready ? 0 : exitCodes.notReady;
  });
}

async function shownStamp(config: ClusterConfig): Promise<ShownStamp> {
  const { orphans } = new DataFolder(config.dataDir).running();
  if (composeCluster() === undefined && orphans.length > 0) throw new CommandError(orphansRun(config, orphans));
  const transport = ownTransport(config);
  const facts = await gather(config, transport, { view: true }).finally(() => transport.close());
  const health = healthOf(facts);
  const status = statusOf(facts);
  const view = viewOf(facts);
  const latency = facts.processes.flatMap(({ role, name, answer }) => (answer === undefined ? [] : latenciesOf(role, name, answer.facts)));
  return {
    ready: status.ready,
    facts: { health, ...status, upgrade: upgradeStateOf(facts), processes: withFacts(status, facts), ...view, latency },
    text: statusText(health, status, view, latency, facts),
  };
}

/** Words for silent processes, which are never shown as down. */
const silentStates = { gone: "not listening", refused: "unknown: refuses our secret", late: "unknown: no answer" };

/** Returns the state of a process that is down: the supervisor's word, or else `down` and how a container is started. */
function downState({ name, state, absence }: ProcessFacts, place: CommandPlace): string {
  if (absence !== "gone" || state !== "not answering") return state;
  return place.dataDir === inContainers ? `down; ${commandsAt(startAgain(name), place)}` : "down";
}

/** Returns the processes by their own answers: what the supervisor saw may be over. */
export function statusOf(facts: StampFacts): ClusterStatus {
  const processes = facts.processes.map((each) => {
    const { answer, silence: _silence, absence, ...process } = each;
    if (answer !== undefined) return { ...process, state: answer.state, ready: answer.ready, waitingFor: answer.waitingFor };
    const state = isDown(each) ? downState(each, facts.place) : silentStates[absence ?? "late"];
    return { ...process, state, ready: false, waitingFor: [] };
  });
  const { dataDir, endpoints, connectionString, lockService } = facts.cluster;
  const ready = processes.every((each) => each.ready);
  return { running: true, ready, supervisorPid: facts.supervisorPid, dataDir, processes, endpoints, connectionString, lockService };
}

/** Returns the status with the facts of each process, for tools. */
function withFacts(status: ClusterStatus, { processes }: StampFacts): readonly object[] {
  return status.processes.map((each) => {
    const answer = processes.find(({ name }) => name === each.name)?.answer;
    if (answer === undefined) return each;
    const { release, uptimeMs, versions, facts } = answer;
    return { ...each, release, uptimeMs, versions, facts };
  });
}

function viewOf({ streamLayer, partitionLayer }: StampFacts): StampView {
  const { streams = [], extents = [], nodes = [], more = { streams: false, extents: false } } = streamLayer ?? {};
  const { ranges = [], servers = [] } = partitionLayer ?? {};
  const problems = [
    ...(streamLayer === undefined ? ["no stream manager that leads answered"] : []),
    ...(partitionLayer === undefined ? ["no partition manager that leads answered"] : []),
  ];
  return { streams, extents, more, nodes, ranges, servers, problems };
}

/** Returns the name of an enum's value, in lower case. */
export const nameIn = (names: Readonly<Record<string, number>>, value: number): string =>
  Object.keys(names)
    .find((each) => names[each] === value)
    ?.toLowerCase() ?? String(value);

function copiesOf({ state, coded, attempt, intactCopies, intactFragments, nodeIds, fragmentNodeIds }: ExtentInfo): string {
  const now = attempt === "" ? "" : ` (${attempt})`;
  if (coded !== undefined) return `${coded.profile}: ${intactFragments} of ${fragmentNodeIds.length}${now}`;
  return state === ExtentState.SEALED ? `${intactCopies} of ${nodeIds.length}${now}` : String(nodeIds.length);
}

export function extentTable(view: Pick<StampView, "extents">): string {
  return table(
    ["EXTENT", "STREAM", "STATE", "LENGTH", "COPIES", "REPLICAS (primary first) OR FRAGMENTS (by index)"],
    view.extents.map((extent) => [
      extent.location?.extentId ?? 0,
      extent.stream,
      nameIn(ExtentState, extent.state),
      extent.location?.sealedLengthBytes === undefined ? "-" : bytesText(extent.location.sealedLengthBytes),
      copiesOf(extent),
      [...extent.nodeIds, ...extent.fragmentNodeIds].join(" "),
    ]),
  );
}

export function streamTable(view: Pick<StampView, "streams">): string {
  return table(
    ["STREAM", "OWNER EPOCH", "COUNT", "EXTENTS"],
    view.streams.map((stream) => {
      const ids = stream.extents.map((extent) => String(extent.extentId));
      // The stream manager tells the first and the last ones of a long list.
      const half = ids.length / 2;
      const shown = stream.more ? [...ids.slice(0, half), "…", ...ids.slice(half)] : ids;
      return [stream.name, stream.ownerEpoch, stream.extentCount, shown.join(" ")];
    }),
  );
}

const boundText = (key: Uint8Array, empty: string): string => (key.length === 0 ? empty : keyText(key));

export function rangeTable(view: Pick<StampView, "ranges">): string {
  return table(
    ["RANGE", "TABLE", "FROM", "TO", "VERSION", "OWNER EPOCH", "SERVER", "STATE"],
    view.ranges.map((range) => [
      range.rangeId,
      range.table,
      boundText(range.lowKey, "start"),
      boundText(range.highKey, "end"),
      range.rangeVersion,
      range.ownerEpoch,
      range.server === "" ? "-" : range.server,
      range.change !== "" ? range.change : range.server === "" ? "unassigned" : range.loaded ? "served" : "loading",
    ]),
  );
}

/** Number of ranges that are shown one by one; of more, those that are not served are. */
const rangesShownMax = 50;

/** Returns each range while there are few, else how many of each table every server has. */
export function rangeSummary({ ranges }: Pick<StampView, "ranges">): string {
  if (ranges.length <= rangesShownMax) return rangeTable({ ranges });
  const groups = Map.groupBy(ranges, ({ table, server }) => `${table} ${server}`);
  const sums = table(
    ["TABLE", "SERVER", "RANGES", "SERVED"],
    [...groups.values()].map((group) => [group[0]?.table ?? "", group[0]?.server || "-", group.length, group.filter(isServed).length]),
  );
  const others = ranges.filter((range) => !isServed(range) || range.change !== "");
  const shown = others.slice(0, rangesShownMax);
  return [
    sums,
    ...(shown.length > 0 ? [`\nnot served, or in a change:\n${rangeTable({ ranges: shown })}`] : []),
    ...(others.length > shown.length ? [`… and ${others.length - shown.length} more`] : []),
    "each of them: ./stamp partition list",
  ].join("\n");
}

const isServed = ({ server, loaded }: StampView["ranges"][number]): boolean => server !== "" && loaded;

export const loadHeads: readonly string[] = ["READS/S", "WRITES/S", "THROTTLED/S", "PENDING", "LATENCY", "IN/S", "OUT/S"];

export const loadCells = (load: Omit<ServerLoad, "processors" | "rowBytes" | "$typeName">): readonly (string | number)[] => [
  load.readsPerSecond.toFixed(1),
  load.writesPerSecond.toFixed(1),
  load.throttledPerSecond.toFixed(1),
  load.pending,
  `${load.latencyMs.toFixed(1)} ms`,
  bytesText(Math.round(load.bytesInPerSecond)),
  bytesText(Math.round(load.bytesOutPerSecond)),
];

/** Returns a table of partition servers with their load over the last 10 s. */
export function serverTable(view: Pick<StampView, "servers">): string {
  return table(
    ["SERVER", "ADDRESS", "STATE", "RANGES", "CPU", ...loadHeads, "ROW BYTES"],
    view.servers.map(({ server, address, up, rangeCount, load }) => [
      server,
      address,
      up ? "up" : "down",
      rangeCount,
      ...(load
        ? [`${(load.processors * 100).toFixed(0)}%`, ...loadCells(load), bytesText(load.rowBytes)]
        : ["-", ...loadHeads.map(() => "-"), "-"]),
    ]),
  );
}

export function nodeTable(view: Pick<StampView, "nodes">): string {
  return table(
    ["NODE", "ADDRESS", "DOMAIN", "STATE", "REPLICAS", "EXTENTS", "FREE"],
    view.nodes.map((node) => [
      node.nodeId,
      node.address,
      node.faultDomain === "" ? "-" : node.faultDomain,
      `${node.up ? "up" : `away for ${(Number(node.lastSeenMsAgo) / 1000).toFixed(1)} s`}${node.duty === NodeDuty.SERVING ? "" : `, ${nameIn(NodeDuty, node.duty)}`}`,
      node.replicas,
      node.extentCount,
      `${bytesText(node.freeBytes)} of ${bytesText(node.totalBytes)}`,
    ]),
  );
}

/** Returns the age of the stamp's secret as a line; empty: no process tells it. */
function secretLine({ processes, nowMs }: Pick<StampFacts, "processes" | "nowMs">): string {
  const told = processes.flatMap(({ answer }) => answer?.secret ?? []);
  const made = told.flatMap(({ madeMs }) => madeMs ?? []);
  if (made.length === 0) return "";
  const days = Math.floor(Math.max(0, nowMs - Math.min(...made)) / 86_400_000);
  const two = told.some(({ ids }) => ids.length > 1) ? ", a rotation is open" : "";
  return `\nsecret:  ${counted(days, "day")} old${two}`;
}

/** Returns the age of the master key as a line; empty: no partition server tells it. */
function masterKeyLine({ processes, nowMs }: Pick<StampFacts, "processes" | "nowMs">): string {
  const told = processes.flatMap(({ answer }) => (answer === undefined ? [] : (masterKeysTold(answer.facts) ?? [])));
  const made = told.flatMap(({ madeMs }) => madeMs ?? []);
  if (made.length === 0) return "";
  const days = Math.floor(Math.max(0, nowMs - Math.min(...made)) / 86_400_000);
  return `\nkeys:    master key ${counted(days, "day")} old${told.some(({ ids }) => ids.length > 1) ? ", the one before or the next one is kept" : ""}`;
}

/** Faults on purpose that are on; empty where no front-end takes any. */
function faultLine({ processes }: Pick<StampFacts, "processes">): string {
  const told = processes.flatMap(({ answer }) => (factAt(answer?.facts, "faultRules") === undefined ? [] : [answer?.facts]));
  if (told.length === 0) return "";
  const rules = Math.max(...told.map((facts) => numberAt(facts, "faultRules.rules")));
  return `\nfaults:  ${counted(rules, "rule")}: ./stamp faults list`;
}

function statusText(health: Health, status: ClusterStatus, view: StampView, latency: readonly Latency[], facts: StampFacts): string {
  const findings = health.findings.length === 0 ? [] : [`${counted(health.findings.length, "finding")}: ./stamp health`];
  const [worst] = health.findings;
  const help = worst?.severity === "critical" ? [`→ ${worst.help}`] : [];
  const parts = [
    [health.sentence, ...help, ...findings, ""].join("\n"),
    processTable(status),
    `\nEndpoints\n${endpointLines(status)}\n\n${connectionLines(status)}\n\ndata:  ${status.dataDir}${secretLine(facts)}${masterKeyLine(facts)}${faultLine(facts)}\nlevel:   ${upgradeLine(upgradeStateOf(facts))}`,
    `\nExtent nodes\n${nodeTable(view)}`,
    `\nPartition servers\n${serverTable(view)}`,
    ...(latency.length > 0 ? [`\nLatency, of the last 30 to 60 s\n${latencyTable(latency)}`] : []),
    `\nRange partitions\n${rangeSummary(view)}`,
    `\nStreams\n${streamTable(view)}`,
    ...(view.more.streams ? ["… and more: ./stamp stream list"] : []),
    `\nExtents\n${extentTable(view)}`,
    ...(view.more.extents ? ["… and more: ./stamp extent list"] : []),
  ];
  for (const problem of view.problems) parts.push(`can't be asked now: ${problem}`);
  if (!status.ready) parts.push("\nnot everything is ready");
  return commandsAt(parts.join("\n"), facts.place);
}
