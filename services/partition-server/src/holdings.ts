/**
 * The ranges that this server holds under its lease: loads, closes and drops them. Which commands are obeyed is decided by ServerRules
 * (@stamp/partition-map); here they are carried out.
 *
 * Invariants: what is dropped is dropped at once and for good: whoever still works on it finds that out before he answers (`current`).
 * Closed is answered only when no append of the range is in flight any more, or after `closeWaitMs`: an append that is late then may
 * still land before the successor opens the streams, never after, and its writer was told nothing.
 */
import { type Failed, type Outcome, ok, refused } from "@stamp/base";
import { LeaseTimers } from "@stamp/objects";
import type { LoadCommand, Range } from "@stamp/partition-map";
import { ServerRules } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { within } from "@stamp/ports";
import type { LoadEngine, RangeEngine } from "./engine.ts";

export interface Held {
  readonly range: Range;
  state: "loading" | "serving" | "dropped";
  engine: RangeEngine | undefined;
  /** Of leases of objects; they start with the load. */
  leases: LeaseTimers;
  /** Ends with the load. */
  loaded: Promise<Outcome<void>>;
}

const closeWaitMs = 1_000;
const heldMax = 10_000;

export class Holdings {
  readonly #world: World;
  readonly #loadEngine: LoadEngine;
  readonly #rules: ServerRules;
  readonly #held = new Map<string, Held>();
  readonly #closing = new Set<Promise<void>>();

  constructor(world: World, loadEngine: LoadEngine) {
    this.#world = world;
    this.#loadEngine = loadEngine;
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
    const before = this.#held.get(range.rangeId);
    if (verdict.value === "already" && before) return before.loaded;
    const dropped = before ? this.#drop(before) : Promise.resolve();
    const leases = this.#leaseTimers();
    const held: Held = { range, state: "loading", engine: undefined, leases, loaded: Promise.resolve(ok()) };
    this.#held.set(range.rangeId, held);
    held.loaded = this.#load(held, dropped);
    return held.loaded;
  }

  async #load(held: Held, dropped: Promise<void>): Promise<Outcome<void>> {
    const { range } = held;
    const { logger, clock } = this.#world;
    await dropped;
    if (!this.#wanted(held)) return gone(range);
    const startedMs = clock.monotonicMs();
    const engine = await this.#loadEngine(range, (why) => this.#fenced(held, why));
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

  /** The range when it is served here at this version. */
  serving(rangeId: string, rangeVersion: number): Outcome<Held & { readonly engine: RangeEngine }> {
    const held = this.#held.get(rangeId);
    if (!held || held.state === "dropped") return refused("failedPrecondition", "wrongPartition", `${rangeId} is not served here`);
    if (held.range.rangeVersion !== rangeVersion) {
      return refused("failedPrecondition", "wrongPartition", `${rangeId} has version ${held.range.rangeVersion}, not ${rangeVersion}`);
    }
    if (!held.engine) return refused("unavailable", "partitionLoading", `${rangeId} is being loaded`);
    return ok(held as Held & { readonly engine: RangeEngine });
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
