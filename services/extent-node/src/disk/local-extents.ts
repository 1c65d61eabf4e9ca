/** All extents of this node. What the status and the reports say every second is kept up with every change: nobody walks over all of them for it. */
import { type ExtentId, OrderedIds } from "@stamp/base";
import type { LocalExtent } from "./local-extent.ts";

export class LocalExtents {
  readonly #extents = new Map<ExtentId, LocalExtent>();
  readonly #order = new OrderedIds<ExtentId>((id) => this.#extents.has(id));
  /** All that are not sealed: few, and soon gone. */
  readonly #unsealed = new Set<LocalExtent>();
  #sealedBytes = 0;

  get size(): number {
    return this.#extents.size;
  }

  /** Number of bytes in sealed extents. */
  get sealedBytes(): number {
    return this.#sealedBytes;
  }

  get(id: ExtentId): LocalExtent | undefined {
    return this.#extents.get(id);
  }

  values(): IterableIterator<LocalExtent> {
    return this.#extents.values();
  }

  /** Returns the extents that are open, closed or damaged. */
  unsealed(): ReadonlySet<LocalExtent> {
    return this.#unsealed;
  }

  /** Returns the first `limit` ids above `id`, ascending. */
  idsAfter(id: number, limit: number): ExtentId[] {
    return this.#order.after(id, limit);
  }

  /** Puts the extent in the place of the one that was there. */
  set(id: ExtentId, extent: LocalExtent): void {
    const before = this.#extents.get(id);
    if (before === undefined) this.#order.add(id);
    else this.#forget(before);
    this.#extents.set(id, extent);
    this.#unsealed.add(extent);
    this.stateChanged(extent);
  }

  delete(id: ExtentId): void {
    const before = this.#extents.get(id);
    if (before === undefined) return;
    this.#forget(before);
    this.#extents.delete(id);
    this.#order.removed();
  }

  /** Takes note that an extent was sealed or damaged. */
  stateChanged(extent: LocalExtent): void {
    const { extentId, durableBytes, state } = extent.replica;
    if (this.#extents.get(extentId) !== extent || this.#unsealed.has(extent) === (state !== "sealed")) return;
    if (state === "sealed") {
      this.#unsealed.delete(extent);
      this.#sealedBytes += durableBytes;
    } else {
      this.#sealedBytes -= durableBytes;
      this.#unsealed.add(extent);
    }
  }

  /** Takes an extent out of the sums; a sealed replica's length never changes. */
  #forget(extent: LocalExtent): void {
    if (!this.#unsealed.delete(extent)) this.#sealedBytes -= extent.replica.durableBytes;
  }
}
