/** Where the replicas of extents are, as last heard: bounded, the least recently used forgotten first. */
import type { Location } from "../place.ts";

export class LocationCache {
  readonly #max: number;
  readonly #held = new Map<number, Location>();

  constructor(max: number) {
    this.#max = max;
  }

  get(extentId: number): Location | undefined {
    const found = this.#held.get(extentId);
    if (found !== undefined) {
      this.#held.delete(extentId);
      this.#held.set(extentId, found);
    }
    return found;
  }

  learn(location: Location): void {
    const { extentId } = location;
    const known = this.#held.get(extentId);
    if (known !== undefined && known.version > location.version) return;
    this.#held.delete(extentId);
    this.#held.set(extentId, location);
    while (this.#held.size > this.#max) this.#held.delete(this.#held.keys().next().value as number);
  }

  forget(extentId: number): void {
    this.#held.delete(extentId);
  }
}
