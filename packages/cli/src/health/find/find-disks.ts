/** Findings about extent nodes and their disks. */
import { NodeDuty, type NodeInfo } from "@stamp/wire";
import { bytesText } from "../../print.ts";
import { awayHosts, servesNot } from "../certain.ts";
import { counted, countedAre, seconds } from "../counted.ts";
import { factAt, numberAt, type ProcessFacts, type RoleFacts, type StampFacts } from "../facts.ts";
import { type Finding, finding } from "../kinds/kinds.ts";
import { absenceText, findingOf } from "./find-processes.ts";
import { freeText } from "./free-text.ts";

const mebibyte = 1024 * 1024;
const fillingShare = 0.15;
const fillingBytes = 40 * 1024 * mebibyte;
const fillingFiles = 20_000;
const hangsMs = 5_000;
const queuedMs = 1_000;
const slowSyncMs = 200;
/** Fewer say nothing of one in a hundred. */
const syncsMin = 20;
const backlogBytes = 48 * mebibyte;
const copyOldMs = 120_000;
/** Time within which a node takes its first copy of the metadata, in milliseconds. */
const firstCopyMs = 90_000;

export function findDisks(facts: StampFacts): Finding[] {
  const processes = findingOf(facts, "extent-node");
  const lockServiceAnswers = findingOf(facts, "lock-service").some(({ answer }) => answer !== undefined);
  return [
    ...findAway(facts, processes),
    ...findCounts(facts),
    ...(facts.streamLayer?.nodes ?? []).flatMap(findDuty),
    ...findDecommissioned(facts, processes),
    ...(facts.streamLayer?.nodes ?? []).flatMap(findFilling),
    ...processes.flatMap(findDisk),
    ...findRoom(processes),
    ...(lockServiceAnswers ? findCopies(processes) : []),
  ];
}

/** Finds nodes that do not answer this command, and nodes that the stream manager does not hear. */
function findAway(facts: StampFacts, processes: readonly ProcessFacts[]): Finding[] {
  const { streamLayer, setUp } = facts;
  const away = awayHosts(facts);
  const nodes = new Map(streamLayer?.nodes.map((node) => [node.nodeId, node]));
  const holds = (name: string): string => {
    const node = nodes.get(name);
    return node === undefined ? "" : `; ${counted(node.replicas, "replica", countedAre)} on it`;
  };
  /** Returns the reason that a node gives which answers and is not ready, such as the disk of another node. */
  const says = (name: string): string => {
    const { ready = true, waitingFor = [] } = processes.find((each) => each.name === name)?.answer ?? {};
    return ready || waitingFor.length === 0 ? "" : `; it waits for ${waitingFor.join("; ")}`;
  };
  const absent = processes.filter(({ answer }) => answer === undefined);
  // A node that did not answer in time, and that the stream manager hears, may well serve.
  const silent = absent.filter((each) => servesNot(each, facts) && !away.has(each.host ?? ""));
  // If the node was not started, the finding node-not-started says more.
  const told = new Set([...absent.map(({ name }) => name), ...(setUp?.notStarted ?? [])]);
  const unheard = [...nodes.values()].filter(({ nodeId, up, duty }) => !up && duty !== NodeDuty.DECOMMISSIONED && !told.has(nodeId));
  return [
    ...silent.map((process) => finding("node-down", process.name, `${absenceText(process)}${holds(process.name)}`)),
    ...unheard.map(({ nodeId, lastSeenMsAgo }) =>
      finding(
        "node-down",
        nodeId,
        `the stream manager has not heard of it for ${seconds(Number(lastSeenMsAgo))}${holds(nodeId)}${says(nodeId)}`,
      ),
    ),
  ];
}

const takes = ["takes extents", "take extents"] as const;
const serving = ({ up, duty }: NodeInfo): boolean => up && duty === NodeDuty.SERVING;

function findCounts(facts: StampFacts): Finding[] {
  const { streamLayer, setUp } = facts;
  if (streamLayer === undefined || setUp === undefined) return [];
  const { copies, minCopies, extentNodes } = setUp;
  const up = streamLayer.nodes.filter(serving).length;
  const told = counted(up, "extent node", takes);
  if (up < minCopies) return [finding("nodes-below-minimum", "", `${told}; minCopies is ${minCopies}`)];
  // Told by copies-not-possible.
  if (copies > extentNodes) return [];
  if (up < copies) return [finding("nodes-below-copies", "", `${told}; copies is ${copies}`, copies)];
  // A host that is away is told as that.
  return up === copies && awayHosts(facts).size === 0 ? [finding("no-spare-node", "", `${told}; copies is ${copies}`, copies + 1)] : [];
}

function findDuty({ nodeId, duty, replicas, blocked }: NodeInfo): Finding[] {
  if (duty !== NodeDuty.DRAINING) return [];
  if (blocked.length > 0 && replicas > 0n)
    return [finding("node-drain-blocked", nodeId, `${counted(replicas, "replica", countedAre)} on it: ${blocked.join("; ")}`)];
  return [finding("node-draining", nodeId, counted(replicas, "replica", countedAre).concat(" on it"))];
}

