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
import { overlap, ServerRules } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { within } from "@stamp/ports";
import type { Engines, LeftState, RangeEngine } from "./engine.ts";
import { RangeLoad } from "./load.ts";

export interface Held {
  readonly range: Range;
  state: "loading" | "serving" | "dropped";
  readonly load: RangeLoad;
  engine: RangeEngine | undefined;
  /** Of leases of objects; they start with the load. */
  leases: LeaseTimers;
  readonly queueClocks: QueueClocks;
  /** Ends with the load. */
  loaded: Promise<Outcome<void>>;
}

export type Serving = Held & { readonly engine: RangeEngine };
export type ReshapeCommand = Omit<LoadCommand, "rangeId" | "ownerEpoch">;

export interface Parent {
  readonly rangeId: string;
  readonly ownerEpoch: number;
}

const closeWaitMs = 1_000;
const handOverTimeoutMs = 10_000;
const heldMax = 10_000;

export class Holdings {
  readonly #world: World;
  readonly #engines: Engines;
  readonly #rules: ServerRules;
  readonly #held = new Map<string, Held>();
  readonly #closing = new Set<Promise<void>>();

  constructor(world: World, engines: Engines) {
    this.#world = world;
    this.#engines = engines;
    this.#rules = new ServerRules(world.rules);
  }

