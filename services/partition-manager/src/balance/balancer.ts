/**
 * Load balancing of one term: keeps what servers say of their ranges, and carries out one step of the plan (@stamp/partition-map
 * balance.ts) at a time. What it does is in the log with its reason, and shown by `stamp rebalance plan`.
 */
import { type BalancePolicy, type BalanceStep, balancePlan, contradictions, type RangeFigures, SettledLoads } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import type { ServerLoad } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";
import type { Reshaper } from "../reshape/reshaper.ts";

export interface DoneStep {
  readonly step: BalanceStep;
  readonly failure: string;
  readonly atMs: number;
}

const doneMax = 100;
/** Rests of the policy during which a range stays where it was moved by this balancer: by CPU always, else unless the reason for another move holds. */
const movedRests = 10;
/** Looks in a row at which another move of such a range has to be the best one. */
const insistedLooks = 3;

export class Balancer {
  readonly #world: World;
  readonly #map: MapState;
  readonly #reshaper: Reshaper;
  readonly #policy: BalancePolicy;
  readonly #liveServers: () => readonly string[];
  readonly #figures = new Map<string, RangeFigures>();
  readonly #settled = new SettledLoads();
  readonly #servers = new Map<string, ServerLoad>();
  /** Keyed by range, of which a split or merge failed, perhaps for want of a key: until when it is not tried again, before everything else. */
  readonly #restingUntilMs = new Map<string, number>();
  /** Time until which a range is not moved, keyed by range: that could not be done, or would be done again and again. */
  readonly #unmovedUntilMs = new Map<string, number>();
  /** Time until which a range counts as moved, keyed by range. */
  readonly #movedUntilMs = new Map<string, number>();
  /** Another move of a range that counts as moved, with the number of looks in a row at which it was best. */
  #insisted: { readonly move: string; readonly looks: number } | undefined;
  readonly done: DoneStep[] = [];
  /** Steps that were carried out, by what was done and for what reason; and those that failed. */
  readonly counts: Record<BalanceStep["kind"] | BalanceStep["cause"] | "failed", number> = {
    split: 0,
    merge: 0,
    move: 0,
    failed: 0,
    byRequests: 0,
    byBytes: 0,
    byProcessors: 0,
    byCold: 0,
  };

  constructor(world: World, map: MapState, reshaper: Reshaper, policy: BalancePolicy, liveServers: () => readonly string[]) {
    this.#world = world;
    this.#map = map;
    this.#reshaper = reshaper;
    this.#policy = policy;
    this.#liveServers = liveServers;
    for (const why of contradictions(policy)) world.logger.warn("rebalance: the policy contradicts itself", { why });
  }

  /** Takes a server's figures of a range under its present owner. */
  told(figures: RangeFigures): void {
    this.#figures.set(figures.rangeId, figures);
    this.#settled.told(figures, this.#policy.restMs);
  }

  /** Returns the range's requests per second when it was last served, refused ones included. */
  heatOf(rangeId: string): number {
    const figures = this.#figures.get(rangeId);
    return figures === undefined ? 0 : figures.requestsPerSecond + figures.throttledPerSecond;
  }

  /** Takes a server's figures of itself. */
  toldOf(server: string, load: ServerLoad): void {
    this.#servers.set(server, load);
  }

  loadOf(server: string): ServerLoad | undefined {
    return this.#servers.get(server);
  }

  figuresOf(rangeId: string): RangeFigures | undefined {
    return this.#figures.get(rangeId);
  }

  /** Returns the steps that would be carried out now, the most urgent one first. */
  plan(): BalanceStep[] {
    const { plan, again } = this.#look();
    return again === undefined || this.#looksAt(again) + 1 >= insistedLooks ? plan : this.#look(this.#movedUntilMs.keys()).plan;
  }

  /** Plans steps. `staying`: further ranges that are not moved. `again`: the move, if it is another one of a range that counts as moved. */
  #look(staying: Iterable<string> = []): { readonly plan: BalanceStep[]; readonly again: string | undefined } {
    const { ranges } = this.#map.current;
    const known = new Set(ranges.map(({ rangeId }) => rangeId));
    for (const rangeId of this.#figures.keys()) if (!known.has(rangeId)) this.#figures.delete(rangeId);
    this.#settled.follow(ranges);
    const nowMs = this.#world.clock.monotonicMs();
    for (const rests of [this.#restingUntilMs, this.#unmovedUntilMs, this.#movedUntilMs]) {
      for (const [rangeId, untilMs] of rests) if (untilMs <= nowMs || !known.has(rangeId)) rests.delete(rangeId);
    }
    const servers = this.#liveServers();
    for (const server of this.#servers.keys()) if (!servers.includes(server)) this.#servers.delete(server);
    const processors = new Map([...this.#servers].map(([server, load]) => [server, load.processors]));
    const [resting, unmoved] = [new Set(this.#restingUntilMs.keys()), new Set([...this.#unmovedUntilMs.keys(), ...staying])];
    const settled = this.#settled.loads;
    const plan = balancePlan({ ranges, figures: this.#figures, settled, servers, resting, unmoved, processors }, this.#policy);
    const move = plan.find((step) => step.kind === "move" && this.#movedUntilMs.has(step.rangeId));
    return { plan, again: move?.kind === "move" ? `${move.rangeId} to ${move.to}` : undefined };
  }

  #looksAt(again: string): number {
    return this.#insisted?.move === again ? this.#insisted.looks : 0;
  }

  /** Takes the most urgent step, if there is one, of another kind than the last: else nothing would be moved while many are split. */
  async step(): Promise<void> {
    const plan = this.plan();
    const { again } = this.#look();
    this.#insisted = again === undefined ? undefined : { move: again, looks: this.#looksAt(again) + 1 };
    const last = this.done[0]?.step.kind;
    const step = plan.find(({ kind }) => kind !== last) ?? plan[0];
    if (!step) return;
    const { logger, clock } = this.#world;
    logger.info(`rebalance: ${step.kind}`, { range: step.rangeId, why: step.why, ...(step.kind === "move" ? { to: step.to } : {}) });
    const changed = await this.#carryOut(step);
    if (changed.ok) {
      this.counts[step.kind]++;
      this.counts[step.cause]++;
      if (step.kind === "move") this.#movedUntilMs.set(step.rangeId, clock.monotonicMs() + movedRests * this.#policy.restMs);
      // A range's share of a server's CPU is a guess: a wrong one would be repeated, and the range moved to and fro.
      if (step.kind === "move" && step.cause === "byProcessors") {
        this.#unmovedUntilMs.set(step.rangeId, clock.monotonicMs() + movedRests * this.#policy.restMs);
      }
    } else {
      this.counts.failed++;
      logger.warn(`rebalance: no ${step.kind}`, { range: step.rangeId, ...changed.failure });
      // Not at once again: another step may be possible meanwhile.
      this.#figures.delete(step.rangeId);
      const rests = step.kind === "move" ? this.#unmovedUntilMs : this.#restingUntilMs;
      rests.set(step.rangeId, clock.monotonicMs() + this.#policy.restMs);
    }
    this.done.unshift({ step, failure: changed.ok ? "" : changed.failure.message, atMs: clock.monotonicMs() });
    this.done.splice(doneMax);
  }

  #carryOut(step: BalanceStep) {
    if (step.kind === "split") return this.#reshaper.split(step.rangeId, undefined);
    return step.kind === "merge" ? this.#reshaper.merge(step.rangeId) : this.#reshaper.move(step.rangeId, step.to);
  }
}
