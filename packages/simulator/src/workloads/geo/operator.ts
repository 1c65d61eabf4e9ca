/**
 * A person who asks the location service for operations on the account while it is used: copies, failovers, planned and forced, migrations,
 * and that some are given up. What the person sees of each forced failover goes into the history.
 */
import type { Outcome, Prng } from "@stamp/base";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import type { LocatedAccount } from "@stamp/wire";
import type { Tally } from "../run/workload.ts";
import type { Forced, GeoHistory } from "./history.ts";
import { account, type LocationCall, otherStamp, type StampName, type TwoStamps } from "./location.ts";
import { readReport } from "./reports.ts";
import { count } from "./stamp-door.ts";

const lookEveryMs = 500;
const removalToldMs = 10_000;
/** A person waits for a report for this time, and then gives up what only the deposed primary has. */
const reportWithinMs = 60_000;

export interface OperatorOptions {
  /** Longest pause between operations, in milliseconds. */
  readonly restMaxMs: number;
  /** How often a failover is forced. */
  readonly forcedChance: number;
  /** How often a failover that drains is taken over by a forced one, at each look; 0.1 when absent. */
  readonly takesOverChance?: number;
  /** True: copies and migrations have queues, too. */
  readonly withQueues?: boolean;
  /** How often an operation under way is given up, at each look. */
  readonly giveUpChance: number;
  /** Names that the clients write. */
  readonly names: readonly string[];
  /** True if ranges of the stamp were merged, or may have been. */
  readonly merged: (stamp: StampName) => boolean;
  /** A step of an operation is seen for the first time. */
  readonly onStep: (step: string) => void;
}

export class Operator {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #place: TwoStamps;
  readonly #history: GeoHistory;
  readonly #prng: Prng;
  readonly #options: OperatorOptions;
  /** Time at which each stamp was seen as primary last. */
  readonly #seen: Record<StampName, number> = { north: 0, south: 0 };
  /** The last failover, if it was forced and the report of its old primary was not read yet. */
  #owed: { readonly forced: Forced; readonly sinceMs: number } | undefined;
  #step = "";

  constructor(sim: Simulation, tally: Tally, place: TwoStamps, history: GeoHistory, options: OperatorOptions) {
    this.#sim = sim;
    this.#tally = tally;
    this.#place = place;
    this.#history = history;
    this.#prng = sim.prng.fork();
    this.#options = options;
  }

