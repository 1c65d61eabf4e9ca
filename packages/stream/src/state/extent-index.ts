/** Sets of extents that the stream manager's work begins from, kept with each change of a record. */
import type { ExtentId } from "@stamp/base";
import type { ExtentRecord } from "../records.ts";

export class ExtentIndex {
  readonly unsealed: Set<ExtentId> = new Set();
  readonly incomplete: Set<ExtentId> = new Set();
  readonly garbage: Set<ExtentId> = new Set();
  readonly attempts: Set<ExtentId> = new Set();
  readonly unreferenced: Set<ExtentId> = new Set();

  /** `referenced`: true if a list holds the extent. */
  put(extent: ExtentRecord, referenced: boolean): void {
    const { phase, replicas, repair, removed, attempt, removedFragments } = extent;
    const belongs = (index: Set<ExtentId>, inside: boolean): unknown => (inside ? index.add(extent.id) : index.delete(extent.id));
    belongs(this.unsealed, phase === "allocating" || phase === "open" || phase === "sealing");
    belongs(this.incomplete, phase === "sealed" && (repair !== undefined || replicas.some((replica) => !replica.complete)));
    belongs(this.garbage, phase === "dropped" || removed.length > 0 || removedFragments !== undefined);
    belongs(this.attempts, phase === "sealed" && attempt !== undefined);
    belongs(this.unreferenced, phase !== "allocating" && phase !== "dropped" && !referenced);
  }

  remove(id: ExtentId): void {
    for (const index of [this.unsealed, this.incomplete, this.garbage, this.attempts, this.unreferenced]) index.delete(id);
  }
}