  get all(): readonly Held[] {
    return [...this.#held.values()];
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
    this.#rules.lease(0);
  }

  /** Its synchronous part runs in order of arrival. */
  load(command: LoadCommand, range: Range): Promise<Outcome<void>> {
    if (this.#held.size >= heldMax) return Promise.resolve(refused("resourceExhausted", "overloaded", `${heldMax} ranges are held`));
    const verdict = this.#rules.load(command);
    if (!verdict.ok) return Promise.resolve(verdict);
    this.#endParents(range);
    const before = this.#held.get(range.rangeId);
    if (verdict.value === "already" && before) return before.loaded;
    const dropped = before ? this.#drop(before) : Promise.resolve();
    const held: Held = {
      range,
      state: "loading",
      load: new RangeLoad(this.#world.clock),
      engine: undefined,
      leases: this.#leaseTimers(),
      queueClocks: new QueueClocks(),
      loaded: Promise.resolve(ok()),
    };
    this.#held.set(range.rangeId, held);
    held.loaded = this.#load(held, dropped);
    return held.loaded;
  }

  /**
   * What has keys of a range that is loaded was split or merged into it, by the manager's word: it ends now, also when this server waits
   * still to hear of it (rule childEndsParents).
   */
  #endParents(range: Range): void {
    if (!this.#world.rules.on("childEndsParents")) return;
    for (const held of this.#held.values()) {
      if (held.range.rangeId === range.rangeId || !overlap(held.range, range) || held.range.ownerEpoch > range.ownerEpoch) continue;
      this.#held.delete(held.range.rangeId);
      this.#rules.dead(held.range.rangeId, held.range.ownerEpoch);
      void this.#drop(held);
    }
  }

  async #load(held: Held, dropped: Promise<void>): Promise<Outcome<void>> {
    const { range } = held;
    const { logger, clock } = this.#world;
    await dropped;
    if (!this.#wanted(held)) return gone(range);
    const startedMs = clock.monotonicMs();
    const engine = await this.#engines.load(range, (why) => this.#fenced(held, why));
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

  #wanted(held: Held): boolean {
    return held.state !== "dropped";
  }

  async close(command: LoadCommand): Promise<Outcome<void>> {
    const verdict = this.#rules.close(command);
    if (!verdict.ok) return verdict;
    const held = this.#held.get(command.rangeId);
    if (held && held.range.ownerEpoch <= command.ownerEpoch) {
      this.#held.delete(command.rangeId);
      await this.#drop(held);
      this.#world.logger.info("range closed", { range: command.rangeId, ownerEpoch: command.ownerEpoch });
    }
    return ok();
  }

  /**
   * Leaves the streams of the parents to the children, and serves these. Whatever fails on the way, the parents are not served here
   * afterwards: the manager finds out what became of it, and says who serves what (rule fenceBeforeAsking). Gives how long writes waited.
   */
  async reshape(command: ReshapeCommand, parents: readonly Parent[], children: readonly Range[]): Promise<Outcome<number>> {
    const verdict = this.#rules.reshape(command, parents);
    if (!verdict.ok) return verdict;
    const held = parents.map(({ rangeId }) => this.#held.get(rangeId));
    const ready = held.filter((one): one is Serving => one?.state === "serving" && one.engine !== undefined);
    if (ready.length < parents.length) return refused("unavailable", "partitionLoading", "a parent is not served here yet");
    const { clock, logger } = this.#world;
    const ids = children.map(({ rangeId }) => rangeId);
    const left = await this.#leave(ready, ids);
    const outcome = left.ok ? await this.#handOver(ready, children) : left;
    for (const one of ready) {
      if (this.#held.get(one.range.rangeId) === one) this.#held.delete(one.range.rangeId);
      this.#rules.dead(one.range.rangeId, one.range.ownerEpoch);
      void this.#drop(one);
    }
    if (!outcome.ok) {
      logger.warn("ranges not reshaped", {
        parents: parents.map(({ rangeId }) => rangeId).join(),
        children: ids.join(),
        ...outcome.failure,
      });
      return outcome;
    }
    const { pmTerm, leaseEpoch } = command;
    const loaded = await Promise.all(
      children.map((child) => this.load({ pmTerm, leaseEpoch, rangeId: child.rangeId, ownerEpoch: child.ownerEpoch }, child)),
    );
    const failed = loaded.find((one) => !one.ok);
    if (failed && !failed.ok) return failed;
    const heldMs = Math.round(clock.monotonicMs() - (left.ok ? left.value : 0));
    logger.info("ranges reshaped", { parents: parents.map(({ rangeId }) => rangeId).join(), children: ids.join(), heldMs });
    return ok(heldMs);
  }

  /** The last parent first: the first one's metadata stream goes on, with what the others left. Gives when writes began to wait. */
  async #leave(parents: readonly Serving[], heirs: readonly string[]): Promise<Outcome<number>> {
    // Most of what is in memory goes out while writes go on.
    for (const { engine } of parents) {
      const written = await engine.checkpoint();
      if (!written.ok) return written;
    }
    const sinceMs = this.#world.clock.monotonicMs();
    let neighbour: LeftState | undefined;
    for (const { engine } of parents.toReversed()) {
      const left = await engine.leaveTo(heirs, neighbour);
      if (!left.ok) return left;
      neighbour = left.value;
    }
    return ok(sinceMs);
  }

  async #handOver(parents: readonly Serving[], children: readonly Range[]): Promise<Outcome<void>> {
    if (!parents.every((one) => this.current(one))) return refused("aborted", "leaseLost", "a parent was dropped meanwhile");
    return this.#engines.handOver(
      parents.map(({ range }) => range),
      children,
      handOverTimeoutMs,
    );
  }

  /** What is served here, for a command about one range. */
  servingAny(rangeId: string): Outcome<Serving> {
    const held = this.#held.get(rangeId);
    if (held?.state !== "serving" || !held.engine) return refused("failedPrecondition", "wrongPartition", `${rangeId} is not served here`);
    return ok(held as Serving);
  }

  /** The range when it is served here at this version. */
  serving(rangeId: string, rangeVersion: number): Outcome<Serving> {
    const held = this.#held.get(rangeId);
    if (!held || held.state === "dropped") return refused("failedPrecondition", "wrongPartition", `${rangeId} is not served here`);
    if (held.range.rangeVersion !== rangeVersion) {
      return refused("failedPrecondition", "wrongPartition", `${rangeId} has version ${held.range.rangeVersion}, not ${rangeVersion}`);
    }
    if (!held.engine) return refused("unavailable", "partitionLoading", `${rangeId} is being loaded`);
    return ok(held as Serving);
  }

  /** Whether an answer made from it may still be given. */
  current(held: Held): boolean {
    return held.state === "serving";
  }

  /** When the process leaves. */
  async closeAll(): Promise<void> {
    const all = [...this.#held.values()];
    this.#held.clear();
    await Promise.all([...all.map((held) => this.#drop(held)), ...this.#closing]);
  }

  /** The streams have another owner, or can't be written for good: this epoch is over here. */
  #fenced(held: Held, why: string): void {
    if (held.state === "dropped") return;
    const { rangeId, ownerEpoch } = held.range;
    this.#world.logger.warn("range lost", { range: rangeId, ownerEpoch, why });
    this.#rules.dead(rangeId, ownerEpoch);
    if (this.#held.get(rangeId) === held) this.#held.delete(rangeId);
    void this.#drop(held);
  }

  async #drop(held: Held): Promise<void> {
    held.state = "dropped";
    if (!held.engine) return;
    const closing = within(this.#world.clock, closeWaitMs, held.engine.close()).then(() => {});
    this.#closing.add(closing);
    await closing;
    this.#closing.delete(closing);
  }
}

const gone = (range: Range): Failed => refused("aborted", "leaseLost", `${range.rangeId} was dropped while it was loaded`);
