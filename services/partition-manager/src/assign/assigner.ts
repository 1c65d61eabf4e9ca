/**
 * Carries out what @stamp/partition-map decides: gives ranges to servers and takes them away, in one term.
 *
 * Order of one assignment, each step durable before the next: the owner epoch is minted under the term, the row is written to the map
 * under the term, Load is sent (rule assignmentBeforeLoad).
 */
import type { Failure, Outcome } from "@stamp/base";
import { assert, ok } from "@stamp/base";
import {
  type AssignmentState,
  type AssignmentStep,
  hasIdleServer,
  isLive,
  isUnchanged,
  leastLoaded,
  nextSteps,
  type Progress,
  type Range,
  type RangeMap,
  rebalance,
} from "@stamp/partition-map";
import { jittered, sleep, type World } from "@stamp/ports";
import type { MapState } from "../map/map-state.ts";
import { Attempts } from "./attempts.ts";
import { LoadQueue } from "./load-queue.ts";
import { endsTerm, type OwnerEpochs } from "./owner-epochs.ts";
import type { Servers } from "./servers.ts";

type Assignment = Extract<AssignmentStep, { kind: "assign" }>;

export interface AssignerOptions {
  readonly pmTerm: number;
  /** Loads at once of one server at most. */
  readonly loadsAtOnceMax: number;
  /** Returns the requests per second when the range was last served; 0: not known. */
  readonly heatOf: (range: Range) => number;
  /** Returns true if nothing stands against moving a range by itself. */
  readonly hasRoom: () => boolean;
  /** Asks for another turn soon. */
  readonly again: () => void;
  /** Brings an abandoned split or merge to its end. */
  readonly resolve: (range: Range) => Promise<void>;
  /** Called when the term is over: somebody else leads, or a write's outcome is unknown. */
  readonly end: (why: string, above?: number) => void;
}

const retryMs = 100;
const refuseAgainMs = 1_000;
const assignedAtOnceMax = 500;
/** Most changed ranges that are logged one by one; each load is logged where it happens. */
const toldOneByOneMax = 10;
/** Ranges that are gone, split or merged, of which something is still known. */
const goneMax = 1_000;
/** A server without a range is left so for this long: the balancer, or a person, may just have taken its last one. */
const idleServerMs = 300_000;

export class Assigner {
  readonly #world: World;
  readonly #epochs: OwnerEpochs;
  readonly #map: MapState;
  readonly #servers: Servers;
  readonly #options: AssignerOptions;
  readonly #progress = new Map<string, Progress>();
  readonly #attempts: Attempts;
  #liveBefore: ReadonlySet<string> | undefined;
  readonly #loads: LoadQueue;
  /** Servers by lease epoch whose renewals are refused, or lately were. */
  readonly #refusing = new Set<string>();
  /** Served, and not in the map so yet. */
  #served: Range[] = [];
  #evenOut = false;
  /** A server has had no range since then. */
  #idleSinceMs: number | undefined;
  #assigning = false;
  /**
   * Counts of this term: owner epochs given to ranges, ranges taken from a server to give them to another, servers
   * given up.
   */
  readonly counts = { assigned: 0, moved: 0, serversRefused: 0 };

  constructor(world: World, epochs: OwnerEpochs, map: MapState, servers: Servers, options: AssignerOptions) {
    this.#world = world;
    this.#epochs = epochs;
    this.#map = map;
    this.#servers = servers;
    this.#options = options;
    this.#attempts = new Attempts(world);
    this.#loads = new LoadQueue(options.loadsAtOnceMax);
  }

  progressOf(rangeId: string): Progress["kind"] {
    return this.#progress.get(rangeId)?.kind ?? "idle";
  }

  /** True if every range is served, but for those that no server could load for long: nothing waits for these. */
  get calm(): boolean {
    return this.#hopeful(this.#map.current.ranges).every((range) => this.progressOf(range.rangeId) === "loaded");
  }

  #hopeful(ranges: readonly Range[]): readonly Range[] {
    return ranges.filter(({ rangeId }) => !this.#attempts.isGivenUp(rangeId));
  }

