/**
 * Bounds what hedges add to the load of a coded store. A hedge of a coded read asks 4 to 12 nodes instead of one, so when all nodes are slow,
 * hedging every read would make them slower. Hedges are at most a share of the reads, plus a few; and reads wait longer while hedges come to
 * nothing. A hedge that gave the answer is not counted: a silent node is read around as often as it takes.
 *
 * Invariants:
 * - Of hedges that came to nothing there are at most `share` for each read, `perSecond` for each second, and `burst`.
 * - A read waits at most `patienceMax` times the usual time of its nodes for its next hedge that the budget allows, and at most a second for
 *   one that it does not allow; of these there are `overdueMax` at once.
 */
import { counter, gauge, type Metrics } from "@stamp/base";

/** Number of hedges that each read adds to the budget. */
const share = 0.1;
/** Hedges for each second, so that a reader with few reads has some. */
const perSecond = 0.1;
/** Largest number of hedges at once, and after a time without any. */
const burst = 10;
/** Largest factor for the usual time of a node. */
export const patienceMax: number = 16;
/** Number of reads at once that may hedge without budget, because they have waited too long. */
const overdueMax = 2;
/** Time without a hedge that came too late after which patience halves, in milliseconds. */
const calmMs = 30_000;

/** Metrics of `HedgeFigures`. `prefix` names the role, e.g. "front_end". */
export const hedgeMetrics = (prefix: string): Metrics => ({
  reads: counter(`${prefix}_coded_reads_total`, "Ranges of fragments of coded extents that were read."),
  hedges: counter(`${prefix}_coded_hedges_total`, "Times that other fragments were asked because a node was late or had too much to do."),
  won: counter(`${prefix}_coded_hedges_won_total`, "Hedges that gave the answer; the others made nodes slower for nothing."),
  denied: counter(`${prefix}_coded_hedges_denied_total`, "Times that a read went on waiting because the budget of hedges was used up."),
  patience: gauge(`${prefix}_coded_hedge_patience`, "Factor by which late nodes are waited for longer than usual, 1 to 16."),
});

/** Counts since the process started. */
export interface HedgeFigures {
  /** Ranges of fragments that were read. */
  readonly reads: number;
  /** Times that other fragments were asked because a node was late. */
  readonly hedges: number;
  /** Hedges that gave the answer. */
  readonly won: number;
  /** Times that a read went on waiting because the budget was used up. */
  readonly denied: number;
  /** Factor by which late nodes are waited for longer than usual now; 1 to 16. */
  readonly patience: number;
}

export class HedgeBudget {
  #tokens = burst;
  #filledMs = 0;
  #patience = 1;
  #lostMs = 0;
  #reads = 0;
  #hedges = 0;
  #won = 0;
  #denied = 0;
  #overdue = 0;
  /** Reads that were denied a hedge and still wait; called when a hedge that won gives its place back. */
  readonly #waiting = new Set<() => void>();

  get figures(): HedgeFigures {
    return { reads: this.#reads, hedges: this.#hedges, won: this.#won, denied: this.#denied, patience: this.#patience };
  }

  /** Notes that a read begins. */
  read(): void {
    this.#reads += 1;
    this.#tokens = Math.min(burst, this.#tokens + share);
  }

  /** Returns the factor for the usual time of a node, after which a read is hedged. */
  patience(nowMs: number): number {
    while (this.#patience > 1 && nowMs - this.#lostMs >= calmMs) {
      this.#patience /= 2;
      this.#lostMs += calmMs;
    }
    return this.#patience;
  }

  /** True if the read may be hedged now. */
  take(nowMs: number): boolean {
    this.#tokens = Math.min(burst, this.#tokens + (Math.max(0, nowMs - this.#filledMs) * perSecond) / 1_000);
    this.#filledMs = nowMs;
    if (this.#tokens < 1) {
      this.#denied += 1;
      return false;
    }
    this.#tokens -= 1;
    this.#hedges += 1;
    return true;
  }

  /** Begins a hedge without budget for a read that waited too long; false: as many are under way already. */
  beginOverdue(): boolean {
    if (this.#overdue >= overdueMax) return false;
    this.#overdue += 1;
    this.#hedges += 1;
    return true;
  }

  endOverdue(): void {
    this.#overdue -= 1;
  }

  /** Notes that a read was answered by `hedges` hedges. */
  won(hedges: number): void {
    if (hedges === 0) return;
    this.#won += hedges;
    this.#patience = Math.max(1, this.#patience / 2);
    this.unjudged(hedges);
  }

  /** Notes that a read ended before anybody knew whether its hedges came to something: they are not counted. */
  unjudged(hedges: number): void {
    this.#tokens = Math.min(burst, this.#tokens + hedges);
    for (const again of this.#waiting) {
      if (this.#tokens < 1) return;
      this.#waiting.delete(again);
      again();
    }
  }

  /** Calls `again` once when there may be a hedge for a read that was denied one. Returns a function that takes this back. */
  whenThereIs(again: () => void): () => void {
    this.#waiting.add(again);
    return () => this.#waiting.delete(again);
  }

  /** Notes a hedged read whose node answered before the hedges. */
  lost(hedges: number, nowMs: number): void {
    if (hedges === 0) return;
    this.#patience = Math.min(patienceMax, this.#patience * 2);
    this.#lostMs = nowMs;
  }
}
