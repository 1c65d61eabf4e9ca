/**
 * How many extents are in each phase, how many were sealed with accepted loss, and how many, and how many unsealed ones, have a replica on
 * each node: kept with every change, so that nobody has to count a million of them.
 */
import type { ExtentPhase, ExtentRecord } from "./records.ts";

export type PhaseCounts = Readonly<Record<ExtentPhase, number>>;

export class ExtentCounts {
  readonly #phases: Record<ExtentPhase, number> = { allocating: 0, open: 0, sealing: 0, sealed: 0, dropped: 0 };
  #lossy = 0;
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

  changed(before: ExtentRecord | undefined, after: ExtentRecord | undefined): void {
    if (before !== undefined) this.#add(before, -1);
    if (after !== undefined) this.#add(after, 1);
  }

  #add({ phase, replicas, repair, loss }: ExtentRecord, step: 1 | -1): void {
    this.#phases[phase] += step;
    if (phase === "dropped") return;
    if (loss !== undefined) this.#lossy += step;
    for (const { nodeId } of replicas) {
      addTo(this.#byNode, nodeId, step);
      if (phase !== "sealed") addTo(this.#unsealedByNode, nodeId, step);
    }
    // A copy in the place of a replica of the same node is no second one.
    if (repair !== undefined && !replicas.some(({ nodeId }) => nodeId === repair.nodeId)) addTo(this.#byNode, repair.nodeId, step);
  }
}

function addTo(counts: Map<string, number>, nodeId: string, step: 1 | -1): void {
  const count = (counts.get(nodeId) ?? 0) + step;
  if (count === 0) counts.delete(nodeId);
  else counts.set(nodeId, count);
}
