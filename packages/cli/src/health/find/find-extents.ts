/** Findings about extents and their replicas, as the leading stream manager tells them. */
import { bytesText } from "../../print.ts";
import { counted, seconds } from "../counted.ts";
import { factAt, numberAt, type StampFacts } from "../facts.ts";
import { fewNames } from "../few.ts";
import { type Finding, finding } from "../kinds/kinds.ts";
import { findingOf } from "./find-processes.ts";

const have = ["has", "have"] as const;
const wait = ["waits", "wait"] as const;
export function findExtents(facts: StampFacts): Finding[] {
  const leader = findingOf(facts, "stream-manager").find(({ answer }) => answer?.state === "leader");
  // With no leader, no-stream-manager says more.
  if (leader === undefined) return [];
  if (facts.streamLayer === undefined) return [finding("extents-unknown", leader.name, `${leader.name} leads and did not answer in time`)];
  return [
    ...findRepair(facts),
    ...findCoded(facts, leader.answer?.facts),
    ...findQuarantine(facts),
    ...findLater(leader.answer?.facts),
    ...findLost(leader.answer?.facts),
    ...findOfLeader(leader.answer?.facts, leader.name),
  ];
}

function findRepair({ streamLayer }: StampFacts): Finding[] {
  const repair = streamLayer?.repair;
  if (repair === undefined) return [];
  const found: Finding[] = [];
  const { replicasWaiting, bytesWaiting, endangered, unreachable, copiesRunning, replicasInGrace, blocked, etaMs } = repair;
  if (unreachable > 0n)
    found.push(finding("extents-unreachable", "", `${counted(unreachable, "sealed extent", have)} no replica that can be reached`));
  if (endangered > 0n)
    found.push(finding("extents-endangered", "", `${counted(endangered, "replica", wait)} whose extent has one intact copy left`));
  if (replicasWaiting > 0n) {
    const left = etaMs === undefined ? "" : `, about ${seconds(Number(etaMs))} left`;
    const cause = `${counted(replicasWaiting, "replica", wait)} (${bytesText(bytesWaiting)}), ${copiesRunning} of them being copied${left}`;
    found.push(finding("replicas-missing", "", cause));
  }
  if (replicasInGrace > 0n)
    found.push(finding("replicas-awaited", "", `${counted(replicasInGrace, "extent", ["misses", "miss"])} a node that may come back`));
  if (blocked.length > 0)
    found.push(finding("repair-blocked", "", fewNames(blocked), streamLayer === undefined ? undefined : streamLayer.nodes.length + 1));
  return found;
}

const miss = ["misses", "miss"] as const;

function findCoded({ streamLayer }: StampFacts, leader: Readonly<Record<string, unknown>> | undefined): Finding[] {
  const found: Finding[] = [];
  const { fragmentsUnreachable = 0n, fragmentsEndangered = 0n, fragmentsWaiting = 0n, fragmentsInGrace = 0n } = streamLayer?.repair ?? {};
  if (fragmentsUnreachable > 0n)
    found.push(finding("coded-unreachable", "", `${counted(fragmentsUnreachable, "coded extent", miss)} too many fragments`));
  if (fragmentsEndangered > 0n)
    found.push(
      finding("coded-endangered", "", `${counted(fragmentsEndangered, "coded extent", ["bears", "bear"])} no further loss for certain`),
    );
  if (fragmentsWaiting > 0n) {
    const etaMs = streamLayer?.repair?.fragmentEtaMs;
    const left = etaMs === undefined ? "" : `, about ${seconds(Number(etaMs))} left`;
    found.push(finding("fragments-missing", "", `${counted(fragmentsWaiting, "coded extent", wait)} for a fragment${left}`));
  }
  if (fragmentsInGrace > 0n)
    found.push(finding("fragments-awaited", "", `${counted(fragmentsInGrace, "coded extent", miss)} a node that may come back`));
  const failing = numberAt(leader, "coding.failing");
  const reasons = (factAt(leader, "coding.failures") as readonly string[] | undefined) ?? [];
  if (failing > 0) found.push(finding("coding-stuck", "", `${counted(failing, "extent", wait)} for another attempt: ${fewNames(reasons)}`));
  const adoptable = numberAt(leader, "coding.adoptable");
  if (adoptable > 0) found.push(finding("coded-forgotten", "", `nodes hold newer fragments of ${counted(adoptable, "extent")}`));
  const strays = numberAt(leader, "coding.strays");
  if (strays > 0) found.push(finding("stray-fragments", "", `${counted(strays, "fragment")} without a record`));
  if (factAt(leader, "coding.paused") === true) found.push(finding("coding-paused", "", "it was paused by a person"));
  return found;
}

function findQuarantine({ streamLayer }: StampFacts): Finding[] {
  return [...Map.groupBy(streamLayer?.quarantine ?? [], ({ nodeId }) => nodeId)].map(([nodeId, replicas]) => {
    const ids = fewNames(replicas.map(({ extentId }) => String(extentId)));
    return finding(
      "quarantine",
      nodeId,
      `${counted(replicas.length, "replica")} in quarantine (${replicas.length === 1 ? "extent" : "extents"} ${ids}): ${replicas[0]?.why ?? ""}`,
    );
  });
}

function findLater(leader: Readonly<Record<string, unknown>> | undefined): Finding[] {
  const nodes = (factAt(leader, "later") as readonly { nodeId: string; count: number; why: string }[] | undefined) ?? [];
  if (nodes.length === 0) return [];
  // One finding: all of the store is older, whichever node shows it.
  const replicas = nodes.reduce((sum, { count }) => sum + count, 0);
  const cause = `${counted(replicas, "replica")} on ${fewNames(nodes.map(({ nodeId }) => nodeId))}: ${nodes[0]?.why ?? ""}`;
  return [finding("metadata-older", "", cause)];
}

interface LostExtent {
  readonly stream: string;
  readonly id: number;
  readonly why: string;
}

function findLost(leader: Readonly<Record<string, unknown>> | undefined): Finding[] {
  const count = numberAt(leader, "takenBack.lostCount");
  if (count === 0) return [];
  const lost = (factAt(leader, "takenBack.lost") as readonly LostExtent[] | undefined) ?? [];
  const absent = (factAt(leader, "takenBack.absent") as readonly string[] | undefined) ?? [];
  const told = fewNames(lost.map(({ id, stream, why }) => `extent ${id} of ${stream}: ${why}`));
  const away = absent.length === 0 ? "" : `; nodes that were not heard: ${fewNames(absent)}`;
  return [finding("restore-lost", "", `${counted(count, "extent")} did not come back after the restore (${told})${away}`)];
}

function findOfLeader(facts: Readonly<Record<string, unknown>> | undefined, name: string): Finding[] {
  const found: Finding[] = [];
  const lossy = numberAt(facts, "sealedWithLoss");
  if (lossy > 0) found.push(finding("sealed-with-loss", "", counted(lossy, "extent")));
  const waits = (factAt(facts, "waits") as readonly string[] | undefined) ?? [];
  if (waits.length > 0) found.push(finding("stream-manager-waits", name, fewNames(waits)));
  return found;
}
