/**
 * How many extents are in each phase, how many were sealed with accepted loss, and how many, and how many unsealed ones, have a replica on
 * each node: kept with every change, so that nobody has to count a million of them. A fragment counts as a replica does: its node is not empty.
 */
import type { AttemptRecord, ExtentPhase, ExtentRecord, ReplicaPlace } from "./records.ts";

export type PhaseCounts = Readonly<Record<ExtentPhase, number>>;

export class ExtentCounts {
  readonly #phases: Record<ExtentPhase, number> = { allocating: 0, open: 0, sealing: 0, sealed: 0, dropped: 0 };
  #lossy = 0;
  #coded = 0;
  readonly #byNode = new Map<string, number>();
  readonly #unsealedByNode = new Map<string, number>();

  get phases(): PhaseCounts {
    return this.#phases;
  }

  /** Number of sealed extents whose loss a person accepted. */
  get lossy(): number {
    return this.#lossy;
  }

  replicasOn(nodeId: string): number {
    return this.#byNode.get(nodeId) ?? 0;
  }

  unsealedOn(nodeId: string): number {
    return this.#unsealedByNode.get(nodeId) ?? 0;
  }

  /** Number of extents that are stored as fragments. */
  get coded(): number {
    return this.#coded;
  }

  changed(before: ExtentRecord | undefined, after: ExtentRecord | undefined): void {
    if (before !== undefined) this.#add(before, -1);
    if (after !== undefined) this.#add(after, 1);
  }

  #add(extent: ExtentRecord, step: 1 | -1): void {
    const { phase, replicas, loss, coded } = extent;
    this.#phases[phase] += step;
    if (phase === "dropped") return;
    if (loss !== undefined) this.#lossy += step;
    if (coded !== undefined) this.#coded += step;
    if (phase !== "sealed") for (const { nodeId } of replicas) addTo(this.#unsealedByNode, nodeId, step);
    for (const nodeId of holdersOf(extent)) addTo(this.#byNode, nodeId, step);
  }
}

/** Returns the nodes on which an attempt makes files. */
export const targetsOf = (attempt: AttemptRecord | undefined): readonly ReplicaPlace[] =>
  attempt === undefined ? [] : attempt.kind === "repair" ? [attempt.target] : attempt.targets;

/** Returns the nodes that have, or are given, a replica or fragment of the extent, each once. */
export function holdersOf({ replicas, repair, coded, attempt }: ExtentRecord): Iterable<string> {
  if (repair === undefined && coded === undefined && attempt === undefined) return replicas.map(({ nodeId }) => nodeId);
  const places = [...replicas, ...(repair === undefined ? [] : [repair]), ...(coded?.fragments ?? []), ...targetsOf(attempt)];
  return new Set(places.map(({ nodeId }) => nodeId));
}

function addTo(counts: Map<string, number>, nodeId: string, step: 1 | -1): void {
  const count = (counts.get(nodeId) ?? 0) + step;
  if (count === 0) counts.delete(nodeId);
  else counts.set(nodeId, count);
}
