/** Turns facts into findings, and into the sentence that says how the stamp is. Pure. */
import { inContainers } from "@stamp/cluster";
import { isDown } from "./certain.ts";
import { counted, countedAre } from "./counted.ts";
import type { StampFacts } from "./facts.ts";
import { findDisks } from "./find/find-disks.ts";
import { findExtents } from "./find/find-extents.ts";
import { findFaultRules } from "./find/find-fault-rules.ts";
import { findLevels } from "./find/find-levels.ts";
import { findMasterKey } from "./find/find-master-key.ts";
import { findAsker, findingOf, findProcesses, servesNow } from "./find/find-processes.ts";
import { findRanges } from "./find/find-ranges.ts";
import { findSecret } from "./find/find-secret.ts";
import { findSetUp } from "./find/find-set-up.ts";
import { foldHosts } from "./fold.ts";
import { helpAt, startAgain } from "./help-text.ts";
import { severities } from "./kinds/kind.ts";
import type { Code, Finding } from "./kinds/kinds.ts";

/** Returns findings, worst first: those that stop requests, then by severity, else in the order of the areas. */
export function findingsOf(facts: StampFacts): Finding[] {
  const asker = findAsker(facts);
  if (asker.length > 0) return asker.map((each) => withPlace(each, facts));
  const all = [
    ...findProcesses(facts),
    ...findLevels(facts),
    ...findDisks(facts),
    ...findExtents(facts),
    ...findRanges(facts),
    ...findSetUp(facts),
    ...findSecret(facts),
    ...findMasterKey(facts),
    ...findFaultRules(facts),
  ];
  const rank = ({ stops, severity }: Finding): number => (stops ? 0 : severities.length) + severities.indexOf(severity);
  return foldHosts(all, facts)
    .toSorted((one, other) => rank(one) - rank(other))
    .map((each) => withPlace(each, facts));
}

/** Findings that a container is started again for. */
const startedAgain: readonly Code[] = ["process-down", "node-down", "lock-service-away"];

/** Writes the commands of a finding so that they reach this stamp. */
function withPlace(found: Finding, { processes, place }: StampFacts): Finding {
  const process = processes.find(({ name }) => name === found.subject);
  const host = found.code === "host-away" ? found.subject : process?.host;
  const isStopped = place.dataDir === inContainers && process !== undefined && isDown(process) && startedAgain.includes(found.code);
  const help = isStopped ? `${startAgain(found.subject)}; ${found.help}` : found.help;
  return { ...found, help: helpAt(help, place, host) };
}

export interface Health {
  /** How the stamp is, in one sentence. */
  readonly sentence: string;
  /** State of the stamp. `stopped`: requests are refused or wait; `danger`: data may be lost; `degraded`: a person should act; `unknown`: too few answered. */
  readonly state: "healthy" | "degraded" | "unknown" | "danger" | "stopped";
  readonly findings: readonly Finding[];
}

const states = {
  healthy: "healthy",
  degraded: "serving, and needs attention",
  unknown: "NOT KNOWN",
  danger: "serving, and IN DANGER",
  stopped: "NOT SERVING EVERYTHING",
} as const;

export function healthOf(facts: StampFacts): Health {
  const findings = findingsOf(facts);
  const has = (severity: Finding["severity"]): boolean => findings.some((each) => each.severity === severity);
  const state = findings.some(({ stops }) => stops)
    ? "stopped"
    : has("critical")
      ? "danger"
      : isUnknown(facts)
        ? "unknown"
        : has("warning")
          ? "degraded"
          : "healthy";
  return { sentence: `${states[state]}: ${state === "healthy" ? countsOf(facts) : worstOf(findings)}`, state, findings };
}

/** True if of some role that every request needs no process is known to serve. */
const isUnknown = (facts: StampFacts): boolean =>
  neededRoles.map((role) => findingOf(facts, role)).some((all) => all.length > 0 && !all.some(servesNow));

const neededRoles = ["lock-service", "extent-node", "partition-server", "front-end"];

/** Returns the parts of a healthy stamp in words. */
function countsOf(facts: StampFacts): string {
  const { processes, partitionLayer, streamLayer } = facts;
  const ready = processes.filter(servesNow).length;
  const ranges = partitionLayer?.ranges.length ?? 0;
  const nodes = streamLayer?.nodes.filter(({ up }) => up).length ?? findingOf(facts, "extent-node").filter(servesNow).length;
  return `${ready} of ${counted(processes.length, "process", countedAre)} ready, ${counted(ranges, "range", countedAre)} served, ${counted(nodes, "extent node", ["keeps", "keep"])} the data`;
}

function worstOf(findings: readonly Finding[]): string {
  const [worst] = findings;
  if (worst === undefined) return "";
  const others = findings.filter((each) => each !== worst && each.severity !== "note").length;
  const more = others === 0 ? "" : ` (and ${counted(others, "more finding")})`;
  return `${subjectOf(worst)}${worst.cause}${more}`;
}

export const subjectOf = ({ subject }: Finding): string => (subject === "" ? "" : `${subject}: `);
