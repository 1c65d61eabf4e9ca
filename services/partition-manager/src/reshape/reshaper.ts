/**
 * Carries out splits and merges (@stamp/partition-map reshape.ts decides what stands where), and brings to an end those that were left.
 *
 * Order, each step durable before the next: owner epochs of the children are minted under the term; the record is written into the rows of
 * the parents; the server is asked; the children stand in the map. A server that could not prepare it says so before anything had to wait:
 * then the record goes, and the parents are served as they were. When the server does not say how it went, or an earlier leader asked it: a
 * new owner epoch fences the parents at the stream manager, which then says whether the children exist.
 */
import { type Failed, type Outcome, ok, refused } from "@stamp/base";
import {
  childRanges,
  isUnchanged,
  mergeRecords,
  parentsOf,
  type Range,
  type RangeMap,
  splitRecord,
  withoutReshape,
} from "@stamp/partition-map";
import { jittered, sleep, type World } from "@stamp/ports";
import type { ReshapeTimes } from "@stamp/wire";
import type { Assigner } from "../assign/assigner.ts";
import { endsTerm, type OwnerEpochs } from "../assign/owner-epochs.ts";
import type { Servers } from "../assign/servers.ts";
import type { MapChange, MapState } from "../map/map-state.ts";

/** Calls to the stream manager: about an abandoned split or merge, whether there is room for another, and about streams after a restore. */
export interface StreamLayer {
  /** Raises the owner epoch of a stream, so that nobody goes on under a lower one. `gone`: there is no such stream. */
  fence(stream: string, ownerEpoch: number, timeoutMs: number): Promise<Outcome<"fenced" | "gone">>;
  exists(stream: string, timeoutMs: number): Promise<Outcome<boolean>>;
  /** Returns why no new extent can be made now, for people; empty: one can. */
  lacks(timeoutMs: number): Promise<Outcome<readonly string[]>>;
  /** Returns the names of all streams that begin with `prefix`. */
  names(prefix: string, timeoutMs: number): Promise<Outcome<ReadonlySet<string>>>;
  /** Puts the extents of `sources` in front of those of a stream, which is made if it is not there. All are fenced under `ownerEpoch`. */
  prepend(stream: string, sources: readonly string[], ownerEpoch: number, timeoutMs: number): Promise<Outcome<void>>;
  /** Removes a stream, fenced under `ownerEpoch`. */
  remove(stream: string, ownerEpoch: number, timeoutMs: number): Promise<Outcome<void>>;
}

export interface ReshaperOptions {
  readonly pmTerm: number;
  readonly reshapeTimeoutMs: number;
  readonly end: (why: string) => void;
}

export interface ReshapeResult {
  readonly ranges: readonly Range[];
  /** Times of a split or merge: how long the server held writes up, and where the time went. */
  readonly times?: ReshapeTimes;
}

const fenceTimeoutMs = 5_000;
const collectTimeoutMs = 3_600_000;
const resolveAgainMs = 250;
const movePollMs = 50;

export class Reshaper {
  readonly #world: World;
  readonly #epochs: OwnerEpochs;
  readonly #map: MapState;
  readonly #servers: Servers;
  readonly #assigner: Assigner;
  readonly #streams: StreamLayer;
  readonly #options: ReshaperOptions;
  /** Results of splits and merges in this term: done, never begun, or brought to an end afterwards, forward or back. */
  readonly counts = { splits: 0, merges: 0, notBegun: 0, settledForward: 0, settledBack: 0 };

  constructor(
    world: World,
    parts: {
      readonly epochs: OwnerEpochs;
      readonly map: MapState;
      readonly servers: Servers;
      readonly assigner: Assigner;
      readonly streams: StreamLayer;
    },
    options: ReshaperOptions,
  ) {
    this.#world = world;
    this.#epochs = parts.epochs;
    this.#map = parts.map;
    this.#servers = parts.servers;
    this.#assigner = parts.assigner;
    this.#streams = parts.streams;
    this.#options = options;
  }

