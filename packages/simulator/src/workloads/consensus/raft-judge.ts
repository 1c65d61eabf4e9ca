/**
 * Looks often at what the members of a replicated metadata store say of themselves:
 *   - one leads in a term (Election Safety);
 *   - none finds what it has committed contradicted by a leader (Leader Completeness, State Machine Safety).
 */
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";

const lookEveryMs = 10;

interface Facts {
  readonly role: string;
  readonly term: number;
  readonly full: boolean;
  readonly contradiction?: string | undefined;
}

export class RaftJudge {
  readonly #sim: Simulation;
  readonly #members: readonly string[];
  /** Leaders that were seen, by term. */
  readonly #leaders = new Map<number, string>();
  #stopped = false;

  constructor(sim: Simulation, members: readonly string[]) {
    this.#sim = sim;
    this.#members = members;
  }

  /** The member that leads in the highest term, and that term. */
  get leadership(): { readonly leader: string; readonly term: number } | undefined {
    const led = this.#members.flatMap((leader) => {
      const facts = this.#facts(leader);
      return facts?.role === "leader" ? [{ leader, term: facts.term }] : [];
    });
    return led.toSorted((a, b) => b.term - a.term)[0];
  }

  get leader(): string | undefined {
    return this.leadership?.leader;
  }

  get allStand(): boolean {
    return this.#members.every((name) => this.#facts(name)?.full === true) && this.leader !== undefined;
  }

  /** Looks until it is stopped. Rejects with a BrokenPromise. */
  async watch(): Promise<void> {
    while (!this.#stopped) {
      for (const name of this.#members) this.#look(name);
      await this.#sim.sleep(lookEveryMs);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  #look(name: string): void {
    const facts = this.#facts(name);
    if (facts === undefined) return;
    if (facts.contradiction !== undefined) throw new BrokenPromise(`${name}: ${facts.contradiction}`);
    if (facts.role !== "leader") return;
    const other = this.#leaders.get(facts.term) ?? name;
    if (other !== name) throw new BrokenPromise(`${other} and ${name} both led in term ${facts.term}`);
    this.#leaders.set(facts.term, name);
  }

  /** Returns undefined while it is down or paused. */
  #facts(name: string): Facts | undefined {
    if (!this.#sim.isUp(name) || this.#sim.isPaused(name)) return undefined;
    return this.#sim.role(name)?.status.facts.consensus as Facts | undefined;
  }
}
