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

const lookEveryMs = 500;

export interface OperatorOptions {
  /** Longest pause between operations, in milliseconds. */
  readonly restMaxMs: number;
  /** How often a failover is forced. */
  readonly forcedChance: number;
}

export class Operator {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #place: TwoStamps;
  readonly #history: GeoHistory;
  readonly #prng: Prng;
  readonly #options: OperatorOptions;
  /** When each stamp was seen as primary last. */
  readonly #seen: Record<StampName, number> = { north: 0, south: 0 };
  /** The last failover was forced, and its old primary owes a report. */
  #owesReport = false;

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
      if (found?.kind === "" && found.seeded) return found.stamp as StampName;
      if (found?.kind === "" && found.secondary !== "" && this.#owesReport) await this.#unprotect();
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

  /** A planned failover, to its end. Returns the new primary. */
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

  async #found(endMs: number): Promise<LocatedAccount> {
    for (;;) {
      const found = await this.look();
      if (found !== undefined) return found;
      if (this.#sim.nowMs > endMs) throw new BrokenPromise("the location service does not answer after the faults");
      await this.#sim.sleep(lookEveryMs);
    }
  }

  /** The account as the location service has it; undefined: it does not answer. */
  async look(): Promise<LocatedAccount | undefined> {
    const answer = await this.#place.call((client, options) => client.getAccount({ account }, options));
    if (!answer.ok) return undefined;
    const { stamp, kind } = answer.value;
    const { nowMs } = this.#sim;
    this.#seen[stamp as StampName] = nowMs;
    for (const forced of this.#history.forced) if (kind === "" && stamp === forced.target) forced.endMs = Math.min(forced.endMs, nowMs);
    return answer.value;
  }

  /** Begins an operation. False if there is none to begin now. */
  async #next({ kind, step, stamp, secondary, seeded }: LocatedAccount): Promise<boolean> {
    const prng = this.#prng;
    const primary = stamp as StampName;
    const other = otherStamp(primary);
    if (kind !== "") {
      if (kind === "failover" && step === "draining" && prng.chance(0.1)) return this.#force(primary);
      if (prng.chance(0.03)) return this.#ask("give up", (client, options) => client.giveUpOperation({ account }, options));
      return false;
    }
    if (secondary === "") {
      if (prng.chance(0.3)) return this.#ask("migrate", (client, options) => client.migrateAccount({ account, stamp: other }, options));
      return this.#protect(primary);
    }
    if (!seeded) return (this.#owesReport ? prng.chance(0.5) : prng.chance(0.01)) && this.#unprotect();
    if (prng.chance(this.#options.forcedChance)) return this.#force(primary);
    if (prng.chance(0.15)) return this.#unprotect();
    return this.#ask("failover", (client, options) => client.failOverAccount(planned(other), options));
  }

  #protect(primary: StampName): Promise<boolean> {
    const stamp = otherStamp(primary);
    return this.#ask("protect", (client, options) => client.protectAccount({ account, stamp }, options));
  }

  async #unprotect(): Promise<boolean> {
    this.#owesReport = false;
    return this.#ask("unprotect", (client, options) => client.unprotectAccount({ account }, options));
  }

  async #force(source: StampName): Promise<boolean> {
    const target = otherStamp(source);
    const forced: Forced = { source, target, sinceMs: this.#seen[target], endMs: Number.POSITIVE_INFINITY };
    this.#history.forced.push(forced);
    const request = { account, forced: true, acceptLoss: true, stamp: target };
    const begun = await this.#asked("forced failover", (client, options) => client.failOverAccount(request, options));
    if (!begun.ok && begun.failure.applied === "no") this.#history.forced.splice(this.#history.forced.indexOf(forced), 1);
    else this.#owesReport = true;
    return begun.ok;
  }

  async #ask(what: string, call: LocationCall<LocatedAccount>): Promise<boolean> {
    return (await this.#asked(what, call)).ok;
  }

  async #asked<T>(what: string, call: LocationCall<T>): Promise<Outcome<T>> {
    const begun = await this.#place.call(call);
    this.#sim.note(what, begun.ok ? "begun" : `${begun.failure.reason}: ${begun.failure.message}`);
    const name = `${what} ${begun.ok ? "begun" : "not begun"}`;
    this.#tally.counts[name] = (this.#tally.counts[name] ?? 0) + 1;
    return begun;
  }
}

const planned = (stamp: StampName) => ({ account, forced: false, acceptLoss: false, stamp });
