/**
 * Folds findings that follow from a host that is away into the finding of that host. Pure.
 *
 * Invariants:
 * - A finding stays by itself if anything but such hosts may be its cause as well.
 * - Nothing gets lighter: the host's finding takes the worst severity of what it folds, and its words.
 */
import { NodeDuty } from "@stamp/wire";
import { awayHosts, servesNot } from "./certain.ts";
import type { StampFacts } from "./facts.ts";
import { severities } from "./kinds/kind.ts";
import type { Code, Finding } from "./kinds/kinds.ts";

/** Findings that missing extent nodes give. */
const ofNodes: readonly Code[] = [
  ...(["node-down", "nodes-below-minimum", "nodes-below-copies", "replicas-missing", "replicas-awaited"] as const),
  ...(["extents-endangered", "extents-unreachable", "fragments-missing", "fragments-awaited"] as const),
  ...(["coded-endangered", "coded-unreachable"] as const),
];
/** Findings that missing partition servers give. */
const ofServers: readonly Code[] = ["range-server-away", "server-away"];
/** Damage, or room, that a missing copy may come from as well. */
const otherCauses: readonly Code[] = [
  ...(["replica-damaged", "fragment-damaged", "scrub-found", "quarantine", "repair-blocked", "coding-stuck"] as const),
  ...(["node-not-started", "node-draining", "node-drain-blocked", "disk-full", "disks-full", "coded-forgotten"] as const),
];

export function foldHosts(found: readonly Finding[], facts: StampFacts): readonly Finding[] {
  const away = new Set([...awayHosts(facts).values()].flat().map(({ name }) => name));
  const [host, ...others] = found.filter(({ code }) => code === "host-away");
  // With several hosts away, nothing says which of them a finding follows from.
  if (host === undefined || others.length > 0) return found;
  const { nodes = [] } = facts.streamLayer ?? {};
  const missing = nodes.filter(({ up, duty }) => !up && duty !== NodeDuty.DECOMMISSIONED).map(({ nodeId }) => nodeId);
  const gone = facts.processes.filter((each) => servesNot(each, facts));
  const only = (role: string): boolean => gone.every((each) => each.role !== role || away.has(each.name));
  const isOfNodes = missing.every((name) => away.has(name)) && only("extent-node") && !found.some(({ code }) => otherCauses.includes(code));
  const follows = ({ code, subject }: Finding): boolean =>
    (ofNodes.includes(code) && isOfNodes) ||
    (ofServers.includes(code) && (code === "server-away" ? away.has(subject) : only("partition-server")));
  const folded = found.filter(follows);
  if (folded.length === 0) return found;
  const worst = [host, ...folded].toSorted((one, other) => severities.indexOf(one.severity) - severities.indexOf(other.severity))[0];
  const causes = folded.map(({ code, subject, cause }) => `${code}: ${subject === "" ? "" : `${subject}: `}${cause}`);
  const whole: Finding = {
    ...host,
    severity: worst?.severity ?? host.severity,
    stops: [host, ...folded].some(({ stops }) => stops),
    cause: `${host.cause}; from that follow ${causes.join("; ")}`,
  };
  return found.flatMap((each) => (each === host ? [whole] : follows(each) ? [] : [each]));
}
