/**
 * The list of a stream's extents as its owner knows it: sealed ones, and the open one at the end. Truncations and drops go through the
 * stream manager. If the outcome of a drop is unknown, the extents are gone here at once, and the drop is asked for until it has happened.
 */
import { type Failure, type Outcome, ok, refused } from "@stamp/base";
import { jittered, sleep, type World } from "@stamp/ports";
import { keptRanges } from "./kept-ranges.ts";
import { changeBackoffMaxMs, changeTimeoutMs, type ManagerCalls } from "./manager-calls.ts";
import { locationFromWire } from "./place.ts";
import type { StreamExtent } from "./types.ts";

const dropBackoffMaxMs = 30_000;

export interface OwnedExtentsParts {
  readonly world: World;
  readonly manager: ManagerCalls;
  /** Name of the stream. */
  readonly stream: string;
  /** Extents of the list when the stream was opened, all of them sealed. */
  readonly atOpen: readonly StreamExtent[];
  /** Aborts when the stream is closed or lost. */
  readonly signal: AbortSignal;
  readonly ended: () => boolean;
  /** Called when the stream manager says that the stream has another owner. */
  readonly fence: (failure: Failure) => void;
}

export class OwnedExtents {
  readonly #parts: OwnedExtentsParts;
  readonly #known: Set<number>;
  #all: StreamExtent[];
  /** Number of drops that may have happened or not: their answers were lost. */
  #unknownDrops = 0;

  constructor(parts: OwnedExtentsParts) {
    this.#parts = parts;
    this.#all = [...parts.atOpen];
    this.#known = new Set(parts.atOpen.map(({ extentId }) => extentId));
  }

  /** Extents in the order of the stream; all but the last are sealed. */
  get all(): readonly StreamExtent[] {
    return this.#all;
  }

  /** Extents of the list at the opening of the stream, also those that were dropped since. */
  get atOpen(): readonly StreamExtent[] {
    return this.#parts.atOpen;
  }

  /** True while the stream manager may or may not have carried out a drop. */
  get dropsUnknown(): boolean {
    return this.#unknownDrops > 0;
  }

  knows(extentId: number): boolean {
    return this.#known.has(extentId);
  }

  seal(extentId: number, sealedLengthBytes: number): void {
    this.#all = this.#all.map((extent) => (extent.extentId === extentId ? { ...extent, sealedLengthBytes } : extent));
  }

  /** Adds the open extent at the end. */
  add(extentId: number): void {
    this.#all.push({ extentId, sealedLengthBytes: undefined });
    this.#known.add(extentId);
  }

  /** Drops the extents before this one from the list. Idempotent. */
  async truncateBefore(extentId: number, options: { readonly timeoutMs: number }): Promise<Outcome<void>> {
    const before = this.#all.findIndex((extent) => extent.extentId === extentId);
    if (before < 0) return refused("invalidArgument", "badRequest", `extent ${extentId} is not in stream ${this.#parts.stream}`);
    if (before === 0) return ok();
    const dropped = this.#all.slice(0, before);
    const outcome = await this.#parts.manager.truncate(extentId, options.timeoutMs);
    if (!outcome.ok) {
      if (outcome.failure.reason === "staleOwnerEpoch") this.#parts.fence(outcome.failure);
      return outcome;
    }
    for (const extent of dropped) this.#known.delete(extent.extentId);
    this.#all = this.#all.filter((extent) => this.#known.has(extent.extentId));
    return ok();
  }

  /**
   * Takes sealed extents out of the list, wherever they are; the last one stays. When it is not known whether it happened they are gone
   * here all the same, so that nothing new can refer to them, and it is asked for until it has. Gives those that are gone; the others are
   * for another time.
   */
  async drop(extentIds: ReadonlySet<number>, options: { readonly timeoutMs: number }): Promise<Outcome<readonly number[]>> {
    const { gone, kept } = keptRanges(this.#all, extentIds);
    if (gone.length === 0) return ok(gone);
    const outcome = await this.#parts.manager.keep(kept, options.timeoutMs);
    if (!outcome.ok && outcome.failure.applied === "no") {
      if (outcome.failure.reason === "staleOwnerEpoch") this.#parts.fence(outcome.failure);
      return outcome;
    }
    const dropped = new Set(gone);
    for (const extentId of gone) this.#known.delete(extentId);
    this.#all = this.#all.filter((extent) => !dropped.has(extent.extentId));
    if (!outcome.ok) void this.#dropUntilKnown(dropped);
    return ok(gone);
  }

  /** Drops extents until the outcome is known. A first attempt may still arrive, so each one goes by the present list. */
  async #dropUntilKnown(dropped: ReadonlySet<number>): Promise<void> {
    const { signal } = this.#parts;
    const { clock, random } = this.#parts.world;
    this.#unknownDrops++;
    for (let backoffMs = changeBackoffMaxMs; ; backoffMs = Math.min(backoffMs * 2, dropBackoffMaxMs)) {
      await sleep(clock, jittered(random, backoffMs), signal);
      if (signal.aborted || this.#parts.ended()) return;
      const listed = await this.#parts.manager.extents(0n, changeTimeoutMs);
      const list = (listed.ok ? listed.value : []).map(locationFromWire);
      const extents = list.map(({ extentId, sealedLengthBytes }) => ({ extentId, sealedLengthBytes }));
      const { gone, kept } = keptRanges(extents, dropped);
      if (listed.ok && gone.length === 0) break;
      const outcome = listed.ok ? await this.#parts.manager.keep(kept, changeTimeoutMs) : listed;
      if (!outcome.ok && outcome.failure.reason === "staleOwnerEpoch") return this.#parts.fence(outcome.failure);
    }
    this.#unknownDrops--;
  }
}
