/** Findings about processes, clocks, managers and the lock service. */
import { awayHosts, isAskerAtFault, isDown, isToldDown, servesNot, silentTogether } from "../certain.ts";
import { counted, countedAre, seconds } from "../counted.ts";
import { factAt, numberAt, type ProcessAnswer, type ProcessFacts, type RoleFacts, type StampFacts } from "../facts.ts";
import { fewNames } from "../few.ts";
import { type Finding, finding } from "../kinds/kinds.ts";
import { copyText, newestCopy, restoreCommand } from "../newest-copy.ts";
import { findClocks } from "./find-clocks.ts";
import { freeText } from "./free-text.ts";

const startMs = 30_000;
const restartsInRow = 3;
const restartsRecentMs = 600_000;
const keysMaxShare = 0.8;
const slowWriteMs = 200;
/** Fewer say nothing of one in a hundred. */
const writesMin = 20;

export const findingOf = (facts: StampFacts, role: string): ProcessFacts[] => facts.processes.filter((each) => each.role === role);

/** True if the process answered and is ready. */
export const servesNow = ({ answer }: ProcessFacts): boolean => answer?.ready === true;

/** Returns why a process does not answer, for people. */
export function absenceText(process: ProcessFacts): string {
  const { pid, state, lastExit, silence, host, absence } = process;
  const at = host === undefined ? "" : ` on host ${host}`;
  const ended = lastExit === "" ? "" : `; it ended last with ${lastExit}`;
  if (isToldDown(process)) return `it is ${state === "restarting" ? "being started again" : state}${at}${ended}`;
  if (absence === "gone")
    return pid === null ? `it does not run${at} (${silence})` : `process ${pid} runs and does not listen${at} (${silence})`;
  return `${pid === null ? "it" : `process ${pid}`} did not answer in time${at} (${silence})`;
}

/** Makes one finding if this command is at fault: other findings would be about it, not about the stamp. */
export function findAsker(facts: StampFacts): Finding[] {
  if (!isAskerAtFault(facts)) return [];
  const { secretFile, problem } = facts.asker;
  const why = problem === "" ? "no process accepts the secret in it" : problem;
  return [finding("secret-not-accepted", secretFile, `${why}, so no process answers this command and nothing is known of them`)];
}

export function findProcesses(facts: StampFacts): Finding[] {
  return [
    ...findSupervisor(facts),
    ...findHosts(facts),
    ...findSilent(facts),
    ...facts.processes.flatMap((process) => findProcess(facts, process)),
    ...findClocks(facts),
    ...findRefusing(facts),
    ...findOtherStamp(facts),
    ...findForeign(facts),
    ...findReleases(facts),
    ...findManagers(facts),
    ...findStore(facts),
  ];
}

function findSupervisor({ supervisor, supervisorPid, cluster }: StampFacts): Finding[] {
  if (supervisor === "gone")
    return [finding("supervisor-gone", "", "no supervisor runs on the data folder, but processes of the last one do")];
  const { problems = [] } = cluster;
  if (problems.length > 0) return [finding("supervisor-cannot-write", "", problems.join("; "))];
  if (supervisor !== "silent") return [];
  return [finding("supervisor-silent", String(supervisorPid), `process ${supervisorPid} did not answer on its socket`)];
}

function findProcess(facts: StampFacts, process: ProcessFacts): Finding[] {
  const { name, answer, restarts, lastExit } = process;
  const found: Finding[] = [];
  const uptimeMs = answer?.uptimeMs ?? 0;
  const again = restarts >= restartsInRow && uptimeMs < restartsRecentMs;
  const failing = again && answer?.ready !== true && (process.pid === null || uptimeMs < startMs);
  if (failing)
    found.push(finding("process-cannot-start", name, `it was started again ${counted(restarts, "time")} and ended with ${lastExit}`));
  else if (again)
    found.push(
      finding("process-restarts", name, `it was started again ${counted(restarts, "time")}, the last time ${seconds(uptimeMs)} ago`),
    );
  if (answer !== undefined && isLost(process)) found.push(...findLost(facts, name, answer));
  else if (answer === undefined) found.push(...findAbsent(facts, process, failing));
  else if (!answer.ready && !failing) {
    const cause = `it is ${answer.state} and waits for ${answer.waitingFor.join(", ") || "itself"}, ${seconds(uptimeMs)} after its start`;
    found.push(finding(uptimeMs < startMs ? "process-starting" : "process-not-ready", name, cause));
  } else if (answer.ready && answer.waitingFor.length > 0 && process.role !== "extent-node") {
    // Late steps of an extent node are told by `find-disks.ts`, with numbers.
    found.push(finding("process-late", name, `it waits for ${answer.waitingFor.join("; ")}`));
  }
  return found;
}

