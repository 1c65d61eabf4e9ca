/**
 * The ranges that this server holds under its lease: loads, closes and drops them. Which commands are obeyed is decided by ServerRules
 * (@stamp/partition-map); here they are carried out.
 *
 * Invariants: what is dropped is dropped at once and for good: whoever still works on it finds that out before he answers (`current`).
 * Closed is answered only when no append of the range is in flight any more, or after `closeWaitMs`: an append that is late then may
 * still land before the successor opens the streams, never after, and its writer was told nothing.
 */
import { type Failed, type Outcome, ok, refused } from "@stamp/base";
import { LeaseTimers, QueueClocks } from "@stamp/objects";
import type { LoadCommand, Range } from "@stamp/partition-map";
import { HeldRanges, ServerRules } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { within } from "@stamp/ports";
import type { Engines, Handoff, LoadEngine, RangeEngine } from "../operations/engine.ts";
import { type LoadTotals, RangeLoad, type ServerFigures, ServerLoad } from "./load.ts";
import type { ReshapeTimes } from "./reshape-times.ts";

export interface HeldRange {
  readonly range: Range;
  state: "loading" | "serving" | "dropped";
  readonly load: RangeLoad;
  engine: RangeEngine | undefined;
  /** Timers of leases of objects; they start with the load. */
  leases: LeaseTimers;
  readonly queueClocks: QueueClocks;
  /** Ends when the load ends. */
  loaded: Promise<Outcome<void>>;
}

export type ServingRange = HeldRange & { readonly engine: RangeEngine };
export type ReshapeCommand = Omit<LoadCommand, "rangeId" | "ownerEpoch">;

export interface ReshapedParent {
  readonly rangeId: string;
  readonly ownerEpoch: number;
}

/** Range that a split or merge replaces, or has replaced. */
interface Becoming {
  readonly rangeVersion: number;
  readonly childIds: ReadonlySet<string>;
  readonly over: Promise<true>;
}

const closeWaitMs = 1_000;
/** Finished splits and merges that are remembered: front-ends have the new map by then. */
const becameMax = 1_000;
const beginTimeoutMs = 2_000;
const handOverTimeoutMs = 10_000;
/** Share of a split's or merge's time for its preparation; the rest is for later steps. */
const preparePart = 2 / 3;
export const heldMax = 10_000;

export class Holdings {
  readonly #world: World;
  readonly #engines: Engines;
  readonly #rules: ServerRules;
  readonly #held = new HeldRanges<HeldRange>();
  readonly #closing = new Set<Promise<void>>();
  readonly #becoming = new Map<string, Becoming>();
  readonly #serverLoad: ServerLoad;
  /** Times of the last split or merge; for people. */
  lastReshape: ReshapeTimes | undefined;
  reshapes = 0;

  constructor(world: World, engines: Engines) {
    this.#world = world;
    this.#engines = engines;
    this.#rules = new ServerRules(world.rules);
    this.#serverLoad = new ServerLoad(world);
  }

  /** Totals of all requests since the start. */
  get totals(): Omit<LoadTotals, "ended" | "latencyMs"> {
    // Ended operations and their times are in histograms, of the executor.
    const { ended: _, latencyMs: __, ...totals } = this.#serverLoad.totals;
    return totals;
  }

