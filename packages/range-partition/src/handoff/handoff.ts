/**
 * One split or merge: parents that this process serves leave, and their streams become those of children.
 *
 *     begun ─ prepare ─► preparing ─► prepared ─ holdData ─► held ─ leave ─► left ─ handOver ─► handedOver ─ inherit
 *                            └────────────┴─ resume ─► resumed
 *
 * Until `holdData` the parents are served as before, and `resume` takes back what was prepared. Afterwards the caller closes the parents,
 * and loads them again if the handoff fails.
 */
import { assert, type Outcome, ok, present, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { StreamClient } from "@stamp/stream-client";
import { RangePartition } from "../range-partition.ts";
import type { PartitionOptions } from "../types.ts";
import { Departure } from "./departure.ts";
import { allocateForChildren, type HandedOver, handOver, type OwnedNames } from "./hand-over.ts";
import type { LeftPartition } from "./leave.ts";
import { untilHeld, untilMergeable } from "./mergeable.ts";

export type HandoffPhase = "begun" | "preparing" | "prepared" | "resumed" | "held" | "left" | "handedOver";

export interface HandoffParent extends OwnedNames {
  readonly partition: RangePartition;
}

export interface HandoffChild extends OwnedNames {
  readonly rangeId: string;
}

export class Handoff {
  readonly #world: World;
  readonly #client: StreamClient;
  readonly #parents: readonly HandoffParent[];
  readonly #children: readonly HandoffChild[];
  /** Time in which followers of two parents acknowledge what they lack, in milliseconds; undefined: a merge ends those that lack something. */
  readonly #followedWaitMs: number | undefined;
  #phase: HandoffPhase = "begun";
  #left: LeftPartition | undefined;
  #handed: HandedOver | undefined;

  /** One parent, or two neighbours in order. */
  constructor(
    world: World,
    client: StreamClient,
    parents: readonly HandoffParent[],
    children: readonly HandoffChild[],
    { followedWaitMs }: { readonly followedWaitMs?: number } = {},
  ) {
    this.#world = world;
    this.#client = client;
    this.#parents = parents;
    this.#children = children;
    this.#followedWaitMs = followedWaitMs;
  }

  get phase(): HandoffPhase {
    return this.#phase;
  }

  /** Does all that can be done before anything has to wait. `written`: somebody writes to the parents. */
  async prepare(written: boolean): Promise<Outcome<void>> {
    this.#go("preparing", "begun");
    // A merge that would be refused at the end of this is refused before anything is written out for it.
    const followedWaitMs = this.#parents.length > 1 ? this.#followedWaitMs : undefined;
    if (followedWaitMs !== undefined) {
      const followed = await untilMergeable(this.#partitions, followedWaitMs);
      if (!followed.ok) return followed;
      if (this.#phase !== "preparing") return resumed();
    }
    const departures = this.#departures;
    const streams = this.#partitions.map((partition) => partition.streams);
    const [prepared] = await Promise.all([
      Promise.all(departures.map((departure) => departure.prepare(written))),
      written ? allocateForChildren(this.#client, streams, this.#children) : Promise.resolve(),
    ]);
    const failed = prepared.find((one) => !one.ok);
    if (failed !== undefined) return failed;
    if (this.#phase !== "preparing") return resumed();
    const lightened = await Promise.all(departures.map((departure) => departure.lighten()));
    const heavy = lightened.find((one) => !one.ok);
    if (heavy !== undefined) return heavy;
    if (this.#phase !== "preparing") return resumed();
    const [only, ...others] = departures;
    if (only !== undefined && others.length === 0) {
      const recorded = await only.recordHandoff(this.#children.map(({ rangeId }) => rangeId));
      if (!recorded.ok) return recorded;
      if (this.#phase !== "preparing") return resumed();
    }
    if (followedWaitMs !== undefined) {
      const held = await untilHeld(this.#partitions, followedWaitMs);
      if (!held.ok) return held;
      if (this.#phase !== "preparing") return resumed();
    }
    this.#phase = "prepared";
    return ok();
  }

  /** Takes the departure back: parents that are still served go on as before. */
  resume(isServed: (rangeId: string) => boolean): void {
    this.#go("resumed", "preparing", "prepared");
    for (const { partition } of this.#parents) if (isServed(partition.rangeId)) partition.departure.resume();
  }

  /** Takes no more blob data; resolves when bytes on their way are in, or after a bound. Rows are written meanwhile. */
  async holdData(): Promise<void> {
    this.#go("held", "prepared");
    await Promise.all(this.#departures.map((departure) => departure.holdData()));
  }

  /** Takes no new write from `heldSinceMs` on; resolves when the children's state is in the first parent's metadata stream. Reads go on. */
  async leave(): Promise<Outcome<LeftPartition>> {
    assert(this.#phase === "held", "leave follows holdData");
    const left = await Departure.leave(
      this.#departures,
      this.#children.map(({ rangeId }) => rangeId),
    );
    if (!left.ok) return left;
    this.#phase = "left";
    this.#left = left.value;
    return left;
  }

  /** Makes the streams of the parents those of the children in one change, or changes nothing. */
  async handOver(timeoutMs: number): Promise<Outcome<void>> {
    this.#go("handedOver", "left");
    const { recordExtentId, log, became } = present(this.#left, "what the parents left");
    const first = { recordExtentId, ...(log && { logFromExtentId: log.fromExtentId }) };
    const parents = this.#parents.map(({ streams, ownerEpoch, partition }, i) => ({
      streams,
      ownerEpoch,
      left: partition.streams,
      ...(i === 0 && first),
    }));
    const handed = await handOver(this.#world, this.#client, parents, this.#children, timeoutMs);
    became(handed.ok);
    if (!handed.ok) return handed;
    this.#handed = handed.value;
    return ok();
  }

  /** Makes a child of what the parents left in this process. Undefined if that fails: the range has to be loaded. */
  inherit(options: PartitionOptions): Promise<RangePartition | undefined> {
    const handed = present(this.#handed, "streams that were handed over");
    return RangePartition.inherit(this.#world, this.#client, options, this.#partitions, present(this.#left, "what was left"), handed);
  }

  get #partitions(): readonly RangePartition[] {
    return this.#parents.map(({ partition }) => partition);
  }

  get #departures(): readonly Departure[] {
    return this.#parents.map(({ partition }) => partition.departure);
  }

  #go(to: HandoffPhase, ...from: readonly HandoffPhase[]): void {
    assert(from.includes(this.#phase), `a handoff that is ${this.#phase} becomes ${to}`);
    this.#phase = to;
  }
}

const resumed = () => refused("unavailable", "notBegun", "the parents do not leave any more");