  /** `at` is absent: where the server suggests. */
  async split(rangeId: string, at: Uint8Array | undefined): Promise<Outcome<ReshapeResult>> {
    const range = this.#range(rangeId);
    if (!range.ok) return range;
    const key = at === undefined ? await this.#servers.suggestSplitKey(range.value) : ok(at);
    if (!key.ok) return key;
    return this.#taken([range.value], 2, (epochs) => {
      const parent = splitRecord(range.value, key.value, [epochs[0] as number, epochs[1] as number]);
      return parent.ok ? ok([parent.value]) : parent;
    });
  }

  /** Merges the range with its neighbour above. */
  async merge(rangeId: string): Promise<Outcome<ReshapeResult>> {
    const left = this.#range(rangeId);
    if (!left.ok) return left;
    const right = this.#map.current.after(left.value);
    if (!right)
      return refused(
        "invalidArgument",
        "badRequest",
        `${rangeId} is the last range of its table: it has no neighbour above. Name the one below it`,
      );
    const brought = await this.#bring(right, left.value.server);
    if (!brought.ok) return brought;
    const nowLeft = this.#range(rangeId);
    if (!nowLeft.ok) return nowLeft;
    const parents = [nowLeft.value, brought.value];
    return this.#taken(parents, 1, (epochs) => mergeRecords(nowLeft.value, brought.value, epochs[0] as number));
  }

  /** Moves a range, to the server with the fewest ranges if `to` is empty. Answers when it is served there. */
  async move(rangeId: string, to: string): Promise<Outcome<ReshapeResult>> {
    const range = this.#range(rangeId);
    if (!range.ok) return range;
    const target = to === "" ? this.#assigner.leastLoaded(range.value.server) : to;
    if (target === undefined || !this.#servers.isLive(target)) {
      return refused(
        "failedPrecondition",
        "badRequest",
        `there is no live partition server ${to === "" ? "besides its own" : to} that could take ${rangeId} (stamp status shows them)`,
      );
    }
    const moved = await this.#bring(range.value, target);
    return moved.ok ? ok({ ranges: [moved.value] }) : moved;
  }

  async checkpoint(rangeId: string): Promise<Outcome<void>> {
    const range = this.#range(rangeId);
    return range.ok ? this.#servers.checkpoint(range.value, this.#options.reshapeTimeoutMs) : range;
  }

  async collect(rangeId: string) {
    const range = this.#range(rangeId);
    return range.ok ? this.#servers.collect(range.value, collectTimeoutMs) : range;
  }

  #range(rangeId: string): Outcome<Range> {
    const range = this.#map.range(rangeId);
    if (!range)
      return refused(
        "notFound",
        "wrongPartition",
        `there is no range ${rangeId} (stamp partition list shows them; what is split or merged gets new names)`,
      );
    if (range.reshape) return changing(range);
    return range.server === "" ? refused("unavailable", "partitionLoading", `${rangeId} is not served now`) : ok(range);
  }

  /** Moves a range after its memory is written out, so that little is replayed and nobody serves it only briefly. */
  async #bring(range: Range, to: string): Promise<Outcome<Range>> {
    if (range.server === to) return ok(range);
    // Where it is now it is served.
    if (!(await this.#servers.answers(to))) {
      return refused("unavailable", "notReady", `${to} does not answer now: ${range.rangeId} stays at ${range.server}`);
    }
    const written = await this.#servers.checkpoint(range, this.#options.reshapeTimeoutMs);
    if (!written.ok) return written;
    const recordable = await this.#assigner.recordable();
    if (!recordable.ok) return recordable;
    if (!this.#assigner.move(range, to)) return changing(range);
    const { clock } = this.#world;
    const deadlineMs = clock.monotonicMs() + this.#options.reshapeTimeoutMs;
    for (;;) {
      const now = this.#map.range(range.rangeId);
      if (!now) return refused("aborted", "rangeChanging", `${range.rangeId} became another range meanwhile`);
      const settled = now.loaded && this.#assigner.progressOf(now.rangeId) === "loaded";
      if (settled && now.server === to) return ok(now);
      if (settled) return refused("aborted", "rangeChanging", `${to} could not take ${range.rangeId}: it is served by ${now.server}`);
      if (clock.monotonicMs() >= deadlineMs) return refused("deadlineExceeded", "timeout", `${range.rangeId} is not served by ${to} yet`);
      await sleep(clock, movePollMs);
    }
  }

  async #taken(
    parents: readonly Range[],
    epochs: number,
    recordOf: (epochs: readonly number[]) => Outcome<readonly Range[]>,
  ): Promise<Outcome<ReshapeResult>> {
    const taken: Range[] = [];
    for (const parent of parents) {
      if (!this.#assigner.take(parent)) {
        for (const one of taken) this.#assigner.release(one, { kind: "loaded" });
        return changing(parent);
      }
      taken.push(parent);
    }
    const recorded = await this.#record(parents, epochs, recordOf);
    if (!recorded.ok) {
      // A parent that was given to another server meanwhile is being loaded there.
      for (const one of taken) if (isUnchanged(this.#map.range(one.rangeId), one)) this.#assigner.release(one, { kind: "loaded" });
      return recorded;
    }
    return this.#carryOut(recorded.value);
  }

  async #record(
    parents: readonly Range[],
    count: number,
    recordOf: (epochs: readonly number[]) => Outcome<readonly Range[]>,
  ): Promise<Outcome<readonly Range[]>> {
    const minted = await this.#epochs.mint(count);
    if (!minted.ok) {
      if (endsTerm(minted.failure)) this.#options.end(minted.failure.message);
      return minted;
    }
    const record = recordOf(Array.from({ length: count }, (_, i) => minted.value + i));
    if (!record.ok || !this.#world.rules.on("namesBeforeSplit")) return record;
    let rows: readonly Range[] = [];
    const written = await this.#change((map) => {
      const changed = parents.find((parent) => !isUnchanged(map.byId(parent.rangeId), parent));
      if (changed !== undefined) return changing(changed);
      rows = record.value.map((one) => ({ ...(map.byId(one.rangeId) ?? one), ...(one.reshape && { reshape: one.reshape }) }));
      return ok({ changed: rows });
    });
    return written.ok ? ok(rows) : written;
  }

  async #carryOut(parents: readonly Range[]): Promise<Outcome<ReshapeResult>> {
    const children = childRanges(parents, true);
    const { logger, clock } = this.#world;
    const facts = { parents: parents.map(({ rangeId }) => rangeId).join(), children: children.map(({ rangeId }) => rangeId).join() };
    logger.info(`${parents[0]?.reshape?.kind} of ranges begins`, facts);
    const times = await this.#servers.reshape(parents, children, this.#options.reshapeTimeoutMs);
    if (!times.ok && times.failure.reason === "notBegun") {
      logger.warn("a split or merge was not begun: the parents are served as before", { ...facts, ...times.failure });
      this.counts.notBegun++;
      await this.#callOff(parents);
      return times;
    }
    if (!times.ok) {
      logger.warn("the server did not confirm a split or merge: its streams will show whether it happened", { ...facts, ...times.failure });
      await this.#bringToEnd(parents);
      return times;
    }
    const answeredMs = clock.monotonicMs();
    const written = await this.#change(() => ok({ gone: parents, changed: children }));
    if (!written.ok) return written;
    for (const child of children) this.#assigner.release(child, { kind: "loaded" });
    this.counts[parents.length === 1 ? "splits" : "merges"]++;
    const { $typeName: _, $unknown: _unknown, ...told } = times.value;
    logger.info("split or merge done", { ...facts, ...told, mapMs: Math.round(clock.monotonicMs() - answeredMs) });
    return ok({ ranges: children, times: times.value });
  }

  /** Ends the attempt when the server says that nothing was done: it serves the parents as before, under the same owner epochs. */
  async #callOff(parents: readonly Range[]): Promise<void> {
    const written = await this.#asBefore(parents);
    if (written.ok) for (const parent of parents) this.#assigner.release(withoutReshape(parent), { kind: "loaded" });
  }

  /**
   * Ends a split or merge that nobody carries out. Its parents are left alone until it is over; it is tried until it
   * is.
   */
  async resolve(range: Range): Promise<void> {
    const parents = parentsOf(range, this.#map.current.ranges);
    for (const parent of parents) this.#assigner.release(parent, { kind: "busy" });
    await this.#bringToEnd(parents);
  }

  async #bringToEnd(parents: readonly Range[]): Promise<void> {
    const settled = await this.#settle(parents);
    if (settled.ok) return;
    const { logger, clock, random } = this.#world;
    logger.warn("a split or merge could not be brought to its end yet", { range: parents[0]?.rangeId, ...settled.failure });
    // Idle ranges that are in a change are resolved: that is, it is tried again.
    clock.after(jittered(random, resolveAgainMs), () => {
      for (const parent of parents) this.#assigner.release(parent, { kind: "idle" });
    });
  }

  async #settle(parents: readonly Range[]): Promise<Outcome<void>> {
    const happened = await this.#happened(parents);
    if (!happened.ok) return happened;
    const children = childRanges(parents, false);
    const { areParentsThere, isDone } = happened.value;
    this.counts[isDone ? "settledForward" : "settledBack"]++;
    this.#world.logger.info(`an interrupted split or merge ${isDone ? "happened" : "did not happen"}`, {
      parents: parents.map(({ rangeId }) => rangeId).join(),
      children: children.map(({ rangeId }) => rangeId).join(),
    });
    if (isDone) {
      const written = await this.#change(() => ok({ gone: parents, changed: children }));
      if (written.ok && areParentsThere)
        this.#options.end("a split or merge happened after the copy of the metadata: its streams are made at the beginning of a term");
      else if (written.ok) for (const child of children) this.#assigner.release(child, { kind: "idle" });
      return written;
    }
    const written = await this.#asBefore(parents);
    // Their streams were fenced under a higher epoch: they are closed where they are and assigned anew.
    if (written.ok) for (const parent of parents) this.#assigner.release(parent, { kind: "closing", to: parent.server });
    return written;
  }

  /** Asks whether the children are there. Their parents are there as well only if the metadata were restored from a copy from before. */
  async #happened(parents: readonly Range[]): Promise<Outcome<{ readonly isDone: boolean; readonly areParentsThere: boolean }>> {
    let areParentsThere = false;
    if (this.#world.rules.on("fenceBeforeAsking")) {
      const minted = await this.#epochs.mint(1);
      if (!minted.ok) {
        if (endsTerm(minted.failure)) this.#options.end(minted.failure.message);
        return minted;
      }
      for (const { streams } of parents) {
        const fenced = await this.#streams.fence(streams.metadata, minted.value, fenceTimeoutMs);
        if (!fenced.ok) return fenced;
        if (fenced.value === "fenced" && this.#map.lineage > 0) areParentsThere = true;
      }
    }
    if (!this.#world.rules.on("askWhetherItHappened")) return ok({ isDone: false, areParentsThere });
    const children = childRanges(parents, false);
    // After a restore only those streams came back to which something was written.
    const names = children.flatMap(({ streams }) => Object.values(streams)).filter((name) => name !== "");
    for (const name of this.#map.lineage > 0 ? names : names.slice(0, 1)) {
      const exists = await this.#streams.exists(name, fenceTimeoutMs);
      if (!exists.ok) return exists;
      if (exists.value) return ok({ isDone: true, areParentsThere });
    }
    return ok({ isDone: false, areParentsThere });
  }

  #asBefore(parents: readonly Range[]): Promise<Outcome<void>> {
    return this.#change((map) => ok({ changed: parents.map((parent) => withoutReshape(map.byId(parent.rangeId) ?? parent)) }));
  }

  async #change(plan: (map: RangeMap) => Outcome<MapChange>): Promise<Outcome<void>> {
    const written = await this.#map.change(plan);
    if (!written.ok && written.failure.reason !== "rangeChanging") this.#options.end(`the map was not written: ${written.failure.message}`);
    return written;
  }
}

const changing = (range: Range): Failed =>
  refused(
    "unavailable",
    "rangeChanging",
    `${range.rangeId} is in another change: try again when it is over (stamp partition list shows it)`,
  );