  /** Does one turn: what is to be done now. Waits for nothing but the map. */
  async turn(): Promise<void> {
    if (!this.#servers.known || this.#assigning) return;
    this.#forgetGone();
    const state = this.#state();
    this.#noticeJoins(state);
    const steps = nextSteps(state);
    for (const step of steps) this.#start(step);
    const wanted = steps.filter((step): step is Assignment => step.kind === "assign");
    const assignments = wanted.filter((step) => this.#attempts.mayAssign(step.range.rangeId));
    if (assignments.length < wanted.length) this.#soon();
    if (assignments.length > 0) {
      this.#assigning = true;
      await this.#assign(assignments.slice(0, assignedAtOnceMax));
      this.#assigning = false;
      if (assignments.length > assignedAtOnceMax) this.#options.again();
      return;
    }
    if (steps.length === 0 && this.#evenOut && this.#options.hasRoom()) await this.#evenOutOne(state);
  }

  /** Takes a server's report of its ranges: a missing one is loaded again. */
  served(server: string, loadedBefore: readonly Range[], serves: ReadonlyMap<string, number>): void {
    for (const range of loadedBefore) {
      if (range.server !== server || serves.get(range.rangeId) === range.ownerEpoch) continue;
      const now = this.#map.range(range.rangeId);
      if (now?.ownerEpoch === range.ownerEpoch && this.progressOf(range.rangeId) === "loaded") {
        this.#world.logger.warn("a server does not serve its range", { server, range: range.rangeId });
        this.#set(range, "idle");
      }
    }
  }

  /** Reserves the range until `release`; false: something is under way, or the range has changed. */
  take(range: Range): boolean {
    if (!this.#isFree(range)) return false;
    this.#set(range, "busy");
    return true;
  }

  /** Sets the next step of the range. */
  release(range: Range, progress: Progress): void {
    this.#progress.set(range.rangeId, progress);
    this.#options.again();
  }

  /**
   * Whether owner epochs can be minted now: asked before a range that is served is taken away. Without one nobody could have it until the
   * metadata store has room again.
   */
  async recordable(): Promise<Outcome<void>> {
    const minted = await this.#epochs.mint(1);
    if (minted.ok) return ok();
    if (endsTerm(minted.failure)) this.#options.end(minted.failure.message);
    return minted;
  }

  /** Begins to move a range to another server, `to` if that is there. Returns false where `take` does. */
  move(range: Range, to: string): boolean {
    if (!this.#isFree(range)) return false;
    this.#world.logger.info("a range moves to another server", { range: range.rangeId, from: range.server, to });
    this.counts.moved++;
    this.release(range, { kind: "closing", to });
    return true;
  }

  /** Returns the live server that serves least, besides this one. */
  leastLoaded(besides: string): string | undefined {
    return leastLoaded(this.#state(), besides);
  }

  /** Servers that get no range while others can take it. */
  get avoided(): ReadonlySet<string> {
    return this.#attempts.avoided(this.#servers.leases);
  }

  loadedAt(server: string): Range[] {
    return this.#map.current.ranges.filter((range) => range.server === server && this.progressOf(range.rangeId) === "loaded");
  }

  #forgetGone(): void {
    const { ranges } = this.#map.current;
    if (this.#progress.size <= ranges.length + goneMax) return;
    const here = new Set(ranges.map(({ rangeId }) => rangeId));
    for (const rangeId of this.#progress.keys()) if (!here.has(rangeId)) this.#progress.delete(rangeId);
    this.#attempts.keepOnly(here);
  }

  #state(): AssignmentState {
    return {
      ranges: this.#map.current.ranges,
      progress: this.#progress,
      leases: this.#servers.leases,
      unreachable: this.#servers.unreachable,
      avoided: this.avoided,
      rules: this.#world.rules,
      heatOf: (range) => this.#heatOf(range),
    };
  }

  /**
   * Ranges are evened out when a server joined, or has had none for long: it joined while no partition manager looked. Never at the start of a
   * term. One that was given up has to answer first.
   */
  #noticeJoins(state: AssignmentState): void {
    const nowMs = this.#world.clock.monotonicMs();
    if (!hasIdleServer(state)) this.#idleSinceMs = undefined;
    else this.#idleSinceMs ??= nowMs;
    if (this.#idleSinceMs !== undefined && nowMs - this.#idleSinceMs > idleServerMs) {
      this.#evenOut = true;
      this.#idleSinceMs = undefined;
    }

    const live = new Set(state.leases.flatMap((lease) => (isLive(lease) && !state.unreachable.has(lease.server) ? [lease.server] : [])));
    const before = this.#liveBefore;
    if (before && [...live].some((server) => !before.has(server))) this.#evenOut = true;
    this.#liveBefore = live;
  }

  async #evenOutOne(state: AssignmentState): Promise<void> {
    const range = rebalance({ ...state, ranges: this.#hopeful(state.ranges) });
    if (!range) {
      if (this.calm) this.#evenOut = false;
      return;
    }
    const recordable = await this.recordable();
    if (!recordable.ok)
      this.#world.logger.warn("a range is not moved: the partition map can't be recorded", { range: range.rangeId, ...recordable.failure });
    if (!recordable.ok || !this.#isFree(range)) return;
    this.#world.logger.info("a range moves away from the server with the most ranges", { range: range.rangeId, from: range.server });
    this.counts.moved++;
    this.#set(range, "closing");
  }

  #start(step: AssignmentStep): void {
    if (step.kind === "load") void this.#load(step.range);
    if (step.kind === "close") void this.#close(step.range, step.to);
    if (step.kind === "resolve") void this.#options.resolve(step.range);
    if (step.kind === "refuse") void this.#refuse(step.server, step.leaseEpoch);
  }

  async #refuse(server: string, leaseEpoch: number): Promise<void> {
    const { logger, clock, random } = this.#world;
    const lease = `${server} ${leaseEpoch}`;
    if (this.#refusing.has(lease)) return;
    this.#refusing.add(lease);
    logger.warn("a partition server can't be reached: the lock service is asked to refuse renewals of its lease", { server, leaseEpoch });
    const answer = await this.#servers.refuseRenewals(server, leaseEpoch);
    if (answer.ok) this.counts.serversRefused++;
    else logger.warn("the lock service did not confirm that it refuses renewals of a server", { server, ...answer.failure });
    await sleep(clock, jittered(random, refuseAgainMs));
    this.#refusing.delete(lease);
  }

  async #assign(steps: readonly Assignment[]): Promise<void> {
    const { end } = this.#options;
    const minted = await this.#epochs.mint(steps.length);
    if (!minted.ok) {
      if (endsTerm(minted.failure)) end(minted.failure.message);
      else this.#soon();
      return;
    }
    const assigned = steps.map(({ range, to }, index): Range => {
      const ownerEpoch = minted.value + index;
      assert(ownerEpoch > range.ownerEpoch, "an owner epoch is larger than every earlier one");
      return {
        ...range,
        ownerEpoch,
        rangeVersion: range.rangeVersion + (to.server === range.server ? 0 : 1),
        server: to.server,
        serverAddress: to.address,
        leaseEpoch: to.leaseEpoch,
        loaded: false,
      };
    });
    this.counts.assigned += assigned.length;
    for (const range of assigned) {
      this.#set(range, "busy");
      this.#rest(range);
    }
    const early = !this.#world.rules.on("assignmentBeforeLoad");
    if (early) for (const range of assigned) void this.#load(range);
    let recorded: readonly Range[] = [];
    const before = new Map(steps.map(({ range }) => [range.rangeId, range]));
    const written = await this.#record((map) => {
      // A split or merge may have been recorded, or done, meanwhile: whoever does it says what is to be done with them.
      recorded = assigned.filter(({ rangeId }) => isUnchanged(map.byId(rangeId), before.get(rangeId)));
      return recorded;
    });
    if (!written) return;
    if (!early) for (const range of recorded) void this.#load(range);
    this.#tell(recorded);
  }

  #tell(assigned: readonly Range[]): void {
    const { logger } = this.#world;
    if (assigned.length <= toldOneByOneMax) {
      for (const { rangeId, server, ownerEpoch } of assigned) logger.info("range assigned", { range: rangeId, server, ownerEpoch });
      return;
    }
    for (const [server, given] of Map.groupBy(assigned, (range) => range.server)) {
      logger.info("ranges assigned", {
        count: given.length,
        server,
        ownerEpochs: `${given[0]?.ownerEpoch} to ${given.at(-1)?.ownerEpoch}`,
      });
    }
  }

  async #record(rows: (map: RangeMap) => readonly Range[]): Promise<boolean> {
    const written = await this.#map.change((map) => ok({ changed: rows(map) }));
    if (!written.ok) this.#options.end(`the map was not written: ${written.failure.message}`);
    return written.ok;
  }

  /** Returns how urgently a range is needed. Ranges of accounts come first, because no request is answered without them. */
  #heatOf(range: Range): number {
    return range.table === "Account" ? Number.POSITIVE_INFINITY : this.#options.heatOf(range);
  }

