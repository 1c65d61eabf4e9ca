/** How many extents are in each phase, and how many have a replica on each node: kept with every change, so that nobody has to count a million of them. */
import type { ExtentPhase, ExtentRecord } from "./records.ts";

export type PhaseCounts = Readonly<Record<ExtentPhase, number>>;

export class ExtentCounts {
  readonly #phases: Record<ExtentPhase, number> = { allocating: 0, open: 0, sealing: 0, sealed: 0, dropped: 0 };
  readonly #byNode = new Map<string, number>();

  get phases(): PhaseCounts {
    return this.#phases;
  }

  replicasOn(nodeId: string): number {
    return this.#byNode.get(nodeId) ?? 0;
  }

  changed(before: ExtentRecord | undefined, after: ExtentRecord | undefined): void {
    if (before !== undefined) this.#add(before, -1);
    if (after !== undefined) this.#add(after, 1);
  }

  #add({ phase, replicas, repair }: ExtentRecord, step: 1 | -1): void {
    this.#phases[phase] += step;
    if (phase === "dropped") return;
    for (const { nodeId } of replicas) this.#addTo(nodeId, step);
    // A copy in the place of a replica of the same node is no second one.
    if (repair !== undefined && !replicas.some(({ nodeId }) => nodeId === repair.nodeId)) this.#addTo(repair.nodeId, step);
  }

  #addTo(nodeId: string, step: 1 | -1): void {
    const count = this.replicasOn(nodeId) + step;
    if (count === 0) this.#byNode.delete(nodeId);
    else this.#byNode.set(nodeId, count);
  }
}