/** Makes one finding of a host that answers nothing, with the names of its processes. */
function findHosts(facts: StampFacts): Finding[] {
  return [...awayHosts(facts)].map(([host, all]) => {
    const names = all.map(({ name }) => name).join(", ");
    const replicas = (facts.streamLayer?.nodes ?? [])
      .filter(({ nodeId }) => all.some(({ name }) => name === nodeId))
      .reduce((sum, node) => sum + node.replicas, 0n);
    const holds = replicas === 0n ? "" : `; ${counted(replicas, "replica", countedAre)} on it`;
    const gone = all.every(({ absence }) => absence === "gone")
      ? "none of its processes runs"
      : `none of its ${all.length} processes answers`;
    return finding("host-away", host, `${gone}: ${names} (${all[0]?.silence ?? ""})${holds}`);
  });
}

/** Makes one finding of many silent processes: the command or its machine was late, more likely than each of them. */
function findSilent(facts: StampFacts): Finding[] {
  const away = awayHosts(facts);
  const silent = silentTogether(facts).filter(({ host = "" }) => !away.has(host));
  if (silent.length === 0) return [];
  const cause = `${silent.length} of ${counted(facts.processes.length, "process")} did not answer in time, so whether they serve is not known: ${fewNames(silent.map(({ name }) => name))} (${silent[0]?.silence ?? ""})`;
  return [finding("processes-silent", "", cause)];
}

/** Finds processes that refuse a secret which others accept. */
function findRefusing({ processes }: StampFacts): Finding[] {
  const refusing = processes.filter(({ absence }) => absence === "refused").map(({ name }) => name);
  return refusing.length === 0
    ? []
    : [finding("secret-differs", refusing.length === 1 ? (refusing[0] ?? "") : "", `${fewNames(refusing)}, while others accept it`)];
}

/** True if the metadata store is empty, damaged or too old: as the lock service says, or a manager that refuses it. */
const isLost = ({ role, answer }: ProcessFacts): boolean =>
  answer?.state === "damaged" ? role !== "extent-node" : answer?.state === "empty" && role === "lock-service";

function findLost(facts: StampFacts, name: string, { state, waitingFor }: ProcessAnswer): Finding[] {
  if (state === "damaged") return [withCopy(facts, finding("store-damaged", name, waitingFor.join("; ")))];
  return [withCopy(facts, finding("store-empty", name, "there is no stamp in its folder"))];
}

/** Finds a whole store of another stamp than the extent nodes': it was made anew after its disk was lost. */
function findOtherStamp(facts: StampFacts): Finding[] {
  return findingOf(facts, "lock-service").flatMap(({ name, answer }) => {
    const stampId = String(factAt(answer?.facts, "stampId") ?? "");
    if (stampId === "") return [];
    const others = findingOf(facts, "extent-node").filter(
      ({ answer: node }) => ![stampId, ""].includes(String(factAt(node?.facts, "stampId") ?? "")),
    );
    if (others.length === 0) return [];
    const cause = `it is stamp ${stampId}, but ${counted(others.length, "extent node", ["holds", "hold"])} data of another: ${fewNames(others.map((each) => each.name))}`;
    return [withCopy(facts, finding("store-of-another-stamp", name, cause))];
  });
}

/** Adds the newest copy of the metadata to the cause, and the command that puts it back to the help. */
function withCopy(facts: StampFacts, found: Finding): Finding {
  const copy = newestCopy(facts);
  const stopped = findingOf(facts, "extent-node").filter(({ answer }) => answer === undefined).length;
  const silent = stopped === 0 ? "" : ` (${counted(stopped, "extent node", ["does", "do"])} not answer)`;
  if (copy === undefined) return { ...found, cause: `${found.cause}; no copy of the metadata was found on the extent nodes${silent}` };
  const { dataDir, lockService } = facts.cluster;
  const lockServices = findingOf(facts, "lock-service");
  const replicated = lockServices.some(({ answer }) => factAt(answer?.facts, "consensus") !== undefined);
  // Several others share an etcd. For a single one over etcd the restore itself tells the next command.
  const target = replicated ? "replicated" : lockService.includes(",") ? "etcd" : "alone";
  const names = lockServices.map(({ name }) => name);
  const command = restoreCommand(copy, facts.setUp === undefined ? undefined : dataDir, target, names);
  const help = `put the newest copy back: ${command}`;
  return { ...found, cause: `${found.cause}; ${copyText(copy, facts.nowMs)}${silent}`, help };
}

