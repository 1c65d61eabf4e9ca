/** Findings about extents and their replicas, as the leading stream manager tells them. */
import { bytesText } from "../print.ts";
import { factAt, numberAt, type StampFacts } from "./facts.ts";
import { of, seconds } from "./find-processes.ts";
import { type Finding, finding } from "./kinds.ts";

/** Shown of a list. */
const shownMax = 3;

export const few = (all: readonly string[]): string =>
  all.length <= shownMax ? all.join(", ") : `${all.slice(0, shownMax).join(", ")} and ${all.length - shownMax} more`;

export function findExtents(facts: StampFacts): Finding[] {
  const leader = of(facts, "stream-manager").find(({ answer }) => answer?.state === "leader");
  // With no leader, no-stream-manager says more.
  if (leader === undefined) return [];
  if (facts.streamLayer === undefined) return [finding("extents-unknown", leader.name, `${leader.name} leads and did not answer in time`)];
  return [...findRepair(facts), ...findQuarantine(facts), ...findOfLeader(leader.answer?.facts, leader.name)];
}

function findRepair({ streamLayer }: StampFacts): Finding[] {
  const repair = streamLayer?.repair;
  if (repair === undefined) return [];
  const found: Finding[] = [];
  const { replicasWaiting, bytesWaiting, endangered, unreachable, copiesRunning, replicasInGrace, blocked, etaMs } = repair;
  if (unreachable > 0n) found.push(finding("extents-unreachable", "", `${unreachable} sealed extents have no replica that can be reached`));
  if (endangered > 0n) found.push(finding("extents-endangered", "", `${endangered} replicas wait whose extent has one intact copy left`));
  if (replicasWaiting > 0n) {
    const left = etaMs === undefined ? "" : `, about ${seconds(Number(etaMs))} left`;
    const cause = `${replicasWaiting} replicas (${bytesText(bytesWaiting)}) wait, ${copiesRunning} are being copied${left}`;
    found.push(finding("replicas-missing", "", cause));
  }
  if (replicasInGrace > 0n) found.push(finding("replicas-awaited", "", `${replicasInGrace} extents miss a node that may come back`));
  if (blocked.length > 0)
    found.push(finding("repair-blocked", "", few(blocked), streamLayer === undefined ? undefined : streamLayer.nodes.length + 1));
  return found;
}

function findQuarantine({ streamLayer }: StampFacts): Finding[] {
  return [...Map.groupBy(streamLayer?.quarantine ?? [], ({ nodeId }) => nodeId)].map(([nodeId, replicas]) => {
    const ids = few(replicas.map(({ extentId }) => String(extentId)));
    return finding("quarantine", nodeId, `${replicas.length} replicas in quarantine (extents ${ids}): ${replicas[0]?.why ?? ""}`);
  });
}

function findOfLeader(facts: Readonly<Record<string, unknown>> | undefined, name: string): Finding[] {
  const found: Finding[] = [];
  const lossy = numberAt(facts, "sealedWithLoss");
  if (lossy > 0) found.push(finding("sealed-with-loss", "", `${lossy} extents`));
  const waits = (factAt(facts, "waits") as readonly string[] | undefined) ?? [];
  if (waits.length > 0) found.push(finding("stream-manager-waits", name, few(waits)));
  return found;
}