/** Finds nodes that were decommissioned and still run: by an older release, by another client, or in a container. */
function findDecommissioned({ streamLayer }: StampFacts, processes: readonly ProcessFacts[]): Finding[] {
  const answering = new Set(processes.filter(({ answer }) => answer !== undefined).map(({ name }) => name));
  return (streamLayer?.nodes ?? [])
    .filter(({ nodeId, duty }) => duty === NodeDuty.DECOMMISSIONED && answering.has(nodeId))
    .map(({ nodeId, replicas }) =>
      finding("node-decommissioned", nodeId, `it runs, and ${counted(replicas, "replica", countedAre)} needed of it`),
    );
}

function findFilling({ nodeId, up, freeBytes, totalBytes, freeFiles = 0n, totalFiles = 0n }: NodeInfo): Finding[] {
  const free = Number(freeBytes);
  const total = Number(totalBytes);
  const files = Number(totalFiles);
  if (up && files > 0 && Number(freeFiles) < Math.min(fillingShare * files, fillingFiles))
    return [finding("disk-filling", nodeId, `${freeFiles} of ${totalFiles} inodes are free (df -i)`)];
  if (!up || total === 0 || free >= fillingShare * total || free >= fillingBytes) return [];
  return [finding("disk-filling", nodeId, `${bytesText(free)} of ${bytesText(total)} are free`)];
}

const takesExtents = ({ answer }: ProcessFacts): boolean => factAt(answer?.facts, "takesExtents") === true;

function findRoom(processes: readonly ProcessFacts[]): Finding[] {
  const answered = processes.filter(({ answer }) => answer?.ready === true && factAt(answer.facts, "takesExtents") !== undefined);
  const full = answered.filter((each) => !takesExtents(each));
  if (full.length > 0 && full.length === answered.length && answered.length === processes.length)
    return [finding("disks-full", "", `none of ${counted(full.length, "extent node")} takes new extents`)];
  return full.map(({ name, answer }) => {
    const refuses = factAt(answer?.facts, "diskFull") === true ? ", and it refuses appends" : "";
    return finding("disk-full", name, `${freeText(answer?.facts)} are free${refuses}`);
  });
}

function findDisk({ name, answer }: ProcessFacts): Finding[] {
  if (answer === undefined) return [];
  const { facts } = answer;
  const found: Finding[] = [];
  for (const [disk, what] of [
    ["disk", "its disk"],
    ["journalDisk", "the journal's disk"],
  ] as const) {
    const inHandMs = numberAt(facts, `${disk}.oldestInHandMs`);
    const waitedMs = numberAt(facts, `${disk}.oldestQueuedMs`);
    if (inHandMs > hangsMs) found.push(finding("disk-hangs", name, `an operation has been at ${what} for ${seconds(inHandMs)}`));
    else if (waitedMs > queuedMs) found.push(finding("disk-queue", name, `an operation has waited for ${what} for ${seconds(waitedMs)}`));
  }
  const p99Ms = numberAt(facts, "journalSync.recent.p99Ms");
  if (p99Ms > slowSyncMs && numberAt(facts, "journalSync.recent.count") >= syncsMin)
    found.push(finding("journal-slow", name, `1 of 100 syncs took ${p99Ms.toFixed(0)} ms in the last minute`));
  const pendingBytes = numberAt(facts, "pendingBytes");
  if (pendingBytes > backlogBytes) found.push(finding("journal-backlog", name, `${bytesText(pendingBytes)} wait for the extent files`));
  return [...found, ...findDamage(name, facts)];
}

function findDamage(name: string, facts: RoleFacts): Finding[] {
  const found: Finding[] = [];
  const damaged = numberAt(facts, "extents.damaged");
  if (damaged > 0) found.push(finding("replica-damaged", name, `${counted(damaged, "replica", countedAre)} damaged on it`));
  const fragments = numberAt(facts, "damagedFragments");
  if (fragments > 0) found.push(finding("fragment-damaged", name, `${counted(fragments, "fragment", countedAre)} damaged on it`));
  const findings = numberAt(facts, "scrub.findings") + numberAt(facts, "scrub.finished.findings");
  if (findings > 0) found.push(finding("scrub-found", name, `${counted(findings, "finding")} in the pass that runs and in the one before`));
  if (factAt(facts, "scrub.enabled") === false) found.push(finding("scrub-off", name, "scrubBytesPerSecond is 0"));
  if (factAt(facts, "tableRebuilt") === true) found.push(finding("table-rebuilt", name, "it made its extent table anew when it started"));
  return found;
}

function findCopies(processes: readonly ProcessFacts[]): Finding[] {
  const answered = processes.filter(({ answer }) => factAt(answer?.facts, "metadataCopy") !== undefined);
  const found = answered.flatMap(({ name, answer }) => {
    const ageMs = numberAt(answer?.facts, "metadataCopy.ageMs");
    const failures = numberAt(answer?.facts, "metadataCopy.failures");
    if (ageMs < copyOldMs || failures === 0) return [];
    const why = String(factAt(answer?.facts, "metadataCopy.failure") ?? "");
    return [finding("metadata-copy-old", name, `no copy for ${seconds(ageMs)}, ${counted(failures, "attempt")} failed: ${why}`)];
  });
  const old = answered.filter(({ answer }) => (answer?.uptimeMs ?? 0) > firstCopyMs);
  const none = old.length > 0 && answered.every(({ answer }) => numberAt(answer?.facts, "metadataCopy.kept") === 0);
  return none ? [...found, finding("metadata-copies-none", "", `none of ${counted(answered.length, "extent node")} has one`)] : found;
}