  async #load(range: Range): Promise<void> {
    this.#set(range, "busy");
    const leave = await this.#loads.enter(`${range.server} ${range.leaseEpoch}`, this.#heatOf(range));
    // It may have been given to somebody else while it waited.
    const answer = this.#still(range) ? await this.#servers.load(range) : undefined;
    leave();
    if (answer === undefined || !this.#still(range)) return;
    if (answer.ok) {
      this.#set(range, "loaded");
      this.#attempts.loaded(range);
      this.#served.push(range);
      if (this.#served.length === 1) await this.#recordServed();
      // The next step needs every range to be loaded: a turn after each of a thousand would look at all of them a
      // thousand times.
      if (this.#loads.empty) this.#options.again();
      return;
    }
    const { restMs, elsewhere } = this.#attempts.loadFailed(range);
    const to = elsewhere ? this.leastLoaded(range.server) : undefined;
    if (to !== undefined)
      this.#world.logger.warn("a server does not get its range loaded", { range: range.rangeId, server: range.server, to });
    this.#failed(range, answer.failure, to === undefined ? { kind: "idle" } : { kind: "closing", to }, restMs);
  }

  /** Records ranges that were loaded while the last ones were recorded, together. */
  async #recordServed(): Promise<void> {
    let recorded = 0;
    while (recorded < this.#served.length) {
      const served = new Map(this.#served.slice(recorded).map(({ rangeId, ownerEpoch }) => [rangeId, ownerEpoch]));
      recorded = this.#served.length;
      const written = await this.#record((map) =>
        [...served].flatMap(([rangeId, ownerEpoch]) => {
          const now = map.byId(rangeId);
          return now !== undefined && !now.loaded && now.ownerEpoch === ownerEpoch ? [{ ...now, loaded: true, hasStreams: true }] : [];
        }),
      );
      if (!written) break;
    }
    this.#served = [];
  }

  async #close(range: Range, to: string | undefined): Promise<void> {
    this.#set(range, "busy");
    const towards = to === undefined ? {} : { to };
    const answer: Outcome<void> = await this.#servers.close(range);
    if (!this.#still(range)) return;
    if (answer.ok) {
      this.release(range, { kind: "closed", ...towards });
      return;
    }
    this.#failed(range, answer.failure, { kind: "closing", ...towards });
  }

  #failed(range: Range, failure: Failure, next: Progress, restMs = jittered(this.#world.random, retryMs)): void {
    this.#world.logger.warn("command to a partition server failed", { range: range.rangeId, server: range.server, ...failure });
    if (failure.reason === "staleTerm") {
      this.#options.end(failure.message, Number(failure.details?.currentTerm ?? 0));
      return;
    }
    // The epoch is dead at that server: closed there, or its streams are owned by a higher one.
    const dead = failure.reason === "staleOwnerEpoch";
    this.#epochs.told(epochThere(failure));
    this.#world.clock.after(restMs, () => {
      if (!this.#still(range)) return;
      this.release(range, dead ? { kind: "closed" } : next);
    });
  }

  /** True if the range is loaded and nothing is under way, and it is the known one: another one would never be given back. */
  #isFree(range: Range): boolean {
    return this.progressOf(range.rangeId) === "loaded" && isUnchanged(this.#map.range(range.rangeId), range);
  }

  #rest({ rangeId }: Range): void {
    const { assigned, restMs } = this.#attempts.assigned(rangeId);
    if (assigned > 3)
      this.#world.logger.warn("a range was assigned again and again and never loaded", { range: rangeId, assigned, restMs });
  }

  #soon(): void {
    this.#world.clock.after(jittered(this.#world.random, retryMs), () => this.#options.again());
  }

  /** True if the range was not given to another server meanwhile. */
  #still(range: Range): boolean {
    const now = this.#map.range(range.rangeId);
    return now !== undefined && now.ownerEpoch <= range.ownerEpoch && this.progressOf(range.rangeId) === "busy";
  }

  #set(range: Range, kind: Progress["kind"]): void {
    this.#progress.set(range.rangeId, { kind });
  }
}

/** Returns the owner epoch because of which a server, or a stream, refused a lower one; 0: it refused for another reason. */
function epochThere({ details = {} }: Failure): number {
  return Math.max(...[details.currentOwnerEpoch, details.closedEpoch, details.heldEpoch].map((epoch) => Number(epoch ?? 0)));
}