  /** Figures of everything that is served here. */
  get figures(): ServerFigures {
    return this.#serverLoad.figures(
      this.all.map(({ load, engine }) => {
        const facts = engine?.facts;
        return { ...load.figures, rowBytes: facts === undefined ? 0 : facts.memoryTableBytes + facts.checkpointBytes };
      }),
    );
  }

  get all(): readonly HeldRange[] {
    return [...this.#held.values()];
  }

  /** Returns the ranges that can have a row between these keys of a table; found without a look at all of them. */
  overlapping(keys: Pick<Range, "table" | "low" | "high">): readonly HeldRange[] {
    return this.#held.overlapping(keys);
  }

  get pmTermSeen(): number {
    return this.#rules.pmTermSeen;
  }

  leaseTaken(leaseEpoch: number): void {
    this.#rules.lease(leaseEpoch);
  }

  /** Drops every range, load and pending answer (rule dropBeforeNewLease). */
  leaseLost(): void {
    if (!this.#world.rules.on("dropBeforeNewLease")) return;
    for (const held of this.#held.values()) void this.#drop(held);
    this.#held.clear();
    this.#becoming.clear();
    this.#rules.lease(0);
  }

  /** Loads a range. The synchronous part runs in the order of arrival. */
  load(command: LoadCommand, range: Range, engine: LoadEngine = this.#engines.load, parentsWritten = false): Promise<Outcome<void>> {
    if (this.#held.size >= heldMax && this.#held.get(range.rangeId) === undefined) {
      return Promise.resolve(refused("resourceExhausted", "overloaded", `${heldMax} ranges are held`));
    }
    const verdict = this.#rules.load(command);
    if (!verdict.ok) return Promise.resolve(verdict);
    this.#endParents(range);
    const before = this.#held.get(range.rangeId);
    if (verdict.value === "already" && before) return this.#isSame(before, range) ? before.loaded : this.#disputed(before, range);
    const dropped = before ? this.#drop(before) : Promise.resolve();
    const held: HeldRange = {
      range,
      state: "loading",
      load: new RangeLoad(this.#world.clock, this.#serverLoad.totals, parentsWritten),
      engine: undefined,
      leases: this.#leaseTimers(),
      queueClocks: new QueueClocks(),
      loaded: Promise.resolve(ok()),
    };
    this.#held.set(held);
    held.loaded = this.#load(held, dropped, engine);
    return held.loaded;
  }

  /** True if both are of one range version: an owner epoch is given with one (rule epochHasOneVersion). */
  #isSame({ range: held }: HeldRange, range: Range): boolean {
    return held.rangeVersion === range.rangeVersion || !this.#world.rules.on("epochHasOneVersion");
  }

  /**
   * Ends a range that was loaded with another version under the same owner epoch: one of the two commands is none of the manager's, and this
   * server can't know which. The refusal makes the manager assign the range anew, under an epoch of its own.
   */
  #disputed(held: HeldRange, { rangeId, ownerEpoch, rangeVersion }: Range): Promise<Outcome<void>> {
    const had = held.range.rangeVersion;
    this.#world.logger.error("a range was loaded with two versions", { range: rangeId, ownerEpoch, rangeVersion, had });
    this.#end(held);
    const message = `${rangeId} was loaded here under owner epoch ${ownerEpoch} with version ${had}, not ${rangeVersion}: that epoch is over`;
    return Promise.resolve(refused("failedPrecondition", "staleOwnerEpoch", message, { closedEpoch: String(ownerEpoch) }));
  }

  /**
   * Ends a range whose keys were split or merged into a loaded one, by the manager's word, also when this server still
   * waits to hear of it (rule childEndsParents).
   */
  #endParents(range: Range): void {
    if (!this.#world.rules.on("childEndsParents")) return;
    for (const held of this.#held.overlapping(range)) {
      if (held.range.rangeId !== range.rangeId && held.range.ownerEpoch <= range.ownerEpoch) this.#end(held);
    }
  }

  /**
   * A range that is closed before it was ever loaded here may still be a child of parents that this server waits to
   * release.
   */
  #endParentsOf({ rangeId, ownerEpoch }: LoadCommand): void {
    if (!this.#world.rules.on("childEndsParents")) return;
    for (const [parent, { childIds }] of this.#becoming) {
      const held = childIds.has(rangeId) ? this.#held.get(parent) : undefined;
      if (held !== undefined && held.range.ownerEpoch <= ownerEpoch) this.#end(held);
    }
  }

  #end(held: HeldRange): void {
    this.#held.delete(held.range.rangeId);
    this.#rules.dead(held.range.rangeId, held.range.ownerEpoch);
    void this.#drop(held);
  }

  async #load(held: HeldRange, dropped: Promise<void>, load: LoadEngine): Promise<Outcome<void>> {
    const { range } = held;
    const { logger, clock } = this.#world;
    await dropped;
    if (!this.#wanted(held)) return gone(range);
    const startedMs = clock.monotonicMs();
    const engine = await load(range, (why) => this.#fenced(held, why));
    if (!this.#wanted(held)) {
      if (engine.ok) await engine.value.close();
      return gone(range);
    }
    if (!engine.ok) {
      held.state = "dropped";
      if (this.#held.get(range.rangeId) === held) this.#held.delete(range.rangeId);
      if (engine.failure.reason === "staleOwnerEpoch") this.#rules.dead(range.rangeId, range.ownerEpoch);
      else this.#rules.forget(range.rangeId, range.ownerEpoch);
      logger.warn("range not loaded", { range: range.rangeId, ownerEpoch: range.ownerEpoch, ...engine.failure });
      return engine;
    }
    held.engine = engine.value;
    held.leases = this.#leaseTimers();
    held.state = "serving";
    const tookMs = clock.monotonicMs() - startedMs;
    logger.info("range loaded", { range: range.rangeId, ownerEpoch: range.ownerEpoch, tookMs });
    return ok();
  }

  #leaseTimers(): LeaseTimers {
    return new LeaseTimers(this.#world.rules, this.#world.clock.monotonicMs());
  }

  #wanted(held: HeldRange): boolean {
    return held.state !== "dropped";
  }

  async close(command: LoadCommand): Promise<Outcome<void>> {
    const verdict = this.#rules.close(command);
    if (!verdict.ok) return verdict;
    this.#endParentsOf(command);
    const held = this.#held.get(command.rangeId);
    if (held && held.range.ownerEpoch <= command.ownerEpoch) {
      this.#held.delete(command.rangeId);
      await this.#drop(held);
      void held.engine?.forgetCached();
      this.#world.logger.info("range closed", { range: command.rangeId, ownerEpoch: command.ownerEpoch });
    }
    return ok();
  }

  /**
   * Leaves the streams of the parents to the children, and serves these. Until all is prepared the parents serve as before, and when that
   * fails they go on: `notBegun`. If a later step fails, the parents are not served here afterwards: the manager finds out whether
   * the change happened, and says who serves which range (rule fenceBeforeAsking). Operations that come meanwhile wait here for the children (`childOf`).
   */
  async reshape(
    command: ReshapeCommand,
    parents: readonly ReshapedParent[],
    children: readonly Range[],
    deadlineMs: number,
  ): Promise<Outcome<ReshapeTimes>> {
    const verdict = this.#rules.reshape(command, parents);
    if (!verdict.ok) return verdict;
    const held = parents.map(({ rangeId }) => this.#held.get(rangeId));
    const ready = held.filter((one): one is ServingRange => one?.state === "serving" && one.engine !== undefined);
    if (ready.length < parents.length) return notBegun("a parent is not served here yet");
    const { logger } = this.#world;
    const beganMs = this.#world.clock.monotonicMs();
    const handoff = this.#engines.handoff(ready, children);
    const prepared = await this.#prepared(handoff, ready, (deadlineMs - beganMs) * preparePart);
    if (!prepared.ok) {
      logger.warn("ranges were not split or merged", { parents: parents.map(({ rangeId }) => rangeId).join(), ...prepared.failure });
      return prepared;
    }
    const { promise: over, resolve: isOver } = Promise.withResolvers<true>();
    const childIds = new Set(children.map(({ rangeId }) => rangeId));
    for (const { range } of ready) this.#become(range, { rangeVersion: range.rangeVersion, childIds, over });
    const done = await this.#reshape(handoff, command, ready, children, beganMs, () => isOver(true)).finally(() => isOver(true));
    const facts = { parents: parents.map(({ rangeId }) => rangeId).join(), children: children.map(({ rangeId }) => rangeId).join() };
    if (done.ok) {
      logger.info("ranges reshaped", { ...facts, ...done.value });
      this.lastReshape = done.value;
      this.reshapes++;
    } else logger.warn("ranges were not split or merged", { ...facts, ...done.failure });
    return done;
  }

  /** `served` is called when the children are. */
  async #reshape(
    handoff: Handoff,
    command: ReshapeCommand,
    parents: readonly ServingRange[],
    children: readonly Range[],
    beganMs: number,
    served: () => void,
  ): Promise<Outcome<ReshapeTimes>> {
    const { clock } = this.#world;
    const dataSinceMs = clock.monotonicMs();
    await handoff.holdData();
    const left = await handoff.leave();
    const leftMs = clock.monotonicMs();
    const handed = left.ok ? await this.#handOver(handoff, parents) : left;
    const handedMs = clock.monotonicMs();
    for (const one of parents) {
      if (this.#held.get(one.range.rangeId) === one) this.#held.delete(one.range.rangeId);
      this.#rules.dead(one.range.rangeId, one.range.ownerEpoch);
      void this.#drop(one);
    }
    if (!left.ok) return left;
    if (!handed.ok) return handed;
    const { pmTerm, leaseEpoch } = command;
    const written = isWritten(parents);
    const loaded = await Promise.all(
      children.map((child) => {
        const { rangeId, ownerEpoch } = child;
        return this.load({ pmTerm, leaseEpoch, rangeId, ownerEpoch }, child, handoff.load, written);
      }),
    );
    const failed = loaded.find((one) => !one.ok);
    if (failed && !failed.ok) return failed;
    const loadedMs = clock.monotonicMs();
    served();
    if (written) {
      const begun = children.map(({ rangeId }) => this.#held.get(rangeId)?.engine?.begin());
      await within(clock, beginTimeoutMs, Promise.all(begun));
    }
    const nowMs = clock.monotonicMs();
    const { heldSinceMs: sinceMs, drainMs, writeMs } = left.value;
    return ok({
      prepareMs: Math.round(dataSinceMs - beganMs),
      heldMs: Math.round(nowMs - sinceMs),
      drainMs: Math.round(drainMs),
      writeMs: Math.round(writeMs),
      handOverMs: Math.round(handedMs - leftMs),
      loadMs: Math.round(loadedMs - handedMs),
      beginMs: Math.round(nowMs - loadedMs),
      dataHeldMs: Math.round(nowMs - dataSinceMs),
    });
  }

  /** Prepares all that needs no wait. If it fails, or not all parents are served any more, those that are go on. */
  async #prepared(handoff: Handoff, parents: readonly ServingRange[], timeoutMs: number): Promise<Outcome<void>> {
    const prepared = await within(this.#world.clock, timeoutMs, handoff.prepare(isWritten(parents)));
    const gone = parents.find((parent) => !this.current(parent));
    if (prepared?.ok && gone === undefined) return prepared;
    handoff.resume((rangeId) => parents.some((parent) => parent.range.rangeId === rangeId && this.current(parent)));
    if (gone !== undefined) return notBegun(`${gone.range.rangeId} is not served here any more`);
    return notBegun(prepared?.ok === false ? prepared.failure.message : `it was not prepared in ${Math.round(timeoutMs)} ms`);
  }

  async #handOver(handoff: Handoff, parents: readonly ServingRange[]): Promise<Outcome<void>> {
    if (!parents.every(({ range }) => this.#held.get(range.rangeId)?.state === "serving")) {
      return refused("aborted", "leaseLost", "a parent was dropped meanwhile");
    }
    return handoff.handOver(handOverTimeoutMs);
  }

  #become({ rangeId }: Range, becoming: Becoming): void {
    this.#becoming.delete(rangeId);
    this.#becoming.set(rangeId, becoming);
    for (const oldest of this.#becoming.keys()) {
      if (this.#becoming.size <= becameMax) break;
      this.#becoming.delete(oldest);
    }
  }

  /**
   * For a range at this version that becomes, or became, others here: returns the served child that holds the key, when
   * that is over. So a caller that knows only the parent needs no new map first. Undefined: the range does not become
   * others, or no child is served here in time.
   */
  async childOf(
    rangeId: string,
    rangeVersion: number,
    table: Range["table"],
    key: Uint8Array,
    timeoutMs: number,
  ): Promise<ServingRange | undefined> {
    if (!(await this.untilReshaped(rangeId, rangeVersion, timeoutMs))) return undefined;
    return this.#held.holding(table, key).find((held): held is ServingRange => held.state === "serving" && held.engine !== undefined);
  }

  /** Waits for the end of the range's split or merge; false at once if none of this version is under way here. */
  async untilReshaped(rangeId: string, rangeVersion: number, timeoutMs: number): Promise<boolean> {
    const becoming = this.#becoming.get(rangeId);
    if (becoming?.rangeVersion !== rangeVersion) return false;
    return (await within(this.#world.clock, timeoutMs, becoming.over)) === true;
  }

  /** Returns the range, for a command about it, if it is served here. */
  servingAny(rangeId: string): Outcome<ServingRange> {
    const held = this.#held.get(rangeId);
    if (held?.state !== "serving" || !held.engine) return refused("failedPrecondition", "wrongPartition", `${rangeId} is not served here`);
    return ok(held as ServingRange);
  }

  /** Returns the range if it is served here at this version. */
  serving(rangeId: string, rangeVersion: number): Outcome<ServingRange> {
    const held = this.#held.get(rangeId);
    if (!held || held.state === "dropped") return refused("failedPrecondition", "wrongPartition", `${rangeId} is not served here`);
    if (held.range.rangeVersion !== rangeVersion) {
      return refused("failedPrecondition", "wrongPartition", `${rangeId} has version ${held.range.rangeVersion}, not ${rangeVersion}`);
    }
    if (!held.engine) return refused("unavailable", "partitionLoading", `${rangeId} is being loaded`);
    return ok(held as ServingRange);
  }

  /** True if an answer made from the range may still be given: the range is served here. */
  current(held: HeldRange): boolean {
    return held.state === "serving";
  }

  /** Closes every range, when the process leaves. */
  async closeAll(): Promise<void> {
    const all = [...this.#held.values()];
    this.#held.clear();
    await Promise.all([...all.map((held) => this.#drop(held)), ...this.#closing]);
  }

  /** Ends the range's epoch here: its streams have another owner, or can't be written any more. */
  #fenced(held: HeldRange, why: string): void {
    if (held.state === "dropped") return;
    const { rangeId, ownerEpoch } = held.range;
    this.#world.logger.warn("this server lost a range", { range: rangeId, ownerEpoch, why });
    this.#rules.dead(rangeId, ownerEpoch);
    if (this.#held.get(rangeId) === held) this.#held.delete(rangeId);
    void this.#drop(held);
  }

  async #drop(held: HeldRange): Promise<void> {
    held.state = "dropped";
    if (!held.engine) return;
    const closing = within(this.#world.clock, closeWaitMs, held.engine.close()).then(() => {});
    this.#closing.add(closing);
    await closing;
    this.#closing.delete(closing);
  }
}

/** True if anybody writes to the ranges. Others get no extents ahead: each would be sealed when another server loads them. */
const isWritten = (ranges: readonly ServingRange[]): boolean => ranges.some(({ load }) => load.isWritten);

/** Returns the failure of a split or merge that did not begin: the parents are unchanged. */
const notBegun = (message: string): Failed => refused("unavailable", "notBegun", message);

const gone = (range: Range): Failed => refused("aborted", "leaseLost", `${range.rangeId} was dropped while it was loaded`);
