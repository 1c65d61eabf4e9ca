/** Extents that can't be copied now, and why; what is asked of them is counted when they come in, since there may be very many. */
import type { ExtentId } from "@stamp/base";
import type { ExtentRecord } from "@stamp/stream";

export class BlockedCopies {
  readonly #extents = new Set<ExtentId>();
  readonly #reasons = new Map<string, number>();
  readonly #byNode = new Map<string, Map<string, number>>();
  #bytes = 0;

  get size(): number {
    return this.#extents.size;
  }

  /** Sum of the sealed lengths of blocked copies, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of copies for each reason. */
  get reasons(): ReadonlyMap<string, number> {
    return this.#reasons;
  }

  /** Reasons of the extents that have a replica on this node. */
  reasonsOn(nodeId: string): ReadonlyMap<string, number> {
    return this.#byNode.get(nodeId) ?? new Map();
  }

  has(id: ExtentId): boolean {
    return this.#extents.has(id);
  }

  /** Adds an extent, once until `clear`. */
  add({ id, replicas, sealedLengthBytes }: ExtentRecord, why: string): void {
    if (this.#extents.has(id)) return;
    this.#extents.add(id);
    this.#bytes += sealedLengthBytes ?? 0;
    addTo(this.#reasons, why, 1);
    for (const { nodeId } of replicas) {
      const reasons = this.#byNode.get(nodeId) ?? new Map<string, number>();
      this.#byNode.set(nodeId, reasons);
      addTo(reasons, why, 1);
    }
  }

  clear(): void {
    for (const each of [this.#extents, this.#reasons, this.#byNode]) each.clear();
    this.#bytes = 0;
  }
}

export const addTo = <Key>(counts: Map<Key, number>, key: Key, count: number): void => {
  counts.set(key, (counts.get(key) ?? 0) + count);
};