/**
 * An extent node that is away is told by `find-disks.ts`, with what is on it. Without one of several lock services the others serve. A silent one
 * is away only if partition servers, which cannot serve without it, say so.
 */
function findAbsent(facts: StampFacts, process: ProcessFacts, failing: boolean): Finding[] {
  if (process.absence === "refused" || awayHosts(facts).has(process.host ?? "")) return [];
  const lockServices = findingOf(facts, "lock-service");
  if (process.role === "lock-service" && lockServices.every((each) => servesNot(each, facts) || isMissed(each, facts)))
    return [finding("lock-service-away", process.name, absenceText(process))];
  if (failing) return [];
  const isAway = servesNot(process, facts);
  if (process.role === "extent-node" && isAway) return [];
  if (isDown(process)) return [finding("process-down", process.name, absenceText(process))];
  if (!isAway && silentTogether(facts).includes(process)) return [];
  const silent = finding("process-silent", process.name, absenceText(process));
  return [process.pid === null ? { ...silent, help: askAgain } : { ...silent, help: silent.help.replaceAll("PID", String(process.pid)) }];
}

/** A process of another host or of a container has no number here. */
const askAgain = "ask again: ./stamp health --data DATA";

/** True if the lock service is silent and a partition server that answers has lost its lease, or never had one. */
const isMissed = ({ absence: kind }: ProcessFacts, facts: StampFacts): boolean =>
  kind === "late" && findingOf(facts, "partition-server").some(({ answer }) => answer?.ready === false);

const releaseText = ({ release, versions }: ProcessAnswer): string =>
  `${release === "" ? "an unknown release" : release}${versions === undefined ? " before feature levels" : ` of level ${versions.featureLevel}`}`;

function findReleases({ processes }: StampFacts): Finding[] {
  const answered = processes.flatMap(({ name, answer }) => (answer === undefined ? [] : [{ name, release: releaseText(answer) }]));
  const groups = [...Map.groupBy(answered, ({ release }) => release)];
  if (groups.length < 2) return [];
  const told = groups.map(([release, all]) => `${release}: ${all.map(({ name }) => name).join(", ")}`);
  return [finding("release-mix", "", told.join("; "))];
}

function findManagers(facts: StampFacts): Finding[] {
  const found: Finding[] = [];
  const away = awayHosts(facts);
  for (const [role, code] of [
    ["stream-manager", "no-stream-manager"],
    ["partition-manager", "no-partition-manager"],
  ] as const) {
    const all = findingOf(facts, role);
    if (all.length === 0) continue;
    const states = all.map(({ name, answer }) => `${name} ${answer?.state ?? "does not answer"}`).join(", ");
    // A silent one may be what is missed.
    const isKnown = all.every((each) => each.answer !== undefined || servesNot(each, facts));
    const isLed = all.some(({ answer }) => answer?.state === "leader");
    const isStandbyAway = all.some(({ host = "" }) => away.has(host));
    if (!isLed && isKnown) found.push(finding(code, "", states));
    else if (isLed && isKnown && !isStandbyAway && !all.some((each) => each.answer?.state === "standby" && servesNow(each)))
      found.push(finding("no-standby", role, states));
  }
  for (const role of ["front-end", "partition-server"]) {
    const all = findingOf(facts, role);
    if (all.length > 0 && all.every((each) => servesNot(each, facts)))
      found.push(finding("role-absent", role, `none of ${all.length} is ready`));
  }
  return found;
}

interface SilentMember {
  readonly member: string;
  readonly why: string;
}

function findEtcd(own: RoleFacts): Finding[] {
  const silent = (factAt(own, "etcd.silent") as readonly SilentMember[] | undefined) ?? [];
  const found = silent.map(({ member, why }) =>
    finding("etcd-member-away", member, `it is 1 of ${counted(numberAt(own, "etcd.members"), "member")} and does not answer (${why})`),
  );
  const old = numberAt(own, "etcd.oldRevisions");
  return old === 0 ? found : [...found, finding("etcd-history-grows", "", `${counted(old, "revision")} older than two hours`)];
}

/** Number of log entries by which a member may lag before it counts as one that does not follow. */
const lagMax = 1_000;

/** Returns the names of the lock services that vote, as their leader knows them; undefined: nobody leads, or the leader does not tell. */
function votersOf(facts: StampFacts): readonly string[] | undefined {
  const leader = findingOf(facts, "lock-service").find(({ answer }) => factAt(answer?.facts, "consensus.role") === "leader");
  return factAt(leader?.answer?.facts, "consensus.voters") as readonly string[] | undefined;
}

