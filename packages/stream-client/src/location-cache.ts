/** Where extents are, as far as is known; filled by answers that say so, and by asking the stream manager. Bounded, oldest first out. */
import { type Outcome, ok, refused } from "@stamp/base";
import type { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { StreamManager, toWire } from "@stamp/wire";
import { type Location, locationFromWire } from "./place.ts";

const locationsMax = 10_000;

export class LocationCache {
  readonly #world: World;
  readonly #manager: LeaderCalls;
  readonly #known = new Map<number, Location>();
  readonly #asking = new Map<number, Promise<Outcome<Location>>>();

  constructor(world: World, manager: LeaderCalls) {
    this.#world = world;
    this.#manager = manager;
  }

  learn(locations: readonly Location[]): void {
    for (const location of locations) {
      if ((this.#known.get(location.extentId)?.version ?? -1) > location.version) continue;
      this.#known.delete(location.extentId);
      this.#known.set(location.extentId, location);
    }
    for (const extentId of this.#known.keys()) {
      if (this.#known.size <= locationsMax) break;
      this.#known.delete(extentId);
    }
  }

  known(extentId: number): Location | undefined {
    return this.#known.get(extentId);
  }

  forget(extentId: number): void {
    this.#known.delete(extentId);
  }

  /** Refused with `unknownExtent` when the stream manager does not know it. */
  async find(extentId: number, timeoutMs: number): Promise<Outcome<Location>> {
    const known = this.#known.get(extentId);
    if (known !== undefined) return ok(known);
    let asking = this.#asking.get(extentId);
    if (asking === undefined) {
      asking = this.#ask(extentId, timeoutMs).finally(() => this.#asking.delete(extentId));
      this.#asking.set(extentId, asking);
    }
    return asking;
  }

  async #ask(extentId: number, timeoutMs: number): Promise<Outcome<Location>> {
    const answer = await this.#manager.call(
      timeoutMs,
      (address, leftMs) =>
        this.#world.transport.client(address, StreamManager).locateExtents({ extentIds: [toWire(extentId)] }, { timeoutMs: leftMs }),
      { idempotent: true, attemptTimeoutMs: 1_000 },
    );
    if (!answer.ok) return answer;
    const found = answer.value.extents[0];
    if (found === undefined) return refused("notFound", "unknownExtent", `no stream holds extent ${extentId}`);
    const location = locationFromWire(found);
    this.learn([location]);
    return ok(location);
  }
}