  async work(endMs: number): Promise<void> {
    let restUntilMs = 0;
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(lookEveryMs);
      const found = await this.look();
      if (found === undefined || this.#sim.nowMs < restUntilMs) continue;
      if (await this.#next(found)) restUntilMs = this.#sim.nowMs + this.#prng.float() * this.#options.restMaxMs;
    }
  }

  /** After the faults: ends with a complete copy. Returns the primary. */
  async settle(withinMs: number): Promise<StampName> {
    const endMs = this.#sim.nowMs + withinMs;
    for (;;) {
      const found = await this.look();
      if (found?.kind === "" && found.secondary === "") await this.#protect(found.stamp as StampName);
      if (found?.kind === "" && found.seeded && (await this.#isReportRead())) return found.stamp as StampName;
      if (found?.kind === "" && found.secondary !== "" && !found.seeded && (await this.#givesReportUp())) await this.#unprotect();
      if (this.#sim.nowMs > endMs) {
        const { kind, step, trouble, stamp, secondary, seeded, shipping } = found ?? {};
        const ranges = shipping?.ranges.map(({ rangeId, state, failure }) => `${rangeId} ${state} ${failure}`).join("; ");
        const state =
          found === undefined ? "no answer" : JSON.stringify({ kind, step, trouble, stamp, secondary, seeded, of: shipping?.trouble });
        throw new BrokenPromise(`no complete copy within ${withinMs} ms after the faults: ${state} ${ranges ?? ""}`);
      }
      await this.#sim.sleep(lookEveryMs);
    }
  }

  /** Makes a planned failover, to its end. Returns the new primary. */
  async failOver(withinMs: number): Promise<StampName> {
    const endMs = this.#sim.nowMs + withinMs;
    const from = (await this.#found(endMs)).stamp as StampName;
    const target = otherStamp(from);
    for (;;) {
      const found = await this.#found(endMs);
      if (found.stamp === target && found.kind === "") return target;
      if (found.kind === "" && found.seeded)
        await this.#ask("failover", (client, options) => client.failOverAccount(planned(target), options));
      await this.#sim.sleep(lookEveryMs);
    }
  }

  /** Gives the copy up, and waits until its stamp says that it has deleted everything. */
  async removeCopy(withinMs: number): Promise<void> {
    const endMs = this.#sim.nowMs + withinMs;
    for (let since = Number.POSITIVE_INFINITY; ; ) {
      const found = await this.#found(endMs);
      if (found.kind === "" && found.secondary !== "") await this.#unprotect();
      const isOver = found.kind === "" && found.secondary === "" && found.removals.length === 0;
      since = isOver ? Math.min(since, this.#sim.nowMs) : Number.POSITIVE_INFINITY;
      // The location service asks the stamp every 2 s: before that it knows nothing of the removal.
      if (this.#sim.nowMs - since > removalToldMs) return;
      if (this.#sim.nowMs > endMs)
        throw new BrokenPromise(`the copy is not deleted within ${withinMs} ms: ${JSON.stringify(found.trouble)}`);
      await this.#sim.sleep(lookEveryMs);
    }
  }

  async #found(endMs: number): Promise<LocatedAccount> {
    for (;;) {
      const found = await this.look();
      if (found !== undefined) return found;
      if (this.#sim.nowMs > endMs) throw new BrokenPromise("the location service does not answer after the faults");
      await this.#sim.sleep(lookEveryMs);
    }
  }

  /** Returns the account as the location service has it; undefined: it does not answer. */
  async look(): Promise<LocatedAccount | undefined> {
    const answer = await this.#place.call((client, options) => client.getAccount({ account }, options));
    if (!answer.ok) return undefined;
    const { stamp, kind, step, epoch } = answer.value;
    const { nowMs } = this.#sim;
    this.#seen[stamp as StampName] = nowMs;
    const named = kind === "" ? "no operation" : `${kind}, ${step}`;
    if (named !== this.#step) this.#options.onStep(named);
    this.#step = named;
    const forced = this.#owed?.forced;
    if (kind === "forced" && forced?.target === stamp) forced.operation = Number(epoch);
    for (const forced of this.#history.forced) if (kind === "" && stamp === forced.target) forced.endMs = Math.min(forced.endMs, nowMs);
    return answer.value;
  }

  /** Begins an operation. False if there is none to begin now. */
  async #next({ kind, step, stamp, secondary, seeded }: LocatedAccount): Promise<boolean> {
    const prng = this.#prng;
    if (kind === "" && seeded && !(await this.#isReportRead())) return false;
    const primary = stamp as StampName;
    const other = otherStamp(primary);
    const { withQueues = false } = this.#options;
    if (kind !== "") {
      if (kind === "failover" && step === "draining" && prng.chance(this.#options.takesOverChance ?? 0.1)) return this.#force(primary);
      if (prng.chance(this.#options.giveUpChance))
        return this.#ask("give up", (client, options) => client.giveUpOperation({ account }, options));
      return false;
    }
    if (secondary === "") {
      if (prng.chance(0.3))
        return this.#ask("migrate", (client, options) => client.migrateAccount({ account, stamp: other, withQueues }, options));
      return this.#protect(primary);
    }
    if (!seeded) return (prng.chance(0.01) || (await this.#givesReportUp())) && this.#unprotect();
    if (prng.chance(this.#options.forcedChance)) return this.#force(primary);
    if (prng.chance(0.15)) return this.#unprotect();
    return this.#ask("failover", (client, options) => client.failOverAccount(planned(other), options));
  }

  #protect(primary: StampName): Promise<boolean> {
    const stamp = otherStamp(primary);
    const { withQueues = false } = this.#options;
    return this.#ask("protect", (client, options) => client.protectAccount({ account, stamp, withQueues }, options));
  }

  async #unprotect(): Promise<boolean> {
    if (this.#owed !== undefined) count(this.#tally.counts, "report given up");
    this.#owed = undefined;
    return this.#ask("unprotect", (client, options) => client.unprotectAccount({ account }, options));
  }

  async #force(source: StampName): Promise<boolean> {
    const target = otherStamp(source);
    const forced: Forced = { source, target, sinceMs: this.#seen[target], endMs: Number.POSITIVE_INFINITY };
    this.#history.forced.push(forced);
    const request = { account, forced: true, acceptLoss: true, stamp: target };
    const begun = await this.#asked("forced failover", (client, options) => client.failOverAccount(request, options));
    if (!begun.ok && begun.failure.applied === "no") this.#history.forced.splice(this.#history.forced.indexOf(forced), 1);
    else this.#owed = { forced, sinceMs: this.#sim.nowMs };
    if (begun.ok) forced.operation = Number(begun.value.operation);
    return begun.ok;
  }

  /** Reads the report of the old primary, which is a complete copy again: it has ended. False: it is owed, and not told now. */
  async #isReportRead(): Promise<boolean> {
    const { names, merged } = this.#options;
    const forced = this.#owed?.forced;
    if (forced === undefined) return true;
    const report = await readReport(this.#place, forced.source, names);
    if (report === undefined) return false;
    const { commits, complete, trouble } = report;
    if (!complete) throw new BrokenPromise(`stamp ${forced.source} is seeded again, and its report is not complete: ${trouble}`);
    this.#owed = undefined;
    // It may never have begun.
    if (forced.operation === undefined) return true;
    count(this.#tally.counts, "report read");
    forced.merged = merged(forced.source);
    forced.report = commits.filter(({ operation }) => operation === forced.operation);
    return true;
  }

  /** True if the report that is owed will not end, so that only its rows stand in the way of a copy. */
  async #givesReportUp(): Promise<boolean> {
    if (this.#owed === undefined) return false;
    const report = await readReport(this.#place, this.#owed.forced.source, []);
    if (report?.trouble.includes("was not kept")) return this.#prng.chance(0.3);
    return this.#sim.nowMs - this.#owed.sinceMs > reportWithinMs;
  }

  async #ask(what: string, call: LocationCall<LocatedAccount>): Promise<boolean> {
    return (await this.#asked(what, call)).ok;
  }

  async #asked<T>(what: string, call: LocationCall<T>): Promise<Outcome<T>> {
    const begun = await this.#place.call(call);
    this.#sim.note(what, begun.ok ? "begun" : `${begun.failure.reason}: ${begun.failure.message}`);
    count(this.#tally.counts, `${what} ${begun.ok ? "begun" : "not begun"}`);
    return begun;
  }
}

const planned = (stamp: StampName) => ({ account, forced: false, acceptLoss: false, stamp });