function findMembers(own: RoleFacts): Finding[] {
  const voters = factAt(own, "consensus.voters") as readonly string[] | undefined;
  if (factAt(own, "consensus.role") !== "leader" || voters === undefined) return [];
  const configured = (factAt(own, "consensus.members") as readonly string[] | undefined) ?? [];
  const without = configured.filter((name) => !voters.includes(name));
  const unnamed = voters.filter((name) => !configured.includes(name));
  const survived = `${counted(voters.length, "lock service", ["votes", "vote"])}: the loss of ${Math.floor((voters.length - 1) / 2)} is survived`;
  return [
    ...without.map((name) => finding("metadata-members-differ", name, `it has no vote. ${survived}`)),
    ...unnamed.map((name) => ({
      ...finding("metadata-members-differ", name, `it has a vote, and \`members\` does not name it. ${survived}`),
      help: `name it in the configuration again, or take its vote: ./stamp lock-service remove ${name}`,
    })),
  ];
}

function findReplication(name: string, own: RoleFacts, voters: readonly string[] | undefined): Finding[] {
  const found = findMembers(own);
  // A lock service without a vote is told of as such.
  if (factAt(own, "consensus.full") === false && voters?.includes(name) !== false)
    found.push(finding("metadata-copy-behind", name, "the others have not recorded its start yet"));
  const lag = (factAt(own, "consensus.lag") as Readonly<Record<string, number>> | undefined) ?? {};
  for (const [member, entries] of Object.entries(lag)) {
    if (entries > lagMax) found.push(finding("metadata-copy-behind", member, `it lacks ${entries} entries of the log`));
  }
  if (factAt(own, "consensus.diskFull") === true) {
    const cause = "its disk is full: it writes nothing until there is room";
    found.push({ ...finding("metadata-copy-behind", name, cause), help: `make room on the disk of DATA/${name}` });
  }
  return found;
}

/** Finds lock services whose metadata have another lineage than those of a majority; without a majority, all of them. */
function findForeign(facts: StampFacts): Finding[] {
  const all = findingOf(facts, "lock-service");
  const known = all.flatMap(({ name, answer }) => {
    const lineage = String(factAt(answer?.facts, "consensus.lineage") ?? "");
    return lineage === "" ? [] : [{ name, lineage }];
  });
  const groups = [...Map.groupBy(known, ({ lineage }) => lineage).values()].map((group) => group.map(({ name }) => name));
  if (groups.length < 2) return [];
  const most = groups.find((names) => names.length * 2 > all.length);
  if (most === undefined) {
    const cause = `${groups.map((names) => names.join(" and ")).join(", ")}: each has other metadata, and none is a majority`;
    const help = "start the lock services that do not run: the metadata of a majority stay; ./stamp status --data DATA";
    return [{ ...finding("metadata-copy-foreign", "", cause), help }];
  }
  const others = groups.filter((names) => names !== most).flat();
  return others.map((name) => finding("metadata-copy-foreign", name, `its metadata are not those of ${most.join(" and ")}`));
}

interface LeaseFact {
  readonly name: string;
  readonly holder: string;
  readonly ended: boolean;
  readonly refused: boolean;
}

function findStore(facts: StampFacts): Finding[] {
  return findingOf(facts, "lock-service").flatMap(({ name, answer }) => {
    if (answer === undefined) return [];
    const found: Finding[] = [];
    const { facts: own } = answer;
    const keys = numberAt(own, "keys");
    const keysMax = numberAt(own, "keysMax");
    if (keysMax > 0 && keys > keysMaxShare * keysMax) found.push(finding("metadata-keys-many", name, `${keys} of ${keysMax} keys`));
    if (factAt(own, "diskFull") === true) found.push(finding("metadata-disk-full", name, `${freeText(own)} are free`));
    const p99Ms = numberAt(own, "wrote.recent.p99Ms");
    if (p99Ms > slowWriteMs && numberAt(own, "wrote.recent.count") >= writesMin)
      found.push(finding("metadata-slow", name, `1 of 100 writes took ${p99Ms.toFixed(0)} ms in the last minute`));
    found.push(...findEtcd(own), ...findReplication(name, own, votersOf(facts)));
    const leases = (factAt(own, "leases") as readonly LeaseFact[] | undefined) ?? [];
    const known = new Set(findingOf(facts, "partition-server").map((each) => each.name));
    for (const lease of leases.filter((each) => each.name.startsWith("ps/") && known.has(each.name.slice(3)))) {
      const server = lease.name.slice(3);
      if (lease.ended) found.push(finding("lease-ended", server, `its lease ${lease.name} has ended`));
      else if (lease.refused) found.push(finding("lease-refused", server, `its lease ${lease.name} is refused`));
    }
    return found;
  });
}
